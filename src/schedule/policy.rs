//! What becomes of ticks that were missed, and of ticks that are due while a run goes on.

use serde::{Deserialize, Serialize};

/// Most ticks that are caught up, and most that wait. Their runs are submitted in one commit, or stored in one value.
pub(super) const TICKS_MAX: u32 = 1_000;

/// What becomes of ticks that were missed: while the engine was down, the schedule paused, or its worker blocked.
///
/// A tick is missed once it is a minute late. All ticks that are less late count, whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CatchUp {
    /// Skips them.
    Skip,
    /// Runs the newest of them, however late it is, if no tick is in time, and skips the others.
    #[default]
    Last,
    /// Runs the newest of them in their order, so that they are this many together with the ticks in time; 1,000 at
    /// most. Each meets the [`Overlap`] of the schedule, so give that a queue as long if they shall run one after
    /// another.
    All(u32),
}

/// What becomes of a tick that is due while an earlier run has not ended.
///
/// A run that was [asked for](crate::Executor::run_now) is never lost to it: where a tick would be skipped, it waits for
/// the end of the run that goes on. One such run waits at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Overlap {
    /// Skips the tick.
    #[default]
    Skip,
    /// Lets this many ticks wait, 1,000 at most; a further one is skipped. The oldest runs once the run before it has
    /// ended.
    Queue(u32),
    /// Aborts the run that goes on, and runs the tick once that has ended. A run past its point of no return ends by
    /// itself. Of several ticks that are due or wait, the newest counts. A run that was asked for aborts none: it waits
    /// as with the other policies, and runs before a tick that came after it.
    Cancel,
    /// Runs the tick beside it.
    Allow,
}

impl CatchUp {
    /// Returns up to how many ticks missed ones are admitted.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Skip => 0,
            Self::Last => 1,
            Self::All(most) => most.min(TICKS_MAX) as usize,
        }
    }
}

impl Overlap {
    /// Returns its name in metrics.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue(_) => "queue",
            Self::Cancel => "cancel",
            Self::Allow => "allow",
        }
    }

    /// Returns how many ticks may wait.
    pub(super) fn room(self) -> usize {
        match self {
            Self::Skip | Self::Allow => 0,
            Self::Queue(most) => most.min(TICKS_MAX) as usize,
            Self::Cancel => 1,
        }
    }
}
