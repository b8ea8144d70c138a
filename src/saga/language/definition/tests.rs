//! The parsed form, as what runs machines finds it.

use serde_json::{Value, json};

use super::files::Files;
use super::form::{Definition, Kind, StateIndex, Status, Task};
use crate::expression::{Steps, Visit};

struct Visited;

impl Visit for Visited {
    fn has_fault_of(&self, class: &str) -> bool {
        class == "x.Boom"
    }

    fn sequence(&self, entity: &str, rule: &str) -> String {
        format!("{entity}-{rule}-1")
    }
}

fn definition(states: &str) -> Definition {
    let text = format!(r#"{{"Name": "m", "StartState": "A", "States": {{{states}}}}}"#);
    let mut files = Files::default();
    files.add_text("m.json", text.as_bytes());
    let parsed = files.into_parsed().pop().expect("it is one file");
    parsed.definition.unwrap_or_else(|| panic!("{:?}", parsed.problems))
}

fn task(definition: &Definition) -> &Task {
    let state = definition.index_of("A").and_then(|index| definition.state(index));
    state.and_then(|state| state.task()).expect("A is a task")
}

const ALL: &str = r##"
    "A": {
        "Type": "ServiceTask", "ServiceName": "s", "ServiceMethod": "m", "ParameterTypes": ["java.util.List"],
        "Input": ["$.[a]", ["java.util.List", ["$.[a] + 1"]]],
        "Output": {"b": "$.#root", "c": {"@type": "kept"}},
        "Status": {"#root == 1": "SU", "$Exception{x.Boom}": "FA"},
        "Loop": {"Collection": "$.[list]", "CompletionCondition": "[nrOfInstances] > 1"},
        "Next": "C"
    },
    "C": {"Type": "Choice", "Choices": [{"Expression": "[a] == 1", "Next": "D"}], "Default": "D"},
    "D": {"Type": "Succeed"}
"##;

#[test]
fn states_are_found_by_name() {
    let definition = definition(ALL);
    let places = ["A", "C", "D", "a", ""].map(|name| definition.index_of(name));
    assert_eq!(
        places,
        [
            Some(StateIndex(0)),
            Some(StateIndex(1)),
            Some(StateIndex(2)),
            None,
            None
        ]
    );
}

#[test]
fn texts_of_a_state_are_compiled() {
    let definition = definition(ALL);
    let task = task(&definition);
    let context = json!({"a": 1, "list": [7], "nrOfInstances": 2.0});
    assert_eq!(
        task.arguments(&context, &Visited, &mut Steps::new()),
        Ok(vec![json!(1), json!([2])])
    );
    let outputs: Result<Vec<_>, _> = task.outputs(&Value::Null, &Visited, &mut Steps::new()).collect();
    assert_eq!(outputs, Ok(vec![("b", Value::Null), ("c", json!({"@type": "kept"}))]));
    let statuses = task.status.iter();
    let statuses: Vec<_> = statuses
        .map(|(text, status)| (text.test(&json!(1), &Visited, &mut Steps::new()), *status))
        .collect();
    assert_eq!(statuses, [(Ok(true), Status::Success), (Ok(true), Status::Failed)]);
    let repeat = task.repeat.as_ref().expect("it is a loop");
    let collection = repeat.collection.as_ref().expect("it has a collection");
    assert_eq!(
        collection.evaluate(&context, &Visited, &mut Steps::new()),
        Ok(json!([7]))
    );
    let is_whole = repeat
        .completion
        .as_ref()
        .map(|text| text.test(&context, &Visited, &mut Steps::new()));
    assert_eq!(is_whole, Some(Ok(true)));
    let Some(Kind::Choice { choices, .. }) = definition.state(StateIndex(1)).map(|state| &state.kind) else {
        panic!("C is a Choice");
    };
    let taken: Vec<_> = choices
        .iter()
        .map(|choice| choice.expression.test(&context, &Visited, &mut Steps::new()))
        .collect();
    assert_eq!(taken, [Ok(true)]);
}

/// Of all arguments together, and of all variables together.
#[test]
fn expressions_of_a_state_share_their_steps() {
    let list = |count: usize| vec!["\"$.#root\""; count].join(",");
    let members = |count: usize| {
        let members: Vec<String> = (0..count).map(|number| format!("\"v{number}\": \"$.#root\"")).collect();
        members.join(",")
    };
    let of = |count: usize| {
        definition(&format!(
            r#""A": {{"Type": "ServiceTask", "ServiceName": "s", "ServiceMethod": "m", "Input": [{}], "Output": {{{}}}}}"#,
            list(count),
            members(count)
        ))
    };
    let root = Value::String("x".repeat(80_000));
    let (some, many) = (of(100), of(101));
    assert!(task(&some).arguments(&root, &Visited, &mut Steps::new()).is_ok());
    assert!(task(&many).arguments(&root, &Visited, &mut Steps::new()).is_err());
    assert!(
        task(&some)
            .outputs(&root, &Visited, &mut Steps::new())
            .all(|output| output.is_ok())
    );
    assert!(
        !task(&many)
            .outputs(&root, &Visited, &mut Steps::new())
            .all(|output| output.is_ok())
    );
}
