//! The state that `decide` reads and `evolve` writes: every live family, the
//! timers, the keys, and the rules of the engine that it runs in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::audit::AuditEntry;
use crate::decision::{Commit, Decision};
use crate::families::Families;
use crate::id::{Epoch, Key, Kind, LimitKey, ProcedureId, Seq, Timestamp};
use crate::record::{KeyEntry, Record};
use crate::retry::RetryPolicy;
use crate::row::Row;
use crate::wait::{Pause, WaitReason};
use crate::waiters::Waiters;

/// How much history a kind leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HistoryDetail {
    /// Every stage, undo and the last failed attempts.
    #[default]
    Full,
    /// Only what stands on the rollback stack.
    Stack,
}

/// What the engine's code says about a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindRules {
    /// Schema that the code writes.
    pub version: u16,
    /// Oldest schema that the code still reads.
    pub oldest: u16,
    /// False for a kind whose stages cannot be undone.
    pub rollback: bool,
    /// Attempts of a stage.
    pub retry: RetryPolicy,
    /// Attempts of an undo.
    pub retry_undo: RetryPolicy,
    /// How often one stage may run in a row; none is without bound.
    pub same_stage: Option<u32>,
    /// Its code cleans up after the end.
    pub cleanup: bool,
    /// How much history it leaves.
    pub history: HistoryDetail,
    /// How long its results are kept after the end, if not as long as the engine's.
    pub keep_after_end: Option<Duration>,
    /// The same after they were acknowledged.
    pub keep_after_acknowledgement: Option<Duration>,
}

impl KindRules {
    /// Makes the rules of a kind that says nothing of itself.
    #[must_use]
    pub fn new(version: u16) -> Self {
        Self {
            version,
            oldest: version,
            rollback: true,
            retry: RetryPolicy::default(),
            retry_undo: RetryPolicy::default(),
            same_stage: None,
            cleanup: false,
            history: HistoryDetail::Full,
            keep_after_end: None,
            keep_after_acknowledgement: None,
        }
    }
}

impl KindRules {
    /// Checks whether the code reads values of this version of the kind.
    ///
    /// # Errors
    ///
    /// Why it does not.
    pub fn check_version(&self, kind: &Kind, version: u16) -> Result<(), String> {
        if version > self.version {
            return Err(format!(
                "version {version} of \"{kind}\" is newer than the code, which reads up to {}",
                self.version
            ));
        }
        if version < self.oldest {
            let reads = if self.oldest == self.version {
                format!("{} alone", self.version)
            } else {
                format!("{} to {}", self.oldest, self.version)
            };
            return Err(format!(
                "version {version} of \"{kind}\" is no longer read: the code reads {reads}"
            ));
        }
        Ok(())
    }
}

/// Bounds that keep one caller from exhausting the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of a payload, an output or a signal. Default 1 MiB: a procedure is
    /// control-plane work, and each of its stages writes its payload again.
    pub payload: usize,
    /// Children of one `Spawn`. Default 100,000: they are born in one commit,
    /// which must fit in memory several times over.
    pub children: usize,
    /// Members of one family. Default 1,000,000, which a family's index still covers easily.
    pub members: usize,
    /// Levels of a family, the root included. Default 32: each costs a step of
    /// every walk to the root.
    pub depth: usize,
    /// Submissions in one batch, and submissions of one stage. Default 10,000.
    pub batch: usize,
    /// Bytes of a name that somebody gives: a key, an event, a limit. Default
    /// 1,024: it is part of a key on disk, and of every message about it.
    pub name: usize,
    /// Signals that wait for one procedure. Default 10,000.
    pub signals: usize,
    /// Keys of consumed signals that are remembered for one procedure; the oldest goes first. Default
    /// 10,000: a sender repeats within seconds, and these are hours of a signal each second.
    pub signal_keys: usize,
    /// Writes of user data by one stage or undo. Default 10,000, as submissions of one stage: deciding on
    /// them and encoding them takes some milliseconds.
    pub writes: usize,
    /// Bytes of user data that one stage or undo writes. Default 32 MiB: half of a log, so that no commit fills
    /// one by itself, and a tenth of a second of a disk that takes 300 MB a second.
    pub write_bytes: usize,
    /// Keyspaces of user data in the store. Default 256: each is a tree that is made inside a commit, with files
    /// of its own, and with this many each still has 512 KiB of the store's 128 MiB of memory tables.
    pub keyspaces: usize,
    /// Failed attempts of one stage that keep their history entry. Default 5.
    pub attempts_kept: usize,
    /// Waiters of a broadcast that one commit wakes. Default 512: deciding on them takes
    /// some 2 ms, for which everybody else waits.
    pub wave: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            payload: 1 << 20,
            children: 100_000,
            members: 1_000_000,
            depth: 32,
            batch: 10_000,
            name: 1_024,
            signals: 10_000,
            signal_keys: 10_000,
            writes: 10_000,
            write_bytes: 32 << 20,
            keyspaces: 256,
            attempts_kept: 5,
            wave: 512,
        }
    }
}

/// What does not change while an engine runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Registered kinds.
    pub kinds: BTreeMap<Kind, KindRules>,
    /// Bounds.
    pub bounds: Bounds,
    /// How long a result is kept after the end; HBase keeps it 15 minutes.
    pub keep_after_end: Duration,
    /// How long a result is kept after it was acknowledged; HBase keeps it 5 minutes.
    pub keep_after_acknowledgement: Duration,
    /// What the jitter of backoffs is drawn from.
    pub seed: u64,
}

/// Everything that a decision may depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    pub(crate) rules: Rules,
    pub(crate) epoch: Epoch,
    pub(crate) deaths: u32,
    pub(crate) seq: Seq,
    pub(crate) next_family: u64,
    pub(crate) reserved: u64,
    pub(crate) families: Families,
    pub(crate) timers: BTreeSet<(Timestamp, ProcedureId)>,
    /// Timers that the rows ask for, those that were disarmed left out.
    pub(crate) armed: usize,
    /// Whose timers have nothing to wake.
    pub(crate) disarmed: BTreeSet<ProcedureId>,
    pub(crate) waiters: Waiters,
    pub(crate) keys: BTreeMap<Key, KeyEntry>,
    /// Keyspaces of user data: those of the store, and those that decided commits write to.
    pub(crate) spaces: BTreeSet<Key>,
    pub(crate) limits: BTreeMap<LimitKey, Option<u32>>,
    pub(crate) draining: bool,
    pub(crate) going: usize,
    pub(crate) late: u64,
    pub(crate) found: u64,
    pub(crate) pauses: BTreeSet<Pause>,
    pub(crate) audits: VecDeque<u64>,
    pub(crate) next_audit: u64,
    pub(crate) requests: BTreeMap<Key, AuditEntry>,
    pub(crate) suspects: BTreeSet<ProcedureId>,
    pub(crate) alone: Option<ProcedureId>,
}

impl Kernel {
    /// Makes the state of an engine before anything was read. `deaths` is how
    /// often engines of this store have died, this start's finding included.
    #[must_use]
    pub fn new(rules: Rules, epoch: Epoch, deaths: u32) -> Self {
        Self {
            rules,
            epoch,
            deaths,
            next_family: 1,
            reserved: 1,
            ..Self::default()
        }
    }

    /// Applies a decision and holds its effects back in `commit`. What must go
    /// to disk is read off [`Decision::durable`] before.
    ///
    /// A decision with nothing for the disk still waits for the newest commit
    /// that was decided: what it says rests on that.
    pub fn fold(&mut self, decision: Decision, commit: &mut Commit) {
        let is_commit = decision.is_commit();
        let (records, effects) = decision.into_parts();
        if is_commit {
            self.seq = self.seq.next();
        }
        let mut parked = Vec::new();
        for record in records {
            if let Record::Row(row) = record {
                if row.wait.as_ref().is_some_and(WaitReason::is_rest) {
                    parked.push(row.id.family);
                }
                // Large, and most decisions bring one: it moves in as it is.
                self.row_put(row);
            } else {
                self.evolve(&record);
            }
        }
        self.families.cool();
        for family in parked {
            self.families.freeze(family);
        }
        commit.hold(self.seq, is_commit, effects);
    }

    /// Packs a family away if all that it does is to wait for a time or an
    /// event: a start has read it. Live, each decision does so with what it parks.
    pub fn freeze(&mut self, family: u64) {
        self.families.freeze(family);
    }

    /// Lets go of frozen families that were thawed for a look. Each commit does so.
    pub fn cool(&mut self) {
        self.families.cool();
    }

    /// [Folds](Self::fold) a decision, and gives the records that must go to disk, in order.
    pub fn apply(&mut self, decision: Decision, commit: &mut Commit) -> Vec<Record> {
        let records = decision.durable().cloned().collect();
        self.fold(decision, commit);
        records
    }

    /// Gives the epoch of this engine.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Gives the newest commit that was decided.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// Gives the live families.
    #[must_use]
    pub const fn families(&self) -> &Families {
        &self.families
    }

    /// Gives the row of a member of a live family.
    #[must_use]
    pub fn row(&self, id: ProcedureId) -> Option<&Row> {
        self.families.get(&id.family)?.row(id.member)
    }

    /// Gives what a key stands for, if its family was submitted in this run.
    #[must_use]
    pub fn key(&self, key: &Key) -> Option<&KeyEntry> {
        self.keys.get(key)
    }

    /// Notes a keyspace of user data that the store has, or that a commit writes to.
    pub fn note_space(&mut self, space: &Key) {
        if !self.spaces.contains(space) {
            self.spaces.insert(space.clone());
        }
    }

    /// Gives the capacities that were set at run time.
    #[must_use]
    pub const fn limits(&self) -> &BTreeMap<LimitKey, Option<u32>> {
        &self.limits
    }

    /// Gives the rules that the engine runs by.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Gives the earliest deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Gives the procedure whose timer is due first at this time, if one is.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<ProcedureId> {
        self.timers.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    /// Gives the broadcast whose waiters are to be woken next, if one is under way; each in turn, so the
    /// one that was served last is given. None while the engine drains: the next start goes on.
    #[must_use]
    pub fn next_wave(&self, served: Seq) -> Option<Seq> {
        self.waiters.next(served).filter(|_| !self.draining)
    }

    /// Tells whether a timer is missing that a row asks for. Counted, so that it costs nothing however many there are.
    #[must_use]
    pub fn lacks_timers(&self) -> bool {
        self.timers.len() < self.armed
    }

    /// Gives the number of stages that are out.
    #[must_use]
    pub const fn going(&self) -> usize {
        self.going
    }

    /// Gives how many undos are out.
    #[must_use]
    pub fn undoing(&self) -> usize {
        self.families
            .awake()
            .flat_map(|family| family.scopes.values())
            .filter(|scope| matches!(scope, crate::family::Scope::Held { out: true, .. }))
            .count()
    }

    /// Gives how many reports and wakes came too late and changed nothing.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Gives how many lost wakes were found and made up for.
    #[must_use]
    pub const fn found(&self) -> u64 {
        self.found
    }

    /// Gives the kinds that are paused, or everything.
    #[must_use]
    pub const fn pauses(&self) -> &BTreeSet<Pause> {
        &self.pauses
    }

    /// Sets what the jitter of backoffs is drawn from.
    pub fn set_seed(&mut self, seed: u64) {
        self.rules.seed = seed;
    }

    /// Gives the number of the oldest entry of the audit that is kept, and the number of the next.
    #[must_use]
    pub fn audited(&self) -> (u64, u64) {
        (self.audits.front().copied().unwrap_or(self.next_audit), self.next_audit)
    }

    /// Tells whether the engine is draining.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.draining
    }

    pub(crate) fn kind(&self, kind: &Kind) -> Option<&KindRules> {
        self.rules.kinds.get(kind)
    }

    pub(crate) fn can_undo(&self, row: &Row) -> bool {
        self.kind(&row.kind).is_none_or(|rules| rules.rollback)
    }
}
