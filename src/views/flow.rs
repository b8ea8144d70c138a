//! Sets and streams in a list, and families whose members run after one another, as a graph.

use std::collections::{BTreeMap, BTreeSet};

use procession_actors::Procedure;
use procession_actors::view::Status;
use procession_kernel::{JoinPolicy, Labels, ProcedureId};
use serde::{Deserialize, Serialize};

use super::{ProcedureView, time};
use crate::flow::{
    Counts, NodeFacts, NodeRead, NodeState, Reading, SetRoot, SetState, SetStatus, StreamStatus, reason,
};

/// Nodes up to which a graph is not grouped, unless another number is asked for.
pub const DRAWN: usize = 300;
/// Nodes of a graph that are listed one by one, at most.
pub(crate) const NODES_MAX: usize = 5_000;
/// Names of nodes that hold up a set, in a list of sets.
const PENDING_NAMED: usize = 5;

/// A set or a stream as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FlowView {
    /// The id of its root.
    pub id: String,
    /// `set` or `stream`.
    pub sort: String,
    /// The title of a set; of a stream, `scene:group`.
    pub name: Option<String>,
    /// Idempotency key of its submission.
    pub key: Option<String>,
    /// Its labels, by name.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Its state: `INIT`, `RUNNING`, `PENDING` or `FINISH`; none while the nodes of a live set are not counted yet.
    pub state: Option<String>,
    /// When one of its rows last changed its state; of a stream, its own.
    pub since: String,
    /// How many nodes of a set are in which state; none while they are not counted yet.
    pub counts: Option<Counts>,
    /// The nodes that hold up others, or themselves: the first 5. Of a stream, the one in hand if it asks.
    #[serde(default)]
    pub pending: Vec<String>,
    /// The queue of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<FlowQueueView>,
    /// Its family is set aside, and stands as it stood then.
    #[serde(default)]
    pub set_aside: bool,
    /// When it was submitted.
    pub submitted: String,
    /// When it ended.
    pub ended: Option<String>,
}

impl FlowView {
    /// Describes a set, as far as its nodes are counted.
    #[must_use]
    pub fn of_set(root: &Status, read: Option<&SetStatus>) -> Self {
        let since = read.map_or(root.since, |read| read.since);
        // What has ended needs no counting.
        let state = read.map(|read| read.state).or(root.ended.map(|_| SetState::Finish));
        let pending = read.into_iter().flat_map(|read| &read.pending);
        Self {
            id: root.id.to_string(),
            sort: "set".to_owned(),
            name: root.name.clone(),
            key: root.key.as_ref().map(ToString::to_string),
            labels: root.labels.clone(),
            state: state.map(|state| state.to_string()),
            since: time(since),
            counts: read.map(|read| read.counts),
            pending: pending.take(PENDING_NAMED).cloned().collect(),
            queue: None,
            set_aside: root.set_aside,
            submitted: time(root.submitted),
            ended: root.ended.map(time),
        }
    }

    /// Describes a stream.
    #[must_use]
    pub fn of_stream(root: &Status, read: &StreamStatus) -> Self {
        let in_hand = read.in_hand.as_ref();
        let called = in_hand.map(|node| match node.name.as_str() {
            "" => format!("place {}", node.place),
            name => name.to_owned(),
        });
        let asks = in_hand.is_some_and(|node| node.state == NodeState::Pending);
        Self {
            sort: "stream".to_owned(),
            state: Some(read.state.to_string()),
            pending: called.clone().filter(|_| asks).into_iter().collect(),
            queue: Some(FlowQueueView {
                in_hand: called,
                waiting: read.waiting,
                oldest: read.oldest.map(time),
                done: read.ended,
                sealed: read.sealed,
            }),
            ..Self::of_set(root, None)
        }
    }
}

/// The queue of a stream in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FlowQueueView {
    /// The node that it has begun and not ended: its name, or its place.
    pub in_hand: Option<String>,
    /// How many nodes wait behind it.
    pub waiting: u32,
    /// When the oldest of those was appended.
    pub oldest: Option<String>,
    /// How many nodes have ended.
    pub done: u32,
    /// Nothing more can be appended.
    pub sealed: bool,
}

/// Returns `true` for the root of a set.
#[must_use]
pub fn is_set(status: &Status) -> bool {
    status.parent.is_none() && status.kind.as_str() == SetRoot::KIND
}

/// Reads how a set stands off the rows of its family, by member; `None` if it is no set.
#[must_use]
pub fn set_status(family: &[Status]) -> Option<SetStatus> {
    let (root, members) = family.split_first()?;
    let mut reading = is_set(root).then(|| Reading::new(root))?;
    // The nodes are the first members. Behind them stand the children of procedures.
    for node in members.iter().take_while(|member| member.parent == Some(root.id)) {
        reading.add(&NodeFacts::from(node));
    }
    Some(reading.status())
}

/// A member of a family, as a node of its graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeView {
    /// One more than the highest layer of the nodes before it; 0 for the first.
    pub layer: u32,
    /// How it reads as the node of a set, such as `PENDING`; none for other members, and while it is set aside.
    pub node: Option<String>,
    /// Why it does not run, as the node of a set.
    pub why: Option<String>,
    /// When it begins, if others stand before it: `all_succeeded`, `all_finished`, `at_least 2`, `named`, or `custom`.
    pub opens: Option<String>,
    /// The procedure.
    #[serde(flatten)]
    pub procedure: ProcedureView,
}

impl NodeView {
    /// Returns how it stands, in a word or two: as a node of its set, or as any procedure.
    #[must_use]
    pub fn standing(&self) -> String {
        self.node.clone().unwrap_or_else(|| self.procedure.standing())
    }
}

/// Nodes of one layer that stand alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GroupView {
    /// Its layer.
    pub layer: u32,
    /// How its nodes stand, in a word or two.
    pub standing: String,
    /// How many there are.
    pub count: usize,
    /// The id of the first of them.
    pub first: String,
    /// The groups before it, by their place in the list.
    pub after: Vec<usize>,
}

/// The graph of a family: its members that run after one another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GraphView {
    /// The nodes by id, 5,000 at most.
    pub items: Vec<NodeView>,
    /// How many nodes there are.
    pub total: usize,
    /// How many there are of each standing.
    pub counts: BTreeMap<String, usize>,
    /// The nodes by layer and standing, if there are more of them than were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupView>,
    /// There are more nodes than are listed.
    pub truncated: bool,
    /// The family has more members than this, and `total`, `counts` and `groups` are those of the first so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_first: Option<usize>,
}

/// Draws the graph of a family: its members that have a gate, those that a gate names, and all nodes of a set. The
/// rows are those of the whole family, by member. More than `max` nodes are grouped as well.
#[must_use]
pub fn graph_of(family: &[Status], max: usize) -> GraphView {
    let named: BTreeSet<ProcedureId> = family.iter().flat_map(|member| member.before.iter().copied()).collect();
    let root = family.first().filter(|root| is_set(root));
    let mut reading = root.map(Reading::new);
    let mut graph = Graph::default();
    for status in family {
        let is_node = reading.as_ref().is_some_and(|reading| reading.is_node(status));
        let read = match &mut reading {
            // Of a node that is set aside nothing but that is told.
            Some(reading) if is_node && !status.set_aside => Some(reading.add(&NodeFacts::from(status))),
            Some(_) | None => None,
        };
        if is_node || !status.before.is_empty() || named.contains(&status.id) {
            graph.add(status, read.as_ref());
        }
    }
    graph.finish(max)
}

/// A graph that is being drawn.
#[derive(Default)]
struct Graph {
    view: GraphView,
    layers: BTreeMap<ProcedureId, u32>,
    groups: Groups,
}

impl Graph {
    fn add(&mut self, status: &Status, read: Option<&NodeRead>) {
        // A gate names earlier siblings alone, so their layers are known.
        let before = status.before.iter().filter_map(|id| self.layers.get(id));
        let layer = before.max().map_or(0, |layer| layer + 1);
        self.layers.insert(status.id, layer);
        let view = NodeView {
            layer,
            node: read.map(|read| read.state.to_string()),
            why: read.and_then(|read| reason(status, read)),
            opens: status.opens.as_ref().map(policy_word),
            procedure: ProcedureView::from(status),
        };
        let standing = view.standing();
        self.groups.add(status, layer, &standing);
        *self.view.counts.entry(standing).or_default() += 1;
        self.view.total += 1;
        if self.view.items.len() < NODES_MAX {
            self.view.items.push(view);
        }
    }

    fn finish(self, max: usize) -> GraphView {
        let mut view = self.view;
        view.truncated = view.total > view.items.len();
        if view.total > max {
            view.groups = self.groups.found;
        }
        view
    }
}

/// Nodes by layer and standing, in the order in which the first of each was met.
#[derive(Default)]
struct Groups {
    found: Vec<GroupView>,
    places: BTreeMap<(Option<ProcedureId>, u32, String), usize>,
    of: BTreeMap<ProcedureId, usize>,
}

impl Groups {
    fn add(&mut self, status: &Status, layer: u32, standing: &str) {
        let key = (status.parent, layer, standing.to_owned());
        let place = *self.places.entry(key).or_insert(self.found.len());
        if place == self.found.len() {
            self.found.push(GroupView {
                layer,
                standing: standing.to_owned(),
                count: 0,
                first: status.id.to_string(),
                after: Vec::new(),
            });
        }
        self.of.insert(status.id, place);
        let before: BTreeSet<usize> = status.before.iter().filter_map(|id| self.of.get(id).copied()).collect();
        if let Some(group) = self.found.get_mut(place) {
            group.count += 1;
            let known: BTreeSet<usize> = group.after.iter().copied().collect();
            group.after = known.union(&before).copied().collect();
        }
    }
}

/// The word for a strategy.
fn policy_word(policy: &JoinPolicy) -> String {
    match policy {
        JoinPolicy::AllSucceeded => "all_succeeded".to_owned(),
        JoinPolicy::AllFinished => "all_finished".to_owned(),
        JoinPolicy::AtLeast(least) => format!("at_least {least}"),
        JoinPolicy::Named(_) => "named".to_owned(),
        // The engine may get further rules; they are code's own as well.
        JoinPolicy::Custom | _ => "custom".to_owned(),
    }
}
