//! How many messages wait in the engine's mailboxes.

/// The approximate numbers of messages that were sent and not taken yet. If a mailbox only grows, its actor does not
/// keep up.
///
/// Neither an actor's reminders to itself nor messages that are sent directly to the supervisor's address are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mailboxes {
    /// Reports of stages and undos, receipts, grants, and requests of clients and operators.
    pub supervisor: u64,
    /// Requests for permits and locks, and their releases.
    pub limiter: u64,
    /// Batches of commits behind the batch that is being written.
    pub journal: u64,
    /// Reads that wait because the maximum number is under way.
    pub reader: u64,
    /// Calls of stages and undos that wait for a worker, summed over all workers.
    pub workers: u64,
}
