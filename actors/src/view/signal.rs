//! Stored signals, and counts of what is stored.

use procession_kernel::{ProcedureId, SignalEntry};

/// One stored signal, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptSignal {
    /// The procedure to which it was sent.
    pub id: ProcedureId,
    /// Its number, in the order of delivery.
    pub number: u32,
    /// What is known of it.
    pub entry: SignalEntry,
    /// Bytes of its payload.
    pub size: usize,
}

/// How much is stored of one procedure, counted up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCounts {
    /// Its executed stages and undos.
    pub history: usize,
    /// There may be more of them than were counted.
    pub more_history: bool,
    /// Its signals.
    pub signals: usize,
    /// There are more of them than were counted.
    pub more_signals: bool,
}
