//! The limits: the capacity of each, the claims that hold its permits and the claims that wait for one.

use super::claim::{ClaimSlot, ClaimState, Claims, LimitIds};
use super::hash_index::{self, HashIndex};
use super::queue_position::{PositionSet, QueuePosition};
use super::sorted_deque::SortedDeque;
use super::{LimitUse, RateUse};
use crate::id::{ClaimId, LimitKey, Timestamp};
use crate::limit::{Limit, Rate};
use crate::rate_window::RateWindow;

/// The number of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LimitId(pub(super) u32);

/// The rate of a limit.
#[derive(Clone, Debug)]
struct RateState {
    rate: Rate,
    window: RateWindow,
    /// How many may begin now.
    spare: u32,
}

impl RateState {
    fn new(rate: Rate, window: RateWindow, now: Timestamp) -> Self {
        let mut state = Self { rate, window, spare: 0 };
        state.move_to(now);
        state
    }

    /// Sets the time. Returns `true` if more may begin than before.
    fn move_to(&mut self, now: Timestamp) -> bool {
        let before = self.spare;
        self.window.move_to(now, self.rate.period);
        self.spare = self.window.spare(self.rate);
        self.spare > before
    }

    fn usage(&self) -> RateUse {
        RateUse {
            rate: self.rate,
            begun: self.window.begun(),
            free_at: self.window.free_at(self.rate),
        }
    }
}

/// What a grant counted for the rates of its limits.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    at: Timestamp,
    limits: LimitIds,
}

/// One limit.
#[derive(Clone, Debug)]
pub(super) struct LimitState {
    pub(super) key: LimitKey,
    /// `true` if the limit was set or asked for, and not just named as a kind's own.
    is_known: bool,
    /// How many permits may be out at once; `None` is unlimited.
    capacity: Option<u32>,
    /// How many may be granted in a time, and those that still count.
    rate: Option<Box<RateState>>,
    /// Each holder has one permit.
    pub(super) holders: SortedDeque<ClaimId>,
    used: u32,
    /// How many claims wait.
    waiter_count: usize,
    /// How many claims had to wait so far.
    had_to_wait: u64,
    /// All waiters for a permit. No waiter lacks a permit of an unlimited limit, so neither this set nor `own` is kept
    /// then.
    pub(super) waiting: PositionSet,
    /// The waiters whose own kind has this limit.
    pub(super) own: PositionSet,
    /// The waiters that are evaluated again when there is room.
    pub(super) dependents: PositionSet,
    /// `Some` if the dependents are due for a recheck, with the last dependent that was rechecked.
    recheck_after: Option<Option<QueuePosition>>,
}

impl LimitState {
    fn new(key: LimitKey) -> Self {
        Self {
            key,
            is_known: false,
            capacity: None,
            rate: None,
            holders: SortedDeque::default(),
            used: 0,
            waiter_count: 0,
            had_to_wait: 0,
            waiting: PositionSet::default(),
            own: PositionSet::default(),
            dependents: PositionSet::default(),
            recheck_after: None,
        }
    }

    /// Returns the number of permits that can still be granted; `None` is unlimited.
    pub(super) fn spare(&self) -> Option<u32> {
        let begins = self.rate.as_ref().map(|state| state.spare);
        match (self.spare_at_once(), begins) {
            (Some(at_once), Some(begins)) => Some(at_once.min(begins)),
            (spare, None) | (None, spare) => spare,
        }
    }

    /// Returns the number of permits that are not out, whatever its rate allows; `None` is unlimited.
    fn spare_at_once(&self) -> Option<u32> {
        self.capacity.map(|capacity| capacity.saturating_sub(self.used))
    }

    /// Returns `true` if the limit has fewer permits left than `wanted`, so that a permit given back would help.
    pub(super) fn lacks_permits(&self, wanted: u32) -> bool {
        self.spare_at_once().is_some_and(|spare| spare < wanted)
    }

    /// Returns `true` if its rate allows fewer begins now than a request needs to be left, and will allow as many.
    pub(super) fn lacks_time(&self, wanted: u32) -> bool {
        let rate = self.rate.as_ref();
        rate.is_some_and(|state| state.spare < wanted && state.rate.begins >= wanted)
    }

    /// Returns when its rate allows more. `None` if it has no rate, or one that allows none at all.
    pub(super) fn more_at(&self) -> Option<Timestamp> {
        let state = self.rate.as_ref()?;
        let free_at = state.window.free_at(state.rate);
        free_at.or_else(|| state.window.more_at(state.rate.period))
    }

    /// Returns `true` if its capacity or its rate is set.
    pub(super) const fn is_limited(&self) -> bool {
        self.capacity.is_some() || self.rate.is_some()
    }

    /// Returns when its rate allows more, if a waiter depends on that. Where it allows some already, they are kept for
    /// earlier waiters, and a later one needs more than these.
    fn wanted_at(&self) -> Option<Timestamp> {
        let state = self.rate.as_ref().filter(|_| !self.dependents.is_empty())?;
        let more_at = || {
            self.has_room()
                .then(|| state.window.more_at(state.rate.period))
                .flatten()
        };
        state.window.free_at(state.rate).or_else(more_at)
    }

    /// Returns `true` if a permit can be granted.
    pub(super) fn has_room(&self) -> bool {
        self.spare() != Some(0)
    }

    /// Records a waiter that joins the queue at this position.
    pub(super) fn enter(&mut self, position: QueuePosition, is_own: bool) {
        self.waiter_count += 1;
        if self.is_limited() {
            self.insert(position, is_own);
        }
    }

    fn insert(&mut self, position: QueuePosition, is_own: bool) {
        self.waiting.insert(position);
        if is_own {
            self.own.insert(position);
        }
    }

    /// Records a waiter that leaves the queue.
    pub(super) fn leave(&mut self, position: QueuePosition, is_own: bool) {
        self.waiter_count -= 1;
        if self.is_limited() {
            self.waiting.remove(position);
            if is_own {
                self.own.remove(position);
            }
        }
    }

    /// Sets what it allows. `waiters` lists all waiters for a permit, and whether this is the limit of their own kind. A
    /// rate that changes goes on with the begins that still count.
    fn set(&mut self, limit: Limit, now: Timestamp, waiters: impl Iterator<Item = (QueuePosition, bool)>) {
        let was_kept = self.is_limited();
        self.capacity = limit.capacity();
        let window = self.rate.take().map(|state| state.window).unwrap_or_default();
        self.rate = limit.rate().map(|rate| Box::new(RateState::new(rate, window, now)));
        if !self.is_limited() {
            (self.waiting, self.own) = (PositionSet::default(), PositionSet::default());
        } else if !was_kept {
            waiters.for_each(|(position, is_own)| self.insert(position, is_own));
        }
    }

    /// Counts a new request that would have to wait for a permit even if it lacked nothing else.
    pub(super) const fn count_wait(&mut self) {
        self.had_to_wait += 1;
    }

    /// Returns the waiters before `position` for which a permit may have to be kept. These are the first waiter whose
    /// own kind has this limit, and all waiters that later arrivals may not overtake any more.
    pub(super) fn guards(&self, position: QueuePosition) -> impl Iterator<Item = QueuePosition> {
        let head = self.own.first().filter(|head| *head < position);
        let at_bound = self.waiting.iter().take_while(|other| other.has_max_overtakes());
        head.into_iter()
            .chain(at_bound.take_while(move |other| *other < position))
    }

    /// Adds the waiters that a later arrival overtakes if it takes a permit now: those that arrived before `arrival`,
    /// and for which no permit is left if each waiter before them takes one. So each of many permits that are freed at
    /// once counts, and one that leaves enough for all who wait counts for nobody.
    ///
    /// Waiters at the bound are overtaken by no permit but the last, which is kept for them.
    pub(super) fn add_overtaken(&self, arrival: u64, overtaken: &mut Vec<ClaimSlot>) {
        let Some(spare) = self.spare() else { return };
        let left = spare.saturating_sub(1) as usize;
        if self.waiter_count <= left {
            return;
        }
        let mut first = self.waiting.nth(left);
        if let Some(at_bound) = first.filter(|first| left > 0 && first.has_max_overtakes()) {
            first = self.waiting.from(at_bound.end_of_rank()).next();
        }
        if first.is_some() {
            self.waiting.arrived_before_from(first, arrival, overtaken);
        }
    }

    /// Returns the current state of the limit.
    pub(super) fn usage(&self) -> LimitUse {
        LimitUse {
            key: self.key.clone(),
            limit: self.capacity,
            used: self.used,
            waiting: self.waiter_count,
            had_to_wait: self.had_to_wait,
            rate: self.rate.as_ref().map(|state| state.usage()),
            holders: Vec::new(),
            waiters: Vec::new(),
        }
    }

    /// Returns the next dependent that is due for a recheck, if there is room.
    fn next_dependent(&self) -> Option<QueuePosition> {
        match self.recheck_after.filter(|_| self.has_room())? {
            Some(after) => self.dependents.after(after),
            None => self.dependents.first(),
        }
    }

    /// Returns `true` if a permit may have to be kept for any waiter.
    pub(super) fn may_have_guards(&self) -> bool {
        let is_at_bound = |first: QueuePosition| first.has_max_overtakes();
        !self.own.is_empty() || self.waiting.first().is_some_and(is_at_bound)
    }
}

/// All limits. A limit is never dropped, because there are few names of limits.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitTable {
    all: Vec<LimitState>,
    by_key: HashIndex,
    /// The limits whose dependents are due for a recheck.
    due: Vec<LimitId>,
    /// The limits that have a rate.
    rates: Vec<LimitId>,
    /// The time, as the caller last told it.
    now: Timestamp,
}

impl LimitTable {
    pub(super) fn get(&self, id: LimitId) -> Option<&LimitState> {
        self.all.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: LimitId) -> Option<&mut LimitState> {
        self.all.get_mut(id.0 as usize)
    }

    fn find_any(&self, key: &LimitKey) -> Option<LimitId> {
        let is = |number| self.get(LimitId(number)).is_some_and(|limit| limit.key == *key);
        self.by_key.find(hash_index::of_text(key.as_str()), is).map(LimitId)
    }

    /// Returns the number of a limit that was set or asked for.
    pub(super) fn find(&self, key: &LimitKey) -> Option<LimitId> {
        let id = self.find_any(key)?;
        self.get(id).filter(|limit| limit.is_known).map(|_| id)
    }

    /// Returns the number of a name, and adds the name if it is new.
    pub(super) fn name(&mut self, key: &LimitKey) -> LimitId {
        self.find_any(key).unwrap_or_else(|| {
            let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
            self.all.push(LimitState::new(key.clone()));
            self.by_key.insert(hash_index::of_text(key.as_str()), number);
            LimitId(number)
        })
    }

    /// Returns the number of a limit, and marks it as set or asked for.
    pub(super) fn ask(&mut self, key: &LimitKey) -> LimitId {
        let id = self.name(key);
        if let Some(limit) = self.get_mut(id) {
            limit.is_known = true;
        }
        id
    }

    /// Sets what a limit allows.
    pub(super) fn set(&mut self, key: &LimitKey, allows: Limit, claims: &Claims) -> LimitId {
        let (id, now) = (self.ask(key), self.now);
        self.rates.retain(|other| *other != id);
        if allows.rate().is_some() {
            self.rates.push(id);
        }
        if let Some(limit) = self.get_mut(id) {
            let waiting = claims.iter().filter_map(ClaimState::waiting);
            let waiters = waiting.filter(|waiting| waiting.limits.contains(id));
            limit.set(
                allows,
                now,
                waiters.map(|waiting| (waiting.position, waiting.kind == Some(id))),
            );
        }
        id
    }

    // Rates.

    /// Returns `true` if any limit has a rate.
    pub(super) const fn has_rates(&self) -> bool {
        !self.rates.is_empty()
    }

    /// Sets the time. The dependents of each limit whose rate allows more than before are due for a recheck.
    pub(super) fn move_to(&mut self, now: Timestamp) {
        self.now = now;
        for at in 0..self.rates.len() {
            let Some(id) = self.rates.get(at).copied() else {
                continue;
            };
            let state = self.get_mut(id).and_then(|limit| limit.rate.as_mut());
            if state.is_some_and(|state| state.move_to(now)) {
                self.mark_due(id);
            }
        }
    }

    /// Returns when a rate allows the next begin that a waiter depends on.
    pub(super) fn wanted_at(&self) -> Option<Timestamp> {
        let limits = self.rates.iter().filter_map(|id| self.get(*id));
        limits.filter_map(LimitState::wanted_at).min()
    }

    /// Counts a begin in each of these limits that has a rate. Returns when that was, and those limits.
    pub(super) fn begin(&mut self, limits: &LimitIds) -> Option<Begun> {
        let mut begun = Begun {
            at: self.now,
            limits: LimitIds::default(),
        };
        for id in limits.iter() {
            if let Some(state) = self.get_mut(id).and_then(|limit| limit.rate.as_mut()) {
                state.window.begin(begun.at, state.rate.period);
                state.spare = state.window.spare(state.rate);
                begun.limits.push(id);
            }
        }
        Some(begun).filter(|begun| !begun.limits.is_empty())
    }

    /// Takes back what was counted for a grant.
    pub(super) fn take_back(&mut self, begun: &Begun) {
        let now = self.now;
        for id in begun.limits.iter() {
            if let Some(state) = self.get_mut(id).and_then(|limit| limit.rate.as_mut()) {
                state.window.take_back(begun.at, now, state.rate.period);
                state.spare = state.window.spare(state.rate);
                self.mark_due(id);
            }
        }
    }

    /// Replaces the begins that count for a limit.
    pub(super) fn restore_window(&mut self, id: LimitId, window: RateWindow) {
        let now = self.now;
        if let Some(limit) = self.get_mut(id) {
            limit.rate = limit
                .rate
                .take()
                .map(|state| Box::new(RateState::new(state.rate, window, now)));
        }
    }

    /// Returns the names of some limits.
    pub(super) fn keys(&self, limits: &LimitIds) -> impl Iterator<Item = LimitKey> {
        limits.iter().filter_map(|id| Some(self.get(id)?.key.clone()))
    }

    /// Returns all limits that were set or asked for, by name.
    pub(super) fn by_name(&self) -> Vec<&LimitState> {
        let mut limits: Vec<&LimitState> = self.all.iter().filter(|limit| limit.is_known).collect();
        limits.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        limits
    }

    /// Marks the dependents of a limit as due for a recheck, as far as the limit has room.
    pub(super) fn mark_due(&mut self, id: LimitId) {
        let Some(limit) = self.all.get_mut(id.0 as usize) else {
            return;
        };
        if limit.recheck_after.is_none() {
            if limit.dependents.is_empty() {
                return;
            }
            self.due.push(id);
        }
        limit.recheck_after = Some(None);
    }

    /// Returns `true` if any dependent may be due for a recheck.
    pub(super) const fn is_any_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the first dependent, in the order of service, that is due for a recheck.
    pub(super) fn next_dependent(&mut self) -> Option<(QueuePosition, LimitId)> {
        let Self { all, due, .. } = self;
        let mut first: Option<(QueuePosition, LimitId)> = None;
        let mut at = 0;
        while let Some(id) = due.get(at).copied() {
            let next = all.get(id.0 as usize).and_then(LimitState::next_dependent);
            let Some(position) = next else {
                due.swap_remove(at);
                if let Some(limit) = all.get_mut(id.0 as usize) {
                    limit.recheck_after = None;
                }
                continue;
            };
            if first.is_none_or(|(first, _)| position < first) {
                first = Some((position, id));
            }
            at += 1;
        }
        first
    }

    /// Records that this dependent of a limit is rechecked, and that all dependents before it were.
    pub(super) fn mark_rechecked(&mut self, id: LimitId, position: QueuePosition) {
        if let Some(limit) = self.get_mut(id) {
            limit.recheck_after = Some(Some(position));
        }
    }

    /// Records that a claim has a permit, which it did not have before.
    pub(super) fn take(&mut self, id: LimitId, claim_id: ClaimId) {
        if let Some(limit) = self.get_mut(id) {
            limit.holders.insert(claim_id);
            limit.used += 1;
        }
    }

    /// Records that a claim gave its permit back.
    pub(super) fn give_back(&mut self, id: LimitId, claim_id: ClaimId) {
        if let Some(limit) = self.get_mut(id)
            && limit.holders.remove(claim_id)
        {
            limit.used -= 1;
        }
        self.mark_due(id);
    }
}
