//! Events: what happened, as the kernel receives it.

use std::time::Duration;

use crate::audit::OperatorRequest;
use crate::history::HistoryEntry;
use crate::id::{
    Blob, ClaimId, Epoch, EventName, Key, Kind, LimitKey, ProcedureId, RequestId, Seq, Timestamp, TraceParent, fnv,
};
use crate::label::Labels;
use crate::needs::Lacking;
use crate::record::{EvictedFamily, KeyEntry, UserWrite};
use crate::row::{ChildPermits, GraphNode, Hold, JoinPolicy, NextStageNeeds, OnFailure, OnTimeout, Row};
use crate::verb::Verb;
use crate::wait::{EndSignal, SentSignal};

mod make;

/// A new procedure: everything the kernel needs to know from user code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The kind of the procedure.
    pub kind: Kind,
    /// The schema version of its payload.
    pub version: u16,
    /// The first stage, encoded.
    pub stage: Blob,
    /// The payload, encoded.
    pub payload: Blob,
    /// The priority. A higher priority is served first where it waits.
    pub priority: i16,
    /// The trace in which it is submitted.
    pub trace: Option<Box<TraceParent>>,
    /// A limit in addition to its kind's own.
    pub limit: Option<LimitKey>,
    /// How long it holds its permits.
    pub hold: Hold,
    /// For a child: the procedure whose permits it runs on. `None` if nobody said; it then needs none.
    pub permits: Option<ChildPermits>,
    /// `true` if it holds its locks for life, not only for the stage.
    pub locks_for_life: bool,
    /// What its code declares about its first stage.
    pub next_needs: NextStageNeeds,
    /// The total time it may take.
    pub timeout: Option<Duration>,
    /// What happens when this time is up.
    pub on_timeout: OnTimeout,
    /// The state of its admission.
    pub admission: Admission,
    /// What happens to it if it has succeeded and the family rolls back.
    pub on_failure: OnFailure,
    /// `true` if it is a family of its own, although a stage creates it.
    pub detached: bool,
    /// For a child: its place in the graph of its list. Its gate names places of the list. For a root: its name.
    pub graph: Option<Box<GraphNode>>,
    /// The labels of its own.
    pub labels: Labels,
    /// `true` if it also has the labels of the procedure that creates it, as they are then.
    pub inherits_labels: bool,
    /// For a root: the children that it is born with.
    pub brood: Option<Box<Brood>>,
    /// For a root: the signal that is sent once its family has ended.
    pub end_signal: Option<Box<EndSignal>>,
}

/// The children that a root is born with. The root waits for them before its first stage runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brood {
    /// The children, in order.
    pub children: Vec<Birth>,
    /// When the root goes on.
    pub join: JoinPolicy,
    /// How many children run at the same time; 0 is no limit.
    pub width: u32,
    /// A child that asks a person keeps its place in the width.
    pub keep_places: bool,
    /// The output with which the root ends then, without a call. `None` if its first stage runs.
    pub output: Option<Blob>,
}

/// The state of an admission when the kernel decides on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// The limits from which it needs one permit each.
    pub limits: Vec<LimitKey>,
    /// The request that the limiter has, made before the decision.
    pub asked: Option<ClaimId>,
    /// The first thing it lacks. If `asked` is set and this is `None`, everything was granted.
    pub lacking: Option<Lacking>,
}

impl Admission {
    /// Returns `true` if the limiter has granted the request.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        self.asked.is_some() && self.lacking.is_none()
    }
}

/// An idempotency key of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAsked {
    /// The idempotency key, if there is one.
    pub key: Key,
    /// The digest of kind and payload.
    pub digest: u128,
    /// How long the key is kept, if longer than the result.
    pub keep: Option<Duration>,
}

/// A submission with its idempotency key and its admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The new procedure.
    pub birth: Birth,
    /// The idempotency key, if there is one.
    pub key: Option<KeyAsked>,
    /// What the store knows about this key.
    pub known: Option<KeyEntry>,
}

impl Submission {
    /// Returns a digest that tells it from another submission under the same key of a request. It is on disk, so what it
    /// is made of must not change.
    pub(crate) fn digest(&self) -> u64 {
        let key = self.key.as_ref().map_or("", |asked| asked.key.as_str());
        let children = self.birth.brood.iter().flat_map(|brood| &brood.children);
        let births = std::iter::once(&self.birth).chain(children);
        let values = births.flat_map(|birth| [birth.kind.as_str().as_bytes(), birth.payload.as_slice()]);
        let parts: Vec<&[u8]> = std::iter::once(key.as_bytes()).chain(values).collect();
        // Each part is preceded by its length, so that no two lists give the same bytes.
        let lengths: Vec<[u8; 8]> = parts.iter().map(|part| (part.len() as u64).to_be_bytes()).collect();
        let preceded = lengths.iter().zip(&parts);
        fnv(preceded.flat_map(|(length, part)| [length.as_slice(), part]))
    }
}

/// The outcome of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageOutcome {
    /// Run this stage next.
    Next(Blob),
    /// The procedure succeeded with this output.
    Done(Blob),
    /// Create children, then run a stage.
    Spawn {
        /// The children, in order.
        births: Vec<Birth>,
        /// When the parent resumes.
        join: JoinPolicy,
        /// How many children run at the same time; 0 is no limit.
        width: u32,
        /// The next stage.
        then: Blob,
    },
    /// Run this stage at this instant.
    Sleep(Timestamp, Blob),
    /// Run this stage once the event arrives or the time is up.
    Wait(EventName, Option<Duration>, Blob),
    /// Ask a person this question. Run the stage once the answer arrives or the time is up.
    Ask(String, Option<Duration>, Blob),
    /// Run the same stage again. Nothing is stored.
    Yield,
    /// Run the same stage again after a backoff.
    Retry(String),
    /// Run the same stage again after this delay, or at once behind all others if it is zero. A delay over
    /// [`RETRY_AFTER_MAX`](crate::RETRY_AFTER_MAX) counts as that.
    RetryAfter(Duration, String),
    /// A time limit of the stage has passed. This counts as a retry.
    TimedOut(String),
    /// Fail permanently, and keep what the stage did. Past the point of no return this is the same as `Fail`.
    GiveUp(String),
    /// Fail permanently.
    Fail(String),
    /// User code panicked. This counts as a retry.
    Panicked(String),
    /// User code asked for more than a bound allows. The procedure fails permanently.
    Refused(String),
}

impl StageOutcome {
    /// Returns `true` if value, writes, submissions and signals of the stage are part of its commit.
    #[must_use]
    pub const fn leaves_effects(&self) -> bool {
        match self {
            Self::Next(_)
            | Self::Done(_)
            | Self::Spawn { .. }
            | Self::Sleep(..)
            | Self::Wait(..)
            | Self::Ask(..)
            | Self::GiveUp(_) => true,
            Self::Yield
            | Self::Retry(_)
            | Self::RetryAfter(..)
            | Self::TimedOut(_)
            | Self::Fail(_)
            | Self::Panicked(_)
            | Self::Refused(_) => false,
        }
    }
}

/// A stage of a run, other than the last. It left nothing but the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierStage {
    /// When user code began.
    pub begun: Timestamp,
    /// When user code ended.
    pub ended: Timestamp,
    /// The stage that followed.
    pub next: Blob,
    /// `true` if a rollback must pass over this stage.
    pub nothing_to_undo: bool,
}

/// What a stage did through its context beside changing the value. It is part of the stage's commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageEffects {
    /// Writes of user data.
    pub writes: Vec<UserWrite>,
    /// Families that it submitted. A key that is known already submits nothing.
    pub submitted: Vec<Submission>,
    /// Signals that it sent.
    pub signals: Vec<SentSignal>,
    /// Children that it collected one by one.
    pub children: Vec<Birth>,
}

impl StageEffects {
    /// Returns these effects in a box, or `None` if there are none.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (!self.is_empty()).then(|| Box::new(self))
    }

    /// Returns `true` if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.submitted.is_empty() && self.signals.is_empty() && self.children.is_empty()
    }

    /// Adds the effects of another part of the same stage, behind these.
    pub fn append(&mut self, other: Self) {
        self.writes.extend(other.writes);
        self.submitted.extend(other.submitted);
        self.signals.extend(other.signals);
        self.children.extend(other.children);
    }
}

/// The report of one stage, or of a run: pure stages that ran one after the other in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageEnded {
    /// The procedure that ran the stage.
    pub id: ProcedureId,
    /// The commit that started the stage. A report with another number is late.
    pub run: Seq,
    /// The stages of the run before the one that everything else here is about, oldest first. The value is the one that the
    /// last stage left, and `replaced` the one before the first.
    pub earlier: Vec<EarlierStage>,
    /// The epoch of the store's owner when the stage ran. A report of an earlier epoch is late.
    pub epoch: Epoch,
    /// When user code began.
    pub begun: Timestamp,
    /// When user code ended.
    pub ended: Timestamp,
    /// The outcome.
    pub outcome: StageOutcome,
    /// The payload, if the stage changed it.
    pub payload: Option<Blob>,
    /// The value that `payload` replaces, in the schema version of the code, if the call [asked for
    /// it](crate::StageCall::as_submitted).
    pub replaced: Option<Blob>,
    /// The payload as upgraded from an older version, if no commit holds it yet. It is stored whatever the outcome is,
    /// unless the stage left a newer payload.
    pub upgraded: Option<Blob>,
    /// What the stage did beside changing the value. Most stages do nothing of this.
    pub effects: Option<Box<StageEffects>>,
    /// `true` if children keep their places in the width while they ask a person.
    pub keep_places: bool,
    /// What its code noted. A stage that fails leaves its note as well; a yield and a panic leave none.
    pub note: Option<Blob>,
    /// `true` if a rollback must pass over this stage. It counts only if the stage's effects are kept.
    pub nothing_to_undo: bool,
    /// `true` if the procedure's own timeout no longer holds. It counts only if the stage's effects are kept.
    pub lifts_timeout: bool,
    /// What its code declares about the next stage.
    pub next_needs: NextStageNeeds,
    /// The limiter's answer for the next stage, if it was asked before the decision on this report.
    pub admission: Option<Admission>,
}

/// The report of one undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoEnded {
    /// The root of the part of the family that rolls back.
    pub scope: ProcedureId,
    /// The number of the history entry that was undone.
    pub number: u32,
    /// When user code began.
    pub begun: Timestamp,
    /// When user code ended.
    pub ended: Timestamp,
    /// The outcome, with the error text if the undo failed.
    pub outcome: Result<(), String>,
    /// For a failed undo: the delay before its next attempt, if its code chose one.
    pub retry_after: Option<Duration>,
    /// The payload, if the undo changed it.
    pub payload: Option<Blob>,
    /// The value that `payload` replaces, in the schema version of the code, if the call [asked for
    /// it](crate::StageCall::as_submitted).
    pub replaced: Option<Blob>,
    /// The payload as upgraded from an older version, as in [`StageEnded::upgraded`].
    pub upgraded: Option<Blob>,
    /// Writes of user data.
    pub writes: Vec<UserWrite>,
    /// What its code noted, also if the undo failed.
    pub note: Option<Blob>,
}

/// The ruling of a custom join policy, or of the own rule of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinRuling {
    /// The parent may resume, or the child may begin.
    Met,
    /// The rule is not met yet.
    Pending,
    /// The rule can no longer be met, for this reason.
    Unmeetable(String),
}

/// A root that has ended, and the submission that runs it again: with the value that it was submitted with, and the
/// key of that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// The row of the root.
    pub row: Box<Row>,
    /// The submission.
    pub submission: Submission,
}

/// What the store holds about a request's target. It is read before the decision, because the target may not be in
/// memory: it has ended, or its family is quarantined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoredTarget {
    /// Nothing was read: the verb does not need it, or the store does not have it.
    #[default]
    None,
    /// The row of a finished procedure, for an override or an acknowledgement.
    Row(Box<Row>),
    /// A failed root, and the submission that runs it again.
    Again(Box<Again>),
    /// A new root, which an operator submits.
    New(Box<Submission>),
    /// A quarantined family as it goes into the archive, and the keys that a discharge deletes.
    Archive(Blob, Box<EvictedFamily>),
}

impl StoredTarget {
    /// Returns the submission that the request makes, if it makes one.
    pub fn submission(&mut self) -> Option<&mut Submission> {
        match self {
            Self::Again(again) => Some(&mut again.submission),
            Self::New(submission) => Some(submission),
            Self::None | Self::Row(_) | Self::Archive(..) => None,
        }
    }
}

/// An event, which the kernel decides on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client submits procedures: all of them or none.
    Submitted(RequestId, Vec<Submission>),
    /// A stage has ended.
    StageEnded(Box<StageEnded>),
    /// An undo has ended.
    UndoEnded(Box<UndoEnded>),
    /// The rollback stack of this scope was read: every standing entry of the family.
    StackLoaded(ProcedureId, Vec<HistoryEntry>),
    /// The custom join policy of this parent has ruled.
    JoinRuled {
        /// The parent that has the policy.
        parent: ProcedureId,
        /// The number of the first child in the list that it ruled on.
        first: u32,
        /// How many of these children the policy saw ended. Its ruling may be older than what is known.
        seen: u32,
        /// The outcome.
        ruling: JoinRuling,
    },
    /// The own rule of the gate at which this child waits has ruled.
    GateRuled {
        /// The child at the gate.
        id: ProcedureId,
        /// How many of the siblings before it the rule saw ended. Its ruling may be older than what is known.
        seen: u32,
        /// The outcome.
        ruling: JoinRuling,
    },
    /// The timer of this procedure is due.
    TimerDue(ProcedureId),
    /// The limiter has granted everything that this procedure waits for.
    Granted(ProcedureId),
    /// A client sends signals: all of them or none.
    Signalled(RequestId, Vec<SentSignal>),
    /// A client sends an event to all procedures that wait for it now.
    Broadcast {
        /// The request to reply to.
        request: RequestId,
        /// The name of the event.
        name: EventName,
        /// The payload of the signal.
        payload: Blob,
        /// The sender's key.
        key: Option<Key>,
    },
    /// A client writes user data in a commit of its own.
    Written(RequestId, Vec<UserWrite>),
    /// More procedures that wait for the broadcast of this commit must be woken.
    WaveDue(Seq),
    /// An operator sends a request, with what the store holds about its target.
    Requested(RequestId, Box<Verb>, Box<OperatorRequest>, StoredTarget),
    /// A client has acknowledged the result of a finished root. Carries the root's row as stored on disk.
    Acknowledged(RequestId, Box<Row>),
    /// These finished families are due for eviction.
    EvictionDue(Vec<EvictedFamily>),
    /// The code of an ended procedure has cleaned up after it.
    CleanedUp(ProcedureId),
    /// A health check is due, which looks for lost wakes. The limiter names the procedures that hold everything they
    /// wait for, and the procedures it does not know.
    HealthCheckDue {
        /// These procedures hold everything, but were not told.
        granted: Vec<ProcedureId>,
        /// These procedures wait, but are in no queue.
        unknown: Vec<ProcedureId>,
    },
    /// The wall clock was set back while the engine was running.
    ClockSetBack,
    /// A family was quarantined with [`Kernel::forget`](crate::Kernel::forget) while the engine was running.
    FamilyForgotten,
    /// A drain began: no more stages are started.
    DrainBegan,
    /// The drain ended. Stages that still run are left for the next start.
    DrainEnded(RequestId),
    /// All rows have been read, so the engine opens.
    Recovered,
}
