//! Permits and locks, granted together. This is the value that the limiter holds.
//!
//! A request names every permit and every lock that it needs, and gets all of them at once or none. Requests are served
//! by priority, then by arrival. A waiter that lacks a lock keeps its place on each path: no request behind it takes a
//! lock that conflicts with one it needs. In the limit of its own kind, the first such waiter also keeps one permit
//! spare. A waiter that lacks only permits reserves nothing, so that one full limit delays no other requests.
//!
//! This ends at the bound: a waiter that was overtaken [`MAX_OVERTAKES`] times reserves everything that it needs until
//! it is served, each lock and one permit of each limit, whatever it lacks itself. Otherwise no bound would hold for a
//! waiter that needs several things, each of them free at another time.
//!
//! A request does not wait for a waiter that may depend on it. It may overtake a waiter that is itself waiting for a
//! lock which the requester (or an ancestor) holds. This rule looks only one step far. A claim that holds a lock and
//! asks for another still waits for the requests queued behind such a waiter. [`Admissions::blockers`] shows this, so
//! that the search for deadlocks finds the cycle.
//!
//! Each waiter depends on one thing that it lacks, and is evaluated again when that changes: see `recheck`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter;

use crate::id::{Claim, ClaimId, LimitKey, ProcedureId, Timestamp};
use crate::limit::{Limit, Rate};
use crate::lock::{LockMode, LockNeed, LockPath};
pub(crate) use crate::needs::{Lacking, Needs};

mod ask;
mod claim;
mod dependency;
mod evaluate;
mod explain;
mod hash_index;
mod hold;
mod inline_list;
mod limit;
mod nested;
mod path_node;
mod permit_queue;
mod queue;
mod queue_position;
mod recheck;
mod slab;
mod sorted_deque;
mod tree;

use claim::Claims;
use limit::{LimitState, LimitTable};
use nested::NestedIndex;
use permit_queue::PermitQueues;
use queue_position::QueuePosition;
use tree::Tree;

/// How often a waiter may be overtaken.
///
/// A later arrival overtakes a waiter if it takes a conflicting lock, or a permit of a limit that the waiter needs and
/// that then has none left for the waiter, if each waiter before it takes one. A waiter that was overtaken this often
/// goes before all waiters that were not. From then on no later arrival takes any such lock, or the last such permit.
/// This is the bound, whatever the priorities. A later arrival is not counted if it (or an ancestor) holds a part of what
/// the waiter waits for, because the waiter may depend on it. (In this crate's own unit tests it is 4, so that random
/// histories reach it.)
///
/// The number is large enough that priorities mean something under load. It is small enough that a waiter of the lowest
/// priority is served after a few hundred others.
pub const MAX_OVERTAKES: u32 = if cfg!(test) { 4 } else { 256 };

/// A request for permits and locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The claim that asks, and the generation of this request. The answer, and a later grant, carry both.
    pub claim: Claim,
    /// The permits and locks it asks for. The claim keeps what it already holds.
    pub needs: Needs,
    /// The limit of its own kind, if it has one.
    pub kind: Option<LimitKey>,
    /// Higher priorities are served first.
    pub priority: i16,
    /// Claims of its ancestors, nearest first. What they hold does not keep it out.
    pub within: Vec<ClaimId>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The claim holds everything it asked for.
    Granted,
    /// The claim waits, and got no part of it. Names the first thing it lacks: a lock if it lacks any, else a permit.
    Queued(Lacking),
}

/// The current state of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// The name of the limit.
    pub key: LimitKey,
    /// How many permits may be out at once; `None` is unlimited.
    pub limit: Option<u32>,
    /// Permits in use.
    pub used: u32,
    /// How many may begin in a time, if it has a rate.
    pub rate: Option<RateUse>,
    /// Waiting requests.
    pub waiting: usize,
    /// Requests that arrived while the limit had no permit for them and had to wait, since the value was created. No
    /// request was refused: limits never refuse.
    pub had_to_wait: u64,
    /// Procedures that hold a permit, 100 at most. Empty if names were not asked for.
    pub holders: Vec<ProcedureId>,
    /// Waiting procedures in the order of service, 100 at most, each with the start of its wait as far as it is known.
    /// Empty if names were not asked for, or if the limit is unlimited: its waiters then lack something else.
    pub waiters: Vec<(ProcedureId, Option<Timestamp>)>,
}

/// The current state of the rate of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateUse {
    /// The rate.
    pub rate: Rate,
    /// Begins that count now.
    pub begun: u32,
    /// When the next may begin. `None` if it may begin now, or if the rate allows none at all.
    pub free_at: Option<Timestamp>,
}

/// The current state of one limit, with the claims that hold its permits and the claims that wait for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitDetail {
    /// The limit.
    pub usage: LimitUse,
    /// The claims that hold a permit.
    pub holders: Vec<ClaimId>,
    /// The waiting claims in the order of service; empty if the limit is unlimited.
    pub waiting: Vec<ClaimId>,
}

/// The current state of one locked or wanted path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockUse {
    /// The path.
    pub path: LockPath,
    /// The claims that hold it, each with its mode.
    pub holders: Vec<(ClaimId, LockMode)>,
    /// The claims that want it, each with its mode, in the order of service.
    pub waiting: Vec<(ClaimId, LockMode)>,
}

/// One thing that a waiter lacks, and the claims that keep it from the waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The lock or permit that the waiter lacks.
    pub lacking: Lacking,
    /// The claims that hold it, or that wait for it in an earlier place.
    pub by: Vec<ClaimId>,
    /// `true` if it is enough that one of these claims moves.
    pub any: bool,
    /// `true` if these claims wait for it in an earlier place, which each keeps only while it lacks a lock; whether it
    /// also lacks a permit does not matter. `false` if they hold it, or if they were overtaken so often that they keep
    /// their place until they are served.
    pub queued_ahead: bool,
    /// When a rate allows it, if the time alone helps. Then `by` is empty.
    pub at: Option<Timestamp>,
}

/// One thing that a waiter lacks, in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// This lock, and the claims that hold a conflicting lock, each once.
    Lock(LockNeed, Vec<ClaimId>),
    /// A permit of this limit.
    Permit(LimitUse),
}

impl Missing {
    /// Returns the name of the missing lock or permit.
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
    limits: LimitTable,
    claims: Claims,
    arrivals: u64,
    /// Paths, with the claims that lock them or wait for them.
    tree: Tree,
    /// Waiting descendants by ancestor.
    nested: NestedIndex,
    permit_queues: PermitQueues,
    /// Waiters that must be evaluated again. Empty between two calls.
    recheck_queue: BinaryHeap<Reverse<QueuePosition>>,
    #[cfg(test)]
    evaluations: u64,
    /// How many idle waiters were found, each time that some were searched for.
    #[cfg(test)]
    looks: usize,
}

impl Admissions {
    /// Creates the value with these limits. All other limits are unlimited.
    #[must_use]
    pub fn new<L: Into<Limit>>(limits: impl IntoIterator<Item = (LimitKey, L)>) -> Self {
        let mut admissions = Self::default();
        for (key, limit) in limits {
            admissions.limits.set(&key, limit.into(), &admissions.claims);
        }
        admissions
    }

    /// Returns `true` if a limit of this name was ever set or asked for.
    #[must_use]
    pub fn knows(&self, key: &LimitKey) -> bool {
        self.limits.find(key).is_some()
    }

    /// Returns the current state of every limit.
    #[must_use]
    pub fn usage(&self) -> Vec<LimitUse> {
        self.limits.by_name().into_iter().map(LimitState::usage).collect()
    }

    /// Returns the current state of every limit. Lists at most this many of the claims that hold its permits, and at
    /// most this many waiting claims.
    #[must_use]
    pub fn limit_details(&self, most: usize) -> Vec<LimitDetail> {
        let crowd = |limit: &LimitState| LimitDetail {
            usage: limit.usage(),
            holders: limit.holders.iter().take(most).collect(),
            waiting: limit
                .waiting
                .iter()
                .filter_map(|position| self.claims.id_of(position.slot))
                .take(most)
                .collect(),
        };
        self.limits.by_name().into_iter().map(crowd).collect()
    }

    /// Returns the current state of one limit.
    #[must_use]
    pub fn usage_of(&self, key: &LimitKey) -> Option<LimitUse> {
        self.limits.get(self.limits.find(key)?).map(LimitState::usage)
    }

    /// Returns the limits whose permits the claim holds or waits for.
    #[must_use]
    pub fn limits_of(&self, claim_id: ClaimId) -> Vec<LimitKey> {
        let mut limits = self.held(claim_id).limits;
        if let Some(waiting) = self.waiting_of(claim_id) {
            limits.extend(self.limits.keys(&waiting.limits));
        }
        limits
    }

    /// Returns all waiting claims in the order of service.
    pub fn waiting(&self) -> impl Iterator<Item = ClaimId> {
        let positions = self
            .claims
            .iter()
            .filter_map(|claim| Some(Reverse(claim.waiting()?.position)));
        let mut queue: BinaryHeap<Reverse<QueuePosition>> = positions.collect();
        iter::from_fn(move || self.claims.id_of(queue.pop()?.0.slot))
    }

    /// Returns the waiting claims in one page of all claims, each with its place in the order of service. Also returns
    /// where the next page begins. A claim that waits the whole time is never missed, whatever changes between two
    /// pages.
    #[must_use]
    pub fn waiting_from(&self, from: usize, claims: usize) -> (Vec<(ClaimId, u128)>, Option<usize>) {
        let (page, all) = self.claims.page(from, claims);
        let mut waiting: Vec<(ClaimId, u128)> = page
            .filter_map(|claim| Some((claim.id, claim.waiting()?.position.order())))
            .collect();
        waiting.sort_unstable_by_key(|(_, order)| *order);
        let next = from.saturating_add(claims);
        (waiting, Some(next).filter(|next| *next < all))
    }

    /// Returns the number of claims that hold or wait for anything.
    #[must_use]
    pub fn claimed(&self) -> usize {
        self.claims.iter().count()
    }

    /// Returns `true` if the claim waits.
    #[must_use]
    pub fn is_waiting(&self, claim_id: ClaimId) -> bool {
        self.waiting_of(claim_id).is_some()
    }

    /// Returns how often the waiting claim was overtaken: at most [`MAX_OVERTAKES`] times.
    #[must_use]
    pub fn overtaken(&self, claim_id: ClaimId) -> u32 {
        self.waiting_of(claim_id).map_or(0, |waiting| waiting.overtaken)
    }

    /// Returns `true` if the claim holds any permit or lock.
    #[must_use]
    pub fn holds_any(&self, claim_id: ClaimId) -> bool {
        let claim = self.claims.get_by(claim_id);
        claim.is_some_and(|(_, claim)| !claim.is_empty_handed())
    }

    /// Returns `true` if the claim holds all of this, each lock in exactly that mode.
    #[must_use]
    pub fn holds_all(&self, claim_id: ClaimId, needs: &Needs) -> bool {
        let Some((_, claim)) = self.claims.get_by(claim_id) else {
            return needs.is_empty();
        };
        let has_permit = |key| self.limits.find(key).is_some_and(|id| claim.limits.contains(id));
        let has_lock = |need| self.tree.find(need).is_some_and(|lock| claim.locks.contains(lock));
        needs.limits.iter().all(has_permit) && needs.locks.iter().all(has_lock)
    }

    /// Returns all permits and locks that the claim holds.
    #[must_use]
    pub fn held(&self, claim_id: ClaimId) -> Needs {
        let Some((_, claim)) = self.claims.get_by(claim_id) else {
            return Needs::default();
        };
        let mut needs = Needs {
            limits: self.limits.keys(&claim.limits).collect(),
            locks: claim.locks.iter().map(|lock| self.tree.need(lock)).collect(),
        };
        needs.limits.sort_unstable();
        needs.locks.sort_unstable();
        needs
    }
}

#[cfg(test)]
mod tests;
