//! What is shown of procedures, as JSON has it: ids are strings, times RFC 3339 in
//! UTC, durations milliseconds. The command line and every other reader of the
//! engine share these shapes, and a reader of another release reads them: fields are added,
//! never renamed and never removed.

mod audit;
mod difference;
mod explanation;
mod failures;
mod flow;
mod history;
mod limit;
mod lock;
mod log;
mod mailbox;
mod plan;
mod procedure;
mod queue;
mod read;
mod reply;
mod signal;
mod standing;
mod tree;
mod value;
mod verdict;
mod words;

pub use audit::{AuditView, ChangedView};
pub use difference::{ChangeView, DifferenceView, compared, difference, value_behind};
pub use explanation::{
    ChildrenLeftView, EndView, ExplanationView, LinkView, LockWantedView, PermitWantedView, PlaceView, SlotWantedView,
};
pub use failures::{FAILURES_READ, FailureGroupView, FailuresView};
pub(crate) use flow::NODES_MAX;
pub use flow::{DRAWN, FlowQueueView, FlowView, GraphView, GroupView, NodeView, graph_of, is_set, set_status};
pub(crate) use history::note_shown;
pub use history::{HistoryView, LeftValueView};
pub use limit::{LimitView, LimitWaiterView, RateView};
pub use lock::{HolderView, LockUseView, WaiterView};
pub use log::{AttemptLogView, LogEventView, LogsView};
pub use mailbox::{MailboxView, NameView};
pub use plan::{FreedView, PlanView, StaysView, UndoView};
pub use procedure::{CauseView, LockHeldView, ProcedureView};
pub use queue::{QueueReading, QueueView, QueuedView, RecordView, is_stream};
pub use reply::{PageView, Reply};
pub use signal::{SignalView, revealed_signals_of, signals_of};
pub use standing::{snapshot_words, state_words};
pub use tree::{TreeNodeView, tree_of};
pub(crate) use value::revealed;
pub use value::{RevealedView, ValueView, revealed_values_of, values_of};
pub use verdict::{CycleView, VerdictView};
pub use words::{Reason, ending_word, mark_word};

use std::time::Duration;

use procession_kernel::Timestamp;

/// Returns an instant as the views have it.
#[must_use]
pub fn time(at: Timestamp) -> String {
    at.to_string()
}

/// Returns a duration as the views have it, in milliseconds.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a duration that may be far less than a millisecond, in milliseconds, to the microsecond; an hour at most.
#[must_use]
pub fn fine_millis(time: Duration) -> f64 {
    let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
    f64::from(micros) / 1_000.0
}

#[cfg(test)]
mod tests;
