//! Views of procedures and of the engine: values, each read at one moment.

mod chart;
mod failures;
mod insight;
mod keyed;
mod mailboxes;
mod next;
mod signal;
mod value_behind;

pub use chart::{Chart, ChartBucket, ChartFigures, ChartOf, ChartSpan, ChartTimes};
pub use failures::{FailureCursor, FailurePage};
pub use insight::{ChainEnd, Explanation, Particulars, QueuePosition, Rule, Verdict};
pub use keyed::KeyedProcedure;
pub use mailboxes::Mailboxes;
pub(crate) use next::{held_back, next};
pub use signal::{Mailbox, SignalSummary, StoredCounts};
pub use value_behind::ValueBehind;

use std::collections::BTreeSet;
use std::time::Duration;

use procession_kernel::{
    Blob, Cause, Ended, Epoch, HistoryEntry, JoinPolicy, Key, Kind, Label, Labels, LockMode, LockNeed, LockPath, Mark,
    NotUndone, PauseScope, ProcedureId, ProcedureState, Row, Seq, Timestamp, TraceParent, WaitReason,
};
use serde::de::DeserializeOwned;

use crate::error::CodecError;
use crate::journal::{DiskRoom, codec};
pub use crate::telemetry::{KindRate, KindUse, StagePass, StageUse, SyncTimes};

/// A procedure's status, as it is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The procedure's id.
    pub id: ProcedureId,
    /// The procedure's kind.
    pub kind: Kind,
    /// The schema version of its stored payload.
    pub version: u16,
    /// Its parent; `None` for a root.
    pub parent: Option<ProcedureId>,
    /// Its name, which its parent's list or its submission gave it, if it has one.
    pub name: Option<String>,
    /// The siblings that come before it at its gate, in the order given.
    pub before: Vec<ProcedureId>,
    /// When its gate opens; `None` for a procedure without a gate. `Named` counts positions in `before`.
    pub opens: Option<JoinPolicy>,
    /// Its state.
    pub state: ProcedureState,
    /// Why it does not run. If it waits for several locks and permits, this names the first that it lacked when it
    /// parked. An explanation names the first that it lacks now.
    pub wait: Option<WaitReason>,
    /// The question that it asks a person, if it waits for an answer. Also in `wait`.
    pub question: Option<String>,
    /// Since when its state and wait reason have been as they are.
    pub since: Timestamp,
    /// The stage that is running, or the next to run.
    pub stage: String,
    /// The number of failed attempts of that stage.
    pub attempt: u32,
    /// `true` if one of its stages is running or is about to.
    pub going: bool,
    /// Why it failed.
    pub cause: Option<Cause>,
    /// The executed stages of its subtree that were not undone.
    pub not_undone: Vec<NotUndone>,
    /// `true` if it holds permits: its own, or those of the stage that is called.
    pub holds: bool,
    /// The locks that it holds.
    pub locks: Vec<LockNeed>,
    /// The name of the stage with which it passed its point of no return.
    pub past_no_return: Option<String>,
    /// `true` if an operator has paused it and all its descendants.
    pub paused: bool,
    /// `true` if its family is quarantined: nothing in it moves, and discharge is the only accepted request. A
    /// procedure that waits as [`Quarantined`](WaitReason::Quarantined) while this is `false` has a hole in its
    /// history.
    pub set_aside: bool,
    /// What an operator did to its end.
    pub mark: Option<Mark>,
    /// What happens next, and when, as far as that is known.
    pub next: String,
    /// Its priority: of several waiting procedures, the higher priority goes first.
    pub priority: i16,
    /// The trace that it was submitted in.
    pub trace: Option<TraceParent>,
    /// The idempotency key of its submission.
    pub key: Option<Key>,
    /// The labels by which people find it, inherited ones included.
    pub labels: Labels,
    /// When it was submitted, or spawned by its parent.
    pub submitted: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The commit that last wrote its row.
    pub revision: Seq,
}

impl Status {
    pub(crate) fn of(row: &Row) -> Self {
        Self {
            id: row.id,
            kind: row.kind.clone(),
            version: row.version,
            parent: row.parent.map(|parent| ProcedureId::new(row.id.family, parent)),
            name: row.name().map(str::to_owned),
            before: row
                .gate()
                .into_iter()
                .flat_map(|gate| &gate.after)
                .map(|sibling| ProcedureId::new(row.id.family, *sibling))
                .collect(),
            opens: row.gate().map(|gate| gate.opens.clone()),
            state: row.state,
            wait: row.wait.clone(),
            question: question_of(row),
            since: row.since,
            stage: codec::describe(row.stage.as_slice()),
            attempt: row.attempt,
            going: row.in_flight.is_some(),
            cause: row.rare().cause.as_deref().cloned(),
            not_undone: row.rare().not_undone.to_vec(),
            holds: row.holds || row.stage_permits,
            locks: row.locked.to_vec(),
            past_no_return: row.rare().past_no_return.as_deref().map(str::to_owned),
            paused: row.rare().paused,
            set_aside: false,
            mark: row.rare().mark,
            next: next::next(row),
            priority: row.priority,
            trace: row.rare().trace.as_deref().copied(),
            key: row.key.clone(),
            labels: Labels::clone(&row.labels),
            submitted: row.submitted,
            ended: row.ended,
            revision: row.revision,
        }
    }

    /// Shows it as held back by a pause that its own row does not name: of an ancestor, of its kind, or of everything.
    #[must_use]
    pub fn held_back(mut self) -> Self {
        let names_it = self.paused || self.wait == Some(WaitReason::Paused);
        if self.ended.is_none() && !self.going && !self.set_aside && !names_it {
            self.next = next::held_back(&self.next);
        }
        self
    }

    /// Shows it as a member of a quarantined family.
    #[must_use]
    pub fn quarantined(mut self) -> Self {
        if self.ended.is_none() {
            self.wait = Some(WaitReason::Quarantined);
            self.question = None;
            self.set_aside = true;
            self.going = false;
            self.next = next::QUARANTINED.to_owned();
        }
        self
    }
}

fn question_of(row: &Row) -> Option<String> {
    let question = row.wait.as_ref().and_then(WaitReason::question);
    question
        .filter(|_| !row.is_failing())
        .map(|question| question.text.clone())
}

/// How a procedure ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The procedure's id.
    pub id: ProcedureId,
    /// The procedure's kind.
    pub kind: Kind,
    /// Its final state: `Success`, `RolledBack` or `Failed`.
    pub state: ProcedureState,
    /// Why it failed.
    pub cause: Option<Cause>,
    /// The executed stages that were not undone.
    pub not_undone: Vec<NotUndone>,
    /// Set if an operator ended it, or replaced its output.
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

    /// Returns the bytes of the output, if it has one.
    pub(crate) fn output_len(&self) -> Option<usize> {
        self.output.as_ref().map(Blob::len)
    }

    pub(crate) fn stored(row: Row, output: Option<Blob>) -> Self {
        let rare = row.rare.map(|rare| *rare).unwrap_or_default();
        Self {
            id: row.id,
            kind: row.kind,
            state: row.state,
            cause: rare.cause.map(|cause| *cause),
            not_undone: rare.not_undone.into(),
            mark: rare.mark,
            output,
        }
    }

    /// Returns the output, if the procedure succeeded.
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

/// One lock, with its holders and, in the order of service, its waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockView {
    /// The lock's path.
    pub path: LockPath,
    /// The procedures that hold it, and in which mode.
    pub holders: Vec<(ProcedureId, LockMode)>,
    /// Since when each holder has held it without a break, in the order of `holders`. `None` if the holder's family is
    /// quarantined, or if the lock was taken before that time was recorded.
    pub since: Vec<Option<Timestamp>>,
    /// The procedures that wait for it, in the order of service.
    pub waiting: Vec<ProcedureId>,
    /// The first 100 waiters, with their mode and since when they wait.
    pub waiters: Vec<LockWaiter>,
}

/// The maximum number of procedures that a limit or a lock lists with details: a few screens of text. Their full number
/// is always reported.
pub(crate) const NAMED: usize = 100;

/// A procedure that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockWaiter {
    /// The procedure's id.
    pub id: ProcedureId,
    /// The mode in which it wants the lock.
    pub mode: LockMode,
    /// Since when it has waited for everything that it lacks, as far as its row says.
    pub since: Option<Timestamp>,
}

/// The families that a list covers. The list shows no rows of other families, and reads few of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FamilyScope {
    /// All families.
    #[default]
    All,
    /// Families with an unfinished member. Other members may have ended.
    Live,
    /// Families with these numbers.
    Families(BTreeSet<u64>),
    /// Families in which each of these labels stands on some member, found by the index. Families that the index
    /// cannot tell apart are among them, so a list must still look at the labels of each row. With no label: all.
    Labelled(Vec<Label>),
    /// Families whose idempotency key begins so, found by the keys. If more than 100,000 keys do, it is the same as
    /// `Live` or `All`.
    KeyPrefix {
        /// What the key begins with.
        prefix: String,
        /// Of so many keys only live families are wanted.
        live: bool,
    },
    /// The family that was submitted with this idempotency key.
    Key(String),
    /// Families whose roots failed, as long as nobody has acknowledged that: all, or those with this
    /// [`fingerprint`](procession_kernel::fingerprint) of the cause. Of more than 100,000 the newest.
    Failures(Option<u64>),
}

/// Which procedures to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Lists only procedures that have not ended.
    pub live_only: bool,
    /// Lists only procedures of this kind.
    pub kind: Option<Kind>,
    /// Lists only procedures in this state.
    pub state: Option<ProcedureState>,
    /// Lists only procedures that have all of these labels, their own or inherited. The index finds them.
    pub labels: Vec<Label>,
}

impl ListFilter {
    pub(crate) fn scope(&self) -> FamilyScope {
        if !self.labels.is_empty() {
            FamilyScope::Labelled(self.labels.clone())
        } else if self.live_only {
            FamilyScope::Live
        } else {
            FamilyScope::All
        }
    }

    pub(crate) fn admits(&self, row: &Row) -> bool {
        (!self.live_only || row.ended.is_none())
            && self.kind.as_ref().is_none_or(|kind| *kind == row.kind)
            && self.state.is_none_or(|state| state == row.state)
            && self.labels.iter().all(|label| row.labels.contains(label))
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The procedures, by id.
    pub items: Vec<Status>,
    /// Where the next page begins; `None` if this is the last.
    pub next: Option<ProcedureId>,
    /// The number of rows that were read.
    pub scanned: usize,
    /// `true` if the list stopped because it had read as many rows as one request may.
    pub truncated: bool,
    /// The rows read that are damaged; their families are quarantined.
    pub unreadable: Vec<ProcedureId>,
}

/// One page of a family.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MemberPage {
    /// The members, by number.
    pub items: Vec<Status>,
    /// The number with which the next page begins; `None` if this is the last.
    pub next: Option<u32>,
}

impl MemberPage {
    /// The maximum number of members on one page.
    pub const MAX: usize = 1_000;

    /// Cuts a page from members that were read, one more than the page may have.
    #[must_use]
    pub fn cut(mut items: Vec<Status>, limit: usize) -> Self {
        let next = items.get(limit).map(|status| status.id.member);
        items.truncate(limit);
        Self { items, next }
    }
}

/// One page of a family's history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryPage {
    /// The entries, newest first. Whether an entry stands on the rollback stack is settled within the page: a failed
    /// attempt may be shown as standing if the newer attempt of the same visit is on the page before.
    pub entries: Vec<HistoryEntry>,
    /// What to pass as `before` for the next page; `None` if this is the last. The next page may be empty.
    pub next: Option<u32>,
}

/// The sizes of a procedure's values, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// The size of the payload, as submitted or as last stored.
    pub payload: Option<usize>,
    /// The size of the output; `None` if there is none.
    pub output: Option<usize>,
}

/// A procedure's values as users wrote them: MessagePack with field names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The payload, as submitted or as last stored.
    pub payload: Option<Vec<u8>>,
    /// The output; `None` if there is none.
    pub output: Option<Vec<u8>>,
}

/// A discharged family, as the archive lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchivedFamily {
    /// The family's number.
    pub family: u64,
    /// Why it was quarantined.
    pub quarantined: Option<String>,
    /// The number of its procedures, as far as it can be determined.
    pub procedures: u32,
    /// The size of its archive in bytes.
    pub bytes: usize,
}

/// What the start found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Live families that were loaded.
    pub families: usize,
    /// Live procedures in those families.
    pub procedures: usize,
    /// Families that could not be loaded, each with the reason.
    pub quarantined: Vec<(u64, String)>,
    /// How long it took to take the store and to read everything live.
    pub took: Duration,
    /// How long it took from then until the engine accepted messages: recovery hooks, restoring permits and locks to
    /// their holders, and the start's own commit.
    pub opening: Duration,
}

/// The state of the engine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The engine's epoch: which ownership of the store this is.
    pub epoch: Epoch,
    /// The newest commit that was decided.
    pub decided: Seq,
    /// The newest commit that is on disk.
    pub durable: Seq,
    /// The number of commits in this run, without the start's own.
    pub commits: u64,
    /// The number of batches that those commits were merged into.
    pub batches: u64,
    /// The number of puts and deletes in those batches.
    pub appended_writes: u64,
    /// The number of bytes of their keys and values.
    pub appended_bytes: u64,
    /// Families with an unfinished member.
    pub live_families: usize,
    /// The number of stages that are running.
    pub going: usize,
    /// The number of procedures' actors.
    pub actors: usize,
    /// The threads that run user code.
    pub workers: Vec<WorkerStatus>,
    /// The number of reports and wakes that arrived too late and changed nothing.
    pub late: u64,
    /// The number of wakes that were lost and made up for. Anything but 0 is a defect.
    pub lost_wakes: u64,
    /// Why the engine accepts no more commits.
    pub poisoned: Option<String>,
    /// `true` if no more stages are started.
    pub draining: bool,
    /// What the start found.
    pub recovered: Recovered,
    /// The families that are quarantined now, each with the reason.
    pub quarantined: Vec<(u64, String)>,
    /// The size of the store in bytes, if the store can tell.
    pub size_bytes: Option<u64>,
    /// The free space on the store's disk, as of the last health check. `None` if the store is on no disk, or cannot
    /// tell.
    pub disk_room: Option<DiskRoom>,
    /// The time within which 99 % of the newest 1,000 batches were on disk; `None` before the first batch.
    pub commit_p99: Option<Duration>,
    /// How long the newest 1,000 syncs of the store took. `None` if there was no sync, or the store does not report it.
    pub sync_times: Option<SyncTimes>,
    /// The kinds that are paused, or everything.
    pub paused: Vec<PauseScope>,
    /// The batch that reached the disk last.
    pub last_batch: BatchUse,
    /// The longest time for which the supervisor did one thing since the engine started, by the machine's clock.
    pub longest_turn: Duration,
    /// The registered kinds, by name.
    pub kinds: Vec<KindUse>,
}

/// One batch of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchUse {
    /// The number of commits merged into it.
    pub commits: usize,
    /// The number of its puts and deletes.
    pub writes: usize,
    /// The time from the append to the receipt.
    pub took: Duration,
}

/// A thread that runs user code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStatus {
    /// The worker's number. Numbers are never reused.
    pub worker: usize,
    /// The call that has held the thread for longer than the threshold, without a pause in which another could run.
    pub blocked: Option<BlockedStage>,
    /// `true` if the worker was added in place of blocked workers. It leaves once they are back.
    pub extra: bool,
    /// The number of procedures' actors on it.
    pub actors: usize,
    /// The call that has the thread at this moment, blocked or not. The engine samples the thread, so the time is a
    /// lower bound.
    pub busy: Option<BlockedStage>,
    /// The approximate number of stage and undo calls that wait for it.
    pub waiting: u64,
}

/// A call of user code that has its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockedStage {
    /// The procedure whose code was called.
    pub procedure: ProcedureId,
    /// What was called.
    pub call: UserCall,
    /// The stage that runs, is being undone, or waits for children or siblings.
    pub stage: String,
    /// The minimum time for which it has held the thread.
    pub time: Duration,
}

/// The part of a procedure that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserCall {
    /// A stage.
    Stage,
    /// The undo of a stage.
    Undo,
    /// The join rule.
    Join,
    /// The rule of its gate.
    Gate,
    /// The cleanup after the end.
    CleanUp,
}

/// What a shutdown could not end; empty in nearly all cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// The number of engine threads that had not ended in time. Each ends by itself once the code that holds it
    /// returns.
    pub threads: usize,
    /// The procedures whose code holds such a thread. A thread that no procedure holds waits for work that a stage
    /// handed to other threads, or for the disk.
    pub procedures: Vec<ProcedureId>,
    /// Why the journal is not free; `None` if it is.
    pub journal: Option<String>,
}

impl ShutdownReport {
    /// Returns `true` if nothing of the engine is left in the process.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.threads == 0 && self.journal.is_none()
    }
}

/// What a drain finished, and what goes on later. The next start continues all of it, on this machine or another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Stages and undos that were running when it began, and have reported.
    pub finished_calls: usize,
    /// Stages and undos that were cut off, because they had not reported by the deadline. The next start runs them again,
    /// with no attempt used up.
    pub cut_off_calls: usize,
    /// Families that have not ended: they wait, sleep or have stages to run. Each goes on at the next start from its last
    /// committed stage. Families of calls that were cut off are among them.
    pub unfinished_families: usize,
    /// Families that are quarantined. Each goes on at a start that can load it.
    pub quarantined_families: usize,
}

/// One committed change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The engine's epoch; together with `seq` it identifies the change.
    pub epoch: Epoch,
    /// The commit's number.
    pub seq: Seq,
    /// The rows that the commit wrote.
    pub rows: Vec<Status>,
    /// Families of which nothing is left: their results were evicted, or they were discharged.
    pub gone: Vec<u64>,
}

/// The rows that have changed since a follower received the last message, each once, in their current state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LatestRows {
    /// The engine's epoch.
    pub epoch: Epoch,
    /// The commit that the rows show.
    pub seq: Seq,
    /// Further procedures that have ended and are not among the rows: of the roots that have ended since the follower
    /// asked, all but the first 1,000, and of all procedures, all but the newest 10,000.
    pub untold: Vec<ProcedureId>,
    /// Families of which nothing is left.
    pub gone: Vec<u64>,
    pub(crate) rows: Vec<Row>,
    pub(crate) is_lost: bool,
}

impl LatestRows {
    /// Describes the rows. Each takes a microsecond or two, so call this where nothing else has to wait.
    pub fn describe(&self) -> impl Iterator<Item = Status> {
        self.rows.iter().map(Status::of)
    }
}

/// What a follower of the latest rows receives: one message per request.
#[derive(Clone, Debug, actix::Message)]
#[rtype(result = "()")]
pub enum LatestFeed {
    /// The first message, sent without a request: everything after this commit follows.
    From(Seq),
    /// Everything that has changed since the last message.
    Rows(Box<LatestRows>),
    /// Too much has changed since this commit: read everything again, and continue from there.
    Lagged(Seq),
}

/// What a subscriber receives.
#[derive(Clone, Debug, actix::Message)]
#[rtype(result = "()")]
pub enum ChangeFeed {
    /// The first message: everything after this commit follows.
    From(Seq),
    /// A committed change.
    Change(std::sync::Arc<Change>),
    /// Changes after this commit were left out: read everything again, and continue from there.
    Lagged(Seq),
}
