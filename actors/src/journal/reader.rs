//! Reads beside the journal: bounded, and never on a thread that others wait for.

mod rows;
mod standing;

pub(crate) use rows::{LabelEntries, StoredRow, decode_labels, decode_row, slices};

use std::sync::{Arc, Weak};

use procession_kernel::{
    AuditEntry, Blob, HistoryEntry, Key, KeyEntry, ProcedureId, Row, SUBMITTED_ENTRY_LAST, SubmittedValue,
};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::bounds::StoreBounds;
use super::codec;
use super::keys::{self, Space};
use super::read_pool::{PoolThread, ReadPool};
use super::store::{Entries, JournalStore, Scan, SyncTimes};
use crate::error::{CodecError, ReadError, StoreError};
use crate::queues::{Depth, Stamp};

/// Entries per page of a longer scan.
pub(crate) const PAGE: usize = 4096;

/// A handle for reading committed data. It does not keep the store open.
#[derive(Clone)]
pub struct Reader {
    store: Weak<dyn JournalStore>,
    bounds: StoreBounds,
    pool: Arc<ReadPool>,
    depth: Arc<Depth>,
}

impl Reader {
    pub(crate) fn new(store: &Arc<dyn JournalStore>) -> Self {
        Self {
            store: Arc::downgrade(store),
            bounds: store.bounds(),
            pool: Arc::default(),
            depth: Arc::default(),
        }
    }

    /// Returns the largest keys, values and batches that the store takes.
    pub(crate) const fn bounds(&self) -> StoreBounds {
        self.bounds
    }

    /// Returns about how many reads wait for a thread of the pool.
    pub(crate) fn waiting(&self) -> u64 {
        self.depth.waiting()
    }

    /// Runs a read of the store on a thread that may block.
    pub(crate) async fn run<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'a> FnOnce(&'a dyn JournalStore) -> futures::future::BoxFuture<'a, Result<T, StoreError>>
            + Send
            + 'static,
    {
        let closed = || StoreError::Closed {
            place: "this process".to_owned(),
        };
        let store = self.store.upgrade().ok_or_else(closed)?;
        if !store.reads_block() {
            return read(&*store).await;
        }
        let stamp = Stamp::new(&self.depth);
        let (answer, told) = oneshot::channel();
        let thread = self.pool.submit(Box::new(move || {
            drop(stamp);
            if answer.is_closed() {
                return;
            }
            let found = futures::executor::block_on(read(&*store));
            // The reference is dropped before the answer: the receiver may be waiting for the store to be free.
            drop(store);
            answer.send(found).ok();
        }));
        if let Some(thread) = thread {
            drop(actix_rt::task::spawn_blocking(|| PoolThread::run(thread)));
        }
        told.await.map_err(|_| closed())?
    }

    /// Returns the bytes that the store takes up, if it can tell. It may block as long as a sync takes: actors use
    /// `measure_bytes`.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        self.store.upgrade()?.size_bytes()
    }

    /// Returns the bytes that the store takes up, measured where reads may block.
    pub(crate) async fn measure_bytes(&self) -> Option<u64> {
        let measured = self
            .run(|store| Box::pin(std::future::ready(Ok(store.size_bytes()))))
            .await;
        measured.ok().flatten()
    }

    /// Returns how long the store's newest syncs took, or `None` if it cannot tell.
    #[must_use]
    pub fn sync_times(&self) -> Option<SyncTimes> {
        self.store.upgrade()?.sync_times()
    }

    /// Reads one value.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read, or the engine has stopped.
    pub async fn get(&self, space: Space, key: Vec<u8>) -> Result<Option<Vec<u8>>, StoreError> {
        self.run(move |store| store.get(space, key)).await
    }

    /// Reads a range.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read, or the engine has stopped.
    pub async fn scan(&self, scan: Scan) -> Result<Entries, StoreError> {
        self.run(move |store| store.scan(scan)).await
    }

    /// Reads all entries whose keys begin with `prefix`.
    pub(crate) async fn scan_prefix(&self, space: Space, prefix: &[u8]) -> Result<Entries, StoreError> {
        self.scan_up_to(space, prefix, usize::MAX).await
    }

    /// Reads the first `limit` entries whose keys begin with `prefix`.
    pub(crate) async fn scan_up_to(&self, space: Space, prefix: &[u8], limit: usize) -> Result<Entries, StoreError> {
        let (from, to) = (prefix.to_vec(), keys::after_prefix(prefix));
        self.scan_pages(Scan { space, from, to, limit }).await
    }

    /// Reads a range of any length page by page, so that no read occupies a thread of the pool for long.
    async fn scan_pages(&self, scan: Scan) -> Result<Entries, StoreError> {
        let Scan {
            space,
            mut from,
            to,
            limit,
        } = scan;
        let mut all = Vec::new();
        loop {
            let wanted = PAGE.min(limit - all.len());
            let page = self
                .scan(Scan {
                    space: space.clone(),
                    from,
                    to: to.clone(),
                    limit: wanted,
                })
                .await?;
            let is_full = page.len() == wanted;
            all.extend(page);
            let Some((last, _)) = all.last().filter(|_| is_full && all.len() < limit) else {
                return Ok(all);
            };
            from = keys::after(last);
        }
    }

    /// Reads all user data whose key begins with `prefix`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or a value is not of this type.
    pub async fn scan_user<T: DeserializeOwned>(
        &self,
        space: &str,
        prefix: &[u8],
    ) -> Result<Vec<(Vec<u8>, T)>, ReadError> {
        let entries = self.scan_prefix(Space::User(Key::from(space)), prefix).await?;
        let decoded = entries
            .into_iter()
            .map(|(key, value)| Ok((key, codec::decode_user(&value)?)));
        decoded.collect()
    }

    pub(crate) async fn payload(&self, id: ProcedureId, tag: u8) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(Space::Payloads, keys::payload(id, tag).to_vec()).await
    }

    /// Reads what an idempotency key stands for.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store or the entry cannot be read, or the engine has stopped.
    pub async fn key_entry(&self, key: &[u8]) -> Result<Option<KeyEntry>, ReadError> {
        let bytes = self.get(Space::Keys, key.to_vec()).await?;
        Ok(bytes.map(|bytes| codec::decode(&bytes)).transpose()?)
    }

    /// Reads the value that a root was submitted with, and its schema version. Returns `None` if it is not kept.
    pub(crate) async fn submitted(&self, root: &Row) -> Result<Option<(Blob, u16)>, ReadError> {
        if root.as_submitted {
            let value = self.payload(root.id, keys::PAYLOAD).await?;
            return Ok(value.map(|value| (Blob::from(value), root.version)));
        }
        if let Some(stored) = self.payload(root.id, keys::SUBMITTED).await? {
            return Ok(stored
                .split_first_chunk()
                .map(|(version, value)| (Blob::from(value), u16::from_be_bytes(*version))));
        }
        let found = self.submitted_in_history(root.id).await?;
        Ok(found.map(|SubmittedValue { version, value }| (value, version)))
    }

    /// Finds the history entry that has the value with which a root was submitted. A damaged entry is an error only if no
    /// other has the value.
    async fn submitted_in_history(&self, root: ProcedureId) -> Result<Option<SubmittedValue>, ReadError> {
        let scan = Scan {
            space: Space::History,
            from: keys::history(root.family, 1).to_vec(),
            to: Some(keys::history(root.family, SUBMITTED_ENTRY_LAST + 1).to_vec()),
            limit: usize::MAX,
        };
        let mut damage = None;
        for (key, value) in &self.scan_pages(scan).await? {
            match decode_entry(key, value) {
                Ok(entry) => {
                    let of_root = entry.filter(|entry| entry.member == root.member);
                    if let Some(found) = of_root.and_then(|entry| entry.submitted) {
                        return Ok(Some(*found));
                    }
                }
                Err(error) => damage = Some(error),
            }
        }
        damage.map_or(Ok(None), |error| Err(error.into()))
    }

    /// Reads the audit entries with numbers in `begin..end`.
    pub(crate) async fn audit(&self, begin: u64, end: u64) -> Result<Vec<AuditEntry>, ReadError> {
        let entries = self
            .scan(Scan {
                space: Space::Audit,
                from: begin.to_be_bytes().to_vec(),
                to: Some(end.to_be_bytes().to_vec()),
                limit: usize::MAX,
            })
            .await?;
        let decoded = entries.iter().map(|(key, value)| {
            let entry: AuditEntry = codec::decode(value)?;
            let number = key.get(..8).and_then(|key| key.try_into().ok());
            Ok(entry.restored(number.map(u64::from_be_bytes).unwrap_or_default()))
        });
        decoded.collect()
    }

    /// Reads the first `limit` entries of a family's history, in commit order.
    pub(crate) async fn history(&self, family: u64, limit: usize) -> Result<Vec<HistoryEntry>, ReadError> {
        let entries = self.scan_up_to(Space::History, &keys::family(family), limit).await?;
        let decoded = entries
            .iter()
            .filter_map(|(key, value)| decode_entry(key, value).transpose());
        let decoded: Vec<HistoryEntry> = decoded.collect::<Result<_, _>>()?;
        let behind = decoded.last().filter(|_| decoded.len() >= limit);
        let behind = behind.map(|last| last.number.saturating_add(1));
        self.settled(family, decoded, behind).await
    }

    /// Returns a family's whole history if it has at most [`FEW`] entries, up to this number, and the store has all of them
    /// in memory. Does not block. Returns `None` for a damaged entry, too: a proper read says what is wrong.
    pub(crate) fn recent_history(&self, family: u64, newest: u32) -> Option<Vec<HistoryEntry>> {
        if newest > FEW {
            return None;
        }
        let found = self.store.upgrade()?.recent_writes(&Scan {
            space: Space::History,
            from: keys::history(family, 1).to_vec(),
            to: keys::after_prefix(&keys::family(family)),
            limit: FEW as usize,
        })?;
        // Numbers have no gaps: if one is missing, it is in tables, or was never written.
        if found.len() != newest as usize {
            return None;
        }
        let mut entries = Vec::with_capacity(found.len());
        for (key, value) in found {
            let Some(value) = value else { continue };
            entries.push(decode_entry(&key, &value).ok()??);
        }
        Some(entries)
    }

    /// Reads the first `limit` entries of a family's history without the values that their stages left, a page at a
    /// time: together they may have gigabytes.
    pub(crate) async fn history_outline(&self, family: u64, limit: usize) -> Result<Vec<HistoryEntry>, ReadError> {
        let mut entries: Vec<HistoryEntry> = Vec::new();
        let (mut from, mut is_over) = (0, false);
        while !is_over && entries.len() < limit {
            let most = (limit - entries.len()).min(OUTLINE_PAGE);
            let mut page = self.entries_in(family, from, u32::MAX, most).await?;
            is_over = page.len() < most;
            from = page.last().map_or(u32::MAX, |last| last.number.saturating_add(1));
            for value in page.iter_mut().filter_map(|entry| entry.value.as_mut()) {
                value.bytes = None;
            }
            entries.append(&mut page);
        }
        self.settled(family, entries, (!is_over).then_some(from)).await
    }
}

/// Most entries of a history that is read from memory alone, in a turn of the supervisor: decoding one takes less than a
/// microsecond.
const FEW: u32 = 32;
/// Entries that are read at once for an outline: with the largest values they have some 32 MB.
const OUTLINE_PAGE: usize = 500;
/// Most history entries of one page.
pub(crate) const HISTORY_PAGE: usize = 1_000;
/// How many numbers a page looks at together, at least. Entries of old attempts are gone, so few of them may be there.
const NUMBERS_AT_ONCE: u32 = 64;

impl Reader {
    /// Reads entries of a family's history from before the given number, newest first, at most `limit` and 1,000.
    /// Returns them, and the number to read on from, if there may be more.
    pub(crate) async fn history_before(
        &self,
        family: u64,
        before: Option<u32>,
        limit: usize,
    ) -> Result<(Vec<HistoryEntry>, Option<u32>), ReadError> {
        let limit = limit.clamp(1, HISTORY_PAGE);
        let mut entries: Vec<HistoryEntry> = Vec::new();
        let mut to = before.unwrap_or(u32::MAX);
        while entries.len() < limit {
            // The next entry may be far below: one stage may have had a million attempts.
            let Some(newest) = self.newest_below(family, to).await? else {
                return Ok((self.settled(family, entries, before).await?, None));
            };
            let missing = u32::try_from(limit - entries.len()).unwrap_or(u32::MAX);
            let from = newest.saturating_sub(missing.max(NUMBERS_AT_ONCE)).max(1);
            let read = self
                .entries_in(family, from, newest.saturating_add(1), usize::MAX)
                .await?;
            entries.extend(read.into_iter().rev());
            to = from;
        }
        entries.truncate(limit);
        let next = entries.last().map(|entry| entry.number);
        Ok((self.settled(family, entries, before).await?, next))
    }

    /// Finds the newest entry with a number below `to`, by halving: no store reads backwards.
    async fn newest_below(&self, family: u64, to: u32) -> Result<Option<u32>, ReadError> {
        // Entries between these two, exclusive, may be the newest; `low` is there, unless it is 0.
        let (mut low, mut high) = (0, to);
        // Nearly always there is one right below.
        if let Some(entry) = self.entries_in(family, to.saturating_sub(1), to, 1).await?.first() {
            return Ok(Some(entry.number));
        }
        while high.saturating_sub(low) > 1 {
            let middle = low + (high - low) / 2;
            match self.entries_in(family, middle, high, 1).await?.first() {
                Some(entry) => low = entry.number,
                None => high = middle,
            }
        }
        Ok((low > 0).then_some(low))
    }

    /// Reads the first `limit` entries with numbers in `from..to`.
    async fn entries_in(&self, family: u64, from: u32, to: u32, limit: usize) -> Result<Vec<HistoryEntry>, ReadError> {
        let scan = Scan {
            space: Space::History,
            from: keys::history(family, from).to_vec(),
            to: Some(keys::history(family, to).to_vec()),
            limit,
        };
        let entries = self.scan_pages(scan).await?;
        let decoded = entries
            .iter()
            .filter_map(|(key, value)| decode_entry(key, value).transpose());
        Ok(decoded.collect::<Result<_, _>>()?)
    }
}

/// Decodes a history entry. Returns `None` if the key does not belong to the history.
pub(crate) fn decode_entry(key: &[u8], value: &[u8]) -> Result<Option<HistoryEntry>, CodecError> {
    let Some(id) = keys::parse_procedure(key) else {
        return Ok(None);
    };
    let mut entry: HistoryEntry = codec::decode(value).map_err(|error| {
        let why = format!(
            "entry {} of the history of family {}: {}",
            id.member, id.family, error.why
        );
        CodecError { why, ..error }
    })?;
    entry.family = id.family;
    entry.number = id.member;
    Ok(Some(entry))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::Poll;
    use std::time::Duration;

    use futures::FutureExt;
    use futures::executor::block_on;
    use futures::future::join_all;
    use procession_kernel::{Ending, Epoch, Seq, Timestamp};

    use super::*;
    use crate::journal::batch::Batch;
    use crate::journal::fjall::{FjallStore, SyncMode};

    fn entry() -> Vec<u8> {
        entry_with(None)
    }

    fn entry_with(submitted: Option<Box<SubmittedValue>>) -> Vec<u8> {
        let entry = HistoryEntry {
            family: 0,
            number: 0,
            member: 0,
            stage: Blob::default(),
            visit: 0,
            attempt: 1,
            ending: Ending::Next,
            error: None,
            stands: true,
            queued: Timestamp(0),
            admitted: None,
            begun: Timestamp(0),
            ended: Timestamp(0),
            locks: None,
            limits: Vec::new(),
            note: None,
            value: None,
            submitted,
        };
        let mut bytes = Vec::new();
        codec::encode_into(&mut bytes, &entry).unwrap();
        bytes
    }

    fn append_entries(store: &Arc<dyn JournalStore>, epoch: Epoch, number: u64, entries: &[(u32, Vec<u8>)]) {
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(number));
        for (entry, value) in entries {
            batch.put(Space::History, &keys::history(7, *entry), value);
        }
        block_on(store.append(batch)).unwrap();
    }

    #[actix_rt::test]
    async fn a_damaged_entry_is_an_error_only_if_no_other_has_the_submitted_value() {
        let place = tempfile::tempdir().unwrap();
        let store: Arc<dyn JournalStore> = Arc::new(FjallStore::open(place.path(), SyncMode::None).unwrap());
        let epoch = store.acquire().await.unwrap();
        let reader = Reader::new(&store);
        let root = ProcedureId::root(7);
        append_entries(&store, epoch, 1, &[(2, entry())]);
        assert!(matches!(reader.submitted_in_history(root).await, Ok(None)));
        append_entries(&store, epoch, 2, &[(1, vec![0xc1])]);
        assert!(matches!(
            reader.submitted_in_history(root).await,
            Err(ReadError::Codec(_))
        ));
        let submitted = SubmittedValue {
            version: 3,
            value: Blob::from(&b"value"[..]),
        };
        let with = entry_with(Some(Box::new(submitted.clone())));
        append_entries(&store, epoch, 3, &[(SUBMITTED_ENTRY_LAST + 1, with.clone())]);
        assert!(
            matches!(reader.submitted_in_history(root).await, Err(ReadError::Codec(_))),
            "no later entry has it"
        );
        append_entries(&store, epoch, 4, &[(SUBMITTED_ENTRY_LAST, with)]);
        assert_eq!(reader.submitted_in_history(root).await.unwrap(), Some(submitted));
    }

    fn numbers(entries: Option<Vec<HistoryEntry>>) -> Option<Vec<u32>> {
        let numbers = |entries: Vec<HistoryEntry>| entries.iter().map(|entry| entry.number).collect();
        entries.map(numbers)
    }

    #[test]
    fn a_history_in_memory_is_read_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let open = |due_at| {
            FjallStore::open(place.path(), SyncMode::None)
                .unwrap()
                .checkpoint_at(due_at)
        };
        let store: Arc<dyn JournalStore> = Arc::new(open(1 << 30));
        let epoch = block_on(store.acquire()).unwrap();
        let reader = Reader::new(&store);
        append_entries(&store, epoch, 1, &[(1, entry()), (2, entry())]);
        assert_eq!(numbers(reader.recent_history(7, 2)), Some(vec![1, 2]));
        assert_eq!(reader.recent_history(7, 3), None, "one is missing");
        append_entries(&store, epoch, 2, &[(3, b"damaged".to_vec())]);
        assert_eq!(reader.recent_history(7, 3), None);
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(3));
        batch.delete(Space::History, &keys::history(7, 3));
        block_on(store.append(batch)).unwrap();
        assert_eq!(
            numbers(reader.recent_history(7, 3)),
            Some(vec![1, 2]),
            "one was dropped"
        );
        let many: Vec<_> = (3..=FEW + 1).map(|number| (number, entry())).collect();
        append_entries(&store, epoch, 4, &many);
        assert_eq!(reader.recent_history(7, FEW + 1), None, "those are many");
        drop(store);
        assert_eq!(reader.recent_history(7, 3), None, "the store is closed");
    }

    /// The waiting futures are not polled: the asking thread is busy, like an engine's that commits all the time.
    #[actix_rt::test]
    async fn reads_that_wait_begin_without_their_askers() {
        let place = tempfile::tempdir().unwrap();
        let store: Arc<dyn JournalStore> = Arc::new(FjallStore::open(place.path(), SyncMode::None).unwrap());
        let reader = Reader::new(&store);
        let (tell, told) = mpsc::channel();
        let mut asked = pin!(join_all((0..100).map(|number| {
            let tell = tell.clone();
            reader.run(move |_| {
                tell.send(number).ok();
                async move { Ok(number) }.boxed()
            })
        })));
        let begun = futures::poll!(&mut asked);
        let all = (0..100).map_while(|_| told.recv_timeout(Duration::from_secs(60)).ok());
        assert_eq!(all.count(), 100);
        assert_eq!(reader.waiting(), 0);
        let answers = match begun {
            Poll::Ready(answers) => answers,
            Poll::Pending => asked.await,
        };
        assert!(answers.into_iter().map(Result::unwrap).eq(0..100));
    }
}
