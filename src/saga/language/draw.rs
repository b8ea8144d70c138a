//! The picture of a machine. It says what is drawn; the languages of Mermaid and Graphviz, or a page, say how.

mod dot;
mod lines;
mod mermaid;

use crate::definition::{Call, Definition, Kind, Link, RegionIndex, State, StateIndex};

pub(crate) use dot::dot;
pub(crate) use mermaid::mermaid;

/// What a state looks like.
#[derive(Clone, Copy)]
enum Shape {
    Task,
    Machine,
    Choice,
    Trigger,
    Fork,
    Join,
    End,
}

/// A state as it is drawn.
pub struct Node<'a> {
    /// The state.
    pub index: StateIndex,
    name: &'a str,
    /// What it calls, or how it ends.
    pub detail: Option<String>,
    shape: Shape,
}

/// A link between two states.
pub struct Edge {
    /// The state that it leads from.
    pub from: StateIndex,
    /// The state that it leads to.
    pub to: StateIndex,
    /// Why it is taken.
    pub kind: EdgeKind,
    /// What stands beside it.
    pub label: Option<String>,
}

/// What leads from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// A state has ended.
    Next,
    /// A fault is caught.
    Catch,
    /// A condition of a Choice holds.
    Choice,
    /// No condition of a Choice holds.
    Default,
    /// A Fork begins a branch.
    Branch,
    /// It leads to what undoes a state.
    Undo,
}

/// A region with the states that are drawn in it and the branches that lie in it.
#[derive(Default)]
pub struct Frame<'a> {
    /// The Fork and the first state of the branch; none outside all branches.
    pub title: Option<String>,
    /// The states, in the order of the file.
    pub nodes: Vec<Node<'a>>,
    /// The regions that lie in it.
    pub inner: Vec<RegionIndex>,
}

/// What is drawn of a machine.
pub struct Picture<'a> {
    start: StateIndex,
    /// All regions, by their numbers.
    pub frames: Vec<Frame<'a>>,
    /// All links, by the places of the states that they lead from.
    pub edges: Vec<Edge>,
}

impl<'a> Picture<'a> {
    /// Lays out a machine.
    #[must_use]
    pub fn of(definition: &'a Definition) -> Self {
        let mut frames = vec![Frame::default()];
        for (region, branch) in definition.regions.all() {
            frames.push(Frame {
                title: Some(title(definition, branch.fork, branch.number)),
                ..Frame::default()
            });
            if let Some(outer) = frames.get_mut(branch.parent.0) {
                outer.inner.push(region);
            }
        }
        let places = places(definition);
        for (index, state) in definition.states.iter().enumerate() {
            let region = places.get(index).copied().unwrap_or(RegionIndex::OUTSIDE);
            if let Some(frame) = frames.get_mut(region.0) {
                frame.nodes.push(node(StateIndex(index), state));
            }
        }
        let states = definition.states.iter().enumerate();
        let edges = states
            .flat_map(|(index, state)| edges(StateIndex(index), state))
            .collect();
        Self {
            start: definition.start,
            frames,
            edges,
        }
    }

    fn frame(&self, region: RegionIndex) -> Option<&Frame<'a>> {
        self.frames.get(region.0)
    }
}

fn title(definition: &Definition, fork: StateIndex, number: usize) -> String {
    let Some(state) = definition.state(fork) else {
        return String::new();
    };
    let branch = match &state.kind {
        Kind::Fork(fork) => fork.branches.get(number).map_or("", |link| link.name.as_str()),
        Kind::Task(_)
        | Kind::Choice { .. }
        | Kind::Trigger
        | Kind::Join
        | Kind::Succeed
        | Kind::Fail { .. }
        | Kind::Unsupported => "",
    };
    format!("{}: {branch}", state.name)
}

/// Returns the region in which each state is drawn. A compensator is drawn beside the first state that it undoes.
fn places(definition: &Definition) -> Vec<RegionIndex> {
    let states = 0..definition.states.len();
    let mut places: Vec<Option<RegionIndex>> = states.map(|index| definition.regions.of(StateIndex(index))).collect();
    for (index, state) in definition.states.iter().enumerate() {
        let Some(to) = state.task().and_then(|task| task.compensate.as_ref()?.to) else {
            continue;
        };
        let region = definition.regions.of(StateIndex(index));
        if let Some(place) = places.get_mut(to.0) {
            *place = place.or(region);
        }
    }
    places
        .into_iter()
        .map(|place| place.unwrap_or(RegionIndex::OUTSIDE))
        .collect()
}

fn node(index: StateIndex, state: &State) -> Node<'_> {
    let (shape, detail) = match &state.kind {
        Kind::Task(task) => {
            let (shape, mut detail) = match &task.call {
                Call::Service {
                    service,
                    method,
                    is_async,
                    ..
                } => {
                    let call = format!("{service}.{method}");
                    (
                        Shape::Task,
                        if *is_async {
                            format!("{call}, not awaited")
                        } else {
                            call
                        },
                    )
                }
                Call::Script { language, .. } => (
                    Shape::Task,
                    format!("script {}", language.as_deref().unwrap_or_default())
                        .trim_end()
                        .to_owned(),
                ),
                Call::Machine { machine } => (Shape::Machine, machine.clone()),
                Call::CompensateMachine => (Shape::Task, "undoes the machine".to_owned()),
            };
            if task.repeat.is_some() {
                detail.push_str(", for each");
            }
            (shape, Some(detail))
        }
        Kind::Choice { .. } => (Shape::Choice, None),
        Kind::Trigger => (Shape::Trigger, Some("undo all".to_owned())),
        Kind::Fork(fork) => {
            let limit = (fork.parallel > 0).then(|| format!("{} at once", fork.parallel));
            let time = (fork.timeout_ms > 0).then(|| format!("within {} ms", fork.timeout_ms));
            let said: Vec<String> = limit.into_iter().chain(time).collect();
            (Shape::Fork, Some(said.join(", ")).filter(|said| !said.is_empty()))
        }
        Kind::Join => (Shape::Join, None),
        Kind::Succeed | Kind::Unsupported => (Shape::End, None),
        Kind::Fail { code, .. } => (Shape::End, code.clone()),
    };
    Node {
        index,
        name: &state.name,
        detail: detail.filter(|detail| !detail.is_empty()),
        shape,
    }
}

fn edges(from: StateIndex, state: &State) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut add = |link: Option<&Link>, kind: EdgeKind, label: Option<String>| {
        let to = link.and_then(|link| link.to);
        edges.extend(to.map(|to| Edge { from, to, kind, label }));
    };
    add(state.next.as_ref(), EdgeKind::Next, None);
    match &state.kind {
        Kind::Task(task) => {
            for entry in &task.catches {
                let classes: Vec<&str> = entry.exceptions.iter().map(|class| last_part(class)).collect();
                let label = format!("catch {}", classes.join(", "));
                add(entry.next.as_ref(), EdgeKind::Catch, Some(label));
            }
            add(task.compensate.as_ref(), EdgeKind::Undo, Some("undo".to_owned()));
        }
        Kind::Choice { choices, default } => {
            for choice in choices {
                add(
                    choice.next.as_ref(),
                    EdgeKind::Choice,
                    Some(choice.expression.to_string()),
                );
            }
            add(default.as_ref(), EdgeKind::Default, Some("else".to_owned()));
        }
        Kind::Fork(fork) => {
            let branches = fork.branches.iter();
            branches.for_each(|branch| add(Some(branch), EdgeKind::Branch, None));
        }
        Kind::Trigger | Kind::Join | Kind::Succeed | Kind::Fail { .. } | Kind::Unsupported => {}
    }
    edges
}

/// Returns a class without its package.
fn last_part(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}
