//! Who waits for which event, and the broadcasts that have not yet woken all who waited for theirs.
//!
//! All of it follows from the rows and from the broadcasts under way, so a start builds it anew and
//! nothing of it is stored. A broadcast that wakes more than one commit should hold is a *wave*: its
//! commit stores the name, the payload and the number of that commit; the wakes follow in commits of
//! their own. Who began to wait while a wave for the event was under way says so in its row
//! ([`Row::waits_after`]). Each waiter thus belongs to one wave at most: the first for its event that is
//! newer than what its row says. No list of those to be woken is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use serde::{Deserialize, Serialize};

use crate::id::{Blob, EventName, ProcedureId, Seq, Timestamp};
use crate::row::Row;
use crate::wait::WaitReason;

/// A broadcast as it is stored until all of its waiters are woken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    /// Name of the event.
    #[serde(rename = "n")]
    pub name: EventName,
    /// What the woken are told.
    #[serde(rename = "p")]
    pub payload: Blob,
}

/// One that waits: after which wave it began to, since when, and who it is. First waiter first.
type Waiter = (Seq, Timestamp, ProcedureId);

/// Those who wait for one event. Most events have one waiter: a set for each would take ten times as much.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    One(Waiter),
    Many(BTreeSet<Waiter>),
}

impl Line {
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

    /// Takes one out; tells whether nobody is left.
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

/// A broadcast under way, and how many of its waiters are left.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wave {
    broadcast: Broadcast,
    left: usize,
    /// It stays when nobody is left: a family that is set aside may belong to it.
    kept: bool,
}

/// All who wait for an event, and all waves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiters {
    lines: BTreeMap<EventName, Line>,
    waves: BTreeMap<Seq, Wave>,
    /// Members that fail: those below them wait for nothing any more.
    failing: BTreeSet<ProcedureId>,
}

impl Waiters {
    /// Follows a row from how it was to how it is.
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
        match self.lines.get_mut(name) {
            Some(line) => line.insert(waiter),
            None => drop(self.lines.insert(name.clone(), Line::One(waiter))),
        }
        if let Some(wave) = self.wave_mut(name, waiter.0) {
            wave.left += 1;
        }
    }

    fn remove(&mut self, name: &EventName, waiter: &Waiter) {
        if self.lines.get_mut(name).is_some_and(|line| line.remove(waiter)) {
            self.lines.remove(name);
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

    /// Begins a wave with the commit of this number: all who wait by now and belong to no earlier one are in it.
    pub(crate) fn begin(&mut self, seq: Seq, broadcast: &Broadcast) {
        let left = self.unclaimed(&broadcast.name);
        let wave = Wave {
            broadcast: broadcast.clone(),
            left,
            kept: false,
        };
        self.waves.insert(seq, wave);
    }

    /// Keeps every wave that is under way until the next start: of what is set aside nobody knows whether it waits.
    pub(crate) fn keep(&mut self) {
        for wave in self.waves.values_mut() {
            wave.kept = true;
        }
    }

    /// Keeps the wave that is to wake this one, if one is.
    pub(crate) fn keep_for(&mut self, row: &Row) {
        if let Some((name, (after, ..))) = waits(row)
            && let Some(wave) = self.wave_mut(name, after)
        {
            wave.kept = true;
        }
    }

    /// Tells whether a wave stays when nobody is left.
    pub(crate) fn is_kept(&self, seq: Seq) -> bool {
        self.waves.get(&seq).is_some_and(|wave| wave.kept)
    }

    /// Gives what a wave's waiters are told.
    pub(crate) fn payload(&self, seq: Seq) -> Option<&Blob> {
        self.waves.get(&seq).map(|wave| &wave.broadcast.payload)
    }

    /// Ends a wave.
    pub(crate) fn end(&mut self, seq: Seq) {
        self.waves.remove(&seq);
    }

    /// Counts those who wait for an event and belong to no wave.
    pub(crate) fn unclaimed(&self, name: &EventName) -> usize {
        let claimed = self.waves_of(name).map(|(_, wave)| wave.left).sum();
        self.lines.get(name).map_or(0, Line::len).saturating_sub(claimed)
    }

    fn waves_of(&self, name: &EventName) -> impl DoubleEndedIterator<Item = (Seq, &Wave)> {
        let waves = self.waves.iter().map(|(seq, wave)| (*seq, wave));
        waves.filter(move |(_, wave)| wave.broadcast.name == *name)
    }

    /// Gives how many waves are under way.
    pub(crate) fn waves(&self) -> usize {
        self.waves.len()
    }

    /// Gives the newest wave for an event: who begins to wait now is not in it, nor in any before it.
    pub(crate) fn newest(&self, name: &EventName) -> Option<Seq> {
        self.waves_of(name).next_back().map(|(seq, _)| seq)
    }

    /// Gives the wave that is to wake this one, if one is.
    pub(crate) fn wave_of(&self, row: &Row) -> Option<(Seq, &Broadcast)> {
        let (name, (after, ..)) = waits(row)?;
        let mut newer = self.waves.range((Excluded(after), Unbounded));
        let (seq, wave) = newer.find(|(_, wave)| wave.broadcast.name == *name)?;
        Some((*seq, &wave.broadcast))
    }

    /// Gives those who wait for an event, first waiter first.
    pub(crate) fn of(&self, name: &EventName) -> impl Iterator<Item = ProcedureId> {
        let line = self.lines.get(name);
        line.into_iter().flat_map(Line::iter).map(|(.., id)| *id)
    }

    /// Gives the wave that is served after this one, each in turn. Of two for one event the earlier goes first.
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

    /// Gives what a wave says, the first of its waiters, and whether these are the last.
    pub(crate) fn chunk(&self, seq: Seq, most: usize) -> Option<(&Broadcast, Vec<ProcedureId>, bool)> {
        let wave = self.waves.get(&seq)?;
        let line = self.lines.get(&wave.broadcast.name);
        let all = line.into_iter().flat_map(Line::iter);
        let of_wave = all.take_while(|(after, ..)| *after < seq).take(most);
        let chunk: Vec<ProcedureId> = of_wave.map(|(.., id)| *id).collect();
        let is_last = chunk.len() >= wave.left;
        Some((&wave.broadcast, chunk, is_last))
    }

    /// Gives the families in which a member fails.
    pub(crate) fn failing(&self) -> impl Iterator<Item = u64> {
        let mut before = None;
        let families = self.failing.iter().map(|id| id.family);
        families.filter(move |family| before.replace(*family) != Some(*family))
    }
}

/// Gives what one waits for, if it is an event.
fn waits(row: &Row) -> Option<(&EventName, Waiter)> {
    match &row.wait {
        Some(WaitReason::Event(name, _)) if !row.is_ended() => Some((name, (row.waits_after, row.since, row.id))),
        Some(_) | None => None,
    }
}
