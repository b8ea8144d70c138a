//! The limits: the capacity of each, the claims that hold its permits and the claims that wait for one.

use super::LimitUse;
use super::claim::{ClaimState, Claims, Limits};
use super::index::{self, Index};
use super::seat::{Seat, Seats};
use super::sorted::Sorted;
use crate::id::{ClaimId, LimitKey};

/// The number of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId(pub(super) u32);

/// One limit.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) key: LimitKey,
    /// `true` if the limit was set or asked for, and not just named as a kind's own.
    is_known: bool,
    /// The capacity; `None` is unlimited.
    pub(super) limit: Option<u32>,
    /// Each holder has one permit.
    pub(super) holders: Sorted<ClaimId>,
    used: u32,
    /// How many claims wait.
    crowd: usize,
    /// How many claims had to wait so far.
    had_to_wait: u64,
    /// All waiters for a permit. No waiter lacks a permit of an unlimited limit, so neither this set nor `own` is kept
    /// then.
    pub(super) waiting: Seats,
    /// The waiters whose own kind has this limit.
    pub(super) own: Seats,
    /// The waiters that are looked at when there is room.
    pub(super) watchers: Seats,
    /// `Some` if the watchers must be looked at, with the last watcher that was.
    stirred: Option<Option<Seat>>,
}

impl Pool {
    fn new(key: LimitKey) -> Self {
        Self {
            key,
            is_known: false,
            limit: None,
            holders: Sorted::default(),
            used: 0,
            crowd: 0,
            had_to_wait: 0,
            waiting: Seats::default(),
            own: Seats::default(),
            watchers: Seats::default(),
            stirred: None,
        }
    }

    /// Returns the number of permits that can still be granted; `None` is unlimited.
    pub(super) fn spare(&self) -> Option<u32> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }

    /// Returns `true` if a permit can be granted.
    pub(super) fn has_room(&self) -> bool {
        self.spare() != Some(0)
    }

    /// Records a waiter that takes its seat.
    pub(super) fn enter(&mut self, seat: Seat, is_own: bool) {
        self.crowd += 1;
        if self.limit.is_some() {
            self.seat(seat, is_own);
        }
    }

    fn seat(&mut self, seat: Seat, is_own: bool) {
        self.waiting.insert(seat);
        if is_own {
            self.own.insert(seat);
        }
    }

    /// Records a waiter that leaves its seat.
    pub(super) fn leave(&mut self, seat: Seat, is_own: bool) {
        self.crowd -= 1;
        if self.limit.is_some() {
            self.waiting.remove(seat);
            if is_own {
                self.own.remove(seat);
            }
        }
    }

    /// Sets the capacity. `crowd` lists all waiters for a permit, and whether this is the limit of their own kind.
    fn set(&mut self, limit: Option<u32>, crowd: impl Iterator<Item = (Seat, bool)>) {
        let was_kept = self.limit.is_some();
        self.limit = limit;
        if limit.is_none() {
            (self.waiting, self.own) = (Seats::default(), Seats::default());
        } else if !was_kept {
            crowd.for_each(|(seat, is_own)| self.seat(seat, is_own));
        }
    }

    /// Counts a new request that would have to wait for a permit even if it lacked nothing else.
    pub(super) const fn count_wait(&mut self) {
        self.had_to_wait += 1;
    }

    /// Returns the waiters before `seat` for which a permit may have to be kept. These are the first waiter whose own
    /// kind has this limit, and all waiters whose patience has run out.
    pub(super) fn guards(&self, seat: Seat) -> impl Iterator<Item = Seat> {
        let head = self.own.first().filter(|head| *head < seat);
        let impatient = self.waiting.iter().take_while(|other| other.is_out_of_patience());
        head.into_iter().chain(impatient.take_while(move |other| *other < seat))
    }

    /// Returns the current state of the limit.
    pub(super) fn usage(&self) -> LimitUse {
        LimitUse {
            key: self.key.clone(),
            limit: self.limit,
            used: self.used,
            waiting: self.crowd,
            had_to_wait: self.had_to_wait,
            holders: Vec::new(),
            waiters: Vec::new(),
        }
    }

    /// Returns the next watcher that must be looked at, if there is room.
    fn next_watcher(&self) -> Option<Seat> {
        match self.stirred.filter(|_| self.has_room())? {
            Some(after) => self.watchers.after(after),
            None => self.watchers.first(),
        }
    }

    /// Returns `true` if a permit may have to be kept for any waiter.
    pub(super) fn may_have_guards(&self) -> bool {
        let is_impatient = |first: Seat| first.is_out_of_patience();
        !self.own.is_empty() || self.waiting.first().is_some_and(is_impatient)
    }
}

/// All limits. A limit is never dropped, because there are few names of limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    all: Vec<Pool>,
    by_key: Index,
    /// The limits whose watchers must be looked at.
    stirred: Vec<PoolId>,
}

impl Pools {
    pub(super) fn get(&self, id: PoolId) -> Option<&Pool> {
        self.all.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: PoolId) -> Option<&mut Pool> {
        self.all.get_mut(id.0 as usize)
    }

    fn find_any(&self, key: &LimitKey) -> Option<PoolId> {
        let is = |number| self.get(PoolId(number)).is_some_and(|pool| pool.key == *key);
        self.by_key.find(index::of_text(key.as_str()), is).map(PoolId)
    }

    /// Returns the number of a limit that was set or asked for.
    pub(super) fn find(&self, key: &LimitKey) -> Option<PoolId> {
        let id = self.find_any(key)?;
        self.get(id).filter(|pool| pool.is_known).map(|_| id)
    }

    /// Returns the number of a name, and adds the name if it is new.
    pub(super) fn name(&mut self, key: &LimitKey) -> PoolId {
        self.find_any(key).unwrap_or_else(|| {
            let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
            self.all.push(Pool::new(key.clone()));
            self.by_key.insert(index::of_text(key.as_str()), number);
            PoolId(number)
        })
    }

    /// Returns the number of a limit, and marks it as set or asked for.
    pub(super) fn ask(&mut self, key: &LimitKey) -> PoolId {
        let id = self.name(key);
        if let Some(pool) = self.get_mut(id) {
            pool.is_known = true;
        }
        id
    }

    /// Sets the capacity of a limit.
    pub(super) fn set(&mut self, key: &LimitKey, limit: Option<u32>, claims: &Claims) -> PoolId {
        let id = self.ask(key);
        if let Some(pool) = self.get_mut(id) {
            let waiting = claims.iter().filter_map(ClaimState::waiting);
            let crowd = waiting.filter(|waiting| waiting.limits.contains(id));
            pool.set(limit, crowd.map(|waiting| (waiting.seat, waiting.kind == Some(id))));
        }
        id
    }

    /// Returns the names of some limits.
    pub(super) fn keys(&self, limits: &Limits) -> impl Iterator<Item = LimitKey> {
        limits.iter().filter_map(|id| Some(self.get(id)?.key.clone()))
    }

    /// Returns all limits that were set or asked for, by name.
    pub(super) fn by_name(&self) -> Vec<&Pool> {
        let mut pools: Vec<&Pool> = self.all.iter().filter(|pool| pool.is_known).collect();
        pools.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        pools
    }

    /// Marks the watchers of a limit to be looked at, as far as the limit has room.
    pub(super) fn stir(&mut self, id: PoolId) {
        let Some(pool) = self.all.get_mut(id.0 as usize) else {
            return;
        };
        if pool.stirred.is_none() {
            if pool.watchers.is_empty() {
                return;
            }
            self.stirred.push(id);
        }
        pool.stirred = Some(None);
    }

    /// Returns `true` if any watcher may have to be looked at.
    pub(super) const fn is_any_stirred(&self) -> bool {
        !self.stirred.is_empty()
    }

    /// Returns the first watcher, in the order of service, that must be looked at.
    pub(super) fn next_watcher(&mut self) -> Option<(Seat, PoolId)> {
        let Self { all, stirred, .. } = self;
        let mut first: Option<(Seat, PoolId)> = None;
        let mut at = 0;
        while let Some(id) = stirred.get(at).copied() {
            let next = all.get(id.0 as usize).and_then(Pool::next_watcher);
            let Some(seat) = next else {
                stirred.swap_remove(at);
                if let Some(pool) = all.get_mut(id.0 as usize) {
                    pool.stirred = None;
                }
                continue;
            };
            if first.is_none_or(|(first, _)| seat < first) {
                first = Some((seat, id));
            }
            at += 1;
        }
        first
    }

    /// Records that this watcher of a limit is looked at, and that all watchers before it were.
    pub(super) fn pass(&mut self, id: PoolId, seat: Seat) {
        if let Some(pool) = self.get_mut(id) {
            pool.stirred = Some(Some(seat));
        }
    }

    /// Records that a claim has a permit, which it did not have before.
    pub(super) fn take(&mut self, id: PoolId, claim_id: ClaimId) {
        if let Some(pool) = self.get_mut(id) {
            pool.holders.insert(claim_id);
            pool.used += 1;
        }
    }

    /// Records that a claim gave its permit back.
    pub(super) fn give_back(&mut self, id: PoolId, claim_id: ClaimId) {
        if let Some(pool) = self.get_mut(id)
            && pool.holders.remove(claim_id)
        {
            pool.used -= 1;
        }
        self.stir(id);
    }
}
