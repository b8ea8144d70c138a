//! How much waits in the engine's mailboxes.

/// Messages that were sent and not taken yet, about now: a mailbox that only grows is that of
/// an actor that does not keep up.
///
/// What an actor sends itself to be reminded of something is not counted, nor is what is sent
/// straight to the supervisor's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mailboxes {
    /// Reports of stages and undos, receipts, grants, and what clients and operators ask.
    pub supervisor: u64,
    /// Requests for permits and locks, and what is given back.
    pub limiter: u64,
    /// Batches of commits behind the one that is being written.
    pub journal: u64,
    /// Reads that wait because as many are under way as may be.
    pub reader: u64,
    /// Calls of stages and undos that wait for a worker, of all workers.
    pub workers: u64,
}
