//! What is wrong with a graph, and in which order its nodes stand. Linear in nodes and edges, without recursion: a lattice
//! has more paths than anything could walk, and a chain may be as long as a set.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use procession_actors::CodecError;
use procession_kernel::{CHILD_NAME_MAX, RETRY_AFTER_MAX, RetryPolicy};

use super::error::{PROBLEMS_MAX, listed};
use super::node::{Named, Node, NodeRef, Parent, When, Work};

/// Most parents of one node, as the engine has it.
const PARENTS_MAX: usize = 10_000;
/// Most edges of one set, as the engine has it.
const EDGES_MAX: usize = 1_000_000;
/// Most attempts that a node may have.
const ATTEMPTS_MAX: u32 = 1_000;
/// A name that others in this field store where there is no node, so a person would read it as none.
const RESERVED: &str = "N/A";
/// Characters of a name that is too long which its problem shows.
const NAME_SHOWN: usize = 10;

/// One thing that is wrong with a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It has no node.
    #[error("the set has no node: add at least one")]
    Empty,
    /// It has more nodes than a set may have.
    #[error("the set has {nodes} nodes, at most {limit}: split it, or raise max_children")]
    TooManyNodes {
        /// Its nodes.
        nodes: usize,
        /// The bound.
        limit: usize,
    },
    /// It has more edges than a set may have.
    #[error("the set has {edges} edges, at most {limit}: let one node stand between many")]
    TooManyEdges {
        /// Its edges.
        edges: usize,
        /// The bound.
        limit: usize,
    },
    /// Its data is larger than one commit may be.
    #[error("the set has {bytes} bytes of data, at most {limit}: split it, or store the data elsewhere")]
    TooLarge {
        /// Size in bytes.
        bytes: usize,
        /// The bound in bytes.
        limit: usize,
    },
    /// The data of a node is too large.
    #[error("node \"{node}\": its data is {bytes} bytes, at most {limit}")]
    NodeTooLarge {
        /// The node.
        node: String,
        /// Size in bytes.
        bytes: usize,
        /// The bound in bytes.
        limit: usize,
    },
    /// Nodes wait for each other. Each is named before the one that follows it, and the first again at the end.
    #[error("cycle: {}", listed(.0, " -> "))]
    Cycle(Vec<String>),
    /// It should have one first node.
    #[error("the set has {} first nodes ({}), and single_ended asks for one", .0.len(), listed(.0, ", "))]
    FirstNodes(Vec<String>),
    /// It should have one last node.
    #[error("the set has {} last nodes ({}), and single_ended asks for one", .0.len(), listed(.0, ", "))]
    LastNodes(Vec<String>),
    /// An edge begins or ends nowhere.
    #[error("node \"{node}\" follows \"{parent}\", which is not in the set")]
    UnknownParent {
        /// The node.
        node: String,
        /// The name that no node has.
        parent: String,
    },
    /// An edge leads to a node that is not there.
    #[error("an edge leads from \"{parent}\" to \"{node}\", which is not in the set")]
    UnknownNode {
        /// The name that no node has.
        node: String,
        /// The node at the other end.
        parent: String,
    },
    /// An edge is there twice.
    #[error("node \"{node}\" follows \"{parent}\" twice")]
    EdgeTwice {
        /// The node.
        node: String,
        /// The parent.
        parent: String,
    },
    /// A parent is a node of another builder.
    #[error("node \"{node}\" follows a node of another builder")]
    OtherBuilder {
        /// The node.
        node: String,
    },
    /// A node has too many parents.
    #[error("node \"{node}\" has {parents} parents, at most {limit}")]
    TooManyParents {
        /// The node.
        node: String,
        /// Its parents.
        parents: usize,
        /// The bound.
        limit: usize,
    },
    /// A name is too long.
    #[error("node name \"{start}…\" has {characters} characters, at most {limit}")]
    LongName {
        /// Its first characters.
        start: String,
        /// Its characters.
        characters: usize,
        /// The bound.
        limit: usize,
    },
    /// A name is empty.
    #[error("a node name is empty: give it 1 to {CHILD_NAME_MAX} characters")]
    EmptyName,
    /// A name has a control character, such as a line break.
    #[error("node name \"{}\" has a control character: leave it out", .0.escape_debug())]
    ControlCharacter(String),
    /// A name is reserved.
    #[error("node name \"{0}\" is reserved: choose another")]
    ReservedName(String),
    /// Two nodes have one name.
    #[error("node \"{0}\" is there twice: names are unique in a set")]
    NameTwice(String),
    /// The number of parents that must succeed cannot be.
    #[error("node \"{node}\": AtLeast needs 1 to {parents}, the number of its parents, got {least}")]
    AtLeast {
        /// The node.
        node: String,
        /// Its parents.
        parents: usize,
        /// The number given.
        least: u32,
    },
    /// A node without parents waits for some.
    #[error("node \"{node}\" has no parent, so {when} can never open")]
    NoParents {
        /// The node.
        node: String,
        /// Its strategy, as it was given.
        when: String,
    },
    /// A strategy names a node that is no parent.
    #[error("node \"{node}\": Named lists \"{name}\", which is not a parent (parents: {})", listed(.parents, ", "))]
    NamedStranger {
        /// The node.
        node: String,
        /// The name.
        name: String,
        /// The names of its parents.
        parents: Vec<String>,
    },
    /// A strategy names nobody.
    #[error("node \"{node}\": Named lists no parent")]
    NamedNobody {
        /// The node.
        node: String,
    },
    /// A node has too many attempts.
    #[error("node \"{node}\": {attempts} attempts, at most {ATTEMPTS_MAX}")]
    TooManyAttempts {
        /// The node.
        node: String,
        /// The attempts given.
        attempts: u32,
    },
    /// A node has no attempt.
    #[error("node \"{node}\": 0 attempts, at least 1")]
    NoAttempt {
        /// The node.
        node: String,
    },
    /// A delay between attempts is too long.
    #[error("node \"{node}\": a delay of {} s, at most {}", .delay.as_secs(), RETRY_AFTER_MAX.as_secs())]
    LongDelay {
        /// The node.
        node: String,
        /// The delay.
        delay: Duration,
    },
    /// A procedure cannot have what only processors have.
    #[error("node \"{node}\" is a procedure, which has {what} of its own: set it there")]
    OfProcedure {
        /// The node.
        node: String,
        /// What was set.
        what: &'static str,
    },
    /// A node of a stream has one node before it, and chooses among several.
    #[error(
        "node \"{node}\": {when} chooses among parents, and a stream's node has one: use AllSucceeded or AllFinished"
    )]
    WhenInStream {
        /// The node.
        node: String,
        /// Its strategy.
        when: String,
    },
    /// A node of a stream names its parents.
    #[error("node \"{node}\" names its parents, and a stream's node follows the one before it: leave `after` out")]
    ParentsInStream {
        /// The node.
        node: String,
    },
    /// A node of a stream has a priority.
    #[error("node \"{node}\" has a priority, and a stream runs its nodes in their order: leave it out")]
    PriorityInStream {
        /// The node.
        node: String,
    },
    /// A node of a stream is a procedure.
    #[error("node \"{node}\" is a procedure, and a stream runs processors: put it into a set")]
    ProcedureInStream {
        /// The node.
        node: String,
    },
    /// A node of a stream has a processor that takes locks.
    #[error("processor \"{processor}\" takes locks, and a stream's node cannot: put it into a set")]
    LocksInStream {
        /// The processor.
        processor: String,
    },
    /// The data cannot be encoded.
    #[error("node \"{node}\": {why}")]
    Codec {
        /// The node.
        node: String,
        /// What is wrong.
        why: String,
    },
}

impl Problem {
    pub(super) fn codec(node: &str, why: &CodecError) -> Self {
        Self::Codec {
            node: node.to_owned(),
            why: why.to_string(),
        }
    }
}

/// Problems in the order in which they are found: the first of them, and how many more.
#[derive(Default)]
pub(super) struct Problems {
    pub(super) first: Vec<Problem>,
    pub(super) more: usize,
}

impl Problems {
    pub(super) fn add(&mut self, problem: Problem) {
        self.add_with(|| problem);
    }

    /// Adds a problem that costs more to tell than to find. It is not told once there are enough.
    fn add_with(&mut self, problem: impl FnOnce() -> Problem) {
        if self.first.len() < PROBLEMS_MAX {
            self.first.push(problem());
        } else {
            self.more += 1;
        }
    }

    pub(super) fn are_none(&self) -> bool {
        self.first.is_empty()
    }
}

/// A graph of nodes by their places in the builder.
pub(super) struct Graph {
    /// The parents of each node, in the order given.
    pub(super) parents: Vec<Vec<usize>>,
    names: Vec<String>,
}

impl Graph {
    /// Reads the edges and checks every node.
    pub(super) fn new(builder: u64, nodes: &[Node], edges: &[(Parent, Parent)], problems: &mut Problems) -> Self {
        let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        let mut by_name = HashMap::with_capacity(names.len());
        let twice: Vec<bool> = (0..)
            .zip(&names)
            .map(|(place, name)| by_name.insert(name.as_str(), place).is_some())
            .collect();
        let find = |parent: &Parent| match &parent.0 {
            Named::Added(NodeRef { builder: other, place }) if *other == builder => Ok(*place),
            Named::Added(_) => Err(None),
            Named::Name(name) => by_name.get(name.as_str()).copied().ok_or(Some(name.clone())),
        };
        let mut more: HashMap<usize, Vec<&Parent>> = HashMap::new();
        let mut lost = Vec::new();
        for (from, to) in edges {
            match find(to) {
                Ok(place) => more.entry(place).or_default().push(from),
                Err(to) => lost.push((from, to)),
            }
        }
        let name_of = |parent: &Parent| match find(parent) {
            Ok(place) => names.get(place).cloned().unwrap_or_default(),
            Err(name) => name.unwrap_or_else(|| "a node of another builder".to_owned()),
        };
        let mut parents = Vec::with_capacity(nodes.len());
        for ((place, node), twice) in nodes.iter().enumerate().zip(twice) {
            check_name(&node.name, twice, problems);
            let added = more.remove(&place).unwrap_or_default();
            let mut own = Vec::with_capacity(node.after.len() + added.len());
            for parent in node.after.iter().chain(added) {
                match find(parent) {
                    Ok(place) => own.push(place),
                    Err(Some(parent)) => problems.add(Problem::UnknownParent {
                        node: node.name.clone(),
                        parent,
                    }),
                    Err(None) => problems.add(Problem::OtherBuilder {
                        node: node.name.clone(),
                    }),
                }
            }
            check_twice(&node.name, &own, &names, problems);
            check_node(node, &own, &names, problems);
            parents.push(own);
        }
        for (from, to) in lost {
            let (node, parent) = (
                to.unwrap_or_else(|| "a node of another builder".to_owned()),
                name_of(from),
            );
            problems.add(Problem::UnknownNode { node, parent });
        }
        let edges: usize = parents.iter().map(Vec::len).sum();
        if edges > EDGES_MAX {
            problems.add(Problem::TooManyEdges {
                edges,
                limit: EDGES_MAX,
            });
        }
        Self { parents, names }
    }

    /// Returns the nodes in an order in which parents stand before children: as they were added, if that is one.
    pub(super) fn order(&self, problems: &mut Problems) -> Vec<usize> {
        let count = self.parents.len();
        if self
            .parents
            .iter()
            .enumerate()
            .all(|(place, parents)| parents.iter().all(|parent| *parent < place))
        {
            return (0..count).collect();
        }
        let mut left: Vec<usize> = self.parents.iter().map(Vec::len).collect();
        let children = self.children();
        let mut free: VecDeque<usize> = (0..count).filter(|place| left.get(*place) == Some(&0)).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(place) = free.pop_front() {
            order.push(place);
            for child in children.get(place).into_iter().flatten() {
                let Some(waits) = left.get_mut(*child) else { continue };
                *waits -= 1;
                if *waits == 0 {
                    free.push_back(*child);
                }
            }
        }
        if order.len() < count {
            problems.add(self.cycle(&left));
        }
        order
    }

    fn children(&self) -> Vec<Vec<usize>> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.parents.len()];
        for (place, parents) in self.parents.iter().enumerate() {
            for parent in parents {
                if let Some(children) = children.get_mut(*parent) {
                    children.push(place);
                }
            }
        }
        children
    }

    /// Finds one cycle among the nodes that still wait for others: each of them has a parent that does.
    fn cycle(&self, left: &[usize]) -> Problem {
        let waits = |place: &usize| left.get(*place).is_some_and(|left| *left > 0);
        let parent_of = |place: usize| self.parents.get(place)?.iter().copied().find(waits);
        let mut walked: Vec<usize> = Vec::new();
        let mut at: Vec<Option<usize>> = vec![None; left.len()];
        let mut next = (0..left.len()).find(waits);
        while let Some(place) = next {
            let Some(seen) = at.get_mut(place) else { break };
            if let Some(first) = *seen {
                walked.drain(..first);
                break;
            }
            *seen = Some(walked.len());
            walked.push(place);
            next = parent_of(place);
        }
        // Children were reached before their parents.
        walked.reverse();
        let lowest = (0..walked.len()).min_by_key(|at| walked.get(*at)).unwrap_or_default();
        walked.rotate_left(lowest);
        walked.extend(walked.first().copied());
        let name = |place: usize| self.names.get(place).cloned().unwrap_or_default();
        Problem::Cycle(walked.into_iter().map(name).collect())
    }

    /// Checks that one node is before all others, and one behind them.
    pub(super) fn check_ends(&self, problems: &mut Problems) {
        let name = |place: usize| self.names.get(place).cloned();
        let places = 0..self.parents.len();
        let is_first = |place: &usize| self.parents.get(*place).is_some_and(Vec::is_empty);
        let first: Vec<String> = places.clone().filter(is_first).filter_map(name).collect();
        let children = self.children();
        let is_last = |place: &usize| children.get(*place).is_some_and(Vec::is_empty);
        let last: Vec<String> = places.filter(is_last).filter_map(name).collect();
        if first.len() > 1 {
            problems.add(Problem::FirstNodes(first));
        }
        if last.len() > 1 {
            problems.add(Problem::LastNodes(last));
        }
    }
}

fn check_name(name: &str, twice: bool, problems: &mut Problems) {
    let twice = || twice.then(|| Problem::NameTwice(name.to_owned()));
    if let Some(problem) = name_problem(name).or_else(twice) {
        problems.add(problem);
    }
}

/// Returns what is wrong with a name.
pub(super) fn name_problem(name: &str) -> Option<Problem> {
    let characters = name.chars().count();
    if name.is_empty() {
        Some(Problem::EmptyName)
    } else if characters > CHILD_NAME_MAX {
        Some(Problem::LongName {
            start: name.chars().take(NAME_SHOWN).collect(),
            characters,
            limit: CHILD_NAME_MAX,
        })
    } else if name.chars().any(char::is_control) {
        Some(Problem::ControlCharacter(name.to_owned()))
    } else {
        (name == RESERVED).then(|| Problem::ReservedName(name.to_owned()))
    }
}

fn check_twice(node: &str, parents: &[usize], names: &[String], problems: &mut Problems) {
    let mut sorted = parents.to_vec();
    sorted.sort_unstable();
    let mut last = None;
    for pair in sorted.windows(2) {
        // Three times is one problem, not two.
        if let [one, two] = pair
            && one == two
            && last != Some(*one)
        {
            last = Some(*one);
            let parent = names.get(*one).cloned().unwrap_or_default();
            problems.add(Problem::EdgeTwice {
                node: node.to_owned(),
                parent,
            });
        }
    }
    if parents.len() > PARENTS_MAX {
        problems.add(Problem::TooManyParents {
            node: node.to_owned(),
            parents: parents.len(),
            limit: PARENTS_MAX,
        });
    }
}

fn check_node(node: &Node, parents: &[usize], names: &[String], problems: &mut Problems) {
    check_when(node, parents, names, problems);
    if let Some(retry) = node.retry {
        check_retry(&node.name, retry, problems);
    }
    if let Work::Procedure(_) = node.work {
        let set = [
            ("retries", node.retry.is_some()),
            ("a time-out", node.timeout.is_some()),
        ];
        for (what, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
            problems.add(Problem::OfProcedure {
                node: node.name.clone(),
                what,
            });
        }
    }
}

fn check_when(node: &Node, parents: &[usize], names: &[String], problems: &mut Problems) {
    let name = node.name.clone();
    match &node.when {
        When::AllSucceeded | When::AllFinished | When::Custom => {}
        When::AtLeast(least) if parents.is_empty() => {
            let when = format!("AtLeast({least})");
            problems.add(Problem::NoParents { node: name, when });
        }
        When::Named(named) if parents.is_empty() && !named.is_empty() => {
            let when = "Named".to_owned();
            problems.add(Problem::NoParents { node: name, when });
        }
        When::AtLeast(least) => {
            if *least == 0 || *least as usize > parents.len() {
                problems.add(Problem::AtLeast {
                    node: name,
                    parents: parents.len(),
                    least: *least,
                });
            }
        }
        When::Named(named) if named.is_empty() => problems.add(Problem::NamedNobody { node: name }),
        When::Named(named) => {
            let known: Vec<&str> = parents
                .iter()
                .filter_map(|parent| names.get(*parent))
                .map(String::as_str)
                .collect();
            let is_known: std::collections::HashSet<&str> = known.iter().copied().collect();
            for stranger in named.iter().filter(|name| !is_known.contains(name.as_str())) {
                problems.add_with(|| Problem::NamedStranger {
                    node: name.clone(),
                    name: stranger.clone(),
                    parents: known.iter().map(|known| (*known).to_owned()).collect(),
                });
            }
        }
    }
}

fn check_retry(node: &str, retry: RetryPolicy, problems: &mut Problems) {
    for problem in retry_problems(node, retry) {
        problems.add(problem);
    }
}

/// Returns what is wrong with a retry policy.
pub(super) fn retry_problems(node: &str, retry: RetryPolicy) -> impl Iterator<Item = Problem> {
    let node = || node.to_owned();
    let attempts = match retry.attempts {
        0 => Some(Problem::NoAttempt { node: node() }),
        attempts if attempts > ATTEMPTS_MAX => Some(Problem::TooManyAttempts { node: node(), attempts }),
        _ => None,
    };
    let delay = retry.base.max(retry.max);
    let long = (delay > RETRY_AFTER_MAX).then(|| Problem::LongDelay { node: node(), delay });
    attempts.into_iter().chain(long)
}

#[cfg(test)]
mod tests;
