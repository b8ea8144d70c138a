//! The pure core of Procession: it decides, and never acts.
//!
//! ```text
//!  Event ──▶ Kernel::decide(&self, now) ──▶ Decision { records, admission, effects }
//!                                               │
//!            Kernel::fold(&mut self) ◀──────────┤ records: folded in by `evolve`, once they are
//!                                               │          encoded for the disk
//!                                               ├─▶ admission: what the limiter is told at once
//!                                               ▼
//!                          Commit { effects held back } ── Receipt ──▶ effects
//! ```
//! One stage, end to end: its report is an [`Event`]. The [`Decision`] holds the row, the history entry, everything
//! else that must be on disk, and the next [`Effect`]s. The effects leave the [`Commit`] only against a [`Receipt`].
//!
//! The kernel knows no actor, no clock, no I/O and no random number. Time is an argument, maps are ordered, and the
//! same events produce the same state.

mod admission;
mod audit;
mod cause;
mod damage;
mod decide;
mod decision;
mod effect;
mod event;
mod evolve;
mod explain;
mod failure;
mod families;
mod family;
mod fingerprint;
mod history;
mod id;
mod intake;
mod invariant;
mod kernel;
mod kind_index;
mod label;
mod latch;
mod lifecycle;
mod limit;
mod list;
mod lock;
mod needs;
mod outstanding;
mod plan;
mod rate_window;
mod rates;
mod record;
mod retry;
mod row;
mod seldom;
mod spare;
mod verb;
mod wait;
mod waiters;
mod waits;

pub use admission::{
    Admissions, Blocker, Grant, LimitDetail, LimitUse, LockUse, MAX_OVERTAKES, Missing, RateUse, Request,
};
pub use audit::{AUDIT_CHANGES, AUDIT_KEPT, AuditEntry, Changed, OperatorRequest, Reach, StateSnapshot};
pub use cause::{Cause, CauseKind, NotUndone};
pub use damage::{NAMED_MAX, NUMBER_MAX, check_rows};
pub use decision::{Commit, Decision, Receipt};
pub use effect::{
    AdmissionEffect, Answer, DispatchEffect, Effect, Ended, Immediate, LifecycleEffect, NotNow, Operated, Refusal,
    RequestEffect, SpeculativeCall, StageCall, StageTask,
};
pub use event::{
    Admission, Again, Birth, Brood, EarlierStage, Event, JoinRuling, KeyAsked, StageEffects, StageEnded, StageOutcome,
    StoredTarget, Submission, UndoEnded,
};
pub use explain::{Siblings, WakeSource};
pub use failure::FailureEntry;
pub use families::{Families, FamilyRef, SAME_STAGE_FROZEN, STAGES_FROZEN};
pub use family::{Below, Family, Gates, Members, Scope, Signals};
pub use fingerprint::fingerprint;
pub use history::{
    Ending, HistoryEntry, LEFT_VALUE_MAX, LeftValue, SUBMITTED_ENTRY_LAST, SUBMITTED_IN_ENTRY_MAX, SubmittedValue,
    settle_standing,
};
pub use id::{
    Blob, Claim, ClaimId, Epoch, EventName, Key, Kind, LimitKey, ParseProcedureIdError, ParseTraceParentError,
    ProcedureId, RequestId, Seq, Timestamp, TraceParent,
};
pub use intake::RejectedFamily;
pub use kernel::{Bounds, HistoryDetail, Kernel, KindRules, RUN_LENGTH_MAX, Rules, SIGNAL_KEYS};
pub use label::{
    LABEL_BIT, LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX, Label, LabelDigest, LabelError, Labels, RowLabels,
};
pub use latch::{Join, Latch, LatchState};
pub use lifecycle::ProcedureState;
pub use limit::{Limit, Rate, SHORTEST_PERIOD};
pub use list::List;
pub use lock::{LockMode, LockNeed, LockPath};
pub use needs::{Lacking, Needs};
pub use plan::{Executed, Freed, PLAN_NAMED, Plan, PlannedStage};
pub use rate_window::RateWindow;
pub use rates::Rates;
pub use record::{EvictedFamily, KeyEntry, Record, UserWrite};
pub use retry::{RETRY_AFTER_MAX, RetryPolicy};
pub use row::{
    CHILD_NAME_MAX, ChildPermits, FailureStreak, Gate, GraphNode, Hold, InFlight, JoinPolicy, Mark, NextStageNeeds,
    OnFailure, OnTimeout, PayloadSizeNote, Rare, Round, Row,
};
pub use seldom::{Empty, Seldom};
pub use verb::{AbortAnswer, Act, BypassAs, BypassScope, RevealScope, UnknownVerb, Verb, VerbName};
pub use wait::{END_SIGNAL_MAX, EndSignal, PauseScope, Question, SentSignal, SignalEntry, WaitReason, Wake};
pub use waiters::Broadcast;
pub use waits::{Deadlock, Link, Need, WaitGraph, WaitNode, WaitingFor};
