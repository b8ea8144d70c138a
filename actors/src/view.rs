//! What the engine shows of procedures and of itself: values, read at one moment.

mod insight;
mod mailboxes;
mod next;
mod signal;

pub use insight::{ChainEnd, Explanation, Particulars, Place, Rule, Verdict};
pub use mailboxes::Mailboxes;
pub(crate) use next::next;
pub use signal::{KeptSignal, StoredCounts};

use std::collections::BTreeSet;
use std::time::Duration;

use procession_kernel::{
    Blob, Cause, Ended, Epoch, Key, Kind, LockMode, LockNeed, LockPath, Mark, NotUndone, Pause, ProcedureId,
    ProcedureState, Row, Seq, Timestamp, TraceParent, WaitReason,
};
use serde::de::DeserializeOwned;

use crate::error::CodecError;
use crate::journal::{DiskRoom, codec};
pub use crate::telemetry::{KindUse, StageUse, SyncTimes};

/// One procedure as it stands on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Who it is.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Schema of its stored payload.
    pub version: u16,
    /// Its parent; none for a root.
    pub parent: Option<ProcedureId>,
    /// Its state.
    pub state: ProcedureState,
    /// Why it does not run. Of several locks and permits that it waits for, the first that it lacked when it parked;
    /// an explanation names the one that it lacks now.
    pub wait: Option<WaitReason>,
    /// Since when state and reason are as they are.
    pub since: Timestamp,
    /// The stage that runs, or runs next.
    pub stage: String,
    /// Failed attempts of that stage.
    pub attempt: u32,
    /// A stage of it is out, or will be at once.
    pub going: bool,
    /// Why it failed.
    pub cause: Option<Cause>,
    /// Executed stages of its part of the family that were not undone.
    pub not_undone: Vec<NotUndone>,
    /// It holds its permits.
    pub holds: bool,
    /// Locks that it holds.
    pub locks: Vec<LockNeed>,
    /// Name of the stage with which it passed its point of no return.
    pub past: Option<String>,
    /// An operator has paused it and all below it.
    pub paused: bool,
    /// Its family is set aside: nothing of it moves, and no act but a discharge is taken. One that
    /// waits as [`Quarantined`](WaitReason::Quarantined) and is not set aside has a hole in its history.
    pub set_aside: bool,
    /// What an operator did to its end.
    pub mark: Option<Mark>,
    /// What comes next, and when, as far as that is known.
    pub next: String,
    /// Higher goes first where it waits.
    pub priority: i16,
    /// The trace in which it was submitted.
    pub trace: Option<TraceParent>,
    /// Idempotency key of its submission.
    pub key: Option<Key>,
    /// When it was born.
    pub submitted: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The commit that wrote its row.
    pub revision: Seq,
}

impl Status {
    pub(crate) fn of(row: &Row) -> Self {
        Self {
            id: row.id,
            kind: row.kind.clone(),
            version: row.version,
            parent: row.parent.map(|parent| ProcedureId::new(row.id.family, parent)),
            state: row.state,
            wait: row.wait.clone(),
            since: row.since,
            stage: codec::describe(row.stage.as_slice()),
            attempt: row.attempt,
            going: row.going.is_some(),
            cause: row.cause.clone(),
            not_undone: row.not_undone.clone(),
            holds: row.holds,
            locks: row.locked.clone(),
            past: row.past_no_return.clone(),
            paused: row.paused,
            set_aside: false,
            mark: row.mark,
            next: next::next(row),
            priority: row.priority,
            trace: row.trace.as_deref().copied(),
            key: row.key.clone(),
            submitted: row.submitted,
            ended: row.ended,
            revision: row.revision,
        }
    }

    /// Shows it as one of a family that is set aside.
    #[must_use]
    pub fn quarantined(mut self) -> Self {
        if self.ended.is_none() {
            self.wait = Some(WaitReason::Quarantined);
            self.set_aside = true;
            self.going = false;
            self.next = next::QUARANTINED.to_owned();
        }
        self
    }
}

/// How a procedure ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Who it is.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Its last state: `Success`, `RolledBack` or `Failed`.
    pub state: ProcedureState,
    /// Why it failed.
    pub cause: Option<Cause>,
    /// Executed stages that were not undone.
    pub not_undone: Vec<NotUndone>,
    /// An operator ended it, or replaced its output.
    pub mark: Option<Mark>,
    output: Option<Blob>,
}

impl Outcome {
    pub(crate) fn of(ended: Ended) -> Self {
        Self {
            id: ended.id,
            kind: ended.kind,
            state: ended.state,
            cause: ended.cause,
            not_undone: ended.not_undone,
            mark: ended.mark,
            output: ended.output,
        }
    }

    pub(crate) fn stored(row: Row, output: Option<Blob>) -> Self {
        Self {
            id: row.id,
            kind: row.kind,
            state: row.state,
            cause: row.cause,
            not_undone: row.not_undone,
            mark: row.mark,
            output,
        }
    }

    /// Gives the output, if it succeeded.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the output is not of this type.
    pub fn output<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        self.output
            .as_ref()
            .map(|bytes| codec::decode_user(bytes.as_slice()))
            .transpose()
    }
}

/// One lock, who holds it, and who waits for it in which order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockView {
    /// Its path.
    pub path: LockPath,
    /// Who holds it, and how.
    pub holders: Vec<(ProcedureId, LockMode)>,
    /// Since when each of them holds it without a break, in their order. None of one whose family
    /// is set aside, and of one who took it before that was recorded.
    pub since: Vec<Option<Timestamp>>,
    /// Who waits for it, in the order of service.
    pub waiting: Vec<ProcedureId>,
    /// The first 100 of them, with how and since when.
    pub waiters: Vec<LockWaiter>,
}

/// Procedures that a limit or a lock names with particulars, at most: some screens of text. Their number is told in
/// full.
pub(crate) const NAMED: usize = 100;

/// One that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockWaiter {
    /// Who.
    pub id: ProcedureId,
    /// How it wants the lock.
    pub mode: LockMode,
    /// Since when it waits for all that it lacks, as far as its row tells.
    pub since: Option<Timestamp>,
}

/// The families that a list covers. It shows rows of no others, and reads few of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FamilyScope {
    /// All families.
    #[default]
    All,
    /// Families with an unfinished member. Other members may have ended.
    Live,
    /// Families by number.
    Families(BTreeSet<u64>),
}

/// Which procedures to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only those that have not ended.
    pub live_only: bool,
    /// Only this type.
    pub kind: Option<Kind>,
    /// Only this state.
    pub state: Option<ProcedureState>,
}

impl ListFilter {
    pub(crate) const fn scope(&self) -> FamilyScope {
        if self.live_only {
            FamilyScope::Live
        } else {
            FamilyScope::All
        }
    }

    pub(crate) fn admits(&self, row: &Row) -> bool {
        (!self.live_only || row.ended.is_none())
            && self.kind.as_ref().is_none_or(|kind| *kind == row.kind)
            && self.state.is_none_or(|state| state == row.state)
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The procedures, by id.
    pub items: Vec<Status>,
    /// Where the next page begins; none if this is the last.
    pub next: Option<ProcedureId>,
    /// How many rows were read.
    pub scanned: usize,
    /// It stopped because it had read as many rows as one request may.
    pub truncated: bool,
    /// Those among the rows read that are damaged; their families are quarantined.
    pub unreadable: Vec<ProcedureId>,
}

/// Bytes of a procedure's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Of the value that was submitted, or as it was stored last.
    pub payload: Option<usize>,
    /// Of the output; none if there is none.
    pub output: Option<usize>,
}

/// A procedure's values, as users wrote them: MessagePack with the names of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The value that was submitted, or as it was stored last.
    pub payload: Option<Vec<u8>>,
    /// The output; none if there is none.
    pub output: Option<Vec<u8>>,
}

/// A family that was discharged, as the archive lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchivedFamily {
    /// Its number.
    pub family: u64,
    /// Why it was quarantined.
    pub quarantined: Option<String>,
    /// How many procedures it had, as far as that can be told.
    pub procedures: u32,
    /// Bytes of its archive.
    pub bytes: usize,
}

/// What the start found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Live families that were taken up.
    pub families: usize,
    /// Live procedures in them.
    pub procedures: usize,
    /// Families that could not be, each with its reason.
    pub quarantined: Vec<(u64, String)>,
    /// How long it took to take the store, and to read what lives.
    pub took: Duration,
    /// How long it took from then until the engine was open for messages: hooks of recovery,
    /// permits and locks given back to who had them, the start's own commit.
    pub opening: Duration,
}

/// The engine as it stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Which ownership of the store this is.
    pub epoch: Epoch,
    /// The newest commit that was decided.
    pub decided: Seq,
    /// The newest commit that is on disk.
    pub durable: Seq,
    /// Commits of this run, the start's own not counted.
    pub commits: u64,
    /// Batches that they were merged into.
    pub batches: u64,
    /// Puts and deletes of those batches.
    pub appended_writes: u64,
    /// Bytes of their keys and values.
    pub appended_bytes: u64,
    /// Families with an unfinished member.
    pub live_families: usize,
    /// Stages that are out.
    pub going: usize,
    /// Actors of procedures.
    pub actors: usize,
    /// Threads on which user code runs.
    pub workers: Vec<WorkerStatus>,
    /// Reports and wakes that came too late and changed nothing.
    pub late: u64,
    /// Wakes that were lost, and made up for; anything but 0 is a defect.
    pub lost_wakes: u64,
    /// Why the engine takes no more commits.
    pub poisoned: Option<String>,
    /// No more stages are set going.
    pub draining: bool,
    /// What the start found.
    pub recovered: Recovered,
    /// Families that are quarantined now, each with its reason.
    pub quarantined: Vec<(u64, String)>,
    /// Bytes that the store takes up, if it can tell.
    pub size_bytes: Option<u64>,
    /// Room on the disk of the store, as it was measured at the last health check; none if it is on none, or cannot tell.
    pub disk_room: Option<DiskRoom>,
    /// Within which 99 of 100 of the newest 1,000 batches were on disk; none if there was none.
    pub commit_p99: Option<Duration>,
    /// How long the newest 1,000 syncs of the store took; none if there was none, or it does not tell.
    pub sync_times: Option<SyncTimes>,
    /// Kinds that are paused, or everything.
    pub paused: Vec<Pause>,
    /// The batch that came to disk last.
    pub last_batch: BatchUse,
    /// The longest that the supervisor did one thing since the engine began, in the machine's time.
    pub longest_turn: Duration,
    /// Kinds that are registered, by name.
    pub kinds: Vec<KindUse>,
}

/// One batch of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchUse {
    /// Commits merged into it.
    pub commits: usize,
    /// Its puts and deletes.
    pub writes: usize,
    /// From the append to its receipt.
    pub took: Duration,
}

/// A thread on which user code runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// Its number; none is given twice.
    pub worker: usize,
    /// What has held it for longer than the threshold, without a pause in which
    /// another could run.
    pub blocked: Option<BlockedStage>,
    /// It was added in place of blocked ones, and leaves when they are back.
    pub extra: bool,
    /// Actors of procedures on it.
    pub actors: usize,
    /// What has it at this moment, blocked or not. Since when is known by looking at it now and
    /// then, so it is for this long at least.
    pub busy: Option<BlockedStage>,
    /// Calls of stages and undos that wait for it, about now.
    pub waiting: u64,
}

/// A call of user code that has its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedStage {
    /// Whose call.
    pub procedure: ProcedureId,
    /// What is called.
    pub call: UserCall,
    /// The stage that runs, is undone, or waits for children.
    pub stage: String,
    /// How long it has held the thread, at least.
    pub time: Duration,
}

/// What of a procedure is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserCall {
    /// A stage.
    Stage,
    /// The undo of a stage.
    Undo,
    /// The join rule.
    Join,
    /// The cleanup after the end.
    CleanUp,
}

/// What a shutdown could not end; empty in nearly all cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Threads of the engine that had not ended in time. They end by themselves when what holds them lets go.
    pub threads: usize,
    /// Procedures whose code holds such a thread. One that is held for another reason has work to wait
    /// for that a stage gave to other threads, or waits for the disk.
    pub procedures: Vec<ProcedureId>,
    /// Why the journal is not free, if it is not.
    pub journal: Option<String>,
}

impl ShutdownReport {
    /// Tells whether nothing of the engine is left in the process.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.threads == 0 && self.journal.is_none()
    }
}

/// What a drain left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainReport {
    /// Stages and undos that were out when it began, and reported.
    pub finished: usize,
    /// Those that did not; the next start runs them again.
    pub left: usize,
}

/// One committed change, in commit order.
#[derive(Clone, Debug)]
pub struct Change {
    /// The engine's epoch; with `seq` the change's id.
    pub epoch: Epoch,
    /// The commit.
    pub seq: Seq,
    /// The rows that it wrote.
    pub rows: Vec<Status>,
    /// Families of which nothing is left: their results have gone, or they were discharged.
    pub gone: Vec<u64>,
}

/// Rows that have changed since a follower took the last, each once and as it stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LatestRows {
    /// The engine's epoch.
    pub epoch: Epoch,
    /// The commit that they show.
    pub seq: Seq,
    /// Procedures that have ended, too, and are not among the rows: the oldest, if more than ten
    /// thousand have ended since the follower asked.
    pub untold: Vec<ProcedureId>,
    /// Families of which nothing is left.
    pub gone: Vec<u64>,
    pub(crate) rows: Vec<Row>,
    pub(crate) is_lost: bool,
}

impl LatestRows {
    /// Describes the rows. It takes a microsecond or two for each: do it where nobody waits.
    pub fn describe(&self) -> impl Iterator<Item = Status> {
        self.rows.iter().map(Status::of)
    }
}

/// What a follower of the newest rows gets, one message each time that it asks.
#[derive(Clone, Debug, actix::Message)]
#[rtype(result = "()")]
pub enum LatestFeed {
    /// The first message, without being asked for: everything after this commit follows.
    From(Seq),
    /// What has changed since the last message.
    Rows(Box<LatestRows>),
    /// Too much has changed since this commit: read again, and go on from there.
    Lagged(Seq),
}

/// What a subscriber gets.
#[derive(Clone, Debug, actix::Message)]
#[rtype(result = "()")]
pub enum ChangeFeed {
    /// The first message: everything after this commit follows.
    From(Seq),
    /// A committed change.
    Change(std::sync::Arc<Change>),
    /// Changes after this commit were left out: read again, and go on from there.
    Lagged(Seq),
}
