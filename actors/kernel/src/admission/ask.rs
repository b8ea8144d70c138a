//! The requests and reports that callers make. Each call changes what one claim has or wants, and then serves every
//! waiter that can be served.

use super::claim::{ClaimSlot, ClaimState, LimitIds, LockIds};
use super::evaluate::Evaluation;
use super::queue_position::QueuePosition;
use super::{Admissions, Grant, Needs, Request};
use crate::id::{Claim, ClaimId, LimitKey, Timestamp};
use crate::limit::Limit;
use crate::rate_window::RateWindow;

/// Arrivals from here on are behind every place that a request had before the start.
const FIRST_ARRIVAL: u64 = 1 << 32;

impl Admissions {
    /// Requests what the claim does not hold already: all of it or nothing. Returns the answer, and the other claims
    /// that this serves, in order.
    ///
    /// Other claims can be served for two reasons. A descendant may overtake the waiters for what its ancestor was just
    /// granted. A waiter that was overtaken once too often goes first. A claim that already waits then waits for both
    /// requests, in its present place.
    pub fn request(&mut self, request: Request) -> (Grant, Vec<Claim>) {
        self.arrivals += 1;
        self.request_as(request, FIRST_ARRIVAL + self.arrivals)
    }

    /// Does the same for a request that waited before the start: in that place among such requests of its priority, and
    /// before all others. No place may be given twice.
    pub fn request_in_place(&mut self, request: Request, place: u32) -> (Grant, Vec<Claim>) {
        self.request_as(request, u64::from(place))
    }

    fn request_as(&mut self, request: Request, arrival: u64) -> (Grant, Vec<Claim>) {
        let Claim { id, .. } = request.claim;
        let slot = self.claims.find_or_add(id);
        let waited = self.claims.waiting(slot).is_some();
        self.dequeue(slot);
        self.enter(slot, request, arrival);
        if self.is_alone(slot) && !waited {
            let evaluation = self.evaluate_arrival(slot);
            if !self.is_recheck_due() {
                self.count_wait(slot, evaluation);
                return (self.answer(evaluation), Vec::new());
            }
        } else {
            self.enqueue(slot);
            self.forget_idle_claim(slot);
        }
        let mut served = self.serve();
        served.retain(|other| other.id != id);
        let evaluation = self.evaluate(slot);
        if !waited {
            self.count_wait(slot, evaluation);
        }
        (self.answer(evaluation), served)
    }

    /// Counts a new request that must wait, in each of its limits that has no permit for it.
    fn count_wait(&mut self, slot: ClaimSlot, evaluation: Evaluation) {
        let Self { claims, limits, .. } = self;
        let Some(waiting) = claims.waiting(slot) else { return };
        for id in waiting.limits.iter() {
            let lacks = matches!(evaluation, Evaluation::LacksPermit(lacked) if lacked == id);
            if let Some(limit) = limits.get_mut(id).filter(|limit| lacks || !limit.has_room()) {
                limit.count_wait();
            }
        }
    }

    /// Returns `true` if a new request requires no evaluation of any other waiter.
    fn is_alone(&mut self, slot: ClaimSlot) -> bool {
        if self.is_recheck_due() {
            return false;
        }
        self.claims.waiting(slot).is_some_and(|waiting| {
            let kind = waiting.kind.filter(|id| waiting.limits.contains(*id));
            let limit = kind.and_then(|id| self.limits.get(id));
            // As the first of its kind it could change what other waiters lack.
            limit.is_none_or(|limit| {
                limit.dependents.is_empty() || limit.own.first().is_some_and(|first| first < waiting.position)
            })
        })
    }

    /// Records what a claim outside the queues asks for, except what it already holds or wants.
    fn enter(&mut self, slot: ClaimSlot, request: Request, arrival: u64) {
        let position = QueuePosition::new(slot, request.priority, arrival, 0);
        let kind = request.kind.as_ref().map(|key| self.limits.name(key));
        let Some(claim) = self.claims.get_mut(slot) else {
            return;
        };
        claim.renew(request.claim.generation);
        claim.within = request.within;
        if !claim.is_waiting {
            claim.pending.begin(position, request.priority);
        }
        claim.pending.kind = claim.pending.kind.or(kind);
        let ClaimState {
            limits, locks, pending, ..
        } = claim;
        for key in &request.needs.limits {
            let id = self.limits.ask(key);
            if !limits.contains(id) && !pending.limits.contains(id) {
                pending.limits.push(id);
            }
        }
        for need in &request.needs.locks {
            let lock = self.tree.enter(need);
            if locks.contains(lock) || pending.locks.contains(lock) {
                self.tree.leave(lock);
            } else {
                pending.locks.push(lock);
            }
        }
        claim.settle();
    }

    /// Restores what a recorded holder holds, even beyond the capacity and if other claims hold it too. Returns the
    /// other claims that this serves: none while no claim waits.
    pub fn restore(&mut self, request: Request) -> Vec<Claim> {
        let slot = self.claims.find_or_add(request.claim.id);
        self.while_dequeued(slot, |this| this.take_back(slot, request));
        self.forget_idle_claim(slot);
        self.serve()
    }

    fn take_back(&mut self, slot: ClaimSlot, request: Request) {
        let Some(claim) = self.claims.get_mut(slot) else {
            return;
        };
        claim.renew(request.claim.generation);
        claim.within = request.within;
        let (mut limits, mut locks) = (LimitIds::default(), LockIds::default());
        for key in &request.needs.limits {
            let id = self.limits.ask(key);
            if !claim.limits.contains(id) && !limits.contains(id) {
                limits.push(id);
            }
        }
        for need in &request.needs.locks {
            let lock = self.tree.enter(need);
            if claim.locks.contains(lock) || locks.contains(lock) {
                self.tree.leave(lock);
            } else {
                locks.push(lock);
            }
        }
        self.hold(slot, &limits, &locks);
        self.wait_for_the_rest(slot, &limits, &locks);
    }

    /// Removes from a claim's wants whatever it was given outside its turn.
    fn wait_for_the_rest(&mut self, slot: ClaimSlot, limits: &LimitIds, locks: &LockIds) {
        let Self { claims, tree, .. } = self;
        if let Some(claim) = claims.get_mut(slot).filter(|claim| claim.is_waiting) {
            claim.pending.limits.retain(|id| !limits.contains(id));
            claim.pending.locks.retain(|lock| {
                let is_given = locks.contains(lock);
                if is_given {
                    tree.leave(lock);
                }
                !is_given
            });
            claim.settle();
        }
    }

    /// Gives back these permits and locks, as far as the claim holds them. Returns the claims that this serves, in
    /// order.
    pub fn give_back(&mut self, claim_id: ClaimId, needs: &Needs) -> Vec<Claim> {
        if let Some(slot) = self.claims.find(claim_id) {
            self.while_dequeued(slot, |this| this.let_go(slot, needs));
            self.forget_idle_claim(slot);
        }
        self.serve()
    }

    /// Takes the claim off the queue. The claim keeps what it holds. Returns the claims that this serves, in order.
    pub fn cancel(&mut self, claim_id: ClaimId) -> Vec<Claim> {
        if let Some(slot) = self.claims.find(claim_id) {
            self.want_nothing(slot);
            self.forget_idle_claim(slot);
        }
        self.serve()
    }

    /// Takes the claim off the queue and gives back everything it holds except `needs`. Returns the claims that this
    /// serves, in order.
    pub fn keep(&mut self, claim_id: ClaimId, needs: &Needs) -> Vec<Claim> {
        if let Some(slot) = self.claims.find(claim_id) {
            self.want_nothing(slot);
            let mut over = self.held(claim_id);
            over.limits.retain(|limit| !needs.limits.contains(limit));
            over.locks.retain(|lock| !needs.locks.contains(lock));
            self.let_go(slot, &over);
            self.forget_idle_claim(slot);
        }
        self.serve()
    }

    /// Takes the claim off the queue and gives back everything it holds. Returns the claims that this serves, in order.
    pub fn release(&mut self, claim_id: ClaimId) -> Vec<Claim> {
        if let Some(slot) = self.claims.find(claim_id) {
            self.want_nothing(slot);
            self.let_go_of_all(slot);
            self.forget_idle_claim(slot);
        }
        self.serve()
    }

    /// Releases a claim whose procedure never came to be, as if it had not asked: its grant counts for no rate. Returns
    /// the claims that this serves, in order.
    pub fn withdraw(&mut self, claim_id: ClaimId) -> Vec<Claim> {
        let slot = self.claims.find(claim_id);
        let claim = slot.and_then(|slot| self.claims.get_mut(slot));
        if let Some(begun) = claim.and_then(|claim| claim.begun.take()) {
            self.limits.take_back(&begun);
        }
        self.release(claim_id)
    }

    fn want_nothing(&mut self, slot: ClaimSlot) {
        self.dequeue(slot);
        let Self { claims, tree, .. } = self;
        if let Some(claim) = claims.get_mut(slot).filter(|claim| claim.is_waiting) {
            claim.is_waiting = false;
            claim.pending.locks.iter().for_each(|lock| tree.leave(lock));
        }
    }

    /// Gives some permits and locks back and requests again, in one step. The new request is behind all waiters of the
    /// same priority. Returns the answer, and the other claims that this serves, in order.
    pub fn exchange(&mut self, give: &Needs, request: Request) -> (Grant, Vec<Claim>) {
        if let Some(slot) = self.claims.find(request.claim.id) {
            self.while_dequeued(slot, |this| this.let_go(slot, give));
        }
        self.request(request)
    }

    /// Changes what a limit allows. Raising it serves exactly the difference; lowering it takes nothing back. A rate that
    /// changes goes on with the begins that still count.
    pub fn set_limit(&mut self, key: LimitKey, limit: impl Into<Limit>) -> Vec<Claim> {
        let id = self.limits.set(&key, limit.into(), &self.claims);
        self.limits.mark_due(id);
        self.serve()
    }

    // Rates.

    /// Returns `true` if any limit has a rate. Only then does the time matter.
    #[must_use]
    pub const fn has_rates(&self) -> bool {
        self.limits.has_rates()
    }

    /// Sets the time, for this and all later calls. Returns the claims that the time serves, in order. It may go back.
    pub fn move_to(&mut self, now: Timestamp) -> Vec<Claim> {
        self.limits.move_to(now);
        self.serve()
    }

    /// Returns when a rate allows what a waiter depends on. The caller must [move the time](Self::move_to) there, or
    /// nobody serves the waiter.
    #[must_use]
    pub fn wanted_at(&self) -> Option<Timestamp> {
        self.limits.wanted_at()
    }

    /// Restores the begins that count for the rate of a limit, before anything is granted.
    pub fn restore_window(&mut self, key: &LimitKey, window: RateWindow) {
        if let Some(id) = self.limits.find(key) {
            self.limits.restore_window(id, window);
        }
    }

    /// Changes the priority of a waiting claim, which keeps its arrival.
    pub fn set_priority(&mut self, claim_id: ClaimId, priority: i16) -> Vec<Claim> {
        if let Some(slot) = self.claims.find(claim_id) {
            self.while_dequeued(slot, |this| {
                if let Some(waiting) = this.claims.waiting_mut(slot) {
                    waiting.priority = priority;
                    waiting.position = QueuePosition::new(slot, priority, waiting.position.arrival, waiting.overtaken);
                }
            });
        }
        self.serve()
    }

    /// Drops a claim that holds nothing and waits for nothing.
    fn forget_idle_claim(&mut self, slot: ClaimSlot) {
        let claim = self.claims.get(slot);
        if claim.is_some_and(|claim| claim.is_empty_handed() && !claim.is_waiting) {
            self.schedule_dependents(slot);
            self.claims.remove(slot);
        }
    }
}
