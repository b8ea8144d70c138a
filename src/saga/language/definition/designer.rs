//! The older designer's form: nodes with places, and edges between them; the links are made of the edges.

use std::collections::{HashMap, HashSet};

use super::attributes::Attributes;
use super::form::{Call, Catch, Choice, Kind, Link, Rectangle, State};
use super::json::Json;
use super::machine::{self, Draft};
use super::path::Path;
use super::problem::{Problems, shown};
use super::state::{CATCHES, CHOICES, FEWER_CATCHES, FEWER_CHOICES};
use super::{state, texts};

/// What a node is to the machine.
enum Role {
    Start,
    /// A Catch: the state that it belongs to, by its place in the list.
    Catch(Option<usize>),
    State(usize),
}

/// A node that an edge may name.
struct Node<'a> {
    role: Role,
    name: &'a str,
    is_compensation: bool,
    drawn: Option<Rectangle>,
    exceptions: Option<Vec<String>>,
    at: String,
}

pub(super) fn read(members: &[(String, Json)], problems: &mut Problems) -> Option<Draft> {
    let document = Attributes::new(members, Path::DOCUMENT, None);
    let place = document.path().key("nodes");
    let items = document.list("nodes", problems).unwrap_or_default();
    let mut draft = None;
    let mut states = Vec::new();
    let mut nodes = HashMap::with_capacity(items.len());
    let mut order = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let Some(members) = item.members() else {
            let text = format!("nodes[{index}] is {}", item.described());
            problems.error(
                &place.index(index).to_string(),
                text,
                "write an object, between { and }",
            );
            continue;
        };
        let attributes = Attributes::new(members, place.index(index), None);
        let Some(id) = attributes.text("id", problems) else {
            problems.error(
                &attributes.place(),
                format!("nodes[{index}] has no id"),
                "give it one, for its edges",
            );
            continue;
        };
        let Some(node) = read_node(&attributes, &mut draft, &mut states, problems) else {
            continue;
        };
        if nodes.insert(id, node).is_some() {
            let text = format!("node \"{}\" is there twice", shown(id));
            problems.error(&attributes.at("id"), text, "give each node an id of its own");
        }
        order.push(id);
    }
    let Some(mut draft) = draft else {
        problems.error(
            "/nodes",
            "a machine is an object with Name, StartState and States",
            "the Start node is missing",
        );
        return None;
    };
    draft.states = states;
    find_names_twice(&draft.states, problems);
    find_owners(&order, &mut nodes, &draft.states, problems);
    let place = document.path().key("edges");
    for (index, item) in document.list("edges", problems).unwrap_or_default().iter().enumerate() {
        let Some(members) = item.members() else {
            let text = format!("edges[{index}] is {}", item.described());
            problems.error(
                &place.index(index).to_string(),
                text,
                "write an object, between { and }",
            );
            continue;
        };
        read_edge(
            &Attributes::new(members, place.index(index), None),
            &nodes,
            &mut draft,
            problems,
        );
    }
    if draft.start.is_none() {
        let hint = "draw an edge from Start to the first state";
        problems.error(
            "/nodes",
            "a machine is an object with Name, StartState and States",
            hint,
        );
    }
    Some(draft)
}

fn read_node<'a>(
    attributes: &Attributes<'a>,
    draft: &mut Option<Draft>,
    states: &mut Vec<State>,
    problems: &mut Problems,
) -> Option<Node<'a>> {
    let word = attributes.text("stateType", problems);
    let name = attributes.text("stateId", problems).unwrap_or_default();
    let props = attributes.object("stateProps", problems);
    let props_path = match props {
        Some(_) => attributes.path().key("stateProps"),
        None => *attributes.path(),
    };
    let props = Attributes::new(props.unwrap_or_default(), props_path, Some(name));
    let mut node = Node {
        role: Role::Start,
        name,
        is_compensation: word == Some("Compensation"),
        drawn: rectangle(attributes),
        exceptions: None,
        at: attributes.place(),
    };
    match word {
        Some("Start") => {
            let members = props.object("StateMachine", problems).unwrap_or_default();
            let top = Attributes::new(members, props.path().key("StateMachine"), None);
            if !machine::is_machine(&top, &["Name"], problems) {
                return None;
            }
            let read = machine::top_level(&top, problems);
            if draft.is_some() {
                let hint = "remove one of them: a file has one machine";
                problems.error(&attributes.at("stateType"), "Start is there twice", hint);
            }
            draft.get_or_insert(read);
        }
        Some("Catch") => {
            node.role = Role::Catch(None);
            node.exceptions = props.texts("Exceptions", problems);
        }
        None => {
            problems.error(&attributes.place(), "a node has no stateType", "say what the state is");
            return None;
        }
        Some(word) => {
            machine::check_name("state", name, &attributes.at("stateId"), problems);
            let word = if node.is_compensation { "ServiceTask" } else { word };
            let at = attributes.at("stateType");
            let mut state = state::read_as(name, Some(word), &at, &props, problems);
            state.comment = attributes.owned_text("label", problems);
            state.drawn = node.drawn;
            node.role = Role::State(states.len());
            states.push(state);
        }
    }
    Some(node)
}

/// Places and sizes are a picture's: a node without them is there all the same.
fn rectangle(attributes: &Attributes<'_>) -> Option<Rectangle> {
    let number = |key: &str| match attributes.get(key)? {
        Json::Number(number) => number.as_f64(),
        Json::Null | Json::Bool(_) | Json::Text(_) | Json::List(_) | Json::Object(_) => None,
    };
    let (width, height) = attributes.get("size")?.text()?.split_once('*')?;
    let size = |text: &str| {
        text.trim()
            .parse::<f64>()
            .ok()
            .filter(|size| size.is_finite() && *size >= 0.0)
    };
    Some(Rectangle {
        x: number("x")?,
        y: number("y")?,
        width: size(width)?,
        height: size(height)?,
    })
}

/// A Catch belongs to the first ServiceTask or ScriptTask that its rectangle overlaps.
fn find_owners<'a>(
    order: &[&'a str],
    nodes: &mut HashMap<&'a str, Node<'_>>,
    states: &[State],
    problems: &mut Problems,
) {
    let is_owner = |index: usize| match states.get(index).and_then(State::task).map(|task| &task.call) {
        Some(Call::Service { .. } | Call::Script { .. }) => true,
        Some(Call::Machine { .. } | Call::CompensateMachine) | None => false,
    };
    let mut owners = Vec::new();
    for node in order
        .iter()
        .filter_map(|id| nodes.get(id))
        .filter(|node| !node.is_compensation)
    {
        if let (Role::State(index), Some(drawn)) = (&node.role, node.drawn) {
            owners.extend(is_owner(*index).then_some((*index, drawn)));
        }
    }
    // Each Catch looks at every task, so the looks are bounded.
    let mut looks = 0_usize;
    for id in order {
        let Some(node) = nodes.get_mut(id).filter(|node| matches!(node.role, Role::Catch(_))) else {
            continue;
        };
        looks += owners.len();
        let owner = node.drawn.filter(|_| looks <= LOOKS_MAX).and_then(|drawn| {
            owners
                .iter()
                .find(|(_, of)| of.overlaps(&drawn))
                .map(|(index, _)| *index)
        });
        if owner.is_none() {
            let text = format!("Catch [{}] lies on no ServiceTask or ScriptTask", shown(node.name));
            problems.error(
                &node.at,
                text,
                "draw it so that it overlaps the task whose faults it catches",
            );
        }
        node.role = Role::Catch(owner);
    }
}

/// Pairs of a Catch and a task that are looked at: all of a machine of 2,000 states.
const LOOKS_MAX: usize = 4_000_000;

fn read_edge(edge: &Attributes<'_>, nodes: &HashMap<&str, Node<'_>>, draft: &mut Draft, problems: &mut Problems) {
    let end = |key: &str, problems: &mut Problems| {
        let id = edge.text(key, problems);
        let node = id.and_then(|id| nodes.get(id));
        if node.is_none() {
            let text = match id {
                Some(id) => format!("{key} \"{}\" is no node", shown(id)),
                None => format!("an edge has no {key}"),
            };
            problems.error(&edge.at(key), text, "draw the edge anew, or remove it");
        }
        node
    };
    let (source, target) = (end("source", problems), end("target", problems));
    let (Some(source), Some(target)) = (source, target) else {
        return;
    };
    let link = Link::new(target.name, edge.place());
    match source.role {
        Role::Start => set(&mut draft.start, link, source, problems),
        Role::Catch(None) => {}
        Role::Catch(Some(owner)) => {
            let Some(Kind::Task(task)) = draft.states.get_mut(owner).map(|state| &mut state.kind) else {
                return;
            };
            let props = props(edge, problems);
            let exceptions = props.and_then(|props| props.texts("Exceptions", problems));
            let exceptions = exceptions.or_else(|| source.exceptions.clone()).unwrap_or_default();
            check_number("Catch", task.catches.len(), CATCHES, FEWER_CATCHES, edge, problems);
            task.catches.push(Catch {
                exceptions,
                next: Some(link),
            });
        }
        Role::State(index) => {
            let Some(state) = draft.states.get_mut(index) else {
                return;
            };
            lead(state, link, source, target, edge, problems);
        }
    }
}

/// Adds the link that an edge means, by the type of the state at its beginning.
fn lead(
    state: &mut State,
    link: Link,
    source: &Node<'_>,
    target: &Node<'_>,
    edge: &Attributes<'_>,
    problems: &mut Problems,
) {
    match &mut state.kind {
        Kind::Task(task) if target.is_compensation => set(&mut task.compensate, link, source, problems),
        Kind::Choice { choices, default } => {
            let props = props(edge, problems);
            let is_default = props
                .as_ref()
                .and_then(|props| props.flag("Default", problems))
                .unwrap_or_default();
            if is_default {
                return set(default, link, source, problems);
            }
            // A designer writes an empty text where nothing was said.
            let props = props.filter(|props| props.get("Expression").and_then(Json::text) != Some(""));
            if !props.as_ref().is_some_and(|props| props.has("Expression")) {
                let text = format!("an edge of Choice [{}] has no Expression", shown(source.name));
                problems.error(&edge.place(), text, "say when it is taken, or make it the Default");
            }
            check_number("Choices", choices.len(), CHOICES, FEWER_CHOICES, edge, problems);
            let expression = props.and_then(|props| props.condition("Expression", problems));
            choices.push(Choice {
                expression: expression.unwrap_or_else(texts::nothing),
                next: Some(link),
            });
        }
        Kind::Fork(fork) => fork.branches.push(link),
        Kind::Task(_) | Kind::Trigger | Kind::Join => set(&mut state.next, link, source, problems),
        // Its type is told of; where its edges lead is anybody's guess.
        Kind::Unsupported => {
            state.next.get_or_insert(link);
        }
        Kind::Succeed | Kind::Fail { .. } => {
            let text = format!("an edge leads on from [{}], where the machine ends", shown(source.name));
            problems.error(&edge.place(), text, "remove it");
        }
    }
}

/// Reports the first edge that is one more than a list may have.
fn check_number(key: &str, before: usize, most: usize, hint: &str, edge: &Attributes<'_>, problems: &mut Problems) {
    if before == most {
        let text = format!("{key} has more than {most} entries");
        problems.error(&edge.place(), text, hint);
    }
}

fn props<'a>(edge: &'a Attributes<'a>, problems: &mut Problems) -> Option<Attributes<'a>> {
    let members = edge.object("stateProps", problems)?;
    Some(Attributes::new(members, edge.path().key("stateProps"), None))
}

fn set(slot: &mut Option<Link>, link: Link, source: &Node<'_>, problems: &mut Problems) {
    if let Some(before) = slot {
        // Attributes of a node may say the same as its edge.
        if before.name != link.name {
            let [before, now] = [&before.name, &link.name].map(|name| shown(name));
            let text = format!("[{}] leads to both [{before}] and [{now}]", shown(source.name));
            problems.error(
                &link.at,
                text,
                "remove one of the edges, or put a Choice or a Fork between",
            );
        }
        return;
    }
    *slot = Some(link);
}

/// States of the standard form cannot share a name unless a key is given twice.
fn find_names_twice(states: &[State], problems: &mut Problems) {
    let mut seen = HashSet::with_capacity(states.len());
    for state in states.iter().filter(|state| !seen.insert(state.name.as_str())) {
        let text = format!("state [{}] is there twice", shown(&state.name));
        problems.error(&state.at, text, "give each node a stateId of its own");
    }
}
