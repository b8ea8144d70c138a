//! Stored signals, and counts of what is stored.

use procession_kernel::{ProcedureId, SignalEntry};

/// One stored signal, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalSummary {
    /// The procedure that it was sent to.
    pub id: ProcedureId,
    /// Its number, in the order of delivery.
    pub number: u32,
    /// What is stored with it, apart from the payload.
    pub entry: SignalEntry,
    /// The size of its payload in bytes.
    pub size: usize,
}

/// How much is stored of one procedure, counted up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCounts {
    /// The number of its history entries: executed stages and undos.
    pub history: usize,
    /// `true` if there may be more history entries than were counted.
    pub more_history: bool,
    /// The number of its signals.
    pub signals: usize,
    /// `true` if there are more signals than were counted.
    pub more_signals: bool,
}
