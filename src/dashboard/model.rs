//! The read model: every live procedure and the newest finished ones, as the engine tells of
//! them. Nothing in it is not on disk.
//!
//! It is written by one thread, and read by many for microseconds at a time: readers
//! take handles of rows, page by page, and look at them when they have let go.

mod filling;
mod flows;
mod pulse;
mod ring;
mod tally;
#[cfg(test)]
mod tests;
mod update;

pub(super) use filling::Filling;
pub(super) use flows::{LiveFlow, LiveSet, Unread};
pub(super) use pulse::Pulse;
pub(super) use ring::{Missed, Ring};
pub(super) use tally::{Tally, Tiles};
pub(super) use update::Update;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use flows::Flows;
use procession_actors::view::Status;
use procession_kernel::{Epoch, Kind, ProcedureId, ProcedureState, Seq, Timestamp};

/// Finished procedures kept: the newest. All others are read from the store, one by one.
const FINISHED_KEPT: usize = 10_000;

/// Which commit something rests on: an event's id, and `as_of` of every answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.epoch, self.seq)
    }
}

impl std::str::FromStr for Moment {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, seq) = text.split_once('-').ok_or(())?;
        Ok(Self {
            epoch: Epoch(epoch.parse().map_err(|_| ())?),
            seq: Seq(seq.parse().map_err(|_| ())?),
        })
    }
}

/// How many procedures there are of one state, and of one kind in it.
pub(super) type Counts = BTreeMap<(ProcedureState, Kind), usize>;

/// Rows by id, and what is counted of them.
#[derive(Default)]
pub(super) struct Rows {
    live: BTreeMap<ProcedureId, Arc<Status>>,
    ended: BTreeMap<ProcedureId, Arc<Status>>,
    /// Those that have ended, the oldest first.
    finished: BTreeSet<(Timestamp, ProcedureId)>,
    counts: Counts,
    tally: Tally,
    flows: Flows,
    /// Families that are set aside: their rows say nothing of it, and what is counted of them does.
    aside: BTreeSet<u64>,
}

/// A row as it is counted.
fn counted<'a>(aside: &BTreeSet<u64>, row: &'a Status) -> Cow<'a, Status> {
    match aside.contains(&row.id.family) {
        true => Cow::Owned(row.clone().quarantined()),
        false => Cow::Borrowed(row),
    }
}

impl Rows {
    /// Takes a row, unless a newer one is known.
    pub(super) fn put(&mut self, row: Arc<Status>) {
        let known = self.get(row.id).map(Arc::clone);
        if known.as_ref().is_some_and(|known| known.revision > row.revision) {
            return;
        }
        self.flows.put(&row);
        if known.is_some() {
            self.remove(row.id);
        }
        *self.counts.entry((row.state, row.kind.clone())).or_default() += 1;
        self.tally.add(&counted(&self.aside, &row));
        if let Some(ended) = row.ended {
            self.finished.insert((ended, row.id));
            self.ended.insert(row.id, row);
        } else {
            self.live.insert(row.id, row);
        }
        while self.finished.len() > FINISHED_KEPT {
            let Some((_, oldest)) = self.finished.first().copied() else {
                return;
            };
            self.remove(oldest);
        }
    }

    fn get(&self, id: ProcedureId) -> Option<&Arc<Status>> {
        self.live.get(&id).or_else(|| self.ended.get(&id))
    }

    fn remove(&mut self, id: ProcedureId) {
        let Some(row) = self.live.remove(&id).or_else(|| self.ended.remove(&id)) else {
            return;
        };
        self.tally.remove(&counted(&self.aside, &row));
        if let Some(ended) = row.ended {
            self.finished.remove(&(ended, id));
        }
        let key = (row.state, row.kind.clone());
        if let Some(count) = self.counts.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key);
            }
        }
    }

    /// Says which families are set aside from now on, and no others.
    fn set_aside(&mut self, families: BTreeSet<u64>) {
        let changed = self.aside.symmetric_difference(&families);
        let members = changed.flat_map(|family| {
            let range = ProcedureId::root(*family)..=ProcedureId::new(*family, u32::MAX);
            self.live.range(range).map(|(_, row)| Arc::clone(row))
        });
        let members: Vec<Arc<Status>> = members.collect();
        for row in &members {
            self.tally.remove(&counted(&self.aside, row));
        }
        self.aside = families;
        for row in &members {
            self.tally.add(&counted(&self.aside, row));
        }
    }

    /// Forgets a family.
    pub(super) fn forget(&mut self, family: u64) {
        let range = ProcedureId::root(family)..=ProcedureId::new(family, u32::MAX);
        let live = self.live.range(range.clone()).map(|(id, _)| *id);
        let members: Vec<ProcedureId> = live.chain(self.ended.range(range).map(|(id, _)| *id)).collect();
        for id in members {
            self.remove(id);
        }
        self.flows.forget(family);
    }

    pub(super) fn fold(&mut self, update: &Update) {
        for family in &update.gone {
            self.forget(*family);
        }
        for row in &update.rows {
            self.put(Arc::clone(row));
        }
        for id in &update.untold {
            self.remove(*id);
            self.flows.miss(*id);
        }
    }
}

/// What request handlers see.
#[derive(Default)]
pub(super) struct Model {
    rows: Rows,
    moment: Moment,
    /// It is filled; before that, nothing is shown.
    is_ready: bool,
    ring: Ring,
    pulse: Pulse,
}

impl Model {
    /// Puts rows that were read anew in place of all that were known. Streams must begin anew.
    /// Returns the old rows, for the caller to drop where nobody waits for it.
    pub(super) fn refill(&mut self, filled: Filling) -> Rows {
        self.moment = filled.moment;
        self.is_ready = true;
        self.ring.begin(filled.moment.seq);
        let mut old = std::mem::replace(&mut self.rows, filled.rows);
        self.rows.flows.filled();
        self.rows.set_aside(std::mem::take(&mut old.aside));
        old
    }

    /// Returns a set whose nodes must be read.
    pub(super) fn unread(&self) -> Option<Unread> {
        self.rows.flows.next_unread()
    }

    /// Takes rows of a set's nodes that were read from the store.
    pub(super) fn take_nodes(&mut self, unread: Unread, rows: &[Status]) {
        self.rows.flows.take(unread, rows);
    }

    /// Says that all nodes of a set were read, or that they cannot be read.
    pub(super) fn end_reading(&mut self, unread: Unread, is_whole: bool) {
        self.rows.flows.end_reading(unread, is_whole);
    }

    /// Returns at most so many live sets and streams from a family on.
    pub(super) fn flows(&self, family: u64, limit: usize) -> Vec<LiveFlow> {
        self.rows.flows.from(family, limit)
    }

    /// Returns at most so many live sets and streams, from a family to older ones.
    pub(super) fn newest_flows(&self, family: u64, limit: usize) -> Vec<LiveFlow> {
        self.rows.flows.back_from(family, limit)
    }

    /// Returns a live set.
    pub(super) fn set(&self, family: u64) -> Option<Arc<LiveSet>> {
        self.rows.flows.set(family)
    }

    /// Folds the next update, now. One that the rows were read behind is known already.
    pub(super) fn fold(&mut self, update: Update, now: Timestamp) {
        if update.moment <= self.moment {
            return;
        }
        self.pulse.beat(now, update.moment.seq.0 - self.moment.seq.0);
        self.rows.fold(&update);
        self.rows.flows.born(&update.rows);
        self.moment = update.moment;
        self.ring.push(update);
    }

    pub(super) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.rows.tally
    }

    pub(super) fn set_aside(&mut self, families: &[(u64, String)]) {
        self.rows
            .set_aside(families.iter().map(|(family, _)| *family).collect());
    }

    pub(super) fn quarantined(&self) -> &BTreeSet<u64> {
        &self.rows.aside
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub(super) fn moment(&self) -> Moment {
        self.moment
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.rows.counts
    }

    pub(super) fn get(&self, id: ProcedureId) -> Option<Arc<Status>> {
        self.rows.get(id).map(Arc::clone)
    }

    /// Returns at most so many live rows from an id on, by id.
    pub(super) fn live(&self, from: Bound<ProcedureId>, limit: usize) -> Vec<Arc<Status>> {
        let range = self.rows.live.range((from, Bound::Unbounded));
        range.take(limit).map(|(_, row)| Arc::clone(row)).collect()
    }

    /// Returns at most so many live rows from an id on: families by falling numbers, the members of each in their order.
    pub(super) fn newest(&self, from: Bound<ProcedureId>, limit: usize) -> Vec<Arc<Status>> {
        let live = &self.rows.live;
        let root = |id: &ProcedureId| Bound::Included(ProcedureId::root(id.family));
        let mut found = Vec::new();
        let mut begin = match from {
            Bound::Unbounded => live.last_key_value().map(|(id, _)| root(id)),
            Bound::Included(_) | Bound::Excluded(_) => Some(from),
        };
        while let Some(from @ (Bound::Included(id) | Bound::Excluded(id))) = begin {
            let last = Bound::Included(ProcedureId::new(id.family, u32::MAX));
            let family = live.range((from, last)).take(limit - found.len());
            found.extend(family.map(|(_, row)| Arc::clone(row)));
            if found.len() == limit {
                break;
            }
            let older = live.range(..ProcedureId::root(id.family));
            begin = older.map(|(id, _)| root(id)).next_back();
        }
        found
    }

    /// Returns the number of the newest family that is known.
    pub(super) fn newest_family(&self) -> u64 {
        let last = [&self.rows.live, &self.rows.ended].map(|rows| rows.last_key_value().map(|(id, _)| id.family));
        last.into_iter().flatten().max().unwrap_or_default()
    }

    /// Returns at most so many updates after a commit; see [`Ring::after`].
    pub(super) fn updates(&self, after: Moment, limit: usize) -> Result<Vec<Arc<Update>>, Missed> {
        if after.epoch != self.moment.epoch {
            return Err(Missed);
        }
        self.ring.after(after.seq, limit)
    }
}
