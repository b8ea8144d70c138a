//! The live sets and streams, and how the nodes of sets stand. Each node is a few words here, also once it has ended, so that a list of
//! sets reads no rows. A set that was there before the model is read once, by the thread that writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use procession_actors::view::Status;
use procession_kernel::{ProcedureId, Seq};

use crate::flow::{NodeFacts, Reading, SetStatus};
use crate::views::{is_set, is_stream};

/// One live set.
#[derive(Clone)]
pub(crate) struct LiveSet {
    pub(crate) root: Arc<Status>,
    /// By place; those that are not known yet are none.
    nodes: Vec<Option<(Seq, NodeFacts)>>,
    /// All nodes are known.
    is_whole: bool,
    /// They cannot be read, so they are not counted.
    pub(crate) is_unreadable: bool,
    /// How often a node has changed without its row.
    missed: u32,
    /// How it stands, once somebody has asked.
    status: OnceLock<SetStatus>,
}

impl LiveSet {
    fn new(root: Arc<Status>) -> Self {
        Self {
            root,
            nodes: Vec::new(),
            is_whole: false,
            is_unreadable: false,
            missed: 0,
            status: OnceLock::new(),
        }
    }

    /// Returns how it stands; none while not all of its nodes are known.
    pub(crate) fn status(&self) -> Option<&SetStatus> {
        self.is_whole.then(|| self.status.get_or_init(|| self.read()))
    }

    fn read(&self) -> SetStatus {
        let mut reading = Reading::new(&self.root);
        for (_, node) in self.nodes.iter().flatten() {
            reading.add(node);
        }
        reading.status()
    }

    /// Takes the row of a node, unless a newer one is known.
    fn put(&mut self, row: &Status) {
        let Some(place) = (row.id.member as usize).checked_sub(1) else {
            return;
        };
        if self.nodes.len() <= place {
            self.nodes.resize(place + 1, None);
        }
        let Some(node) = self.nodes.get_mut(place) else { return };
        if node.as_ref().is_none_or(|(known, _)| *known <= row.revision) {
            *node = Some((row.revision, NodeFacts::from(row)));
            self.status.take();
        }
    }
}

/// A set whose nodes must be read, and how many changes of it were missed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) family: u64,
    missed: u32,
}

/// A live set or stream.
pub(crate) enum LiveFlow {
    Set(Arc<LiveSet>),
    Stream(Arc<Status>),
}

impl LiveFlow {
    pub(crate) fn root(&self) -> &Status {
        match self {
            Self::Set(set) => &set.root,
            Self::Stream(root) => root,
        }
    }
}

/// All live sets and streams, by family.
#[derive(Default)]
pub(super) struct Flows {
    streams: BTreeMap<u64, Arc<Status>>,
    sets: BTreeMap<u64, Arc<LiveSet>>,
    /// The sets whose nodes are not all known.
    unread: BTreeSet<u64>,
    /// Those of them that this update was the first to tell of.
    born: Vec<u64>,
}

impl Flows {
    /// Takes a row that is newer than the one that was known.
    pub(super) fn put(&mut self, row: &Arc<Status>) {
        let family = row.id.family;
        if is_stream(row) {
            match row.ended {
                Some(_) => self.streams.remove(&family),
                None => self.streams.insert(family, Arc::clone(row)),
            };
        } else if is_set(row) {
            if row.ended.is_some() {
                return self.forget(family);
            }
            let set = self.sets.entry(family).or_insert_with(|| {
                self.unread.insert(family);
                self.born.push(family);
                Arc::new(LiveSet::new(Arc::clone(row)))
            });
            let set = Arc::make_mut(set);
            set.root = Arc::clone(row);
            set.status.take();
        } else if row.parent == Some(ProcedureId::root(family))
            && let Some(set) = self.sets.get_mut(&family)
        {
            Arc::make_mut(set).put(row);
        }
    }

    /// Says that what was taken so far was read from the store: the sets in it were born before, with nodes of their own.
    pub(super) fn filled(&mut self) {
        self.born = Vec::new();
    }

    pub(super) fn forget(&mut self, family: u64) {
        self.sets.remove(&family);
        self.streams.remove(&family);
        self.unread.remove(&family);
    }

    pub(super) fn next_unread(&self) -> Option<Unread> {
        let family = *self.unread.first()?;
        let missed = self.sets.get(&family).map_or(0, |set| set.missed);
        Some(Unread { family, missed })
    }

    /// Takes the nodes of sets that an update was the first to tell of. A set is born with all its nodes, so that update
    /// has all of them, in whatever order.
    pub(super) fn born(&mut self, rows: &[Arc<Status>]) {
        let born = std::mem::take(&mut self.born);
        if born.is_empty() {
            return;
        }
        let born = BTreeSet::from_iter(born);
        for row in rows.iter().filter(|row| born.contains(&row.id.family) && !is_set(row)) {
            self.put(row);
        }
        for family in born {
            let missed = 0;
            self.end_reading(Unread { family, missed }, true);
        }
    }

    /// Records that a node has changed and its row was not sent. Its set must be read anew.
    pub(super) fn miss(&mut self, id: ProcedureId) {
        if id == ProcedureId::root(id.family) {
            return self.forget(id.family);
        }
        if let Some(set) = self.sets.get_mut(&id.family) {
            let set = Arc::make_mut(set);
            set.is_whole = false;
            set.missed += 1;
            self.unread.insert(id.family);
        }
    }

    /// Takes rows of nodes that were read, unless newer ones are known.
    pub(super) fn take(&mut self, unread: Unread, rows: &[Status]) {
        let Some(set) = self.sets.get_mut(&unread.family) else {
            return;
        };
        let set = Arc::make_mut(set);
        for node in rows
            .iter()
            .filter(|row| row.parent == Some(ProcedureId::root(unread.family)))
        {
            set.put(node);
        }
    }

    /// Says that all nodes of a set are known, unless further changes were missed; or that they cannot be read, and it
    /// stays uncounted.
    pub(super) fn end_reading(&mut self, Unread { family, missed }: Unread, is_whole: bool) {
        let Some(set) = self.sets.get_mut(&family).filter(|set| set.missed == missed) else {
            return;
        };
        let set = Arc::make_mut(set);
        (set.is_whole, set.is_unreadable) = (is_whole, !is_whole);
        self.unread.remove(&family);
    }

    pub(super) fn set(&self, family: u64) -> Option<Arc<LiveSet>> {
        self.sets.get(&family).map(Arc::clone)
    }

    /// Returns at most so many sets and streams from a family on.
    pub(super) fn from(&self, family: u64, limit: usize) -> Vec<LiveFlow> {
        let sets = self.sets.range(family..).take(limit);
        let streams = self.streams.range(family..).take(limit);
        merged(sets, streams).into_values().take(limit).collect()
    }

    /// Returns at most so many sets and streams from a family to older ones.
    pub(super) fn back_from(&self, family: u64, limit: usize) -> Vec<LiveFlow> {
        let sets = self.sets.range(..=family).rev().take(limit);
        let streams = self.streams.range(..=family).rev().take(limit);
        merged(sets, streams).into_values().rev().take(limit).collect()
    }
}

fn merged<'a>(
    sets: impl Iterator<Item = (&'a u64, &'a Arc<LiveSet>)>,
    streams: impl Iterator<Item = (&'a u64, &'a Arc<Status>)>,
) -> BTreeMap<u64, LiveFlow> {
    let sets = sets.map(|(family, set)| (*family, LiveFlow::Set(Arc::clone(set))));
    let streams = streams.map(|(family, root)| (*family, LiveFlow::Stream(Arc::clone(root))));
    sets.chain(streams).collect()
}
