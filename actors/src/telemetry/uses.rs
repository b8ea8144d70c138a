//! What happened to each kind since the engine started, in plain numbers: a recorder may keep none.

use std::time::Duration;

use procession_kernel::Kind;

/// One kind: its versions, and what happened to procedures of it since the engine started.
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
    /// Procedures ended: as successes, rolled back, and failed.
    pub finished: [u64; 3],
    /// Stages that are to be tried again.
    pub retries: u64,
    /// Stages that panicked.
    pub panics: u64,
    /// User code of its stages and undos, by stage; 64 of them at most, the rest go together.
    pub stages: Vec<StageUse>,
}

/// What user code of one stage took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageUse {
    /// Its name.
    pub stage: String,
    /// How often it, or its undo, has run.
    pub runs: u64,
    /// What that took in all.
    pub total: Duration,
    /// What the longest took.
    pub longest: Duration,
}
