//! Writing: a batch becomes records, direct writes and its number, as one batch of fjall's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

use fjall::{AbstractTree, Keyspace};
use futures::channel::oneshot;
use procession_kernel::{Epoch, Receipt, Seq};

use super::chain::{CHAIN_KEY, Link};
use super::log_batch::LogBatch;
use super::opened::Opened;
use super::versions::{VERSIONS_KEY, Versions};
use super::zero_fill::ZeroFill;
use super::{BOUNDS, BatchRecord, Encoder, SyncMode, open, remedy};
use crate::clock::machine_now;
use crate::journal::batch::{Batch, Write};
use crate::journal::keys::Space;
use crate::journal::layout::{EPOCH_KEY, FORMAT, FORMAT_KEY, SEQ_KEY};
use crate::journal::recent::ShortKey;
use crate::journal::store::AppendError;

/// The position of the journal. The holder of its lock may commit.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// The newest epoch that took effect, and its newest batch.
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
    /// The newest epoch that was granted.
    pub(super) granted: Epoch,
    /// What that batch says about its predecessor; `None` if an older release wrote it without that.
    pub(super) link: Option<Link>,
    /// The keys of the oldest record in `recent` and of the newest that ever was.
    pub(super) oldest: u64,
    pub(super) record: u64,
    pub(super) versions: Versions,
    /// Commits since the sizes of memory tables were checked.
    pub(super) unbounded: u32,
    /// Bytes of the newest commit, if what it left to [`Opened::settle`] has not been done.
    pub(super) unsettled: Option<u64>,
    pub(super) zero_fill: ZeroFill,
    /// Bytes of the commits since readers were shown the newest one.
    pub(super) unshown: usize,
    /// Why no more is written.
    pub(super) failure: Option<String>,
    pub(super) encoder: Encoder,
}

/// Commits between two checks of the memory tables' sizes: 16 batches of usual size add little to them.
const MEMORY_LOOK: u32 = 16;

/// Bytes of commits without direct writes after which readers are shown the newest one all the same: what has been
/// overwritten since the snapshot before it cannot be dropped from tables.
const SHOW: usize = 64 << 10;

/// A batch in the form in which it is written.
struct Sorted<'a> {
    records: Vec<BatchRecord>,
    direct: Vec<Write<'a>>,
}

/// A batch that was queued and not yet committed.
pub(super) struct Pending {
    pub(super) batch: Batch,
    pub(super) answer: oneshot::Sender<Result<Receipt, AppendError>>,
}

impl Opened {
    /// Commits the queued batches in order, on the first thread that calls it.
    pub(super) fn commit_queued(&self) {
        self.commit_queue.serve(|writer, Pending { batch, answer }| {
            let committed = writer.guarded(|writer| self.commit(writer, &batch));
            // A caller that has stopped waiting does not need the answer.
            answer.send(committed).ok();
        });
    }

    /// Does what the newest commit left to be done, and what its caller need not wait for. The watermark alone takes
    /// as long as a twentieth of a small commit.
    pub(super) fn settle(&self) {
        // Its failure is the answer to the next batch.
        self.commit_queue
            .writer()
            .guarded(|writer| {
                self.settle_newest(writer);
                Ok(())
            })
            .ok();
    }

    fn settle_newest(&self, writer: &mut Writer) {
        let Some(bytes) = writer.unsettled.take() else {
            return;
        };
        // Without a sync the watermark could outlive the commit that it names, and commits pay for no block.
        if self.sync != SyncMode::None {
            self.directory.set_mark(writer.epoch, writer.seq);
            self.fill_log(&mut writer.zero_fill, bytes);
        }
        self.bound_memory(&mut writer.unbounded);
    }

    fn commit(&self, writer: &mut Writer, batch: &Batch) -> Result<Receipt, AppendError> {
        writer.admit(batch.epoch())?;
        self.settle_newest(writer);
        let written = self.write(writer, batch);
        match &written {
            Ok(bytes) => {
                writer.epoch = batch.epoch();
                writer.seq = batch.seq();
                writer.unsettled = Some(*bytes);
            }
            Err(AppendError::Failed(why) | AppendError::Unknown(why)) => writer.failure = Some(why.clone()),
            Err(AppendError::Fenced { .. }) => {}
        }
        written.map(|_| Receipt::new(batch.epoch(), batch.seq()))
    }

    /// Writes a batch, and returns the bytes that it takes in the log.
    fn write(&self, writer: &mut Writer, batch: &Batch) -> Result<u64, AppendError> {
        let superfluous = self.checkpoints.superfluous().map_err(AppendError::Failed)?;
        let Sorted { records, direct } = self.sort(batch, &mut writer.encoder)?;
        let room = direct.len() + records.len() + superfluous.len() + 5;
        let mut writes = LogBatch::new(self.database.clone(), room, self.sync);
        // Records are removed when tables hold them, so the same commit notes how new tables must be.
        let takes_out = !superfluous.is_empty();
        let oldest = superfluous.last().map_or(writer.oldest, |number| number + 1);
        for number in superfluous {
            writes.remove(&self.recent, number.to_be_bytes());
        }
        let records: Vec<(u64, BatchRecord)> = (writer.record + 1..).zip(records).collect();
        for (number, record) in &records {
            writes.insert(&self.recent, number.to_be_bytes(), record.bytes.clone());
        }
        self.write_direct(&direct, &mut writes)?;
        let meta = self.keyspace_for_write(&Space::Meta, &mut writes)?;
        let is_first = batch.epoch() != writer.epoch;
        if is_first {
            writes.insert(&meta, EPOCH_KEY, batch.epoch().0.to_be_bytes());
            // An older release may not understand what is written from here on.
            writes.insert(&meta, FORMAT_KEY, FORMAT.to_be_bytes());
            writes.remove(&meta, CHAIN_KEY);
        }
        if let Some(row) = self.versions_row(&mut writer.versions, takes_out) {
            writes.insert(&meta, VERSIONS_KEY, row);
        }
        let record = records.last().map_or(writer.record, |(number, _)| *number);
        let link = Link {
            commit: (batch.epoch(), batch.seq()),
            before: (writer.epoch, writer.seq),
            oldest,
            newest: record,
        };
        // Last: an opening recognises the newest batch by it.
        writes.insert(&meta, SEQ_KEY, link.encode());
        let log_bytes = writes.bytes();
        self.persist(writes)?;
        self.check_log()?;
        (writer.oldest, writer.record) = (oldest, record);
        if takes_out {
            self.checkpoints.removed();
        }
        self.checkpoints.add(&records);
        // Readers find records in `recent`, so what they see through a snapshot changes with direct writes alone, and most
        // commits have none. A snapshot costs a commit a hundredth of its time.
        writer.unshown += batch.size_bytes();
        if is_first || !direct.is_empty() || writer.unshown >= SHOW {
            writer.unshown = 0;
            self.committed.renew(&self.database);
        }
        writer.encoder.take_back(records);
        Ok(log_bytes)
    }

    /// Splits a batch into writes that pass through `recent` and writes that go directly into tables.
    fn sort<'a>(&self, batch: &'a Batch, encoder: &mut Encoder) -> Result<Sorted<'a>, AppendError> {
        encoder.begin(batch.len(), batch.size_bytes());
        let mut direct = Vec::new();
        for write in batch.writes() {
            if let Some(why) = BOUNDS.refusal(&write) {
                return Err(AppendError::Failed(why));
            }
            match self.part(write.space).zip(ShortKey::of(write.key)) {
                Some((part, place)) => encoder.push(part, place, write.value),
                None => direct.push(write),
            }
        }
        let records = encoder.finish();
        Ok(Sorted { records, direct })
    }

    fn write_direct(&self, direct: &[Write<'_>], writes: &mut LogBatch) -> Result<(), AppendError> {
        for group in in_order(direct).chunk_by(|one, next| one.space == next.space) {
            let Some(first) = group.first() else { continue };
            let keyspace = self.keyspace_for_write(first.space, writes)?;
            for write in group {
                match write.value {
                    Some(value) => writes.insert(&keyspace, write.key, value),
                    None => writes.remove(&keyspace, write.key),
                }
            }
        }
        Ok(())
    }

    /// Has the largest memory tables written out while all of them together exceed the limit.
    fn bound_memory(&self, commits: &mut u32) {
        *commits += 1;
        if *commits < MEMORY_LOOK {
            return;
        }
        *commits = 0;
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        let keyspaces = spaces.values().chain([&self.recent]);
        let mut sizes: Vec<(u64, &Keyspace)> = keyspaces
            .map(|keyspace| (keyspace.tree.active_memtable().size(), keyspace))
            .collect();
        let mut sum: u64 = sizes.iter().map(|(size, _)| size).sum();
        sizes.sort_unstable_by_key(|(size, _)| *size);
        while sum > self.memory_bytes
            && let Some((size, largest)) = sizes.pop()
        {
            sum -= size;
            if !write_out(largest) {
                return;
            }
        }
    }

    fn versions_row(&self, versions: &mut Versions, must_look: bool) -> Option<Vec<u8>> {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        versions.row(&self.database, must_look, || {
            spaces.values().chain([&self.recent]).collect()
        })
    }

    fn persist(&self, writes: LogBatch) -> Result<(), AppendError> {
        let begun = machine_now();
        let committed = writes.commit();
        self.sync_seconds.record(begun.elapsed());
        committed.map_err(|error| {
            // The only error that is raised before anything is written.
            let is_refused = matches!(error, fjall::Error::Poisoned);
            if is_refused {
                AppendError::Failed(remedy::background(self.directory.place()))
            } else {
                AppendError::Unknown(open::explain(&error))
            }
        })
    }

    /// Checks that the log still has its name; otherwise no start would find the commit.
    fn check_log(&self) -> Result<(), AppendError> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.check().map_err(AppendError::Unknown)
    }

    /// Keeps zeros ahead of the log's end. `open_plain` is fjall alone.
    fn fill_log(&self, zeros: &mut ZeroFill, commit_bytes: u64) {
        if !self.is_plain {
            let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
            let (number, log) = watch.log();
            zeros.keep_ahead(number, log, commit_bytes);
        }
    }

    /// Returns a keyspace. A user keyspace is created by its first write; its name goes into `meta` with the batch
    /// that needs it.
    fn keyspace_for_write(&self, space: &Space, writes: &mut LogBatch) -> Result<Keyspace, AppendError> {
        if let Some(keyspace) = self.keyspace(space) {
            return Ok(keyspace);
        }
        let keyspace = open::make_keyspace(&self.database, &self.directory, space)
            .map_err(|error| AppendError::Failed(error.to_string()))?;
        if let Some(meta) = self.keyspace(&Space::Meta) {
            writes.insert(&meta, open::space_key(space), []);
        }
        self.spaces
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(space.clone(), keyspace.clone());
        Ok(keyspace)
    }
}

/// Bits that number a write within its batch; the writes of larger batches are not sorted.
const NUMBER_BITS: u32 = 24;

/// Has a memory table written out. Returns `false` if that fails: the next commit meets the same error, and is answered
/// with it.
pub(super) fn write_out(keyspace: &Keyspace) -> bool {
    let rotated = keyspace.rotate_memtable();
    if let Err(error) = &rotated {
        tracing::warn!(why = open::explain(error), "a memory table cannot be written out");
    }
    rotated.is_ok()
}

/// Sorts writes by key: neighbours in the keyspace are neighbours in its memtable, so each insert finds its position
/// near the last one. Writes of one key keep their order.
pub(super) fn in_order<'a>(direct: &[Write<'a>]) -> Vec<Write<'a>> {
    if direct.len() >> NUMBER_BITS > 0 {
        return direct.to_vec();
    }
    // Sorted as numbers: comparing the keys themselves took a tenth of a commit's time.
    let numbered = direct.iter().zip(0_u128..);
    let mut places: Vec<u128> = numbered
        .map(|(write, number)| (place(write) << NUMBER_BITS) | number)
        .collect();
    places.sort_unstable();
    let number_of = |place: u128| usize::try_from(place & ((1 << NUMBER_BITS) - 1)).ok();
    let writes = places.into_iter().filter_map(|place| direct.get(number_of(place)?));
    writes.copied().collect()
}

/// Returns the sort position of a write: its keyspace, and the first 12 bytes of its key. They name the procedure or
/// the entry in nearly all of the engine's keys.
fn place(write: &Write<'_>) -> u128 {
    let mut bytes = [0; 16];
    let begin = write.key.get(..12).unwrap_or(write.key);
    let [_, _, _, space, key @ ..] = &mut bytes;
    *space = write.space.number();
    for (to, from) in key.iter_mut().zip(begin) {
        *to = *from;
    }
    u128::from_be_bytes(bytes)
}

impl Writer {
    /// Runs a step of a commit. If it panics, a batch may be in the log without the writer knowing, and the next batch
    /// would get the same number. So nothing more is written.
    fn guarded<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, AppendError>) -> Result<T, AppendError> {
        catch_unwind(AssertUnwindSafe(|| step(self))).unwrap_or_else(|_| {
            let why = "a commit panicked; the next opening of the journal shows its outcome".to_owned();
            self.failure.get_or_insert_with(|| why.clone());
            Err(AppendError::Unknown(why))
        })
    }

    /// Checks the epoch. No other process can open the directory, so an epoch granted in this process fences all
    /// older ones.
    pub(super) fn admit(&self, epoch: Epoch) -> Result<(), AppendError> {
        let newer = self.granted.max(self.epoch);
        if epoch < newer {
            return Err(AppendError::Fenced { newer });
        }
        self.failure.clone().map_or(Ok(()), |why| Err(AppendError::Failed(why)))
    }

    pub(super) fn grant(&mut self) -> Epoch {
        self.granted = Epoch(self.granted.max(self.epoch).0 + 1);
        self.granted
    }
}
