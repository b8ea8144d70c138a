//! A batch of fjall's that knows how many bytes it takes in the log.

use fjall::{Database, Keyspace, OwnedWriteBatch, Slice};

use super::SyncMode;

/// What the log has of a batch beside its entries: a number of entries, fjall's number, a checksum, marks.
const BATCH_BYTES: usize = 26;
/// What the log has of an entry beside its key and its value: their lengths, the keyspace, what is done.
const ENTRY_BYTES: usize = 21;

pub(super) struct LogBatch {
    writes: OwnedWriteBatch,
    bytes: usize,
}

impl LogBatch {
    pub(super) fn new(database: Database, entries: usize, sync: SyncMode) -> Self {
        Self {
            writes: OwnedWriteBatch::with_capacity(database, entries).durability(Some(sync.persist())),
            bytes: BATCH_BYTES,
        }
    }

    pub(super) fn insert(&mut self, keyspace: &Keyspace, key: impl Into<Slice>, value: impl Into<Slice>) {
        let (key, value) = (key.into(), value.into());
        self.bytes += ENTRY_BYTES + key.len() + value.len();
        self.writes.insert(keyspace, key, value);
    }

    pub(super) fn remove(&mut self, keyspace: &Keyspace, key: impl Into<Slice>) {
        let key = key.into();
        self.bytes += ENTRY_BYTES + key.len();
        self.writes.remove(keyspace, key);
    }

    /// Returns the bytes that it takes in the log; fewer do if the host's build has fjall compress large values.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    pub(super) fn commit(self) -> fjall::Result<()> {
        self.writes.commit()
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use procession_kernel::Seq;
    use tempfile::TempDir;

    use super::super::log_files::{named, read};
    use super::super::{FjallStore, SyncMode};
    use crate::journal::batch::Batch;
    use crate::journal::keys::Space;
    use crate::journal::store::JournalStore;

    #[test]
    fn it_counts_the_bytes_that_the_log_grows_by() -> Result<(), Box<dyn std::error::Error>> {
        let place = TempDir::new()?;
        let log = named(&place.path().join("store"), 0);
        let store = FjallStore::open(place.path(), SyncMode::Data)?;
        let epoch = block_on(store.acquire())?;
        for number in 0..20_u64 {
            let mut batch = Batch::new(epoch);
            batch.advance_to(Seq(number));
            let length = usize::try_from(number * 300)?;
            batch.put(Space::Keys, &number.to_be_bytes(), &vec![7; length]);
            batch.put(Space::User("orders".into()), &number.to_be_bytes(), &vec![8; length]);
            batch.delete(Space::Payloads, &number.to_be_bytes());
            batch.delete(Space::User("orders".into()), b"none");
            let before = read(&log)?.len();
            block_on(store.append(batch))?;
            let grown = read(&log)?.len() - before;
            let counted = store.with(|opened| opened.commit_queue.writer().unsettled);
            assert_eq!(counted, Some(Some(grown as u64)), "commit {number}");
            store.settle();
        }
        Ok(())
    }
}
