//! Checkpoints: what was committed lately goes into tables, on a thread of its own.
//!
//! A checkpoint freezes the table that commits went to, and writes the newest version of each of its keys
//! straight into tables on disk, keyspace by keyspace. Only then is what it wrote taken out of the keyspace
//! `recent`, with a later commit. After a crash at any point in between the records are all still there, and
//! what a reader finds in them goes before what tables say: so half a checkpoint cannot be seen.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use fjall::{AbstractTree, Database, Keyspace, PersistMode};

use super::CLOSED;
use super::open::explain;
use super::{BatchRecord, Layers, Table};
use crate::journal::recent::LAST;

/// Bytes, as a multiple of what a checkpoint is due at, beyond which commits wait for the one under way.
const FULL: usize = 3;
/// Tables of a keyspace that are not merged yet, at which a checkpoint merges some before it adds one. fjall slows
/// down at as many, but only who writes to a keyspace through its log; and it cannot count beyond 255.
const UNMERGED: usize = 20;
/// How often in a row a merge may change nothing before the whole keyspace is merged at once. Every look waits
/// [`LOOK`], so this is at least a minute; others have merged what they had taken up by then.
const IN_VAIN: u32 = 6_000;
/// How long a checkpoint waits for who is merging them already, before it looks again.
const LOOK: Duration = Duration::from_millis(10);

/// What was committed lately, and the thread that puts it into tables.
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    /// A checkpoint is due at so many bytes of records and their index.
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
    ends: bool,
}

#[derive(Default)]
enum Stage {
    #[default]
    Rests,
    /// The frozen table is to be written, or is being written.
    Runs,
    /// It is in tables: these records are not needed any more.
    Done(Vec<u64>),
    Failed(String),
}

impl Checkpoints {
    /// Starts with what was found in the keyspace `recent`.
    pub(super) fn start(
        found: Table,
        database: &Database,
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

    /// What was committed lately, as it is now.
    pub(super) fn layers(&self) -> RwLockReadGuard<'_, Layers> {
        self.shared.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the records that the next commit takes out, since they are in tables. Waits while there are too many.
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

    /// Has the thread end as soon as it can; what it leaves undone is done after the next opening. A commit that
    /// waits for it is answered.
    pub(super) fn end(&self) {
        self.shared.work().ends = true;
        self.shared.changed.notify_all();
    }

    /// Shows readers what was committed just now, and begins a checkpoint if one is due.
    pub(super) fn add(&self, records: &[(u64, BatchRecord)]) {
        let mut layers = self.shared.layers.write().unwrap_or_else(PoisonError::into_inner);
        for (number, record) in records {
            layers.current.add(*number, record);
        }
        if layers.current.bytes() < self.due_at {
            return;
        }
        let mut work = self.shared.work();
        // After the end nobody would take it up.
        if matches!(work.stage, Stage::Rests) && !work.ends {
            layers.frozen = Some(Arc::new(std::mem::take(&mut layers.current)));
            work.stage = Stage::Runs;
            self.shared.changed.notify_all();
        }
    }
}

/// A checkpoint under way is waited for: the store is to be closed as a whole.
impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // It catches what panics in it.
            drop(thread.join());
        }
    }
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, tables: &Tables) {
        self.write_what_comes(tables);
        // Whoever waits for a checkpoint that this thread leaves undone would wait for ever.
        let mut work = self.work();
        if matches!(work.stage, Stage::Runs) {
            work.stage = Stage::Failed(CLOSED.to_owned());
        }
        drop(work);
        self.changed.notify_all();
    }

    fn write_what_comes(&self, tables: &Tables) {
        while self.is_asked() {
            let layers = self.layers.read().unwrap_or_else(PoisonError::into_inner);
            let frozen = layers.frozen.clone();
            drop(layers);
            let Some(frozen) = frozen else { continue };
            let written = catch_unwind(AssertUnwindSafe(|| tables.write(&frozen, &|| self.work().ends)));
            let stage = match written {
                // The records are there at the next start.
                Ok(Ok(Written::Left)) => return,
                Ok(Ok(Written::All)) => {
                    self.layers.write().unwrap_or_else(PoisonError::into_inner).frozen = None;
                    Stage::Done(frozen.numbers().to_vec())
                }
                Ok(Err(error)) => Stage::Failed(format!("a checkpoint failed: {}", explain(&error))),
                Err(_) => Stage::Failed("a checkpoint panicked; open the journal again".to_owned()),
            };
            if let Stage::Failed(why) = &stage {
                tracing::error!(%why, "the journal cannot put commits into tables; it takes no more");
            }
            self.work().stage = stage;
            self.changed.notify_all();
        }
    }

    /// Waits for work; tells whether there is some, and not the end.
    fn is_asked(&self) -> bool {
        let mut work = self.work();
        while !work.ends && !matches!(work.stage, Stage::Runs) {
            work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        !work.ends
    }
}

/// Where checkpoints go.
struct Tables {
    database: Database,
    /// In the order of [`PARTS`](crate::journal::recent::PARTS).
    parts: Vec<Keyspace>,
    /// See [`IN_VAIN`].
    in_vain: u32,
}

/// How much of a table was written.
enum Written {
    All,
    /// The store is being closed, and there was something to wait for.
    Left,
}

impl Tables {
    /// Writes a table, each keyspace as a whole and synced.
    fn write(&self, table: &Table, ends: &dyn Fn() -> bool) -> Result<Written, fjall::Error> {
        // What is in tables must be in the log, too: where batches are not synced, it might not be.
        self.database.persist(PersistMode::SyncData)?;
        for (part, keyspace) in self.parts.iter().enumerate() {
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
            // What an older release wrote to the log is read again at a start unless something newer is in
            // tables, and merging takes deletes out of them. So this stays, and is as new as the checkpoint.
            ingestion.write(LAST, [])?;
            ingestion.finish()?;
        }
        Ok(Written::All)
    }

    /// Merges while there are too many tables, so that neither reads nor fjall's count suffer from who writes faster.
    /// Tells whether one more may be added: not if the store is closed before that.
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
            // Versions that a reader may still need are kept: what cannot be told here is left to fjall's threads.
            keyspace.tree.compact(keyspace.config.compaction_strategy.clone(), 0)?;
            let after = keyspace.tree.l0_run_count();
            in_vain = if after < before { 0 } else { in_vain + 1 };
            if after >= UNMERGED {
                // Others are merging them, unless they have failed: then this says so.
                self.database.persist(PersistMode::Buffer)?;
                std::thread::park_timeout(LOOK);
            }
        }
        Ok(true)
    }

    /// Merges all tables of a keyspace, with nobody else at work on them. Commits wait for the checkpoint, so it
    /// must not wait for ever for a merge that finds nothing to do.
    fn merge_all(&self, keyspace: &Keyspace) -> Result<(), fjall::Error> {
        tracing::warn!(keyspace = %keyspace.name(), "its tables are not merged one by one; all of it is merged");
        keyspace.major_compact()?;
        // Says whether fjall has failed meanwhile.
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
