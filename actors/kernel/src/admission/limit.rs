//! The limits: the capacity of each, the claims that hold its permits and the claims that wait for one.

use super::LimitUse;
use super::claim::{ClaimState, Claims, LimitIds};
use super::hash_index::{self, HashIndex};
use super::queue_position::{PositionSet, QueuePosition};
use super::sorted_deque::SortedDeque;
use crate::id::{ClaimId, LimitKey};

/// The number of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LimitId(pub(super) u32);

/// One limit.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) key: LimitKey,
    /// `true` if the limit was set or asked for, and not just named as a kind's own.
    is_known: bool,
    /// The capacity; `None` is unlimited.
    pub(super) capacity: Option<u32>,
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

impl Limit {
    fn new(key: LimitKey) -> Self {
        Self {
            key,
            is_known: false,
            capacity: None,
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
        self.capacity.map(|capacity| capacity.saturating_sub(self.used))
    }

    /// Returns `true` if a permit can be granted.
    pub(super) fn has_room(&self) -> bool {
        self.spare() != Some(0)
    }

    /// Records a waiter that joins the queue at this position.
    pub(super) fn enter(&mut self, position: QueuePosition, is_own: bool) {
        self.waiter_count += 1;
        if self.capacity.is_some() {
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
        if self.capacity.is_some() {
            self.waiting.remove(position);
            if is_own {
                self.own.remove(position);
            }
        }
    }

    /// Sets the capacity. `waiters` lists all waiters for a permit, and whether this is the limit of their own kind.
    fn set(&mut self, capacity: Option<u32>, waiters: impl Iterator<Item = (QueuePosition, bool)>) {
        let was_kept = self.capacity.is_some();
        self.capacity = capacity;
        if capacity.is_none() {
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

    /// Returns the current state of the limit.
    pub(super) fn usage(&self) -> LimitUse {
        LimitUse {
            key: self.key.clone(),
            limit: self.capacity,
            used: self.used,
            waiting: self.waiter_count,
            had_to_wait: self.had_to_wait,
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
    all: Vec<Limit>,
    by_key: HashIndex,
    /// The limits whose dependents are due for a recheck.
    due: Vec<LimitId>,
}

impl LimitTable {
    pub(super) fn get(&self, id: LimitId) -> Option<&Limit> {
        self.all.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: LimitId) -> Option<&mut Limit> {
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
            self.all.push(Limit::new(key.clone()));
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

    /// Sets the capacity of a limit.
    pub(super) fn set(&mut self, key: &LimitKey, capacity: Option<u32>, claims: &Claims) -> LimitId {
        let id = self.ask(key);
        if let Some(limit) = self.get_mut(id) {
            let waiting = claims.iter().filter_map(ClaimState::waiting);
            let waiters = waiting.filter(|waiting| waiting.limits.contains(id));
            limit.set(
                capacity,
                waiters.map(|waiting| (waiting.position, waiting.kind == Some(id))),
            );
        }
        id
    }

    /// Returns the names of some limits.
    pub(super) fn keys(&self, limits: &LimitIds) -> impl Iterator<Item = LimitKey> {
        limits.iter().filter_map(|id| Some(self.get(id)?.key.clone()))
    }

    /// Returns all limits that were set or asked for, by name.
    pub(super) fn by_name(&self) -> Vec<&Limit> {
        let mut limits: Vec<&Limit> = self.all.iter().filter(|limit| limit.is_known).collect();
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
            let next = all.get(id.0 as usize).and_then(Limit::next_dependent);
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
