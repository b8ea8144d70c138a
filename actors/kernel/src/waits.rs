//! The wait graph: the chain of procedures that block another, and the deadlocks. It is built from one reading,
//! queried, and dropped. It decides nothing and ends no procedure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::id::{EventName, LimitKey, ProcedureId, Timestamp};
use crate::lock::LockPath;

mod cycles;

/// What one procedure waits for another for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WaitingFor {
    /// A lock that the other holds, or waits for ahead in the queue.
    Lock(LockPath),
    /// A permit that the other holds, or waits for ahead in the queue.
    Permit(LimitKey),
    /// The end of a child.
    Latch,
    /// The start or end of a sibling within the width.
    Width,
    /// The end of a sibling that comes before it.
    Gate,
    /// The end of a running stage, before the family rolls back.
    Stage,
    /// The rollback that undoes both.
    Rollback,
    /// The end of a suspect that runs alone.
    Suspect,
    /// An event that the other is known to send.
    Event(EventName),
}

impl fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(path) => write!(f, "lock {path}"),
            Self::Permit(key) => write!(f, "permit {key}"),
            Self::Latch => f.write_str("latch"),
            Self::Width => f.write_str("width"),
            Self::Gate => f.write_str("gate"),
            Self::Stage => f.write_str("running stage"),
            Self::Rollback => f.write_str("rollback"),
            Self::Suspect => f.write_str("suspect"),
            Self::Event(name) => write!(f, "event {name}"),
        }
    }
}

/// One edge: who waits for whom, why, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The waiting procedure.
    pub from: ProcedureId,
    /// The procedure that it waits for.
    pub to: ProcedureId,
    /// The reason.
    pub why: WaitingFor,
    /// Since when `from` waits.
    pub since: Timestamp,
}

/// One thing that a procedure needs before it can move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// What is needed.
    pub why: WaitingFor,
    /// The procedures that can provide it; any of them suffices. If the list is empty, no procedure in the graph holds
    /// it, and the need counts as met.
    pub of: Vec<ProcedureId>,
    /// These procedures wait for the same thing ahead in the queue. The need is then also met once they lack no lock.
    pub queued_ahead: bool,
}

/// One procedure in the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitNode {
    /// Since when it waits.
    pub since: Timestamp,
    /// All of these must be met. Without needs a procedure can move by itself: it runs, or waits for a timer, an event
    /// or an operator.
    pub needs: Vec<Need>,
    /// Its priority, which decides the choice of the victim.
    pub priority: i16,
    /// The procedure to abort so that this one stops waiting: the topmost live procedure above it, usually the root. A
    /// child that its parent's join policy did not wait for may outlive its root.
    pub head: ProcedureId,
    /// `true` if an abort of `head` reaches this procedure: on the way, none is past its point of no return or failing
    /// already.
    pub can_abort: bool,
}

/// A cycle of procedures that can never move by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadlock {
    /// The links, starting at the smallest id. Each leads to the next, and the last to the first.
    pub cycle: Vec<Link>,
    /// The procedure that the policy would abort: a root or, if it has ended, the topmost live procedure below it.
    pub victim: ProcedureId,
    /// `true` if aborting the victim resolves the deadlock. Otherwise no abort reaches any member: each is past its
    /// point of no return, or failing already. Then the victim must be bypassed, with all its descendants.
    pub can_abort: bool,
}

impl Deadlock {
    /// Returns the remedy as a clause for use in a sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        let victim = self.victim;
        if self.can_abort {
            format!("aborting {victim} resolves it")
        } else {
            format!("no abort reaches any of them; bypassing {victim} with all its descendants resolves it")
        }
    }
}

/// What others wait for a procedure to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Milestone {
    /// It can move.
    Moves,
    /// It lacks no lock.
    LacksNoLock,
}

/// One vertex of the search: a procedure that is to reach a milestone.
type Vertex = (ProcedureId, Milestone);

impl Need {
    fn vertices(&self) -> impl Iterator<Item = Vertex> {
        let milestone = if self.queued_ahead {
            Milestone::LacksNoLock
        } else {
            Milestone::Moves
        };
        self.of.iter().map(move |of| (*of, milestone))
    }
}

/// The graph of waiting procedures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitGraph {
    nodes: BTreeMap<ProcedureId, WaitNode>,
}

impl WaitGraph {
    /// Creates an empty graph.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: BTreeMap::new() }
    }

    /// Returns the number of procedures in the graph.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns `true` if the graph is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a procedure, or replaces the one with the same id.
    pub fn insert(&mut self, id: ProcedureId, node: WaitNode) {
        self.nodes.insert(id, node);
    }

    /// Returns the links reachable from a procedure, nearest first, without duplicates, and at most `most`.
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
    /// A procedure can move if, for each of its needs, some provider can move. Providers outside the graph always can.
    /// Each strongly connected component of the remaining procedures yields at least one cycle. A procedure is in at
    /// most one reported cycle: where cycles overlap, the others are found once the first is resolved. A procedure that
    /// merely waits behind a deadlock is in none.
    ///
    /// The victim is the head of the cycle's member with the lowest priority and, among equals, the youngest. That is
    /// usually its root. Members that cannot be aborted are chosen last.
    #[must_use]
    pub fn deadlocks(&self) -> Vec<Deadlock> {
        let stuck = self.stuck();
        let edges = self.edges_within_components(&stuck);
        let cycles = cycles::of_single_edges(&edges.iter().map(|(vertex, (to, _))| (*vertex, *to)).collect());
        cycles
            .into_iter()
            .map(|members| self.deadlock(&members, &edges))
            .collect()
    }

    fn deadlock(&self, members: &[Vertex], edges: &BTreeMap<Vertex, (Vertex, &Need)>) -> Deadlock {
        let links = members.iter().filter_map(|from| {
            let (to, need) = edges.get(from)?;
            self.link(from.0, to.0, need)
        });
        let order = |node: &WaitNode| (!node.can_abort, node.priority);
        let rank = |id: &ProcedureId| (self.nodes.get(id).map(order), Reverse(id.family));
        let lowest = members.iter().map(|(id, _)| *id).min_by_key(rank);
        let victim = lowest.and_then(|id| self.nodes.get(&id));
        Deadlock {
            cycle: links.collect(),
            victim: victim.map_or(ProcedureId::root(0), |node| node.head),
            can_abort: victim.is_some_and(|node| node.can_abort),
        }
    }

    /// Returns every procedure, plus a second vertex for each procedure whose locks alone are waited for.
    fn vertices(&self) -> BTreeSet<Vertex> {
        let mut vertices = BTreeSet::new();
        for (id, node) in &self.nodes {
            vertices.insert((*id, Milestone::Moves));
            let places = node
                .needs
                .iter()
                .filter(|need| need.queued_ahead)
                .flat_map(|need| &need.of);
            vertices.extend(
                places
                    .filter(|of| self.nodes.contains_key(of))
                    .map(|of| (*of, Milestone::LacksNoLock)),
            );
        }
        vertices
    }

    /// Returns the procedures that cannot move. This computes the least set that can move, and takes the rest.
    fn stuck(&self) -> BTreeSet<Vertex> {
        let mut unmet: BTreeMap<Vertex, BTreeSet<usize>> = BTreeMap::new();
        let mut waited_for: BTreeMap<Vertex, Vec<(Vertex, usize)>> = BTreeMap::new();
        let mut moving = Vec::new();
        for vertex in self.vertices() {
            let is_open = |need: &Need| !need.of.is_empty() && need.of.iter().all(|of| self.nodes.contains_key(of));
            let open = self.needs(vertex).enumerate().filter(|(_, need)| is_open(need));
            let mut indexes = BTreeSet::new();
            for (index, need) in open {
                indexes.insert(index);
                for of in need.vertices() {
                    waited_for.entry(of).or_default().push((vertex, index));
                }
            }
            if indexes.is_empty() {
                moving.push(vertex);
            } else {
                unmet.insert(vertex, indexes);
            }
        }
        while let Some(vertex) = moving.pop() {
            for (waiter, index) in waited_for.remove(&vertex).unwrap_or_default() {
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

    /// Returns, for each member of a component, its first edge that stays within the component.
    fn edges_within_components(&self, stuck: &BTreeSet<Vertex>) -> BTreeMap<Vertex, (Vertex, &Need)> {
        let unmet = |vertex: Vertex| {
            let is_unmet = |need: &&Need| !need.of.is_empty() && need.vertices().all(|of| stuck.contains(&of));
            let needs = self.needs(vertex).filter(is_unmet);
            needs.flat_map(|need| need.vertices().map(move |to| (to, need)))
        };
        let edges = stuck
            .iter()
            .map(|vertex| (*vertex, unmet(*vertex).map(|(to, _)| to).collect()))
            .collect();
        let components = cycles::components(&edges);
        let within = |vertex: Vertex| unmet(vertex).find(|(to, _)| components.get(to) == components.get(&vertex));
        stuck
            .iter()
            .filter_map(|vertex| Some((*vertex, within(*vertex)?)))
            .collect()
    }

    fn needs(&self, (id, milestone): Vertex) -> impl Iterator<Item = &Need> {
        let needs = self.nodes.get(&id).into_iter().flat_map(|node| &node.needs);
        needs.filter(move |need| milestone == Milestone::Moves || matches!(need.why, WaitingFor::Lock(_)))
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
