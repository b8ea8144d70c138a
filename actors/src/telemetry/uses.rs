//! Figures of each kind since the engine started, as plain numbers, since a recorder may keep none.

use std::time::Duration;

use procession_kernel::Kind;

use super::passes::StagePass;
use super::rates::KindRate;

/// One kind: its versions, and the figures of its procedures since the engine started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindUse {
    /// Its name.
    pub kind: Kind,
    /// The version that the code writes.
    pub version: u16,
    /// The oldest version that the code still reads.
    pub oldest: u16,
    /// Procedures born.
    pub submitted: u64,
    /// Procedures ended: successes, rolled back, and failed.
    pub finished: [u64; 3],
    /// Stages that are retried.
    pub retries: u64,
    /// Stages that panicked.
    pub panics: u64,
    /// Procedures born and ended in the last minute. It begins at zero when the engine starts.
    pub last_minute: KindRate,
    /// User code of its stages and undos, by stage; at most 64 stages, further ones share an entry.
    pub stages: Vec<StageUse>,
    /// How its procedures went from stage to stage, bounded in the same way.
    pub passes: Vec<StagePass>,
}

/// Run times of the user code of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageUse {
    /// Its name.
    pub stage: String,
    /// How often the stage, or its undo, has run.
    pub runs: u64,
    /// Total run time.
    pub total: Duration,
    /// Longest run time.
    pub longest: Duration,
}
