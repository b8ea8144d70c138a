//! The limits: the capacity of each, who has a permit of it and who waits for one.

use super::LimitUse;
use super::claim::{ClaimState, Claims, Limits};
use super::index::{self, Index};
use super::seat::{Seat, Seats};
use super::sorted::Sorted;
use crate::id::{ClaimId, LimitKey};

/// Number of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId(pub(super) u32);

/// One limit.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) key: LimitKey,
    /// Whether it was set or asked for, and not just named as a kind's own.
    is_known: bool,
    /// Its capacity; none is unlimited.
    pub(super) limit: Option<u32>,
    /// Each has one permit.
    pub(super) holders: Sorted<ClaimId>,
    used: u32,
    /// How many wait.
    crowd: usize,
    /// How many had to.
    had_to_wait: u64,
    /// All that wait for a permit. Nobody lacks one of a limit without a capacity, so none are kept then,
    /// here or as its own.
    pub(super) waiting: Seats,
    /// Those of them whose kind's own limit this is.
    pub(super) own: Seats,
    /// Those of them that are looked at when there is room.
    pub(super) watchers: Seats,
    /// Whether its watchers must be looked at, and the last one that was.
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

    /// Gives the number of permits that can still be given out; none is unlimited.
    pub(super) fn spare(&self) -> Option<u32> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }

    /// Tells whether there is a permit to give out.
    pub(super) fn has_room(&self) -> bool {
        self.spare() != Some(0)
    }

    /// Notes one that takes its seat.
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

    /// Notes one that leaves its seat.
    pub(super) fn leave(&mut self, seat: Seat, is_own: bool) {
        self.crowd -= 1;
        if self.limit.is_some() {
            self.waiting.remove(seat);
            if is_own {
                self.own.remove(seat);
            }
        }
    }

    /// Sets the capacity; `crowd` are all that wait for a permit, and whether this is their kind's own limit.
    fn set(&mut self, limit: Option<u32>, crowd: impl Iterator<Item = (Seat, bool)>) {
        let was_kept = self.limit.is_some();
        self.limit = limit;
        if limit.is_none() {
            (self.waiting, self.own) = (Seats::default(), Seats::default());
        } else if !was_kept {
            crowd.for_each(|(seat, is_own)| self.seat(seat, is_own));
        }
    }

    /// Counts one that has come and waits, for a permit if for nothing else.
    pub(super) const fn count_wait(&mut self) {
        self.had_to_wait += 1;
    }

    /// Gives those before `seat` for whom a permit may have to be kept: the
    /// first of the kind whose limit this is, and all whose patience has run out.
    pub(super) fn guards(&self, seat: Seat) -> impl Iterator<Item = Seat> {
        let head = self.own.first().filter(|head| *head < seat);
        let impatient = self.waiting.iter().take_while(|other| other.is_out_of_patience());
        head.into_iter().chain(impatient.take_while(move |other| *other < seat))
    }

    /// Gives the limit as it stands.
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

    /// Gives the next watcher that must be looked at, if there is room.
    fn next_watcher(&self) -> Option<Seat> {
        match self.stirred.filter(|_| self.has_room())? {
            Some(after) => self.watchers.after(after),
            None => self.watchers.first(),
        }
    }

    /// Tells whether there may be anybody for whom a permit must be kept.
    pub(super) fn may_have_guards(&self) -> bool {
        let is_impatient = |first: Seat| first.is_out_of_patience();
        !self.own.is_empty() || self.waiting.first().is_some_and(is_impatient)
    }
}

/// All limits. None is ever dropped: names of limits are few.
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    all: Vec<Pool>,
    by_key: Index,
    /// Those whose watchers must be looked at.
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

    /// Gives the number of a limit that was set or asked for.
    pub(super) fn find(&self, key: &LimitKey) -> Option<PoolId> {
        let id = self.find_any(key)?;
        self.get(id).filter(|pool| pool.is_known).map(|_| id)
    }

    /// Gives the number of a name.
    pub(super) fn name(&mut self, key: &LimitKey) -> PoolId {
        self.find_any(key).unwrap_or_else(|| {
            let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
            self.all.push(Pool::new(key.clone()));
            self.by_key.insert(index::of_text(key.as_str()), number);
            PoolId(number)
        })
    }

    /// Gives the number of a limit that is set or asked for now.
    pub(super) fn ask(&mut self, key: &LimitKey) -> PoolId {
        let id = self.name(key);
        if let Some(pool) = self.get_mut(id) {
            pool.is_known = true;
        }
        id
    }

    /// Sets a capacity.
    pub(super) fn set(&mut self, key: &LimitKey, limit: Option<u32>, claims: &Claims) -> PoolId {
        let id = self.ask(key);
        if let Some(pool) = self.get_mut(id) {
            let waiting = claims.iter().filter_map(ClaimState::waiting);
            let crowd = waiting.filter(|waiting| waiting.limits.contains(id));
            pool.set(limit, crowd.map(|waiting| (waiting.seat, waiting.kind == Some(id))));
        }
        id
    }

    /// Gives the names of some limits.
    pub(super) fn keys(&self, limits: &Limits) -> impl Iterator<Item = LimitKey> {
        limits.iter().filter_map(|id| Some(self.get(id)?.key.clone()))
    }

    /// Gives all that were set or asked for, by name.
    pub(super) fn by_name(&self) -> Vec<&Pool> {
        let mut pools: Vec<&Pool> = self.all.iter().filter(|pool| pool.is_known).collect();
        pools.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        pools
    }

    /// Has those looked at who watch a limit, as far as there is room in it.
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

    /// Tells whether any watcher may have to be looked at.
    pub(super) const fn is_any_stirred(&self) -> bool {
        !self.stirred.is_empty()
    }

    /// Gives the first of those watchers that must be looked at.
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

    /// Notes that this watcher of a limit is looked at, and those before it were.
    pub(super) fn pass(&mut self, id: PoolId, seat: Seat) {
        if let Some(pool) = self.get_mut(id) {
            pool.stirred = Some(Some(seat));
        }
    }

    /// Notes that a claim has a permit, which it had not.
    pub(super) fn take(&mut self, id: PoolId, claim_id: ClaimId) {
        if let Some(pool) = self.get_mut(id) {
            pool.holders.insert(claim_id);
            pool.used += 1;
        }
    }

    /// Notes that a claim gave its permit back.
    pub(super) fn give_back(&mut self, id: PoolId, claim_id: ClaimId) {
        if let Some(pool) = self.get_mut(id)
            && pool.holders.remove(claim_id)
        {
            pool.used -= 1;
        }
        self.stir(id);
    }
}
