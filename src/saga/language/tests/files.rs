//! The definition files of Seata that the project ships, unchanged: each is accepted, or refused with its text.

use std::collections::BTreeSet;
use std::fs;

use super::{Tested, seata};
use crate::{Definitions, Severity};

/// Of the files of older releases, whose type of the same meaning had a small letter.
const EXCEPTION: &str = "\"$exception{..}\" has the unknown type [exception]";

/// Files that are refused, with all their errors.
const REFUSED: [(&str, &[&str]); 10] = [
    ("go-config__invalid.json", &["EOF while parsing a value"]),
    (
        "go-config__order_saga.json",
        &[
            "Status of \"return.code == 'SUCCESS'\" is \"SUCCEEDED\"",
            "Status of \"return.code == 'FAIL'\" is \"FAILED\"",
            EXCEPTION,
            "Status of \"$exception{*}\" is \"UNKNOWN\"",
            "Status of \"return.available == true\" is \"IN_STOCK\"",
            "Status of \"return.available == false\" is \"OUT_OF_STOCK\"",
            EXCEPTION,
            "Status of \"$exception{*}\" is \"UNKNOWN\"",
            "Status of \"return.code == 'RESERVED'\" is \"STOCK_RESERVED\"",
            "Status of \"return.code == 'FAILED'\" is \"FAILED\"",
            EXCEPTION,
            "Status of \"$exception{*}\" is \"UNKNOWN\"",
            "Status of \"return.code == 'PAID'\" is \"PAYMENT_SUCCESS\"",
            "Status of \"return.code == 'DECLINED'\" is \"PAYMENT_FAILED\"",
            EXCEPTION,
            "Status of \"$exception{*}\" is \"UNKNOWN\"",
        ],
    ),
    ("go__simple_statemachine.json", &[EXCEPTION, EXCEPTION]),
    (
        "pr4349__simple_parallel_statemachine_with_layout.json",
        &[
            "State Type [ParallelStart] is not supported",
            "State Type [ParallelEnd] is not supported",
            "Subsequent state [CompensationTriggerTest] of [ServiceTask5] does not exist",
        ],
    ),
    (
        "pr4349__simple_statelang_with_parallel.json",
        &[
            "State Type [Parallel] is not supported",
            "SubStateMachine state [CallSubStateMachine] call itself",
        ],
    ),
    ("saga-spring__simple_statemachine.json", &[EXCEPTION, EXCEPTION]),
    ("statelang__simple_statemachine.json", &[EXCEPTION, EXCEPTION]),
    (
        "statelang__simple_statemachine_with_non_existed_name.json",
        &["Subsequent state [ThirdState] of [ChoiceState] does not exist"],
    ),
    (
        "statelang__simple_statemachine_with_recursive_sub_machine.json",
        &["SubStateMachine state [CallSubStateMachine] call itself"],
    ),
    (
        "statelang__simple_statemachine_with_single_infinite_loop.json",
        &["There is an infinite loop [FirstState, SecondState] without outgoing flow to end"],
    ),
];

fn names() -> Result<BTreeSet<String>, std::io::Error> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(seata())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".json") {
            names.insert(name);
        }
    }
    Ok(names)
}

fn errors_of(name: &str) -> Result<Vec<String>, std::io::Error> {
    let text = fs::read(seata().join(name))?;
    Ok(match Definitions::new().json(name, text).check() {
        Ok(_) => Vec::new(),
        Err(errors) => {
            let problems = errors.problems().iter();
            let errors = problems.filter(|problem| problem.severity() == Severity::Error);
            errors.map(|problem| problem.text().to_owned()).collect()
        }
    })
}

#[test]
fn g_031_each_file_of_seata_is_accepted_or_refused_with_its_text() -> Tested {
    let names = names()?;
    assert_eq!(names.len(), 43);
    for name in &names {
        let refused = REFUSED.iter().find(|(file, _)| file == name);
        let expected = refused.map(|(_, texts)| *texts).unwrap_or_default();
        assert_eq!(errors_of(name)?, expected, "{name}");
    }
    for (name, _) in REFUSED {
        assert!(names.contains(name), "{name}");
    }
    Ok(())
}

/// What one reads: place, state, text and hint.
#[test]
fn g_031_what_is_refused_names_file_place_state_and_hint() -> Tested {
    for (name, line) in [
        (
            "go-config__invalid.json",
            "go-config__invalid.json:3:12: EOF while parsing a value; the file is cut, or is no JSON",
        ),
        (
            "pr4349__simple_statelang_with_parallel.json",
            "pr4349__simple_statelang_with_parallel.json#/States/FirstState/Type: state [FirstState]: \
             State Type [Parallel] is not supported; use Fork and Join",
        ),
        (
            "pr4349__simple_parallel_statemachine_with_layout.json",
            "pr4349__simple_parallel_statemachine_with_layout.json#/nodes/1/stateType: state [Parallel\\nStart1]: \
             State Type [ParallelStart] is not supported; use Fork and Join",
        ),
        (
            "go-config__order_saga.json",
            "go-config__order_saga.json#/States/CheckStock/Status/return.available == true: state [CheckStock]: \
             Status of \"return.available == true\" is \"IN_STOCK\"; use SU, FA, UN, SK or RU",
        ),
        (
            "statelang__simple_statemachine_with_non_existed_name.json",
            "statelang__simple_statemachine_with_non_existed_name.json#/States/ChoiceState/Choices/1/Next: \
             Subsequent state [ThirdState] of [ChoiceState] does not exist; add it to States",
        ),
        (
            "statelang__simple_statemachine.json",
            "statelang__simple_statemachine.json#/States/FirstMatchState/Status/$exception{java.lang.Throwable}: \
             state [FirstMatchState]: \"$exception{..}\" has the unknown type [exception]; did you mean $Exception?",
        ),
        (
            "statelang__simple_statemachine_with_single_infinite_loop.json",
            "statelang__simple_statemachine_with_single_infinite_loop.json#/States/FirstState: There is an infinite \
             loop [FirstState, SecondState] without outgoing flow to end; let one of them lead to an end",
        ),
    ] {
        let errors = Definitions::new()
            .json(name, fs::read(seata().join(name))?)
            .check()
            .err();
        let errors = errors.ok_or("it is refused")?.to_string();
        assert!(errors.lines().any(|found| found == line), "{errors}");
    }
    Ok(())
}

/// All of Seata's own files that are accepted, together: the warnings are those that the files deserve.
#[test]
fn g_021_a_file_that_names_a_compensator_that_it_lacks_is_warned_of() -> Tested {
    let name = "simple_statelang_with_userdef_sub_machine_compensation.json";
    let other = "simple_statelang_with_compensation.json";
    let read = |name: &str| fs::read(seata().join(name));
    let checked = Definitions::new()
        .json(name, read(name)?)
        .json(other, read(other)?)
        .check()?;
    let warnings: Vec<String> = checked
        .warnings()
        .iter()
        .map(|problem| problem.text().to_owned())
        .collect();
    assert_eq!(
        warnings,
        [
            "Input of a CompensateSubMachine has no effect",
            "CompensateState [CompensateSecondState] of [SecondState] does not exist",
        ]
    );
    let alone = Definitions::new().json(name, read(name)?).check()?;
    let warnings = alone.warnings().iter().map(ToString::to_string);
    assert!(warnings.into_iter().any(|line| line.ends_with(
        "/States/CallSubStateMachine/StateMachineName: state [CallSubStateMachine]: machine \
         [simpleCompensationStateMachine] is in none of these files; add its file"
    )));
    Ok(())
}

#[test]
fn g_004_an_unknown_key_is_a_warning_and_an_error_if_strict() -> Tested {
    let name = "simple_statelang_param_assignment.json";
    let text = fs::read(seata().join(name))?;
    let warnings = Definitions::new().json(name, &text).check()?;
    let warnings: Vec<String> = warnings.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "simple_statelang_param_assignment.json#/States/ThirdState/listener: state [ThirdState]: \
          \"listener\" is ignored; remove it"
        ]
    );
    let errors = Definitions::new()
        .json(name, &text)
        .strict(true)
        .check()
        .err()
        .ok_or("it is refused")?;
    assert_eq!(errors.to_string(), warnings.join("\n"));
    Ok(())
}
