//! The pure core of Procession: it decides, and never does.
//!
//! ```text
//!  Event ──▶ Kernel::decide(&self, now) ──▶ Decision { bindings, records, effects }
//!                                               │
//!            Kernel::apply(&mut self) ◀─────────┤ records: folded in by `evolve`,
//!                                               │          and given out for the disk
//!                                               ▼
//!                          Commit { effects held back } ── Receipt ──▶ effects
//! ```
//! One stage, end to end: its report is an [`Event`]; the [`Decision`] holds
//! the row, the history entry and all else that must be on disk, and the next
//! [`Effect`]s; these leave the [`Commit`] only against a [`Receipt`].
//!
//! The kernel knows no actor, no clock, no I/O and no random number: time is an
//! argument, maps are ordered, and the same events give the same state.

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
mod families;
mod family;
mod fingerprint;
mod history;
mod id;
mod intake;
mod invariant;
mod kernel;
mod latch;
mod lifecycle;
mod lock;
mod needs;
mod outstanding;
mod plan;
mod record;
mod retry;
mod row;
mod wait;
mod waiters;
mod waits;

pub use admission::{Admissions, Blocker, Grant, Lack, LimitCrowd, LimitUse, LockUse, PATIENCE, Request};
pub use audit::{AUDIT_CHANGES, AUDIT_KEPT, AuditEntry, Changed, OperatorRequest, StateSnapshot};
pub use cause::{Cause, CauseKind, NotUndone};
pub use damage::{NAMED_MAX, NUMBER_MAX, check_rows};
pub use decision::{Binding, Commit, Decision, Receipt};
pub use effect::{
    AbortAnswer, AdmissionEffect, Answer, DispatchEffect, Effect, Ended, LifecycleEffect, Operated, Refusal,
    RequestEffect, StageCall, StageTask,
};
pub use event::{
    Admission, Birth, BypassAs, BypassScope, Event, JoinRuling, KeyAsked, RevealScope, StageEnded, StageOutcome,
    Submission, UndoEnded, Verb,
};
pub use explain::Until;
pub use families::{Families, SAME_STAGE_FROZEN, STAGES_FROZEN, Seen};
pub use family::{Below, Family, Members, Scope, Signals};
pub use fingerprint::fingerprint;
pub use history::{Ending, HistoryEntry, settle_standing};
pub use id::{
    Blob, Epoch, EventName, Key, Kind, LimitKey, ParseProcedureIdError, ParseTraceParentError, ProcedureId, Seq,
    Ticket, Timestamp, TraceParent,
};
pub use intake::Unfit;
pub use kernel::{Bounds, HistoryDetail, Kernel, KindRules, Rules};
pub use latch::{Join, Latch, Standing};
pub use lifecycle::ProcedureState;
pub use lock::{LockMode, LockNeed, LockPath};
pub use needs::{Lacking, Needs};
pub use plan::{Executed, Freed, PLAN_NAMED, Plan, PlannedStage};
pub use record::{Doomed, KeyEntry, Record, UserWrite};
pub use retry::RetryPolicy;
pub use row::{Ahead, ChildPermits, Going, Hold, JoinPolicy, Large, Mark, OnFailure, OnTimeout, Round, Row, Said};
pub use wait::{Pause, SignalEntry, WaitReason, Wake};
pub use waiters::Broadcast;
pub use waits::{Deadlock, Link, Need, Node, WaitGraph, WaitingFor};
