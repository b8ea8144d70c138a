//! Checkpoints: a thread of its own moves recent commits into tables.
//!
//! A checkpoint freezes the table that commits went to, and writes the newest version of each of its keys straight
//! into tables on disk, keyspace by keyspace. Only after that does a later commit remove the written records from the
//! keyspace `recent`. After a crash at any point in between all records still exist, and readers prefer them to
//! tables. So half a checkpoint cannot be seen.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use fjall::{AbstractTree, Database, Keyspace, PersistMode};

use super::CLOSED;
use super::open::{RECENT_BYTES, explain};
use super::write::write_out;
use super::{BatchRecord, Layers, Table};
use crate::journal::recent::LAST;

/// Bytes, as a multiple of a checkpoint's due size, beyond which commits wait for the checkpoint under way.
const FULL: usize = 3;
/// Unmerged tables of a keyspace at which a checkpoint merges some before it adds another. fjall slows down at the
/// same number, but only writers that go through its log; and it cannot count beyond 255.
pub(super) const UNMERGED: usize = 20;
/// Consecutive merges without a change before the whole keyspace is merged at once. Each waits [`LOOK`], so this
/// takes at least a minute; merges by other threads have ended by then.
const IN_VAIN: u32 = 6_000;
/// How long a checkpoint waits for other threads' merges before it looks again.
const LOOK: Duration = Duration::from_millis(10);

/// Size from which the memory table of `recent` goes to disk as soon as a checkpoint's records have been removed from
/// it: their deletes are written then, and the newest records alone. When the table is full, which is at any time
/// between two removals, a fifth of it on average are records that the next removal deletes from the table on disk.
/// It is less than half, so that a table that is smaller has room for as much again until the next removal.
pub(super) const RECENT_EMPTIED: u64 = RECENT_BYTES / 16 * 7;

/// Recent commits, and the thread that moves them into tables.
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    /// Size of records and their index at which a checkpoint is due.
    due_at: usize,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    layers: RwLock<Layers>,
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Default)]
struct Work {
    stage: Stage,
    /// A commit has removed the records of a checkpoint from `recent`.
    has_removed: bool,
    ends: bool,
}

/// What the thread does next.
enum Task {
    WriteTables,
    WriteOutRecent,
    End,
}

#[derive(Default)]
enum Stage {
    #[default]
    Rests,
    /// The frozen table is to be written, or is being written.
    Runs,
    /// The table is written: these records are no longer needed.
    Done(Vec<u64>),
    Failed(String),
}

impl Checkpoints {
    /// Starts the thread, with the records found in the keyspace `recent`.
    pub(super) fn start(
        found: Table,
        database: &Database,
        recent: Keyspace,
        parts: Vec<Keyspace>,
        due_at: usize,
    ) -> std::io::Result<Self> {
        let layers = Layers {
            current: found,
            frozen: None,
        };
        let shared = Arc::new(Shared {
            layers: RwLock::new(layers),
            work: Mutex::default(),
            changed: Condvar::new(),
        });
        let tables = Tables {
            database: database.clone(),
            recent,
            parts,
            in_vain: IN_VAIN,
        };
        let thread = {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("procession-checkpoint".to_owned())
                .spawn(move || shared.serve(&tables))?
        };
        Ok(Self {
            shared,
            due_at,
            thread: Some(thread),
        })
    }

    pub(super) const fn set_due_at(&mut self, bytes: usize) {
        self.due_at = bytes;
    }

    /// Returns the current state of recent commits.
    pub(super) fn layers(&self) -> RwLockReadGuard<'_, Layers> {
        self.shared.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current state of recent commits, unless a commit is just being added.
    pub(super) fn try_layers(&self) -> Option<RwLockReadGuard<'_, Layers>> {
        match self.shared.layers.try_read() {
            Ok(layers) => Some(layers),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the records that the next commit removes, since they are in tables. Waits while there are too many.
    ///
    /// # Errors
    ///
    /// Why a checkpoint failed: nothing is lost, and no more can be taken up.
    pub(super) fn superfluous(&self) -> Result<Vec<u64>, String> {
        let most = self.due_at.saturating_mul(FULL);
        let is_full = self.layers().bytes() > most;
        let mut work = self.shared.work();
        while is_full && matches!(work.stage, Stage::Runs) {
            work = self.shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        match &mut work.stage {
            Stage::Rests | Stage::Runs => Ok(Vec::new()),
            Stage::Done(numbers) => {
                let numbers = std::mem::take(numbers);
                work.stage = Stage::Rests;
                Ok(numbers)
            }
            Stage::Failed(why) => Err(why.clone()),
        }
    }

    /// Notes that the records of [`superfluous`](Self::superfluous) were removed.
    pub(super) fn removed(&self) {
        self.shared.work().has_removed = true;
        self.shared.changed.notify_all();
    }

    /// Makes the thread end as soon as it can; the next opening does the rest. A commit that waits for the thread is
    /// answered.
    pub(super) fn end(&self) {
        self.shared.work().ends = true;
        self.shared.changed.notify_all();
    }

    /// Shows a new commit to readers, and begins a checkpoint if one is due.
    pub(super) fn add(&self, records: &[(u64, BatchRecord)]) {
        let mut layers = self.shared.layers.write().unwrap_or_else(PoisonError::into_inner);
        for (number, record) in records {
            layers.current.add(*number, record);
        }
        if layers.current.bytes() < self.due_at {
            return;
        }
        let mut work = self.shared.work();
        // After the end no thread would take it up.
        if matches!(work.stage, Stage::Rests) && !work.ends {
            layers.frozen = Some(Arc::new(std::mem::take(&mut layers.current)));
            work.stage = Stage::Runs;
            self.shared.changed.notify_all();
        }
    }
}

/// Waits for the thread, since the store must be closed as a whole.
impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // The thread catches its own panics.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, tables: &Tables) {
        self.do_what_comes(tables);
        // A commit that waits for an abandoned checkpoint would otherwise wait for ever.
        let mut work = self.work();
        if matches!(work.stage, Stage::Runs) {
            work.stage = Stage::Failed(CLOSED.to_owned());
        }
        drop(work);
        self.changed.notify_all();
    }

    fn do_what_comes(&self, tables: &Tables) {
        loop {
            match self.next_task() {
                Task::WriteTables => {
                    if matches!(self.write_tables(tables), Written::Left) {
                        return;
                    }
                }
                Task::WriteOutRecent => {
                    // Whatever fails or panics here is met by the next commit, too.
                    catch_unwind(AssertUnwindSafe(|| tables.write_out_recent())).ok();
                }
                Task::End => return,
            }
        }
    }

    /// Writes the frozen table, and notes how that ended.
    fn write_tables(&self, tables: &Tables) -> Written {
        let layers = self.layers.read().unwrap_or_else(PoisonError::into_inner);
        let frozen = layers.frozen.clone();
        drop(layers);
        let Some(frozen) = frozen else {
            return Written::All;
        };
        let written = catch_unwind(AssertUnwindSafe(|| tables.write(&frozen, &|| self.work().ends)));
        let stage = match written {
            // The records are there at the next start.
            Ok(Ok(Written::Left)) => return Written::Left,
            Ok(Ok(Written::All)) => {
                self.layers.write().unwrap_or_else(PoisonError::into_inner).frozen = None;
                Stage::Done(frozen.numbers().to_vec())
            }
            Ok(Err(error)) => Stage::Failed(format!("a checkpoint failed: {}", explain(&error))),
            Err(_) => Stage::Failed("a checkpoint panicked; open the journal again".to_owned()),
        };
        if let Stage::Failed(why) = &stage {
            tracing::error!(%why, "the journal cannot move commits into tables and takes no more commits");
        }
        self.work().stage = stage;
        self.changed.notify_all();
        Written::All
    }

    /// Waits for work.
    fn next_task(&self) -> Task {
        let mut work = self.work();
        loop {
            if work.ends {
                return Task::End;
            }
            if std::mem::take(&mut work.has_removed) {
                return Task::WriteOutRecent;
            }
            if matches!(work.stage, Stage::Runs) {
                return Task::WriteTables;
            }
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The destination of checkpoints.
struct Tables {
    database: Database,
    recent: Keyspace,
    /// In the order of [`PARTS`](crate::journal::recent::PARTS).
    parts: Vec<Keyspace>,
    /// See [`IN_VAIN`].
    in_vain: u32,
}

/// How much of a table was written.
enum Written {
    All,
    /// Not all: the store is being closed, and the checkpoint had to wait.
    Left,
}

impl Tables {
    /// Writes a table, each keyspace as a whole and synced.
    fn write(&self, table: &Table, ends: &dyn Fn() -> bool) -> Result<Written, fjall::Error> {
        // Data in tables must also be in the log. Where batches are not synced, it might not be.
        self.database.persist(PersistMode::SyncData)?;
        for (part, keyspace) in (0..).zip(&self.parts) {
            let mut entries = table.entries(part).peekable();
            if entries.peek().is_none() {
                continue;
            }
            if !self.has_way(keyspace, ends)? {
                return Ok(Written::Left);
            }
            let mut ingestion = keyspace.start_ingestion()?;
            for (place, value) in entries {
                match value {
                    Some(value) => ingestion.write(place.key(), value)?,
                    None => ingestion.write_tombstone(place.key())?,
                }
            }
            // A start replays the log of an older release unless tables hold something newer, and merging removes
            // deletes from tables. So this entry stays, and is as new as the checkpoint.
            ingestion.write(LAST, [])?;
            ingestion.finish()?;
        }
        Ok(Written::All)
    }

    /// Has the memory table of `recent` written out while most of it has been deleted.
    fn write_out_recent(&self) {
        if self.recent.tree.active_memtable().size() >= RECENT_EMPTIED {
            write_out(&self.recent);
        }
    }

    /// Merges while there are too many tables, so that a fast writer harms neither reads nor fjall's count. Returns
    /// `false` if the store is closed before another table may be added.
    fn has_way(&self, keyspace: &Keyspace, ends: &dyn Fn() -> bool) -> Result<bool, fjall::Error> {
        let mut in_vain = 0;
        while keyspace.tree.l0_run_count() >= UNMERGED {
            if ends() {
                return Ok(false);
            }
            if in_vain == self.in_vain {
                return self.merge_all(keyspace).map(|()| true);
            }
            let before = keyspace.tree.l0_run_count();
            // Versions that a reader may still need are kept: this cannot be known here, and is left to fjall's
            // threads.
            keyspace.tree.compact(keyspace.config.compaction_strategy.clone(), 0)?;
            let after = keyspace.tree.l0_run_count();
            in_vain = if after < before { 0 } else { in_vain + 1 };
            if after >= UNMERGED {
                // Other threads are merging them, unless they have failed: then this reports the error.
                self.database.persist(PersistMode::Buffer)?;
                std::thread::park_timeout(LOOK);
            }
        }
        Ok(true)
    }

    /// Merges all tables of a keyspace, with no other thread at work on them. Commits wait for the checkpoint, so it
    /// must not wait for ever for a merge that finds nothing to do.
    fn merge_all(&self, keyspace: &Keyspace) -> Result<(), fjall::Error> {
        tracing::warn!(
            keyspace = %keyspace.name(),
            "merging tables one by one makes no progress; the whole keyspace is merged"
        );
        keyspace.major_compact()?;
        // Reports an error that fjall has met meanwhile.
        self.database.persist(PersistMode::Buffer)?;
        let left = keyspace.tree.l0_run_count();
        if left < UNMERGED {
            return Ok(());
        }
        let why = format!(
            "keyspace \"{}\" has {left} tables that are not merged, and merging them changes nothing; open the \
             journal again",
            keyspace.name()
        );
        Err(fjall::Error::Io(std::io::Error::other(why)))
    }
}

#[cfg(test)]
mod tests;
