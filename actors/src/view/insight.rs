//! What the engine says of those that wait, and of what is stuck.

use std::fmt;

use procession_kernel::{Deadlock, Kind, LimitUse, Link, LockNeed, ProcedureId, ProcedureState, Timestamp, Until};

/// Why a procedure stands where it stands, and who keeps it there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Who it is.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Its state.
    pub state: ProcedureState,
    /// Why it is in that state, in words.
    pub reason: String,
    /// Since when state and reason are as they are.
    pub since: Timestamp,
    /// What comes next, and when, as far as that is known.
    pub next: String,
    /// Its place in the limiter's queue, if it waits for a permit or a lock.
    pub place: Option<Place>,
    /// What it waits for in full, if that is a lock, a permit or its children; of locks and permits the first that
    /// it lacks now.
    pub particulars: Option<Particulars>,
    /// Who waits for whom, nearest first.
    pub links: Vec<Link>,
    /// What those wait for who wait for no other one: where the chains end.
    pub ends: Vec<ChainEnd>,
    /// Deadlocks in which the chains end.
    pub deadlocks: Vec<Deadlock>,
    /// There are more links than are shown.
    pub truncated: bool,
}

/// What one waits for, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Particulars {
    /// A lock.
    Lock {
        /// Which, and in which mode.
        need: LockNeed,
        /// Who holds what conflicts with it, 100 at most; nobody where it is kept for those who wait in a place
        /// before.
        holders: Vec<ProcedureId>,
    },
    /// A permit of this limit, as it stands.
    Permit(LimitUse),
    /// Its children.
    Children {
        /// How many of them have ended.
        done: u32,
        /// How many there are.
        total: u32,
    },
}

/// A place among those who wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 1, in the order of service.
    pub place: usize,
    /// How many wait for it.
    pub of: usize,
}

/// Where a chain ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainEnd {
    /// Who waits for no other one.
    pub id: ProcedureId,
    /// What moves it.
    pub until: Until<String>,
    /// Since when it waits for that.
    pub since: Timestamp,
}

/// What can be wrong. `docs/operations.md` says what to do about each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A stage takes longer than its kind expects.
    Overrun,
    /// A stage, or an undo, fails again and again, and says the same.
    RetryStorm,
    /// One stage is run again and again.
    NoProgress,
    /// Nothing would have woken it; it was found, and set going again.
    LostWake,
    /// Procedures wait for each other in a circle.
    Deadlock,
    /// Its actor was gone with its thread, in the middle of a call, which counts as failed.
    ActorLost,
    /// Others go before it again and again; or what it waits for is free, and it is not served.
    Starved,
    /// The process died while its stage ran alone.
    Poison,
    /// It has no code here, or cannot be read.
    Quarantined,
    /// An undo has used up its attempts.
    RollbackFailed,
    /// User code does not let go of its thread.
    BlockedWorker,
    /// The store does not answer.
    StoreSlow,
    /// The store does not give what the engine has to read. It tries again.
    StoreUnreadable,
    /// The disk on which the journal is has little room left.
    DiskNearlyFull,
    /// The wall clock was set forward, or the machine was off: results that only look due are kept.
    ClockAhead,
    /// The store has failed, or is full: no more commits are taken.
    StoreFailed,
    /// It, its history, its family or its signals are near what is allowed, or large.
    Size,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 17] = [
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
        Self::BlockedWorker,
        Self::StoreSlow,
        Self::StoreUnreadable,
        Self::DiskNearlyFull,
        Self::ClockAhead,
        Self::StoreFailed,
        Self::Size,
    ];

    /// Gives its name, as metrics and logs have it.
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

/// Something that is stuck, or about to be. It stands as long as its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// What is wrong.
    pub rule: Rule,
    /// With whom; none if with the engine. Of a deadlock the victim that the policy would choose.
    pub procedure: Option<ProcedureId>,
    /// Since when that lasts which the rule names: the stage, the wait, the batch.
    pub since: Timestamp,
    /// What it was told by: name and value.
    pub facts: Vec<(&'static str, String)>,
    /// Who waits for whom in a circle.
    pub deadlock: Option<Deadlock>,
    /// All that in one sentence.
    pub text: String,
}

impl Verdict {
    /// Gives a fact by its name.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&str> {
        let fact = self.facts.iter().find(|(other, _)| *other == name);
        fact.map(|(_, value)| value.as_str())
    }
}
