//! How a set stands, read off the rows of its nodes: whether a closed gate can still open, and what all nodes together
//! come to. One pass, parents before children.

use std::fmt;

use procession_actors::view::Status;
use procession_kernel::{JoinPolicy, Kind, ProcedureId, ProcedureState, Seq, Timestamp, WaitReason};
use serde::{Deserialize, Serialize};

use super::node::When;
use super::state::{NodeState, cause_of, failed_state, has_failed, state_by_itself};

/// Names that a [`SetStatus`] lists at most: a screen of them.
const PENDING_NAMED: usize = 100;
/// Names that a reason lists.
const BLAMED: usize = 5;

/// How one node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Its place in the set, from 0.
    pub place: u32,
    /// The procedure that it is, for everything that takes an id: explain, pause, priority, history.
    pub id: ProcedureId,
    /// The kind: the name of its processor, or that of the procedure.
    pub kind: Kind,
    /// Its state.
    pub state: NodeState,
    /// Why it does not run, in words; `None` while it runs, and once it has ended.
    pub reason: Option<String>,
    /// Since when its row has been as it is.
    pub since: Timestamp,
    /// The number of failed attempts that count.
    pub attempt: u32,
    /// Why it failed, or what it asks.
    pub cause: Option<String>,
    /// The names of its parents, in the order in which they were given.
    pub after: Vec<String>,
    /// When it may begin.
    pub when: When,
    /// The commit that last wrote its row.
    pub revision: Seq,
    /// It is a procedure that ran one stage too often, and goes on by a resume.
    pub(super) is_at_repeat_limit: bool,
}

/// One page of a set's nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodePage {
    /// The nodes, by place.
    pub items: Vec<NodeStatus>,
    /// The place with which the next page begins; `None` if this is the last.
    pub next: Option<u32>,
}

/// The state of a whole set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SetState {
    /// No node was set going yet.
    Init,
    /// A node is READY or RUNNING.
    Running,
    /// Nothing is, and a last node reads PENDING: nothing goes on unless a person decides.
    Pending,
    /// Nothing is, and all last nodes are final. A side branch may still be PENDING. The counts say how it ended.
    Finish,
}

impl fmt::Display for SetState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Init => "INIT",
            Self::Running => "RUNNING",
            Self::Pending => "PENDING",
            Self::Finish => "FINISH",
        })
    }
}

/// How many nodes of a set are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// In WAIT.
    pub wait: u32,
    /// In READY.
    pub ready: u32,
    /// In RUNNING.
    pub running: u32,
    /// In PENDING.
    pub pending: u32,
    /// In SUCCESS.
    pub success: u32,
    /// In ERROR.
    pub error: u32,
    /// In CANCELLED.
    pub cancelled: u32,
}

impl Counts {
    /// Returns the number of nodes.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.wait + self.ready + self.running + self.pending + self.success + self.error + self.cancelled
    }

    fn add(&mut self, state: NodeState) {
        let count = match state {
            NodeState::Wait => &mut self.wait,
            NodeState::Ready => &mut self.ready,
            NodeState::Running => &mut self.running,
            NodeState::Pending => &mut self.pending,
            NodeState::Success => &mut self.success,
            NodeState::Error => &mut self.error,
            NodeState::Cancelled => &mut self.cancelled,
        };
        *count += 1;
    }
}

/// How a set stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SetStatus {
    /// Its state.
    pub state: SetState,
    /// When a row of the set last changed its state: while nothing runs, since when it stands as it does.
    pub since: Timestamp,
    /// How many nodes are in which state.
    pub counts: Counts,
    /// The names of the nodes that hold up others, or themselves: PENDING, and not because of another PENDING node. The
    /// first 100.
    pub pending: Vec<String>,
}

/// What a reading needs of a node's row.
#[derive(Clone)]
pub(crate) struct NodeFacts {
    name: Box<str>,
    /// How it reads by itself.
    state: NodeState,
    /// How it reads once its family fails, if its own part is over: its row ends with the set.
    when_stopping: Option<NodeState>,
    /// The strategy of its gate, while that is closed.
    opens: Option<JoinPolicy>,
    /// Member numbers of its parents.
    parents: Box<[u32]>,
    since: Timestamp,
    has_begun: bool,
}

impl From<&Status> for NodeFacts {
    fn from(status: &Status) -> Self {
        let at_gate = status.ended.is_none() && status.wait == Some(WaitReason::Gate);
        Self {
            name: status.name.as_deref().unwrap_or_default().into(),
            state: state_by_itself(status),
            when_stopping: has_failed(status).then(|| failed_state(status)),
            opens: status.opens.clone().filter(|_| at_gate),
            parents: status.before.iter().map(|parent| parent.member).collect(),
            since: status.since,
            has_begun: status.state != ProcedureState::Initializing,
        }
    }
}

/// What was read of one node.
pub(crate) struct NodeRead {
    pub(super) place: u32,
    pub(crate) state: NodeState,
    blame: Option<Blame>,
}

/// The parents that keep a gate shut.
struct Blame {
    /// The first of them.
    names: Vec<String>,
    more: usize,
}

impl Blame {
    fn text(&self) -> String {
        let names = self.names.join(", ");
        match (self.names.len(), self.more) {
            (0, _) => "its strategy has not let it begin".to_owned(),
            (_, 0) => format!("cannot begin: by {names}"),
            (_, more) => format!("cannot begin: by {names} and {more} more"),
        }
    }
}

/// What is remembered of a node that was read.
struct Seen {
    name: Box<str>,
    state: NodeState,
    has_children: bool,
}

impl Seen {
    /// Returns `true` if it has ended without success.
    fn is_lost(&self) -> bool {
        matches!(self.state, NodeState::Error | NodeState::Cancelled)
    }
}

/// Reads a set, node by node in the order of places.
pub(crate) struct Reading {
    root: ProcedureId,
    nodes: Vec<Seen>,
    counts: Counts,
    pending: Vec<String>,
    since: Timestamp,
    has_begun: bool,
    /// The set fails, and nodes that run have yet to end.
    is_stopping: bool,
    has_ended: bool,
}

impl Reading {
    /// Begins with the row of the root.
    pub(crate) fn new(root: &Status) -> Self {
        Self {
            root: root.id,
            nodes: Vec::new(),
            counts: Counts::default(),
            pending: Vec::new(),
            since: root.since,
            has_begun: false,
            is_stopping: root.state == ProcedureState::Failed && root.ended.is_none(),
            has_ended: root.ended.is_some(),
        }
    }

    /// Returns `true` if a member of the family is a node, and not a child of a procedure that is one.
    pub(crate) fn is_node(&self, status: &Status) -> bool {
        status.parent == Some(self.root)
    }

    /// Reads the next node.
    pub(crate) fn add(&mut self, node: &NodeFacts) -> NodeRead {
        let place = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let gate = self.gate(node);
        let blame = gate.as_ref().and_then(Gate::blame);
        let mut state = node.state;
        if state == NodeState::Wait && blame.is_some() {
            state = NodeState::Pending;
        } else if self.is_stopping {
            state = node.when_stopping.unwrap_or(state);
        }
        let holds_up = state == NodeState::Pending && gate.as_ref().is_none_or(Gate::is_blocked_by_ends);
        self.note(node, state, holds_up);
        NodeRead { place, state, blame }
    }

    /// Describes a node that was read.
    pub(super) fn describe(&self, status: Status, read: &NodeRead) -> NodeStatus {
        NodeStatus {
            place: read.place,
            id: status.id,
            state: read.state,
            reason: reason(&status, read),
            since: status.since,
            attempt: status.attempt,
            cause: cause_of(&status).map(str::to_owned),
            after: self.before(&status).map(|parent| parent.name.to_string()).collect(),
            when: self.when(&status),
            revision: status.revision,
            is_at_repeat_limit: status.wait == Some(WaitReason::RepeatLimit),
            kind: status.kind,
            name: status.name.unwrap_or_default(),
        }
    }

    fn note(&mut self, node: &NodeFacts, state: NodeState, holds_up: bool) {
        if holds_up && self.pending.len() < PENDING_NAMED {
            self.pending.push(node.name.to_string());
        }
        self.counts.add(state);
        self.since = self.since.max(node.since);
        self.has_begun |= node.has_begun;
        for parent in &node.parents {
            if let Some(seen) = place_of(*parent).and_then(|place| self.nodes.get_mut(place)) {
                seen.has_children = true;
            }
        }
        self.nodes.push(Seen {
            name: node.name.clone(),
            state,
            has_children: false,
        });
    }

    /// Returns how the whole set stands, once all nodes were read.
    pub(crate) fn status(self) -> SetStatus {
        let mut last = self.nodes.iter().filter(|seen| !seen.has_children);
        let goes_on = self.counts.ready + self.counts.running > 0;
        let state = if self.has_ended {
            SetState::Finish
        } else if !self.has_begun {
            SetState::Init
        } else if goes_on {
            SetState::Running
        } else if last.any(|seen| !seen.state.is_final()) {
            SetState::Pending
        } else {
            SetState::Finish
        };
        SetStatus {
            state,
            since: self.since,
            counts: self.counts,
            pending: self.pending,
        }
    }

    fn before(&self, status: &Status) -> impl Iterator<Item = &Seen> {
        let places = status.before.iter().filter_map(|parent| place_of(parent.member));
        places.filter_map(|place| self.nodes.get(place))
    }

    /// Returns what the closed gate of a node sees; `None` if it has none, or has passed it.
    fn gate(&self, node: &NodeFacts) -> Option<Gate<'_>> {
        let opens = node.opens.clone()?;
        let places = node.parents.iter().filter_map(|parent| place_of(*parent));
        let mut parents: Vec<&Seen> = places.filter_map(|place| self.nodes.get(place)).collect();
        if let JoinPolicy::Named(places) = &opens {
            let named = places.iter().filter_map(|place| parents.get(*place as usize).copied());
            parents = named.collect();
        }
        Some(Gate { opens, parents })
    }

    fn when(&self, status: &Status) -> When {
        match &status.opens {
            None | Some(JoinPolicy::AllSucceeded) => When::AllSucceeded,
            Some(JoinPolicy::AllFinished) => When::AllFinished,
            Some(JoinPolicy::AtLeast(least)) => When::AtLeast(*least),
            Some(JoinPolicy::Named(places)) => {
                let parents: Vec<&Seen> = self.before(status).collect();
                let named = places.iter().filter_map(|place| parents.get(*place as usize));
                When::Named(named.map(|parent| parent.name.to_string()).collect())
            }
            // The engine may get rules that sets do not use; they are code's own as well.
            Some(JoinPolicy::Custom | _) => When::Custom,
        }
    }
}

/// A closed gate, and the parents that its strategy looks at.
struct Gate<'a> {
    opens: JoinPolicy,
    parents: Vec<&'a Seen>,
}

impl Gate<'_> {
    /// Returns the parents that keep the gate shut, if no parent that will move by itself can open it.
    fn blame(&self) -> Option<Blame> {
        let is_stuck = |seen: &Seen| seen.is_lost() || seen.state == NodeState::Pending;
        self.cannot_open(is_stuck).then(|| {
            let counts_ends = self.opens != JoinPolicy::AllFinished;
            let to_blame = |seen: &&&Seen| is_stuck(seen) && (counts_ends || !seen.is_lost());
            let mut blamed = self.parents.iter().filter(to_blame);
            let names = blamed.by_ref().take(BLAMED).map(|seen| seen.name.to_string()).collect();
            Blame {
                names,
                more: blamed.count(),
            }
        })
    }

    /// Returns `true` if the gate stays shut whatever becomes of its PENDING parents: the node holds itself up.
    fn is_blocked_by_ends(&self) -> bool {
        self.cannot_open(Seen::is_lost)
    }

    fn cannot_open(&self, is_stuck: impl Fn(&Seen) -> bool) -> bool {
        let stuck = self.parents.iter().filter(|seen| is_stuck(seen)).count();
        match &self.opens {
            // To have ended is enough here.
            JoinPolicy::AllFinished => self.parents.iter().any(|seen| is_stuck(seen) && !seen.is_lost()),
            JoinPolicy::AtLeast(least) => self.parents.len() - stuck < *least as usize,
            JoinPolicy::AllSucceeded | JoinPolicy::Named(_) => stuck > 0,
            JoinPolicy::Custom | _ => {
                let moves = |seen: &&Seen| !is_stuck(seen) && seen.state != NodeState::Success;
                !self.parents.iter().any(moves)
            }
        }
    }
}

/// The place of a node: the root is member 0, and its list is born with it.
const fn place_of(member: u32) -> Option<usize> {
    match member {
        0 => None,
        member => Some(member as usize - 1),
    }
}

/// Returns why a node does not run, in words.
pub(crate) fn reason(status: &Status, read: &NodeRead) -> Option<String> {
    match read.state {
        NodeState::Success | NodeState::Error | NodeState::Cancelled => None,
        NodeState::Running => {
            let parked = status.wait.as_ref().filter(|_| !status.going);
            parked.map(|wait| format!("parked: {wait}"))
        }
        NodeState::Pending => match &read.blame {
            Some(blame) => Some(blame.text()),
            None => status.wait.as_ref().map(ToString::to_string),
        },
        NodeState::Wait | NodeState::Ready => Some(match &status.wait {
            Some(wait) => wait.to_string(),
            None => "queued".to_owned(),
        }),
    }
}
