//! The pure core of Procession: it decides, and never does.
//!
//! ```text
//!  Event ──▶ Kernel::decide(&self, now) ──▶ Decision { records, effects }
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
mod decide;
mod decision;
mod effect;
mod event;
mod evolve;
mod family;
mod id;
mod invariant;
mod kernel;
mod latch;
mod lifecycle;
mod record;
mod retry;
mod wait;

pub use admission::{Grant, LimitUse, Permits};
pub use decision::{Commit, Decision, Receipt};
pub use effect::{AbortAnswer, Advance, Answer, Effect, Ended, Refusal, Undo};
pub use event::{Admission, Birth, Event, JoinRuling, Operator, StageEnded, StageOutcome, Submission, UndoEnded};
pub use family::{Family, Scope};
pub use id::{Blob, Epoch, EventName, Key, Kind, LimitKey, ParseProcedureIdError, ProcedureId, Seq, Ticket, Timestamp};
pub use kernel::{Bounds, Kernel, KindRules, Rules};
pub use latch::{Join, Latch, Standing};
pub use lifecycle::ProcedureState;
pub use record::{
    Cause, CauseKind, Doomed, Ending, Going, HistoryEntry, JoinPolicy, KeyEntry, NotUndone, OnFailure, Record, Round,
    Row, UserWrite,
};
pub use retry::RetryPolicy;
pub use wait::{SignalEntry, WaitReason, Wake};
