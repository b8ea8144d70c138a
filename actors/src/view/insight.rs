//! What the engine says about procedures that wait, and about what is stuck.

use std::fmt;

use procession_kernel::{
    Deadlock, Kind, LimitUse, Link, LockNeed, ProcedureId, ProcedureState, Siblings, Timestamp, WakeSource,
};

/// Why a procedure is in its state, and what keeps it there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The procedure's id.
    pub id: ProcedureId,
    /// The procedure's kind.
    pub kind: Kind,
    /// Its state.
    pub state: ProcedureState,
    /// Why it is in that state, in words.
    pub reason: String,
    /// Since when its state and wait reason have been as they are.
    pub since: Timestamp,
    /// What happens next, and when, as far as that is known.
    pub next: String,
    /// Its position in the limiter's queue, if it waits for a permit or a lock.
    pub queue_position: Option<QueuePosition>,
    /// What it waits for in full, if that is a lock, a permit, its children or a slot. Of several locks and permits, this is
    /// the first that it lacks now.
    pub particulars: Option<Particulars>,
    /// Which procedure waits for which, nearest first.
    pub links: Vec<Link>,
    /// The ends of the chains: what each procedure waits for that waits for no other procedure.
    pub ends: Vec<ChainEnd>,
    /// How many members of its family wait behind it at gates, directly or behind others that do; at most 1,000 are
    /// counted.
    pub waiting_behind: usize,
    /// The deadlocks in which the chains end.
    pub deadlocks: Vec<Deadlock>,
    /// `true` if there are more links than are shown.
    pub truncated: bool,
}

/// What a procedure waits for, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Particulars {
    /// A lock.
    Lock {
        /// The lock, and the mode in which it is needed.
        need: LockNeed,
        /// At most 100 holders that conflict with the request. Empty if the lock is reserved for waiters with an
        /// earlier position.
        holders: Vec<ProcedureId>,
    },
    /// A permit of this limit, with the limit's current state.
    Permit(LimitUse),
    /// Its children.
    Children(Siblings),
    /// A slot among the children of its parent, which bounds how many are in progress at once.
    Slot(Siblings),
}

/// A position in the queue for the same lock or limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuePosition {
    /// The position in the order of service, counted from 1.
    pub position: usize,
    /// The length of the queue.
    pub of: usize,
}

/// The end of a chain of waiting procedures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainEnd {
    /// The procedure, which waits for no other procedure.
    pub id: ProcedureId,
    /// What will move it.
    pub until: WakeSource<String>,
    /// Since when it has waited for that.
    pub since: Timestamp,
}

/// A condition that a health check reports. `docs/reference/operations.md` says what to do about each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A stage takes longer than its kind expects.
    Overrun,
    /// A stage or an undo fails repeatedly with the same error.
    RetryStorm,
    /// One stage is run again and again without progress; or a procedure waits for an event whose last signal was sent.
    NoProgress,
    /// A procedure's wake was lost. The check found the procedure and woke it.
    LostWake,
    /// Procedures wait for each other in a cycle.
    Deadlock,
    /// The procedure's actor was lost with its thread in the middle of a call, which counts as failed.
    ActorLost,
    /// Other requests overtake it again and again; or everything it waits for is free, and it is still not granted.
    Starved,
    /// The process died while this procedure's stage was the only one running.
    Poison,
    /// The family has no code here, or cannot be read.
    Quarantined,
    /// An undo has exhausted its attempts.
    RollbackFailed,
    /// It waits for a person to decide: it asks a question, or its gate can no longer open by itself.
    Undecided,
    /// Roots have failed or were rolled back, and nobody has acknowledged that.
    UnacknowledgedFailures,
    /// User code does not release its thread.
    BlockedWorker,
    /// The store does not respond.
    StoreSlow,
    /// The store fails to return what the engine has to read. The engine keeps retrying.
    StoreUnreadable,
    /// The journal's disk has little space left.
    DiskNearlyFull,
    /// The wall clock was set forward, or the machine was off. Results that only appear to be due are kept.
    ClockAhead,
    /// The store has failed, or is full: no more commits are accepted.
    StoreFailed,
    /// The procedure, its history, its family or its signals are large, or near what is allowed.
    Size,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 19] = [
        Self::Overrun,
        Self::RetryStorm,
        Self::NoProgress,
        Self::LostWake,
        Self::Deadlock,
        Self::ActorLost,
        Self::Starved,
        Self::Poison,
        Self::Quarantined,
        Self::RollbackFailed,
        Self::Undecided,
        Self::UnacknowledgedFailures,
        Self::BlockedWorker,
        Self::StoreSlow,
        Self::StoreUnreadable,
        Self::DiskNearlyFull,
        Self::ClockAhead,
        Self::StoreFailed,
        Self::Size,
    ];

    /// Returns the rule's name, as used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overrun => "overrun",
            Self::RetryStorm => "retry_storm",
            Self::NoProgress => "no_progress",
            Self::LostWake => "lost_wake",
            Self::Deadlock => "deadlock",
            Self::ActorLost => "actor_lost",
            Self::Starved => "starved",
            Self::Poison => "poison",
            Self::Quarantined => "quarantined",
            Self::RollbackFailed => "rollback_failed",
            Self::Undecided => "undecided",
            Self::UnacknowledgedFailures => "unacknowledged_failures",
            Self::BlockedWorker => "blocked_worker",
            Self::StoreSlow => "store_slow",
            Self::StoreUnreadable => "store_unreadable",
            Self::DiskNearlyFull => "disk_nearly_full",
            Self::ClockAhead => "clock_ahead",
            Self::StoreFailed => "store_failed",
            Self::Size => "size",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that is stuck, or about to be. The verdict lasts as long as its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// The condition that was found.
    pub rule: Rule,
    /// The affected procedure; `None` if the engine itself is affected. For a deadlock, this is the victim that the
    /// policy would choose.
    pub procedure: Option<ProcedureId>,
    /// When the condition began (of the stage, wait or batch that the rule is about).
    pub since: Timestamp,
    /// The facts that the verdict is based on: name and value.
    pub facts: Vec<(&'static str, String)>,
    /// The procedures that wait for each other in a cycle.
    pub deadlock: Option<Deadlock>,
    /// The whole verdict in one sentence.
    pub text: String,
}

impl Verdict {
    /// Returns a fact by its name.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&str> {
        let fact = self.facts.iter().find(|(other, _)| *other == name);
        fact.map(|(_, value)| value.as_str())
    }
}
