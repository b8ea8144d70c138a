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
//! that changes: see `queue`.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{LimitKey, Ticket};
use crate::lock::{LockMode, LockPath};
pub(crate) use crate::needs::{Lacking, Needs};

mod claim;
mod explain;
mod hold;
mod judge;
mod paths;
mod pool;
mod queue;

use claim::{Claim, Line, Seat};
use paths::Paths;
use pool::Pool;

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
    /// Who asks.
    pub ticket: Ticket,
    /// What it asks for; what it holds already it keeps.
    pub needs: Needs,
    /// Which of the limits is its kind's own, if any is.
    pub kind: Option<LimitKey>,
    /// The higher goes first.
    pub priority: i16,
    /// Tickets of its ancestors, nearest first. What they hold does not keep it out.
    pub within: Vec<Ticket>,
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
}

/// One locked or wanted path as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockUse {
    /// The path.
    pub path: LockPath,
    /// Who holds it, by ticket.
    pub holders: Vec<(Ticket, LockMode)>,
    /// Who wants it, in the order of service.
    pub waiting: Vec<Ticket>,
}

/// One thing that a waiter lacks, and who keeps it from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// What it lacks.
    pub lacking: Lacking,
    /// Those who hold it, or who wait for it in a place before.
    pub by: Vec<Ticket>,
    /// Whether it is enough that one of them moves.
    pub any: bool,
    /// They wait for it in a place before, which each keeps only as long as it
    /// lacks any lock: whether it lacks a permit does not matter.
    pub place: bool,
}

/// All limits, all locks and all requests.
///
/// ```
/// use procession_kernel::{Admissions, Grant, LockNeed, Needs, Request, Ticket};
///
/// let ask = |ticket| Request {
///     ticket: Ticket(ticket),
///     needs: Needs { limits: vec!["move".into()], locks: vec![LockNeed::exclusive("ns/table")] },
///     kind: Some("move".into()),
///     priority: 0,
///     within: Vec::new(),
/// };
/// let mut admissions = Admissions::new([("move".into(), Some(100))]);
/// assert_eq!(admissions.request(ask(1)), (Grant::Granted, vec![]));
/// assert!(matches!(admissions.request(ask(2)), (Grant::Queued(_), _)));
/// assert_eq!(admissions.release(Ticket(1)), [Ticket(2)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admissions {
    pools: BTreeMap<LimitKey, Pool>,
    claims: BTreeMap<Ticket, Claim>,
    arrivals: u64,
    /// All who wait, in the order of service.
    queue: BTreeSet<Seat>,
    /// Locks that are held.
    held: Paths<Ticket>,
    /// Locks that are waited for, by arrival.
    asked: Paths<(u64, Ticket)>,
    /// Those of them whose place counts.
    reserved: Paths<Seat>,
    /// Those of them that lack permits alone.
    idle: Paths<Seat>,
    /// As `asked` and `reserved`, beside the waiter itself and each of its ancestors.
    asked_inside: Paths<(Ticket, u64, Ticket)>,
    reserved_inside: Paths<(Ticket, Seat)>,
    lines: BTreeMap<Line, BTreeSet<Seat>>,
    /// Waiting descendants by ancestor.
    inside: BTreeMap<Ticket, BTreeSet<Ticket>>,
    /// Waiters by the ticket that they watch.
    watchers: BTreeMap<Ticket, BTreeSet<Ticket>>,
    /// Waiters that must be looked at; empty between two calls.
    look: BTreeSet<Seat>,
    /// Limits whose watchers must be looked at, each with the last one that was.
    stirred: BTreeMap<LimitKey, Option<Seat>>,
    #[cfg(test)]
    looks: u64,
}

impl Admissions {
    /// Makes the limits given; all others are unlimited.
    #[must_use]
    pub fn new(limits: impl IntoIterator<Item = (LimitKey, Option<u32>)>) -> Self {
        let mut admissions = Self::default();
        for (key, limit) in limits {
            admissions.pools.entry(key).or_default().limit = limit;
        }
        admissions
    }

    /// Asks for what the ticket does not hold already: all of it or nothing.
    /// Gives the answer, and the others that are served thereby, in order.
    ///
    /// Others can be: a descendant passes whoever waits for what its ancestor
    /// was just granted, and one that was passed once too often goes first. A
    /// ticket that waits already waits for both, in the place it has.
    pub fn request(&mut self, request: Request) -> (Grant, Vec<Ticket>) {
        let ticket = request.ticket;
        self.enter(request);
        let mut served = self.serve();
        served.retain(|other| *other != ticket);
        (self.answer(ticket), served)
    }

    /// Gives a recorded holder its own back, beyond the capacity and whoever
    /// holds it too. Gives the others that are served thereby: none, as long as nobody waits.
    pub fn restore(&mut self, request: Request) -> Vec<Ticket> {
        let ticket = request.ticket;
        self.with_seat_left(ticket, |this| {
            let claim = this.claims.entry(ticket).or_default();
            claim.within = request.within;
            let lacking = claim.lacking(&request.needs);
            this.hold(ticket, &lacking);
            if let Some(claim) = this.claims.get_mut(&ticket)
                && let Some(mut waiting) = claim.waiting.take()
            {
                waiting.needs = claim.lacking(&waiting.needs);
                claim.waiting = (!waiting.needs.is_empty()).then_some(waiting);
            }
        });
        self.forget_idle_claim(ticket);
        self.serve()
    }

    /// Gives back those parts of what the ticket holds. Gives those that are served thereby, in order.
    pub fn give_back(&mut self, ticket: Ticket, needs: &Needs) -> Vec<Ticket> {
        self.with_seat_left(ticket, |this| this.let_go(ticket, needs));
        self.forget_idle_claim(ticket);
        self.serve()
    }

    /// Takes the ticket off the queue; it keeps what it holds. Gives those that are served thereby, in order.
    pub fn cancel(&mut self, ticket: Ticket) -> Vec<Ticket> {
        self.leave_seat(ticket);
        if let Some(claim) = self.claims.get_mut(&ticket) {
            claim.waiting = None;
        }
        self.forget_idle_claim(ticket);
        self.serve()
    }

    /// Takes the ticket off the queue and gives back all that it holds. Gives
    /// those that are served thereby, in order.
    pub fn release(&mut self, ticket: Ticket) -> Vec<Ticket> {
        self.leave_seat(ticket);
        if let Some(claim) = self.claims.get_mut(&ticket) {
            claim.waiting = None;
            let all = self.held(ticket);
            self.let_go(ticket, &all);
            self.claims.remove(&ticket);
        }
        self.serve()
    }

    /// Gives parts back and asks again, behind all who wait with the same
    /// priority, in one step. Gives the answer, and the others that are served, in order.
    pub fn exchange(&mut self, ticket: Ticket, give: &Needs, request: Request) -> (Grant, Vec<Ticket>) {
        self.with_seat_left(ticket, |this| this.let_go(ticket, give));
        self.request(Request { ticket, ..request })
    }

    /// Changes a capacity. Raising serves exactly the difference; lowering takes nothing back.
    pub fn set_limit(&mut self, key: LimitKey, limit: Option<u32>) -> Vec<Ticket> {
        self.pools.entry(key.clone()).or_default().limit = limit;
        self.stir(&key);
        self.serve()
    }

    /// Changes the priority with which the ticket waits; it keeps its arrival.
    pub fn set_priority(&mut self, ticket: Ticket, priority: i16) -> Vec<Ticket> {
        self.with_seat_left(ticket, |this| {
            if let Some(waiting) = this.waiting_mut(ticket) {
                waiting.priority = priority;
                waiting.seat = Seat::new(ticket, priority, waiting.seat.arrival, waiting.passed);
            }
        });
        self.serve()
    }

    /// Tells whether a limit of this name was ever set or asked for.
    #[must_use]
    pub fn knows(&self, key: &LimitKey) -> bool {
        self.pools.contains_key(key)
    }

    /// Gives every limit as it stands.
    #[must_use]
    pub fn usage(&self) -> Vec<LimitUse> {
        self.pools
            .iter()
            .map(|(key, pool)| LimitUse {
                key: key.clone(),
                limit: pool.limit,
                used: pool.used(),
                waiting: pool.waiting.len(),
            })
            .collect()
    }

    /// Gives one limit as it stands.
    #[must_use]
    pub fn usage_of(&self, key: &LimitKey) -> Option<LimitUse> {
        let pool = self.pools.get(key)?;
        Some(LimitUse {
            key: key.clone(),
            limit: pool.limit,
            used: pool.used(),
            waiting: pool.waiting.len(),
        })
    }

    /// Gives the limits of which a ticket holds, or waits for, a permit each.
    #[must_use]
    pub fn limits_of(&self, ticket: Ticket) -> Vec<LimitKey> {
        let mut limits = self.held(ticket).limits;
        if let Some(waiting) = self.waiting_of(ticket) {
            limits.extend(waiting.needs.limits.iter().cloned());
        }
        limits
    }

    /// Gives all who wait, in the order of service.
    pub fn waiting(&self) -> impl Iterator<Item = Ticket> {
        self.queue.iter().map(|seat| seat.ticket)
    }

    /// Tells whether the ticket waits.
    #[must_use]
    pub fn is_waiting(&self, ticket: Ticket) -> bool {
        self.waiting_of(ticket).is_some()
    }

    /// Tells how often the waiting ticket was passed; at most [`PATIENCE`] times.
    #[must_use]
    pub fn passed(&self, ticket: Ticket) -> u32 {
        self.waiting_of(ticket).map_or(0, |waiting| waiting.passed)
    }

    /// Tells whether the ticket holds all of this, each lock in just that mode.
    #[must_use]
    pub fn holds_all(&self, ticket: Ticket, needs: &Needs) -> bool {
        self.claims
            .get(&ticket)
            .map_or(needs.is_empty(), |claim| claim.lacking(needs).is_empty())
    }

    /// Gives all that the ticket holds.
    #[must_use]
    pub fn held(&self, ticket: Ticket) -> Needs {
        self.claims.get(&ticket).map_or_else(Needs::default, |claim| Needs {
            limits: claim.limits.iter().cloned().collect(),
            locks: claim.locks.iter().cloned().collect(),
        })
    }
}

#[cfg(test)]
mod tests;
