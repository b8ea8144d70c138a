//! What undoes a state, by definitions that are refused today and that an earlier release has stored.

use procession_saga_language::Source;
use serde_json::{Value, json};

use super::*;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Returns the name of the task that undoes state `A`, or why there is none.
fn undone_by(state: Value, compensator: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
    let mut state = state;
    if let Some(attributes) = state.as_object_mut() {
        attributes.insert("CompensateState".to_owned(), compensator.into());
        attributes.insert("Next".to_owned(), "End".into());
    }
    let definition = json!({ "Name": "m", "StartState": "A", "States": {
        "A": state,
        "Task": { "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "undo" },
        "Machine": { "Type": "SubStateMachine", "StateMachineName": "other" },
        "Whole": { "Type": "CompensateSubMachine" },
        "End": { "Type": "Succeed" },
    } });
    let source = Source::stored(definition.to_string())?;
    let (state, task) = task::named(&source.definition, "A").ok_or("it is a task")?;
    let compensator = compensator_of(&source.definition, state, task).map_err(|error| error.text().to_owned())?;
    Ok(compensator.map(|(state, _)| state.name.clone()))
}

#[test]
fn g_011_a_state_that_nothing_can_undo_is_not_passed_over() -> Tested {
    let task = || json!({ "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "m" });
    assert_eq!(undone_by(task(), "Task")?.as_deref(), Some("Task"));
    for wrong in ["Machine", "Whole", "End"] {
        let why = undone_by(task(), wrong).map_err(|why| why.to_string());
        let expected = "CompensationStateNotFound: state [A] took effect, and no compensator undoes it; \
                        undo it by hand, then skip it";
        assert_eq!(why, Err(expected.to_owned()), "{wrong}");
    }
    Ok(())
}

#[test]
fn g_020_a_sub_machine_undoes_itself_unless_a_task_does() -> Tested {
    let sub = || json!({ "Type": "SubStateMachine", "StateMachineName": "other" });
    assert_eq!(undone_by(sub(), "Task")?.as_deref(), Some("Task"));
    for other in ["Machine", "Whole", "End"] {
        assert_eq!(undone_by(sub(), other)?, None, "{other}");
    }
    Ok(())
}
