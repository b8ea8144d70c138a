//! The state that `decide` reads and `evolve` writes: every live family, the timers, the keys, and the rules of the
//! engine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::audit::AuditEntry;
use crate::decision::{Commit, Decision};
use crate::effect::Immediate;
use crate::families::Families;
use crate::id::{Epoch, Key, Kind, LimitKey, ProcedureId, Seq, Timestamp};
use crate::kind_index::KindIndex;
use crate::limit::Limit;
use crate::rates::Rates;
use crate::record::{KeyEntry, Record};
use crate::retry::RetryPolicy;
use crate::row::Row;
use crate::spare::Spare;
use crate::wait::{PauseScope, WaitReason};
use crate::waiters::Waiters;

/// How much history a kind leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryDetail {
    /// Every stage and undo, and the last failed attempts.
    #[default]
    Full,
    /// Only the entries on the rollback stack.
    Stack,
    /// Only this many entries, the newest, as long as the procedure is the only member of its family. For kinds without
    /// rollback that run without end: their stages are not on the rollback stack, and no failure lists them as not
    /// undone. Once the procedure has had children, its family keeps all further entries.
    Newest(u32),
}

/// What the engine's code says about a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindRules {
    /// Schema version that the code writes.
    pub version: u16,
    /// Oldest schema version that the code still reads.
    pub oldest: u16,
    /// `false` for a kind whose stages cannot be undone.
    pub rollback: bool,
    /// Retry policy of stages.
    pub retry: RetryPolicy,
    /// Retry policy of undos.
    pub retry_undo: RetryPolicy,
    /// How often one stage may run in a row; `None` is unlimited.
    pub repeat_limit: Option<u32>,
    /// `true` if its code cleans up after the end.
    pub cleanup: bool,
    /// How much history it leaves.
    pub history: HistoryDetail,
    /// Up to how many bytes of each value that a stage or an undo leaves are kept in its history entry; 0 keeps none.
    pub keep_values: usize,
    /// How long its results are kept after the end; `None` uses the engine's setting.
    pub keep_after_end: Option<Duration>,
    /// The same for acknowledged results.
    pub keep_after_acknowledgement: Option<Duration>,
    /// How long failures are kept after the end; `None` is the engine's default, or the kind's own
    /// `keep_after_end` if that is longer.
    pub keep_after_failure: Option<Duration>,
    /// How many signals may wait for one procedure; `None` uses the engine's bound.
    pub signals: Option<usize>,
    /// How many keys of consumed signals are remembered for one procedure; the oldest is dropped first.
    pub signal_keys: usize,
}

/// How many keys of consumed signals are remembered for a procedure of a kind that declares no number. Senders repeat
/// within seconds, and this covers a quarter of an hour at one signal per second.
pub const SIGNAL_KEYS: usize = 1_000;

impl KindRules {
    /// Creates the rules of a kind that declares nothing beyond its version.
    #[must_use]
    pub fn new(version: u16) -> Self {
        Self {
            version,
            oldest: version,
            rollback: true,
            retry: RetryPolicy::default(),
            retry_undo: RetryPolicy::default(),
            repeat_limit: None,
            cleanup: false,
            history: HistoryDetail::Full,
            keep_values: 0,
            keep_after_end: None,
            keep_after_acknowledgement: None,
            keep_after_failure: None,
            signals: None,
            signal_keys: SIGNAL_KEYS,
        }
    }
}

impl KindRules {
    /// Checks that the code reads values of this version of the kind.
    ///
    /// # Errors
    ///
    /// The reason why it does not.
    pub fn check_version(&self, kind: &Kind, version: u16) -> Result<(), String> {
        if version > self.version {
            return Err(format!(
                "version {version} of \"{kind}\" is newer than the code, which reads up to {}",
                self.version
            ));
        }
        if version < self.oldest {
            let reads = if self.oldest == self.version {
                format!("only {}", self.version)
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
    /// Bytes of a payload, an output or a signal. Default 1 MiB: a procedure is control-plane work, and each of its
    /// stages writes its payload again.
    pub payload: usize,
    /// Children of one `Spawn`. Default 100,000: they are born in one commit, which must fit in memory several times
    /// over.
    pub children: usize,
    /// Siblings that one child waits for at its gate. Default 10,000: its row names each of them, and is written
    /// again whenever the child moves.
    pub gate: usize,
    /// The same, of all children of one `Spawn`. Default 1,000,000, which is ten for each child of the largest list.
    pub edges: usize,
    /// Members of one family. Default 1,000,000, which a family's index still covers easily.
    pub members: usize,
    /// Levels of a family, the root included. Default 32: each level adds a step to every walk to the root.
    pub depth: usize,
    /// Submissions in one batch, and submissions of one stage. Default 10,000.
    pub batch: usize,
    /// Bytes of a caller's name: a key, an event, a limit. Default 1,024: the name is part of a key on disk, and of
    /// every message about it.
    pub name: usize,
    /// Signals that wait for one procedure of a kind without a bound of its own. Default 10,000.
    pub signals: usize,
    /// How many event names one procedure may close to further signals. Default 64: they are written with each row.
    pub closed: usize,
    /// Writes of user data by one stage or undo. Default 10,000, the same as submissions of one stage: deciding on
    /// them and encoding them takes some milliseconds.
    pub writes: usize,
    /// Bytes of user data that one stage or undo writes. Default 32 MiB: half of a log, so that no single commit fills
    /// one. A disk with 300 MB/s takes about a tenth of a second for it.
    pub write_bytes: usize,
    /// Keyspaces of user data in the store. Default 256: each is a tree with files of its own, created inside a
    /// commit. With this many, each still has 512 KiB of the store's 128 MiB of memory tables.
    pub keyspaces: usize,
    /// Failed attempts of one stage that keep their history entry. Default 5.
    pub attempts_kept: usize,
    /// Bytes of the note of one stage or undo. Default 64 KiB: it stands in the history entry, and a rollback keeps the
    /// notes of all stages that it will undo in memory.
    pub note: usize,
    /// Waiters of a broadcast that one commit wakes. Default 512: deciding on them takes some 2 ms, which delays
    /// everything else.
    pub wave: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            payload: 1 << 20,
            children: 100_000,
            gate: 10_000,
            edges: 1_000_000,
            members: 1_000_000,
            depth: 32,
            batch: 10_000,
            name: 1_024,
            signals: 10_000,
            closed: 64,
            writes: 10_000,
            write_bytes: 32 << 20,
            keyspaces: 256,
            attempts_kept: 5,
            note: 64 << 10,
            wave: 512,
        }
    }
}

/// Settings that do not change while an engine runs.
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
    /// How long the result of a root that failed or was rolled back is kept after the end.
    pub keep_after_failure: Duration,
    /// Seed for the jitter of backoffs.
    pub seed: u64,
    /// Pure stages may be called before the decisions that they rest on are on disk.
    pub speculation: bool,
    /// Pure stages that run one after the other in one call, at most; more than [`RUN_LENGTH_MAX`] counts as that. 0 and 1
    /// have each stage reported alone.
    pub run_length: u32,
}

/// The most stages that one call may run, and that a procedure may be ahead of the disk: so many of its stages a crash takes
/// back at most.
pub const RUN_LENGTH_MAX: u32 = 64;

/// Everything that a decision may depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    pub(crate) rules: Rules,
    /// The kinds of the rules, for decisions.
    pub(crate) kinds: KindIndex,
    pub(crate) epoch: Epoch,
    pub(crate) deaths: u32,
    /// From when on stages may be called speculatively.
    pub(crate) speculation_from: Timestamp,
    pub(crate) seq: Seq,
    pub(crate) next_family: u64,
    pub(crate) reserved: u64,
    pub(crate) families: Families,
    pub(crate) timers: BTreeSet<(Timestamp, ProcedureId)>,
    /// Number of timers that the rows ask for, without disarmed ones.
    pub(crate) armed: usize,
    /// Procedures whose timers have nothing to wake.
    pub(crate) disarmed: BTreeSet<ProcedureId>,
    pub(crate) waiters: Waiters,
    /// Procedures that ask a person, by the instant since which they ask.
    pub(crate) asking: BTreeSet<(Timestamp, ProcedureId)>,
    pub(crate) keys: BTreeMap<Key, KeyEntry>,
    /// Keyspaces of user data: the store's, and those that decided commits write to.
    pub(crate) spaces: BTreeSet<Key>,
    pub(crate) limits: BTreeMap<LimitKey, Limit>,
    pub(crate) rates: Rates,
    pub(crate) draining: bool,
    pub(crate) in_flight: usize,
    pub(crate) late: u64,
    pub(crate) found: u64,
    pub(crate) pauses: BTreeSet<PauseScope>,
    pub(crate) audits: VecDeque<u64>,
    pub(crate) next_audit: u64,
    pub(crate) requests: BTreeMap<Key, AuditEntry>,
    pub(crate) suspects: BTreeSet<ProcedureId>,
    pub(crate) alone: Option<ProcedureId>,
    pub(crate) spare: Spare,
}

impl Kernel {
    /// Creates the state of an engine that has read nothing yet. `deaths` is how often engines of this store have
    /// died, including a death that this start detected.
    #[must_use]
    pub fn new(rules: Rules, epoch: Epoch, deaths: u32) -> Self {
        Self {
            kinds: KindIndex::new(&rules),
            rules,
            epoch,
            deaths,
            next_family: 1,
            reserved: 1,
            ..Self::default()
        }
    }

    /// Calls no stage speculatively until this instant. For a start that found a death: until the one that killed the
    /// process is known, each stage must be marked on disk before it is called.
    pub const fn hold_speculation_until(&mut self, until: Timestamp) {
        self.speculation_from = until;
    }

    /// Applies a decision and holds its effects back in `commit`. Callers put what [`Decision::durable`] returns into the
    /// journal's next batch before, so that no later decision can overtake it.
    ///
    /// Returns what is to be done at once; see [`Immediate`]. A decision without durable records still
    /// waits for the newest decided commit, because its effects depend on that commit.
    #[must_use = "the limiter must be told, and the calls must be made or deferred, in the order of the decisions"]
    pub fn fold(&mut self, decision: Decision, commit: &mut Commit) -> Immediate {
        let is_commit = decision.is_commit();
        let (mut records, immediate, mut effects) = decision.into_parts();
        if is_commit {
            self.seq = self.seq.next();
        }
        let mut parked = Vec::new();
        for record in records.drain(..) {
            if let Record::Row(row) = record {
                if row.wait.as_ref().is_some_and(WaitReason::is_rest) {
                    parked.push(row.id.family);
                }
                // A row is large and most decisions bring one, so it is moved instead of cloned.
                self.row_put(row);
            } else {
                self.evolve(&record);
            }
        }
        self.families.cool();
        for family in parked {
            self.families.freeze(family);
        }
        commit.hold(self.seq, is_commit, &mut effects);
        self.spare.keep(records, effects);
        immediate
    }

    /// Freezes a family that only waits for a timer or an event. For a start, after it has read a family; live, each
    /// decision freezes what it parks.
    pub fn freeze(&mut self, family: u64) {
        self.families.freeze(family);
    }

    /// Drops the thawed copies of frozen families. Each commit does this, so that a look at a family costs memory only
    /// briefly.
    pub fn cool(&mut self) {
        self.families.cool();
    }

    /// [Folds](Self::fold) a decision, and returns the records that must go to disk, in order, and what is to be
    /// done at once.
    pub fn apply(&mut self, decision: Decision, commit: &mut Commit) -> (Vec<Record>, Immediate) {
        let records = decision.durable().cloned().collect();
        let immediate = self.fold(decision, commit);
        (records, immediate)
    }

    /// Returns the epoch of this engine.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the newest commit that was decided.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// Returns the live families.
    #[must_use]
    pub const fn families(&self) -> &Families {
        &self.families
    }

    /// Returns the row of a member of a live family.
    #[must_use]
    pub fn row(&self, id: ProcedureId) -> Option<&Row> {
        self.families.get(&id.family)?.row(id.member)
    }

    /// Returns what a key stands for, if its family was submitted in this run.
    #[must_use]
    pub fn key(&self, key: &Key) -> Option<&KeyEntry> {
        self.keys.get(key)
    }

    /// Records a keyspace of user data that the store has, or that a commit writes to.
    pub fn note_space(&mut self, space: &Key) {
        if !self.spaces.contains(space) {
            self.spaces.insert(space.clone());
        }
    }

    /// Returns the capacities that were set at run time.
    #[must_use]
    pub const fn limits(&self) -> &BTreeMap<LimitKey, Limit> {
        &self.limits
    }

    /// Returns the rates in force, and the begins that each still counts.
    #[must_use]
    pub const fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Returns the rules of the engine.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the earliest deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Returns the procedure whose timer is due first, if any timer is due at this time.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<ProcedureId> {
        self.timers.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    /// Returns the broadcast under way whose waiters are woken next. Broadcasts take turns, so the caller passes the
    /// one served last. Returns `None` while the engine drains: the next start continues.
    #[must_use]
    pub fn next_wave(&self, served: Seq) -> Option<Seq> {
        self.waiters.next(served).filter(|_| !self.draining)
    }

    /// Returns `true` if a broadcast has yet to wake some of its waiters, or is kept until the next start.
    #[must_use]
    pub fn has_waves(&self) -> bool {
        self.waiters.has_waves()
    }

    /// Returns the procedures that ask a person, each with the instant since which it asks, oldest first. One whose
    /// family fails meanwhile is among them until it has ended.
    #[must_use]
    pub const fn asking(&self) -> &BTreeSet<(Timestamp, ProcedureId)> {
        &self.asking
    }

    /// Returns `true` if a timer is missing that a row asks for. This compares two counts, so it is cheap however many
    /// timers there are.
    #[must_use]
    pub fn lacks_timers(&self) -> bool {
        self.timers.len() < self.armed
    }

    /// Returns the number of stages that are out.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the number of undos that are out.
    #[must_use]
    pub fn undoing(&self) -> usize {
        self.families
            .awake()
            .flat_map(|family| family.scopes.values())
            .filter(|scope| matches!(scope, crate::family::Scope::Held { out: true, .. }))
            .count()
    }

    /// Returns how many reports and wakes were late and changed nothing.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Returns how many lost wakes were found and repaired.
    #[must_use]
    pub const fn found(&self) -> u64 {
        self.found
    }

    /// Returns the pauses of kinds and of everything.
    #[must_use]
    pub const fn pauses(&self) -> &BTreeSet<PauseScope> {
        &self.pauses
    }

    /// Sets the seed for the jitter of backoffs.
    pub fn set_seed(&mut self, seed: u64) {
        self.rules.seed = seed;
    }

    /// Returns the number of the oldest kept entry of the audit log, and the number of the next entry.
    #[must_use]
    pub fn audited(&self) -> (u64, u64) {
        (self.audits.front().copied().unwrap_or(self.next_audit), self.next_audit)
    }

    /// Returns `true` if the engine is draining.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.draining
    }

    pub(crate) fn kind(&self, kind: &Kind) -> Option<&KindRules> {
        self.kinds.get(kind).map(|(_, rules)| rules)
    }

    pub(crate) fn can_undo(&self, row: &Row) -> bool {
        self.kind(&row.kind).is_none_or(|rules| rules.rollback)
    }
}
