//! Why something does not move: explanations, verdicts and their thresholds.

pub use procession_actors::view::{
    BlockedStage, ChainEnd, Explanation, Particulars, QueuePosition, Rule, UserCall, Verdict,
};
pub use procession_actors::{KindThresholds, Thresholds};
pub use procession_kernel::{Deadlock, Link, Siblings, WaitingFor, WakeSource};
