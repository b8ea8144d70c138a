//! `Set`: a graph that was checked, and its builder.

use std::sync::atomic::{AtomicU64, Ordering};

use procession_actors::messages::Submit;
use procession_actors::{Child, Children, CodecError};
use procession_kernel::{ChildPermits, JoinPolicy};

use super::check::{Graph, Problem, Problems};
use super::error::BuildError;
use super::node::{Node, NodeRef, OnError, Parent, When, Work};
use super::root::SetRoot;
use super::task::TaskOptions;

/// Nodes of a set, unless the builder is told otherwise: what one list of the engine takes.
const NODES_MAX: usize = 100_000;
/// Bytes of the data of one node, and of all nodes of a set, which are one commit.
const DATA_MAX: usize = 1 << 20;
const ALL_DATA_MAX: usize = 64 << 20;
/// Nodes that are set going at once, unless said otherwise.
pub(super) const WIDTH: u32 = 256;

/// The number of the next builder in this process. A node reference names its builder.
static BUILDERS: AtomicU64 = AtomicU64::new(0);

/// A graph of nodes whose shape was checked, ready to [start](crate::Executor::start_set).
///
/// See the [module](super) for an example.
#[derive(Clone)]
#[must_use = "a set does nothing until it is started"]
pub struct Set {
    title: String,
    nodes: Vec<Built>,
}

/// One node of a set, encoded.
#[derive(Clone)]
struct Built {
    child: Child,
    has_priority: bool,
    is_procedure: bool,
}

impl Set {
    /// Begins a set with this title, under which people find it: at most 200 characters.
    pub fn builder(title: impl Into<String>) -> SetBuilder {
        SetBuilder {
            number: BUILDERS.fetch_add(1, Ordering::Relaxed),
            title: title.into(),
            nodes: Vec::new(),
            edges: Vec::new(),
            single_ended: false,
            max_children: NODES_MAX,
        }
    }

    /// Returns its title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the number of its nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns `true` if it has no node. No builder makes such a set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the nodes as children, for a stage of your own that spawns the graph. The stage goes on once all nodes have
    /// ended, with or without success; [`Children::join`] says otherwise. When its family rolls back,
    /// [procedures](Node::procedure) among the nodes are undone with it.
    #[must_use]
    pub fn into_children(self) -> Children {
        self.list(None, |node| {
            if node.is_procedure {
                node.child.compensated()
            } else {
                node.child
            }
        })
    }

    /// Returns the message that starts the set: for [`NodeContext::submit_message`](super::NodeContext::submit_message),
    /// with a key, a name or a signal at its end, and for senders that talk to the supervisor themselves. Such a set has a
    /// width of 256; a priority of the message is that of the root, and not of the nodes.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it cannot be encoded.
    pub fn into_message(self) -> Result<Submit, CodecError> {
        let title = self.title.clone();
        let children = self.into_list(None);
        Submit::new(&SetRoot)?.named(title).children(children).ends_with(&())
    }

    /// Returns the children of a root of its own. A node without a priority has that of the set.
    pub(super) fn into_list(self, priority: Option<i16>) -> Children {
        self.list(priority, |node| node.child)
    }

    fn list(self, priority: Option<i16>, child: impl Fn(Built) -> Child) -> Children {
        let children = Children::new()
            .join(JoinPolicy::AllFinished)
            .permits(ChildPermits::Own)
            .width(WIDTH);
        self.nodes.into_iter().fold(children, |children, node| {
            let own = priority.filter(|_| !node.has_priority);
            let child = child(node);
            children.child(match own {
                Some(priority) => child.priority(priority),
                None => child,
            })
        })
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Set")
            .field("title", &self.title)
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

/// Collects the nodes of a set, and checks them at the end.
#[derive(Debug)]
pub struct SetBuilder {
    number: u64,
    title: String,
    nodes: Vec<Node>,
    edges: Vec<(Parent, Parent)>,
    single_ended: bool,
    max_children: usize,
}

impl SetBuilder {
    /// Adds a node, and returns what names it as a parent of others.
    pub fn add(&mut self, node: Node) -> NodeRef {
        let place = self.nodes.len();
        self.nodes.push(node);
        NodeRef {
            builder: self.number,
            place,
        }
    }

    /// Adds an edge between two nodes, for graphs that come from data: the second begins after the first. Both may be added
    /// later.
    pub fn edge(&mut self, from: impl Into<Parent>, to: impl Into<Parent>) -> &mut Self {
        self.edges.push((from.into(), to.into()));
        self
    }

    /// Asks for one first node and one last node. Without it a set may have any number of both.
    pub fn single_ended(&mut self) -> &mut Self {
        self.single_ended = true;
        self
    }

    /// Raises the bound of 100,000 nodes, for an engine with a higher [`max_children`](crate::Builder::max_children).
    pub fn max_children(&mut self, children: usize) -> &mut Self {
        self.max_children = children;
        self
    }

    /// Checks the graph and encodes its nodes. They stand in the order in which they were added, if parents are then before
    /// their children, and in one in which they are otherwise.
    ///
    /// It takes time and space in proportion to nodes and edges.
    ///
    /// # Errors
    ///
    /// [`BuildError`] lists what is wrong, by node.
    pub fn build(self) -> Result<Set, BuildError> {
        let mut problems = Problems::default();
        self.check_size(&mut problems);
        let graph = Graph::new(self.number, &self.nodes, &self.edges, &mut problems);
        let order = graph.order(&mut problems);
        if self.single_ended {
            graph.check_ends(&mut problems);
        }
        let nodes = if problems.are_none() {
            encode(self.nodes, &graph, &order, &mut problems)
        } else {
            Vec::new()
        };
        if problems.are_none() {
            let title = self.title;
            return Ok(Set { title, nodes });
        }
        Err(BuildError {
            problems: problems.first,
            more: problems.more,
        })
    }

    fn check_size(&self, problems: &mut Problems) {
        let (nodes, limit) = (self.nodes.len(), self.max_children);
        if nodes == 0 {
            problems.add(Problem::Empty);
        } else if nodes > limit {
            problems.add(Problem::TooManyNodes { nodes, limit });
        }
    }
}

/// Encodes the nodes in their order.
fn encode(nodes: Vec<Node>, graph: &Graph, order: &[usize], problems: &mut Problems) -> Vec<Built> {
    // Where each node stands, by its place in the builder.
    let mut places = vec![0_u32; order.len()];
    for (place, index) in (0_u32..).zip(order) {
        if let Some(slot) = places.get_mut(*index) {
            *slot = place;
        }
    }
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let (mut built, mut bytes) = (Vec::with_capacity(order.len()), 0);
    for (place, index) in (0_u32..).zip(order) {
        let Some(node) = nodes.get_mut(*index).and_then(Option::take) else {
            continue;
        };
        let parents = graph.parents.get(*index).map(Vec::as_slice).unwrap_or_default();
        let opens = opens(&node.when, parents, &names);
        let after = parents.iter().filter_map(|parent| places.get(*parent).copied());
        let name = node.name.clone();
        match encode_one(node, place, after.collect(), opens) {
            Ok((_, size)) if size > DATA_MAX => problems.add(Problem::NodeTooLarge {
                node: name,
                bytes: size,
                limit: DATA_MAX,
            }),
            Ok((node, size)) => {
                bytes += size;
                built.push(node);
            }
            Err(why) => problems.add(Problem::codec(&name, &why)),
        }
    }
    if bytes > ALL_DATA_MAX {
        let limit = ALL_DATA_MAX;
        problems.add(Problem::TooLarge { bytes, limit });
    }
    built
}

/// Encodes a node; the number is the size of its data, as far as that is the set's.
fn encode_one(node: Node, place: u32, after: Vec<u32>, opens: JoinPolicy) -> Result<(Built, usize), CodecError> {
    let (is_procedure, (child, size)) = match node.work {
        Work::Processor(work) => {
            let options = TaskOptions {
                name: node.name.clone(),
                place,
                on_error: node.on_error,
                retry: node.retry,
                timeout: node.timeout,
            };
            (false, work.child(options)?)
        }
        // The engine bounds its value as that of any procedure.
        Work::Procedure(encode) => (true, (encode()?, 0)),
    };
    let mut child = child.named(node.name);
    if !after.is_empty() {
        // A node whose parents cannot let it begin waits for a person.
        child = child.after(after).opens(opens).or_wait();
    }
    if node.on_error == OnError::Stop {
        child = child.vital();
    }
    if let Some(priority) = node.priority {
        child = child.priority(priority);
    }
    let built = Built {
        child,
        has_priority: node.priority.is_some(),
        is_procedure,
    };
    Ok((built, size))
}

/// Returns the engine's policy. Names become positions among the parents.
fn opens(when: &When, parents: &[usize], names: &[String]) -> JoinPolicy {
    match when {
        When::AllSucceeded => JoinPolicy::AllSucceeded,
        When::AllFinished => JoinPolicy::AllFinished,
        When::AtLeast(least) => JoinPolicy::AtLeast(*least),
        When::Named(named) => {
            let wanted: std::collections::HashSet<&str> = named.iter().map(String::as_str).collect();
            let positions = (0_u32..).zip(parents);
            let is_named =
                |(_, parent): &(u32, &usize)| names.get(**parent).is_some_and(|name| wanted.contains(name.as_str()));
            JoinPolicy::Named(positions.filter(is_named).map(|(position, _)| position).collect())
        }
        When::Custom => JoinPolicy::Custom,
    }
}
