//! Permits and locks, granted together: the value that the limiter holds.
//!
//! A request names every permit and every lock that it needs, and gets all of
//! them in one instant or none. The order of service is by priority, then by
//! arrival. A waiter that lacks a lock keeps its place on each path: nobody
//! behind it takes a lock that conflicts with one it needs. In its kind's own
//! limit the first of them keeps one permit spare. A waiter that lacks permits
//! alone reserves nothing, so that one limit that is full delays nobody else.
//!
//! A waiter is not waited for by those on whom it depends: whoever has, by
//! itself or through an ancestor, a lock that the waiter waits for passes it.
//! This looks one step far. One who holds a lock and asks for another still
//! waits for those who are queued behind such a waiter: [`Admissions::blockers`]
//! shows it, so that the search for deadlocks finds the cycle.
//!
//! Each waiter watches one thing that it lacks, and is looked at again when
//! that changes: see `look`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;

use crate::id::{Claim, ClaimId, LimitKey, ProcedureId, Timestamp};
use crate::lock::{LockMode, LockNeed, LockPath};
pub(crate) use crate::needs::{Lacking, Needs};

mod ask;
mod claim;
mod explain;
mod few;
mod hold;
mod index;
mod inside;
mod judge;
mod line;
mod look;
mod node;
mod pool;
mod queue;
mod seat;
mod slab;
mod sorted;
mod tree;
mod watch;

use claim::Claims;
use inside::Insides;
use line::Lines;
use pool::{Pool, Pools};
use seat::Seat;
use tree::Tree;

/// How often a waiter may be passed.
///
/// It is passed when one who came later takes a lock that conflicts with one it
/// needs, or the last permit of a limit it needs. One that was passed this
/// often goes before all who were not, and from then on nobody who came later
/// takes any such thing: this is the bound, whatever the priorities. Not
/// counted are those who have, by themselves or through an ancestor, a part of
/// what the waiter waits for, because it may depend on them.
/// (In this crate's own unit tests it is 4, so that random histories reach it.)
///
/// Large enough that priorities mean something under load, small enough that a
/// waiter of the lowest one is served after some hundred others.
pub const PATIENCE: u32 = if cfg!(test) { 4 } else { 256 };

/// A wish for permits and locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The claim that asks, and the generation of this request. Its answer, and a later grant, carry both.
    pub claim: Claim,
    /// What it asks for; what it holds already it keeps.
    pub needs: Needs,
    /// Which of the limits is its kind's own, if any is.
    pub kind: Option<LimitKey>,
    /// The higher goes first.
    pub priority: i16,
    /// Claims of its ancestors, nearest first. What they hold does not keep it out.
    pub within: Vec<ClaimId>,
}

/// What a request is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It holds everything it asked for.
    Granted,
    /// It waits, and got no part of it. Names the first thing it lacks: a lock
    /// if it lacks any, else a permit.
    Queued(Lacking),
}

/// One limit as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// Its name.
    pub key: LimitKey,
    /// Its capacity; none is unlimited.
    pub limit: Option<u32>,
    /// Permits that are out.
    pub used: u32,
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that came while it had no permit for them, and had to wait, since the value was
    /// made. None was refused: no limit refuses.
    pub had_to_wait: u64,
    /// Who has one of the permits that are out, 100 at most; nobody where names were not asked for.
    pub holders: Vec<ProcedureId>,
    /// Who waits, in the order of service, and since when as far as that is known; 100 at most. Nobody where names
    /// were not asked for, or where the limit is unlimited: those who wait lack something else then.
    pub waiters: Vec<(ProcedureId, Option<Timestamp>)>,
}

/// One limit as it stands, with claims of those who hold its permits and of those who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitCrowd {
    /// The limit.
    pub usage: LimitUse,
    /// Who has a permit.
    pub holders: Vec<ClaimId>,
    /// Who waits, in the order of service; nobody if it is unlimited.
    pub waiting: Vec<ClaimId>,
}

/// One locked or wanted path as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockUse {
    /// The path.
    pub path: LockPath,
    /// Who holds it, by claim.
    pub holders: Vec<(ClaimId, LockMode)>,
    /// Who wants it, and how, in the order of service.
    pub waiting: Vec<(ClaimId, LockMode)>,
}

/// One thing that a waiter lacks, and who keeps it from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// What it lacks.
    pub lacking: Lacking,
    /// Those who hold it, or who wait for it in a place before.
    pub by: Vec<ClaimId>,
    /// Whether it is enough that one of them moves.
    pub any: bool,
    /// They wait for it in a place before, which each keeps only as long as it
    /// lacks any lock: whether it lacks a permit does not matter.
    pub place: bool,
}

/// One thing that a waiter lacks, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// This lock, and who holds what conflicts with it, each once.
    Lock(LockNeed, Vec<ClaimId>),
    /// A permit of this limit.
    Permit(LimitUse),
}

impl Lack {
    /// Gives what it is.
    #[must_use]
    pub fn lacking(&self) -> Lacking {
        match self {
            Self::Lock(need, _) => Lacking::Lock(need.path.clone()),
            Self::Permit(usage) => Lacking::Permit(usage.key.clone()),
        }
    }
}

/// All limits, all locks and all requests.
///
/// ```
/// use procession_kernel::{Admissions, Claim, ClaimId, Grant, LockNeed, Needs, Request};
///
/// let ask = |number| Request {
///     claim: Claim::first(ClaimId(number)),
///     needs: Needs { limits: vec!["move".into()], locks: vec![LockNeed::exclusive("ns/table")] },
///     kind: Some("move".into()),
///     priority: 0,
///     within: Vec::new(),
/// };
/// let mut admissions = Admissions::new([("move".into(), Some(100))]);
/// assert_eq!(admissions.request(ask(1)), (Grant::Granted, vec![]));
/// assert!(matches!(admissions.request(ask(2)), (Grant::Queued(_), _)));
/// assert_eq!(admissions.release(ClaimId(1)), [Claim::first(ClaimId(2))]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Admissions {
    pools: Pools,
    claims: Claims,
    arrivals: u64,
    /// Paths, and who locks them or waits for them.
    tree: Tree,
    /// Waiting descendants by ancestor.
    insides: Insides,
    lines: Lines,
    /// Waiters that must be looked at; empty between two calls.
    look: BinaryHeap<Reverse<Seat>>,
    #[cfg(test)]
    looks: u64,
}

impl Admissions {
    /// Makes the limits given; all others are unlimited.
    #[must_use]
    pub fn new(limits: impl IntoIterator<Item = (LimitKey, Option<u32>)>) -> Self {
        let mut admissions = Self::default();
        for (key, limit) in limits {
            admissions.pools.set(&key, limit, &admissions.claims);
        }
        admissions
    }

    /// Tells whether a limit of this name was ever set or asked for.
    #[must_use]
    pub fn knows(&self, key: &LimitKey) -> bool {
        self.pools.find(key).is_some()
    }

    /// Gives every limit as it stands.
    #[must_use]
    pub fn usage(&self) -> Vec<LimitUse> {
        self.pools.by_name().into_iter().map(Pool::usage).collect()
    }

    /// Returns every limit as it stands, with the first who hold its permits and the first who wait: this many of each.
    #[must_use]
    pub fn crowds(&self, most: usize) -> Vec<LimitCrowd> {
        let crowd = |pool: &Pool| LimitCrowd {
            usage: pool.usage(),
            holders: pool.holders.iter().take(most).collect(),
            waiting: pool
                .waiting
                .iter()
                .filter_map(|seat| self.claims.id_of(seat.slot))
                .take(most)
                .collect(),
        };
        self.pools.by_name().into_iter().map(crowd).collect()
    }

    /// Gives one limit as it stands.
    #[must_use]
    pub fn usage_of(&self, key: &LimitKey) -> Option<LimitUse> {
        self.pools.get(self.pools.find(key)?).map(Pool::usage)
    }

    /// Gives the limits of which a claim holds, or waits for, a permit each.
    #[must_use]
    pub fn limits_of(&self, claim_id: ClaimId) -> Vec<LimitKey> {
        let mut limits = self.held(claim_id).limits;
        if let Some(waiting) = self.waiting_of(claim_id) {
            limits.extend(self.pools.keys(&waiting.limits));
        }
        limits
    }

    /// Gives all who wait, in the order of service.
    pub fn waiting(&self) -> impl Iterator<Item = ClaimId> {
        let seats = self
            .claims
            .iter()
            .filter_map(|claim| Some(Reverse(claim.waiting()?.seat)));
        let mut queue: BinaryHeap<Reverse<Seat>> = seats.collect();
        iter::from_fn(move || self.claims.id_of(queue.pop()?.0.slot))
    }

    /// Gives those who wait among some of the claims, each with its place in the order of service, and where the
    /// next of the claims begin. Who waits all the while is met, whatever changes between two pages.
    #[must_use]
    pub fn waiting_from(&self, from: usize, claims: usize) -> (Vec<(ClaimId, u128)>, Option<usize>) {
        let (page, all) = self.claims.page(from, claims);
        let mut waiting: Vec<(ClaimId, u128)> = page
            .filter_map(|claim| Some((claim.id, claim.waiting()?.seat.order())))
            .collect();
        waiting.sort_unstable_by_key(|(_, order)| *order);
        let next = from.saturating_add(claims);
        (waiting, Some(next).filter(|next| *next < all))
    }

    /// Counts those who hold or wait for anything.
    #[must_use]
    pub fn claimed(&self) -> usize {
        self.claims.iter().count()
    }

    /// Tells whether the claim waits.
    #[must_use]
    pub fn is_waiting(&self, claim_id: ClaimId) -> bool {
        self.waiting_of(claim_id).is_some()
    }

    /// Tells how often the waiting claim was passed; at most [`PATIENCE`] times.
    #[must_use]
    pub fn passed(&self, claim_id: ClaimId) -> u32 {
        self.waiting_of(claim_id).map_or(0, |waiting| waiting.passed)
    }

    /// Tells whether the claim holds all of this, each lock in just that mode.
    #[must_use]
    pub fn holds_all(&self, claim_id: ClaimId, needs: &Needs) -> bool {
        let Some((_, claim)) = self.claims.get_by(claim_id) else {
            return needs.is_empty();
        };
        let has_permit = |key| self.pools.find(key).is_some_and(|id| claim.limits.contains(id));
        let has_lock = |need| self.tree.find(need).is_some_and(|lock| claim.locks.contains(lock));
        needs.limits.iter().all(has_permit) && needs.locks.iter().all(has_lock)
    }

    /// Gives all that the claim holds.
    #[must_use]
    pub fn held(&self, claim_id: ClaimId) -> Needs {
        let Some((_, claim)) = self.claims.get_by(claim_id) else {
            return Needs::default();
        };
        let mut needs = Needs {
            limits: self.pools.keys(&claim.limits).collect(),
            locks: claim.locks.iter().map(|lock| self.tree.need(lock)).collect(),
        };
        needs.limits.sort_unstable();
        needs.locks.sort_unstable();
        needs
    }
}

#[cfg(test)]
mod tests;
