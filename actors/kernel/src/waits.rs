//! Who waits for whom, as a graph: the chain behind one procedure, and the
//! deadlocks. It is built from one reading, asked, and thrown away; it decides
//! nothing and ends nobody.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::id::{EventName, LimitKey, ProcedureId, Timestamp};
use crate::lock::LockPath;

mod cycles;

/// What one procedure waits for another for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitingFor {
    /// A lock that it holds, or wants in a place before.
    Lock(LockPath),
    /// A permit that it has, or waits for in a place before.
    Permit(LimitKey),
    /// Its end, being a child.
    Latch,
    /// Its start or end, being a sibling within the width.
    Width,
    /// The end of its running stage, before the family rolls back.
    Stage,
    /// Its rollback, which undoes both.
    Rollback,
    /// Its end, being a suspect that runs alone.
    Suspect,
    /// An event that it is known to send.
    Event(EventName),
}

impl fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(path) => write!(f, "lock {path}"),
            Self::Permit(key) => write!(f, "permit {key}"),
            Self::Latch => f.write_str("latch"),
            Self::Width => f.write_str("width"),
            Self::Stage => f.write_str("running stage"),
            Self::Rollback => f.write_str("rollback"),
            Self::Suspect => f.write_str("suspect"),
            Self::Event(name) => write!(f, "event {name}"),
        }
    }
}

/// One edge: who waits for whom, why, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Who waits.
    pub from: ProcedureId,
    /// For whom.
    pub to: ProcedureId,
    /// Why.
    pub why: WaitingFor,
    /// Since when `from` waits.
    pub since: Timestamp,
}

/// One thing that a procedure needs before it can move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What it is.
    pub why: WaitingFor,
    /// Those who can give it: one of them is enough. If there is none, nobody
    /// in the graph keeps it, and it counts as met.
    pub of: Vec<ProcedureId>,
    /// They wait for it in a place before: it is met, too, once they lack no lock any more.
    pub place: bool,
}

/// One procedure in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Since when it waits.
    pub since: Timestamp,
    /// All of these must be met. Without any it can move by itself: it runs, or
    /// waits for a timer, an event or an operator.
    pub needs: Vec<Need>,
    /// Its priority, by which the victim is chosen.
    pub priority: i16,
    /// Whom to abort so that it waits no more: the root, or the highest above it that has not
    /// ended. A child for which its parent's join policy did not wait may outlive that.
    pub head: ProcedureId,
    /// An abort of that reaches it: nobody from here to there is beyond a point of no return, or fails already.
    pub can_abort: bool,
}

/// A cycle of procedures none of which can ever move by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The links, beginning at the smallest id; each leads to the next, the last to the first.
    pub cycle: Vec<Link>,
    /// The root that the policy would abort; where that has ended, the highest below it that has not.
    pub victim: ProcedureId,
    /// An abort of the victim resolves it. If not, no abort reaches any of them: each is beyond a point of no return,
    /// or fails already, and the victim has to be bypassed, with all below it.
    pub can_abort: bool,
}

impl Deadlock {
    /// Says what resolves it, as a part of a sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        let victim = self.victim;
        if self.can_abort {
            format!("aborting {victim} resolves it")
        } else {
            format!("no abort reaches any of them; bypassing {victim} and all below it resolves it")
        }
    }
}

/// What of a procedure is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// That it moves.
    All,
    /// That it lacks no lock.
    Locks,
}

/// A procedure, or its locks alone.
type Spot = (ProcedureId, Part);

impl Need {
    fn spots(&self) -> impl Iterator<Item = Spot> {
        let part = if self.place { Part::Locks } else { Part::All };
        self.of.iter().map(move |of| (*of, part))
    }
}

/// Who waits for whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitGraph {
    nodes: BTreeMap<ProcedureId, Node>,
}

impl WaitGraph {
    /// Makes a graph without procedures.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: BTreeMap::new() }
    }

    /// Gives how many procedures are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Tells whether nobody is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a procedure; one of the same id is replaced.
    pub fn insert(&mut self, id: ProcedureId, node: Node) {
        self.nodes.insert(id, node);
    }

    /// Gives the links that lead on from a procedure, nearest first, each once,
    /// and at most so many.
    #[must_use]
    pub fn chain(&self, from: ProcedureId, most: usize) -> Vec<Link> {
        let mut links = Vec::new();
        let mut seen = BTreeSet::from([from]);
        let mut next = VecDeque::from([from]);
        while let Some(id) = next.pop_front() {
            let mut given = BTreeSet::new();
            for (to, need) in self.edges(id) {
                if links.len() == most {
                    return links;
                }
                if given.insert((to, &need.why)) {
                    links.extend(self.link(id, to, need));
                }
                if seen.insert(to) {
                    next.push_back(to);
                }
            }
        }
        links
    }

    /// Finds the deadlocks.
    ///
    /// A procedure can move if for each of its needs one of those who can give
    /// it can move; who is not in the graph can. Of the rest each knot of
    /// procedures that all wait for each other gives at least one cycle. A
    /// procedure is in at most one of them: where cycles overlap, the others
    /// are found once the first is resolved. Who merely waits behind a deadlock is in none.
    ///
    /// The victim is the head of the cycle's member with the lowest priority,
    /// of these the youngest: mostly its root. Who cannot be aborted comes last.
    #[must_use]
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        let stuck = self.stuck();
        let ways = self.ways_within_knots(&stuck);
        let cycles = cycles::of_single_ways(&ways.iter().map(|(spot, (to, _))| (*spot, *to)).collect());
        cycles
            .into_iter()
            .map(|members| self.deadlock(&members, &ways))
            .collect()
    }

    fn deadlock(&self, members: &[Spot], ways: &BTreeMap<Spot, (Spot, &Need)>) -> Deadlock {
        let links = members.iter().filter_map(|from| {
            let (to, need) = ways.get(from)?;
            self.link(from.0, to.0, need)
        });
        let order = |node: &Node| (!node.can_abort, node.priority);
        let rank = |id: &ProcedureId| (self.nodes.get(id).map(order), Reverse(id.family));
        let lowest = members.iter().map(|(id, _)| *id).min_by_key(rank);
        let victim = lowest.and_then(|id| self.nodes.get(&id));
        Deadlock {
            cycle: links.collect(),
            victim: victim.map_or(ProcedureId::root(0), |node| node.head),
            can_abort: victim.is_some_and(|node| node.can_abort),
        }
    }

    /// Gives every procedure, and once more those whose locks alone are waited for.
    fn spots(&self) -> BTreeSet<Spot> {
        let mut spots = BTreeSet::new();
        for (id, node) in &self.nodes {
            spots.insert((*id, Part::All));
            let places = node.needs.iter().filter(|need| need.place).flat_map(|need| &need.of);
            spots.extend(
                places
                    .filter(|of| self.nodes.contains_key(of))
                    .map(|of| (*of, Part::Locks)),
            );
        }
        spots
    }

    /// Gives those who cannot move: all but the least set that can.
    fn stuck(&self) -> BTreeSet<Spot> {
        let mut unmet: BTreeMap<Spot, BTreeSet<usize>> = BTreeMap::new();
        let mut waited_for: BTreeMap<Spot, Vec<(Spot, usize)>> = BTreeMap::new();
        let mut moving = Vec::new();
        for spot in self.spots() {
            let is_open = |need: &Need| !need.of.is_empty() && need.of.iter().all(|of| self.nodes.contains_key(of));
            let open = self.needs(spot).enumerate().filter(|(_, need)| is_open(need));
            let mut indexes = BTreeSet::new();
            for (index, need) in open {
                indexes.insert(index);
                for of in need.spots() {
                    waited_for.entry(of).or_default().push((spot, index));
                }
            }
            if indexes.is_empty() {
                moving.push(spot);
            } else {
                unmet.insert(spot, indexes);
            }
        }
        while let Some(spot) = moving.pop() {
            for (waiter, index) in waited_for.remove(&spot).unwrap_or_default() {
                let Some(indexes) = unmet.get_mut(&waiter) else {
                    continue;
                };
                indexes.remove(&index);
                if indexes.is_empty() {
                    unmet.remove(&waiter);
                    moving.push(waiter);
                }
            }
        }
        unmet.into_keys().collect()
    }

    /// Gives for each member of a knot one edge that stays within it, the first there is.
    fn ways_within_knots(&self, stuck: &BTreeSet<Spot>) -> BTreeMap<Spot, (Spot, &Need)> {
        let unmet = |spot: Spot| {
            let is_unmet = |need: &&Need| !need.of.is_empty() && need.spots().all(|of| stuck.contains(&of));
            let needs = self.needs(spot).filter(is_unmet);
            needs.flat_map(|need| need.spots().map(move |to| (to, need)))
        };
        let edges = stuck
            .iter()
            .map(|spot| (*spot, unmet(*spot).map(|(to, _)| to).collect()))
            .collect();
        let knots = cycles::knots(&edges);
        let within = |spot: Spot| unmet(spot).find(|(to, _)| knots.get(to) == knots.get(&spot));
        stuck.iter().filter_map(|spot| Some((*spot, within(*spot)?))).collect()
    }

    fn needs(&self, (id, part): Spot) -> impl Iterator<Item = &Need> {
        let needs = self.nodes.get(&id).into_iter().flat_map(|node| &node.needs);
        needs.filter(move |need| part == Part::All || matches!(need.why, WaitingFor::Lock(_)))
    }

    fn edges(&self, from: ProcedureId) -> impl Iterator<Item = (ProcedureId, &Need)> {
        let needs = self.nodes.get(&from).into_iter().flat_map(|node| &node.needs);
        needs.flat_map(|need| need.of.iter().map(move |to| (*to, need)))
    }

    fn link(&self, from: ProcedureId, to: ProcedureId, need: &Need) -> Option<Link> {
        self.nodes.get(&from).map(|node| Link {
            from,
            to,
            why: need.why.clone(),
            since: node.since,
        })
    }
}

#[cfg(test)]
mod tests;
