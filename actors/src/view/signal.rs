//! One signal that is kept, and how much it carries.

use procession_kernel::{ProcedureId, SignalEntry};

/// One signal that is kept, without what it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptSignal {
    /// To whom it was sent.
    pub id: ProcedureId,
    /// Its number, in the order of delivery.
    pub number: u32,
    /// What is known of it.
    pub entry: SignalEntry,
    /// Bytes of its payload.
    pub size: usize,
}

/// How much is kept of one procedure, counted up to a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Its executed stages and undos.
    pub history: usize,
    /// There may be more of them than were counted.
    pub more_history: bool,
    /// Its signals.
    pub signals: usize,
    /// There are more of them than were counted.
    pub more_signals: bool,
}
