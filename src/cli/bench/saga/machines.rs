//! The machines that the shapes are made of. All their services do nothing.

use serde_json::{Map, Value, json};

use super::{Shape, Sizes};

/// The service that the tasks call.
pub(super) const SERVICE: &str = "bench";
/// Begins a saga, whose states are timed.
pub(super) const BEGIN: &str = "begin";
/// The tasks after the first, and compensators.
pub(super) const PASS: &str = "pass";
/// A task that nobody times, because others run beside it.
pub(super) const CALL: &str = "call";
/// Fails until it is told not to.
pub(super) const CHECK: &str = "check";
/// Holds a saga until its engine is killed.
pub(super) const HOLD: &str = "hold";

/// The machine that rests.
pub(super) const REST: &str = "rest";
/// The machine that is held.
pub(super) const HALF_DONE: &str = "half_done";

/// The variable that says which of a round's sagas it is.
pub(super) const SLOT: &str = "slot";
/// The variable that says whether [`CHECK`] fails.
pub(super) const FAILS: &str = "fails";
/// The variable that has the elements of a Loop.
pub(super) const ITEMS: &str = "items";
/// How many values there are beside the one that the states read.
const OTHERS: usize = 9;

/// A machine, and the file that defines it.
pub(super) struct File {
    pub(super) machine: String,
    pub(super) text: String,
}

type States = Map<String, Value>;

fn file(machine: &str, start: &str, states: States) -> File {
    let text = json!({ "Name": machine, "StartState": start, "States": states }).to_string();
    let machine = machine.to_owned();
    File { machine, text }
}

/// Returns the files of a shape. The machine that a round runs comes first.
pub(super) fn files(sizes: &Sizes) -> Vec<File> {
    match sizes.shape {
        Shape::Chain => vec![chain(sizes.tasks)],
        Shape::Choice => vec![choice(sizes.tasks), chain(sizes.tasks)],
        Shape::Compensate => vec![compensate(sizes.tasks, sizes.read_only)],
        Shape::Fork => vec![fork(sizes)],
        Shape::Nested => nested(sizes.levels, sizes.tasks),
        Shape::Loop => vec![each(sizes.width)],
        Shape::Rest => vec![rest()],
        Shape::Recovery => vec![half_done()],
    }
}

/// Returns the start params of each saga: ten values. The first is the one that states read.
pub(super) fn params(sizes: &Sizes) -> Map<String, Value> {
    let (name, value) = if sizes.shape == Shape::Rest {
        (FAILS, true.into())
    } else {
        (SLOT, 0.into())
    };
    let mut params = Map::from_iter([(name.to_owned(), value)]);
    let each = sizes.payload.len().div_ceil(OTHERS);
    let mut letters = sizes.payload.chars();
    for number in 1..=OTHERS {
        let value: String = letters.by_ref().take(each).collect();
        params.insert(format!("value{number}"), value.into());
    }
    if sizes.shape == Shape::Loop {
        let items: Vec<u32> = (0..sizes.tasks).collect();
        params.insert(ITEMS.to_owned(), items.into());
    }
    params
}

fn task(method: &str, input: &str) -> Value {
    json!({ "Type": "ServiceTask", "ServiceName": SERVICE, "ServiceMethod": method, "Input": [input] })
}

/// A task of a saga whose states are timed.
fn timed(number: u32) -> Value {
    let method = if number == 0 { BEGIN } else { PASS };
    task(method, &format!("$.[{SLOT}]"))
}

/// Adds an attribute to a state.
fn with(mut state: Value, attribute: &str, value: impl Into<Value>) -> Value {
    if let Some(attributes) = state.as_object_mut() {
        attributes.insert(attribute.to_owned(), value.into());
    }
    state
}

fn named(number: u32) -> String {
    format!("Task{number}")
}

/// Tasks one behind the other, each led to the next one by `link`.
fn line(tasks: u32, link: impl Fn(u32) -> String) -> States {
    let task = |number| match number + 1 < tasks {
        true => with(timed(number), "Next", link(number + 1)),
        false => timed(number),
    };
    (0..tasks).map(|number| (named(number), task(number))).collect()
}

fn chain(tasks: u32) -> File {
    file("chain", &named(0), line(tasks, named))
}

/// The chain with a Choice between any two tasks.
fn choice(tasks: u32) -> File {
    let between = |number: u32| format!("Choice{number}");
    let mut states = line(tasks, between);
    for number in 1..tasks {
        let entry = json!({ "Expression": format!("[{SLOT}] >= 0"), "Next": named(number) });
        let choice = json!({ "Type": "Choice", "Choices": [entry], "Default": "End" });
        states.insert(between(number), choice);
    }
    if tasks > 1 {
        states.insert("End".to_owned(), json!({ "Type": "Succeed" }));
    }
    file("choice", &named(0), states)
}

/// Tasks that only look, then tasks that a compensator undoes, then the order to undo all.
fn compensate(tasks: u32, read_only: u32) -> File {
    let undo = "Undo";
    let mut states = line(read_only + tasks, named);
    for number in read_only..read_only + tasks {
        let compensator = format!("Undo{number}");
        if let Some(state) = states.get_mut(&named(number)) {
            *state = with(state.take(), "CompensateState", compensator.as_str());
        }
        states.insert(compensator, task(PASS, &format!("$.[{SLOT}]")));
    }
    if let Some(last) = states.get_mut(&named(read_only + tasks - 1)) {
        *last = with(last.take(), "Next", undo);
    }
    states.insert(undo.to_owned(), json!({ "Type": "CompensationTrigger" }));
    file("compensate", &named(0), states)
}

/// A Fork, whose branches are Forks themselves, and so on; the branches of the innermost have tasks.
fn fork(sizes: &Sizes) -> File {
    let mut states = States::new();
    add_fork(&mut states, "Fork", None, sizes.levels, sizes);
    file("fork", "Fork", states)
}

/// As deep as there are levels, which are few.
fn add_fork(states: &mut States, name: &str, next: Option<&str>, levels: u32, sizes: &Sizes) {
    let branch = |number: u32| format!("{name}.{number}");
    let branches: Vec<String> = (0..sizes.branches).map(branch).collect();
    let join = format!("{name}.Join");
    for branch in &branches {
        match levels {
            0 | 1 => add_branch(states, branch, &join, sizes.tasks),
            _ => add_fork(states, branch, Some(&join), levels - 1, sizes),
        }
    }
    states.insert(name.to_owned(), json!({ "Type": "Fork", "Branches": branches }));
    let end = json!({ "Type": "Join" });
    let end = match next {
        Some(next) => with(end, "Next", next),
        None => end,
    };
    states.insert(join, end);
}

fn add_branch(states: &mut States, branch: &str, join: &str, tasks: u32) {
    let named = |number: u32| match number {
        0 => branch.to_owned(),
        number => format!("{branch}-{number}"),
    };
    for number in 0..tasks {
        let next = match number + 1 < tasks {
            true => named(number + 1),
            false => join.to_owned(),
        };
        let task = task(CALL, &format!("$.[{SLOT}]"));
        states.insert(named(number), with(task, "Next", next));
    }
}

/// Machines within machines; the innermost has tasks.
fn nested(levels: u32, tasks: u32) -> Vec<File> {
    let named = |level: u32| {
        if level == levels {
            "chain".to_owned()
        } else {
            format!("nested{level}")
        }
    };
    let outer = |level: u32| {
        let state = json!({ "Type": "SubStateMachine", "StateMachineName": named(level + 1), "Input": ["$.#root"] });
        file(&named(level), "Sub", States::from_iter([("Sub".to_owned(), state)]))
    };
    (0..levels).map(outer).chain([chain(tasks)]).collect()
}

/// One task for each element of a list.
fn each(width: u32) -> File {
    let repeat = json!({ "Collection": format!("$.[{ITEMS}]"), "Parallel": width });
    let state = with(task(CALL, "$.[loopElement]"), "Loop", repeat);
    file("loop", "Each", States::from_iter([("Each".to_owned(), state)]))
}

/// A task that fails: the saga rests.
fn rest() -> File {
    let state = task(CHECK, &format!("$.[{FAILS}]"));
    file(REST, "Check", States::from_iter([("Check".to_owned(), state)]))
}

/// Two tasks; the saga is held in the second one.
fn half_done() -> File {
    let second = task(HOLD, &format!("$.[{SLOT}]"));
    let mut states = line(2, named);
    states.insert(named(1), second);
    file(HALF_DONE, &named(0), states)
}
