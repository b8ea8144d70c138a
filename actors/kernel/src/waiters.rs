//! The waiters of each event, and the broadcasts that have not yet woken all of their waiters.
//!
//! All of this follows from the rows and from the broadcasts under way. A start rebuilds it, and none of it is stored.
//! A broadcast that wakes more procedures than one commit should hold is a *wave*. Its commit stores the name, the
//! payload and the number of that commit; later commits wake the waiters. A procedure that begins to wait while a wave
//! for its event is under way records that in its row ([`Row::waits_after`]). Hence each waiter belongs to at most one
//! wave: the first one for its event that is newer than its row states. No list of procedures to wake is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use serde::{Deserialize, Serialize};

use crate::id::{Blob, EventName, ProcedureId, Seq, Timestamp};
use crate::row::Row;
use crate::wait::WaitReason;

/// A broadcast, stored until all of its waiters are woken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    /// Name of the event.
    #[serde(rename = "n")]
    pub name: EventName,
    /// Payload that the woken procedures receive.
    #[serde(rename = "p")]
    pub payload: Blob,
}

/// A waiter: the wave after which it began to wait, since when, and its id. The order is first waiter first.
type Waiter = (Seq, Timestamp, ProcedureId);

/// The waiters of one event. Most events have a single waiter, and a set for each would take ten times the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WaiterQueue {
    One(Waiter),
    Many(BTreeSet<Waiter>),
}

impl WaiterQueue {
    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(waiters) => waiters.len(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Waiter> {
        let (one, many) = match self {
            Self::One(waiter) => (Some(waiter), None),
            Self::Many(waiters) => (None, Some(waiters)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn insert(&mut self, waiter: Waiter) {
        match self {
            Self::One(first) => *self = Self::Many(BTreeSet::from([*first, waiter])),
            Self::Many(waiters) => {
                waiters.insert(waiter);
            }
        }
    }

    /// Removes a waiter. Returns `true` if the queue is then empty.
    fn remove(&mut self, waiter: &Waiter) -> bool {
        match self {
            Self::One(first) => first == waiter,
            Self::Many(waiters) => {
                waiters.remove(waiter);
                waiters.is_empty()
            }
        }
    }
}

/// A broadcast under way, and the number of its remaining waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wave {
    broadcast: Broadcast,
    left: usize,
    /// The wave is kept even without waiters, because a quarantined family may contain some.
    kept: bool,
}

/// All waiters by event, and all waves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiters {
    queues: BTreeMap<EventName, WaiterQueue>,
    waves: BTreeMap<Seq, Wave>,
    /// Failing members: their descendants no longer wait for anything.
    failing: BTreeSet<ProcedureId>,
}

impl Waiters {
    /// Updates the index for a change of a row.
    pub(crate) fn follow(&mut self, old: Option<&Row>, new: Option<&Row>) {
        let (was, is) = (old.and_then(waits), new.and_then(waits));
        if was != is {
            if let Some((name, waiter)) = was {
                self.remove(name, &waiter);
            }
            if let Some((name, waiter)) = is {
                self.insert(name, waiter);
            }
        }
        if let Some(row) = new.filter(|row| row.is_failing()) {
            self.failing.insert(row.id);
        } else if let Some(row) = old.filter(|row| row.is_failing()) {
            self.failing.remove(&row.id);
        }
    }

    fn insert(&mut self, name: &EventName, waiter: Waiter) {
        match self.queues.get_mut(name) {
            Some(queue) => queue.insert(waiter),
            None => drop(self.queues.insert(name.clone(), WaiterQueue::One(waiter))),
        }
        if let Some(wave) = self.wave_mut(name, waiter.0) {
            wave.left += 1;
        }
    }

    fn remove(&mut self, name: &EventName, waiter: &Waiter) {
        if self.queues.get_mut(name).is_some_and(|queue| queue.remove(waiter)) {
            self.queues.remove(name);
        }
        if let Some(wave) = self.wave_mut(name, waiter.0) {
            wave.left -= 1;
        }
    }

    fn wave_mut(&mut self, name: &EventName, after: Seq) -> Option<&mut Wave> {
        let mut newer = self.waves.range_mut((Excluded(after), Unbounded));
        newer
            .find(|(_, wave)| wave.broadcast.name == *name)
            .map(|(_, wave)| wave)
    }

    /// Begins a wave with the commit of this number. It covers all current waiters that belong to no earlier wave.
    pub(crate) fn begin(&mut self, seq: Seq, broadcast: &Broadcast) {
        let left = self.unclaimed(&broadcast.name);
        let wave = Wave {
            broadcast: broadcast.clone(),
            left,
            kept: false,
        };
        self.waves.insert(seq, wave);
    }

    /// Keeps every wave under way until the next start, because an unreadable family may contain waiters.
    pub(crate) fn keep(&mut self) {
        for wave in self.waves.values_mut() {
            wave.kept = true;
        }
    }

    /// Keeps the wave that should wake this waiter, if there is one.
    pub(crate) fn keep_for(&mut self, row: &Row) {
        if let Some((name, (after, ..))) = waits(row)
            && let Some(wave) = self.wave_mut(name, after)
        {
            wave.kept = true;
        }
    }

    /// Returns `true` if the wave is kept even without waiters.
    pub(crate) fn is_kept(&self, seq: Seq) -> bool {
        self.waves.get(&seq).is_some_and(|wave| wave.kept)
    }

    /// Returns the payload of a wave.
    pub(crate) fn payload(&self, seq: Seq) -> Option<&Blob> {
        self.waves.get(&seq).map(|wave| &wave.broadcast.payload)
    }

    /// Ends a wave.
    pub(crate) fn end(&mut self, seq: Seq) {
        self.waves.remove(&seq);
    }

    /// Counts the waiters of an event that belong to no wave.
    pub(crate) fn unclaimed(&self, name: &EventName) -> usize {
        let claimed = self.waves_of(name).map(|(_, wave)| wave.left).sum();
        self.queues
            .get(name)
            .map_or(0, WaiterQueue::len)
            .saturating_sub(claimed)
    }

    fn waves_of(&self, name: &EventName) -> impl DoubleEndedIterator<Item = (Seq, &Wave)> {
        let waves = self.waves.iter().map(|(seq, wave)| (*seq, wave));
        waves.filter(move |(_, wave)| wave.broadcast.name == *name)
    }

    /// Returns the number of waves under way.
    pub(crate) fn waves(&self) -> usize {
        self.waves.len()
    }

    /// Returns the newest wave for an event. A procedure that begins to wait now belongs neither to it nor to an
    /// earlier one.
    pub(crate) fn newest(&self, name: &EventName) -> Option<Seq> {
        self.waves_of(name).next_back().map(|(seq, _)| seq)
    }

    /// Returns the wave that should wake this procedure, if there is one.
    pub(crate) fn wave_of(&self, row: &Row) -> Option<(Seq, &Broadcast)> {
        let (name, (after, ..)) = waits(row)?;
        let mut newer = self.waves.range((Excluded(after), Unbounded));
        let (seq, wave) = newer.find(|(_, wave)| wave.broadcast.name == *name)?;
        Some((*seq, &wave.broadcast))
    }

    /// Returns the waiters of an event, first waiter first.
    pub(crate) fn of(&self, name: &EventName) -> impl Iterator<Item = ProcedureId> {
        let queue = self.queues.get(name);
        queue.into_iter().flat_map(WaiterQueue::iter).map(|(.., id)| *id)
    }

    /// Returns `true` if any broadcast is under way, or is kept.
    pub(crate) fn has_waves(&self) -> bool {
        !self.waves.is_empty()
    }

    /// Returns the wave to serve after this one, in turn. Of two waves for one event, the earlier is served first.
    pub(crate) fn next(&self, served: Seq) -> Option<Seq> {
        let is_done = |wave: &Wave| wave.kept && wave.left == 0;
        let is_first = |(seq, wave): &(&Seq, &Wave)| {
            let first = self.waves_of(&wave.broadcast.name).find(|(_, wave)| !is_done(wave));
            first.is_some_and(|(first, _)| first == **seq)
        };
        let behind = self.waves.range((Excluded(served), Unbounded));
        let next = behind.chain(self.waves.range(..=served)).find(is_first);
        next.map(|(seq, _)| *seq)
    }

    /// Returns the broadcast of a wave, its first `most` waiters, and whether these are the last.
    pub(crate) fn chunk(&self, seq: Seq, most: usize) -> Option<(&Broadcast, Vec<ProcedureId>, bool)> {
        let wave = self.waves.get(&seq)?;
        let queue = self.queues.get(&wave.broadcast.name);
        let all = queue.into_iter().flat_map(WaiterQueue::iter);
        let of_wave = all.take_while(|(after, ..)| *after < seq).take(most);
        let chunk: Vec<ProcedureId> = of_wave.map(|(.., id)| *id).collect();
        let is_last = chunk.len() >= wave.left;
        Some((&wave.broadcast, chunk, is_last))
    }

    /// Returns the families in which a member fails, without duplicates.
    pub(crate) fn failing(&self) -> impl Iterator<Item = u64> {
        let mut before = None;
        let families = self.failing.iter().map(|id| id.family);
        families.filter(move |family| before.replace(*family) != Some(*family))
    }
}

/// Returns the event and the waiter, if the row waits for an event.
fn waits(row: &Row) -> Option<(&EventName, Waiter)> {
    match &row.wait {
        Some(WaitReason::Event(name, _)) if !row.is_ended() => Some((name, (row.waits_after, row.since, row.id))),
        Some(_) | None => None,
    }
}
