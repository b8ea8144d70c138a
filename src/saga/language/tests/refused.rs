//! What is refused as it is read: no JSON, no machine, wrong attributes, links that lead nowhere.

use super::{Tested, check, lines, machine, task};
use crate::{Definitions, Problem, Source};

#[test]
fn g_031_a_file_that_is_cut_is_refused_at_its_end() {
    let whole = machine(&[("A", &task(""))]);
    for end in 1..whole.len() {
        let cut = whole.get(..end).unwrap_or_default();
        let lines = lines(cut);
        assert_eq!(lines.len(), 1, "{cut}");
        assert!(
            lines
                .iter()
                .all(|line| line.ends_with("; the file is cut, or is no JSON")),
            "{lines:?}"
        );
    }
}

#[test]
fn g_031_no_json_of_any_kind_is_read() {
    for (text, line) in [
        (
            &b"\xff\xfe"[..],
            "m.json:1:1: expected value; the file is cut, or is no JSON",
        ),
        (
            b"{\"Name\": \"\xff\"}",
            "m.json:1:11: invalid unicode code point; the file is cut, or is no JSON",
        ),
        (
            b"{\"Name\": NaN}",
            "m.json:1:10: expected value; the file is cut, or is no JSON",
        ),
        (
            b"{} {}",
            "m.json:1:4: trailing characters; the file is cut, or is no JSON",
        ),
        (
            b"[]",
            "m.json#/: a machine is an object with Name, StartState and States; Name, StartState, States are missing",
        ),
        (
            b"{\"Name\": \"m\", \"States\": {}}",
            "m.json#/: a machine is an object with Name, StartState and States; StartState is missing",
        ),
    ] {
        let errors = Definitions::new().json("m.json", text).check().err();
        assert_eq!(errors.map(|errors| errors.to_string()).as_deref(), Some(line));
    }
}

#[test]
fn g_031_a_file_beyond_the_bound_and_one_nested_too_deep_are_refused() {
    let mut large = machine(&[("A", &task(""))]);
    large.extend(std::iter::repeat_n(' ', (512 << 10) - large.len()));
    assert!(check(&large).is_ok());
    large.push(' ');
    let line = "m.json#/: the file has 524289 bytes, at most 524288; move states into sub machines";
    assert_eq!(lines(&large), [line]);
    let deep = "[".repeat(10_000);
    let line = "m.json:1:128: recursion limit exceeded; the file is cut, or is no JSON";
    assert_eq!(lines(&deep), [line]);
}

#[test]
fn g_031_a_key_that_is_given_twice_is_refused_wherever_it_is() {
    let twice = format!(r#"{}, "Next": "B", "Input": [{{"a": 1, "b": 2, "a": 3}}]"#, task("B"));
    assert_eq!(
        lines(&machine(&[("A", &twice), ("B", &task(""))])),
        [
            "m.json#/States/A/Next: \"Next\" is given twice; remove one",
            "m.json#/States/A/Input/0/a: \"a\" is given twice; remove one",
        ]
    );
}

#[test]
fn g_031_a_pointer_escapes_what_would_be_read_otherwise() {
    let text = machine(&[("a/b~c", r#""Type": "Succeed", "Comment": 1"#)]);
    assert_eq!(
        lines(&text),
        ["m.json#/States/a~1b~0c/Comment: state [a/b~c]: Comment is 1, a number; write a string"]
    );
}

/// One definition with more than twenty mistakes of all kinds: all are told at once.
#[test]
fn g_031_twenty_mistakes_are_told_at_once() -> Tested {
    let text = r#"{
        "Name": "order", "StartState": "Frist", "RecoverStrategy": "Maybe", "IsPersist": "yes",
        "States": {
            "First": {
                "Type": "ServiceTask", "ServiceName": 7, "ServiceMethod": "m", "IsForUpdate": "true",
                "Retry": [{"Exceptions": "x"}, {"MaxAttempts": "3", "IntervalSeconds": -1}, {"MaxAttempts": 1001}],
                "Catch": [{"Exceptions": ["x"]}, {"Exceptions": ["x"], "Next": "Trigger"}],
                "Loop": {"Parallel": 1.5},
                "Status": {"[a] == 1": "OK"},
                "Next": "Secnd", "Next": "Second"
            },
            "Second": {"Type": "ServiceTsk", "Next": "First"},
            "Third": {"Type": "SubStateMachine", "StateMachineName": "order", "Next": "Third"},
            "Choice": {"Type": "Choice", "Choices": [{"Next": "Fork"}, 5], "Default": "Nowhere"},
            "Fork": {"Type": "Fork", "Branches": ["One", "One", "Onee"], "Parallel": -1, "Timeout": "10"},
            "One": {"Type": "ServiceTask", "ServiceName": "s", "ServiceMethod": "m", "Input": {}, "Next": "Join"},
            "Join": {"Type": "Join"},
            "Lone": {"Type": "Join", "Next": "Choice"},
            "Trigger": {"Type": "CompensationTrigger", "Next": "Second"},
            "After": {"Type": "CompensationTrigger", "Next": "Choice"},
            "Untyped": {},
            "Number": 3
        }
    }"#;
    let expected = [
        "order.json#/States/First/Next: \"Next\" is given twice; remove one",
        "order.json#/IsPersist: IsPersist is \"yes\", a string; write true or false",
        "order.json#/RecoverStrategy: RecoverStrategy is \"Maybe\"; use Compensate or Forward",
        "order.json#/States/First/ServiceName: state [First]: ServiceName is 7, a number; write a string",
        "order.json#/States/First/Status/[a] == 1: state [First]: Status of \"[a] == 1\" is \"OK\"; \
         use SU, FA, UN, SK or RU",
        "order.json#/States/First/IsForUpdate: state [First]: IsForUpdate is \"true\", a string; write true",
        "order.json#/States/First/Retry/0: state [First]: Retry[0] has no MaxAttempts; say how often it is retried",
        "order.json#/States/First/Retry/0/Exceptions: state [First]: Exceptions is \"x\", a string; \
         write a list, between [ and ]",
        "order.json#/States/First/Retry/1/MaxAttempts: state [First]: MaxAttempts is \"3\", a string; write 3",
        "order.json#/States/First/Retry/1/IntervalSeconds: state [First]: IntervalSeconds is -1; write 0 or more",
        "order.json#/States/First/Retry/2/MaxAttempts: state [First]: MaxAttempts is 1001; write 0 to 1000",
        "order.json#/States/First/Catch/0: state [First]: Catch[0] has no Next; say where it leads",
        "order.json#/States/First/Loop: state [First]: Loop has no Collection; say which list it goes through",
        "order.json#/States/First/Loop/Parallel: state [First]: Parallel is 1.5; write a whole number",
        "order.json#/States/Second/Type: state [Second]: State Type [ServiceTsk] is not supported; \
         did you mean [ServiceTask]?",
        "order.json#/States/Choice/Choices/1: state [Choice]: Choices[1] is 5, a number; \
         write an object, between { and }",
        "order.json#/States/Choice/Choices/0: state [Choice]: Choices[0] has no Expression; say when it is taken",
        "order.json#/States/Fork/Parallel: Fork [Fork]: Parallel must be >= 0; it is -1: write 0 for no limit",
        "order.json#/States/Fork/Timeout: state [Fork]: Timeout is \"10\", a string; write 10",
        "order.json#/States/One/Input: state [One]: Input is an object; write a list, between [ and ]",
        "order.json#/States/Untyped: state [Untyped]: Type is missing; say what the state is: ServiceTask, \
         ScriptTask, SubStateMachine, CompensateSubMachine, Choice, CompensationTrigger, Fork, Join, Succeed, or Fail",
        "order.json#/States/Number: state [Number] is 3, a number; write an object, between { and }",
        "order.json#/StartState: State [Frist] is not defined in state machine; did you mean [First]?",
        "order.json#/States/First/Next: Subsequent state [Secnd] of [First] does not exist; did you mean [Second]?",
        "order.json#/States/Choice/Default: Subsequent state [Nowhere] of [Choice] does not exist; add it to States",
        "order.json#/States/After/Next: CompensationTrigger [After] leads to [Choice]; \
         the machine ends there: let it lead to a Fail, a Succeed or nothing",
        "order.json#/States/Third/StateMachineName: SubStateMachine state [Third] call itself; name another machine",
        "order.json#/States/Third: There is an infinite loop [Third] without outgoing flow to end; \
         let one of them lead to an end",
        "order.json#/States/Fork/Branches/1: Fork [Fork]: branch [One] is listed twice; remove one",
        "order.json#/States/Fork/Branches/2: Fork [Fork]: branch [Onee] does not exist; did you mean [One]?",
    ];
    let errors = Definitions::new()
        .json("order.json", text)
        .check()
        .err()
        .ok_or("it is refused")?
        .to_string();
    assert_eq!(errors.lines().collect::<Vec<_>>(), expected);
    Ok(())
}

/// Of thousands of problems a thousand are listed; the last line says how many are not.
#[test]
fn g_031_a_list_of_problems_is_bounded() {
    let keys: Vec<String> = (0..3_000).map(|number| format!("\"k{number}\": \"XX\"")).collect();
    let state = format!(r#"{}, "Status": {{{}}}"#, task(""), keys.join(","));
    let lines = lines(&machine(&[("A", &state)]));
    assert_eq!(lines.len(), 1_001);
    assert_eq!(
        lines.last().map(String::as_str),
        Some("m.json#/: 2000 more problems are not listed; mend those above first")
    );
}

#[test]
fn g_031_problems_of_all_files_are_told_together() -> Tested {
    let right = machine(&[("A", &task(""))]);
    let errors = Definitions::new()
        .json("a.json", "{")
        .json("b.json", right)
        .json("c.json", machine(&[("A", &task("B"))]))
        .file("no/such/file.json")
        .check()
        .err()
        .ok_or("they are refused")?;
    let files: Vec<&str> = errors.problems().iter().map(Problem::file).collect();
    assert_eq!(files, ["a.json", "c.json", "no/such/file.json"]);
    assert!(errors.to_string().contains("the file cannot be read"), "{errors}");
    Ok(())
}

#[test]
fn g_010_a_trigger_leads_to_an_end_or_nothing() {
    let with = |next: &str| {
        let trigger = format!(r#""Type": "CompensationTrigger"{next}"#);
        let choice = r#""Type": "Choice", "Choices": [{"Expression": "true", "Next": "T"}], "Default": "X""#;
        let states = [("P", task("C")), ("X", task("")), ("E", r#""Type": "Fail""#.to_owned())];
        let mut all: Vec<(&str, &str)> = states.iter().map(|(name, state)| (*name, state.as_str())).collect();
        all.extend([("C", choice), ("T", trigger.as_str())]);
        lines(&machine(&all))
    };
    assert_eq!(with(r#", "Next": "E""#), [""; 0]);
    assert_eq!(with(""), [""; 0]);
    let line = "m.json#/States/T/Next: CompensationTrigger [T] leads to [X]; \
                the machine ends there: let it lead to a Fail, a Succeed or nothing";
    assert_eq!(with(r#", "Next": "X""#), [line]);
}

/// Texts are compiled where they stand, each told of at its place; those of conditions and those of values have hints of
/// their own.
#[test]
fn g_035_every_text_of_a_definition_is_compiled() {
    let task = format!(
        r##"{}, "Input": ["$.[a", {{"x": [1, "$Bean.y"]}}], "Output": {{"o/p": "$.#this +"}},
        "Status": {{"$exception{{*}}": "UN", "#root = 1": "OK"}},
        "Loop": {{"Collection": "$abc", "CompletionCondition": "a b"}}"##,
        task("C")
    );
    let choice = r#""Type": "Choice", "Choices": [{"Expression": "[a] == 1", "Next": "A"}, {"Expression": "", "Next": "A"}],
        "Default": "E""#;
    let value = "write an expression, for instance $.[a], or a text that does not begin with $";
    let condition = "write a condition, for instance [a] == 1";
    assert_eq!(
        lines(&machine(&[("A", &task), ("C", choice), ("E", r#""Type": "Succeed""#)])),
        [
            format!(
                "m.json#/States/A/Input/0: state [A]: column 5: an operator or \"]\" is missing before the end; {value}"
            ),
            "m.json#/States/A/Input/1/x/1: state [A]: \"$Bean..\" has the unknown type [Bean]; \
             the types are $Exception and $Sequence, and $. begins an expression"
                .to_owned(),
            format!("m.json#/States/A/Output/o~1p: state [A]: column 10: a value is missing before the end; {value}"),
            "m.json#/States/A/Status/$exception{*}: state [A]: \"$exception{..}\" has the unknown type [exception]; \
             did you mean $Exception?"
                .to_owned(),
            "m.json#/States/A/Status/#root = 1: state [A]: column 7: \"=\" sets a value, and an expression changes \
             nothing; write == to compare"
                .to_owned(),
            "m.json#/States/A/Status/#root = 1: state [A]: Status of \"#root = 1\" is \"OK\"; use SU, FA, UN, SK or RU"
                .to_owned(),
            format!(
                "m.json#/States/A/Loop/Collection: state [A]: column 1: a text that begins with $ is $.expression, \
                 $Exception{{class}} or $Sequence.entity|rule; {value}"
            ),
            format!(
                "m.json#/States/A/Loop/CompletionCondition: state [A]: column 3: an operator is missing before \"b\"; \
                 {condition}"
            ),
            format!(
                "m.json#/States/C/Choices/1/Expression: state [C]: column 1: a value is missing before the end; \
                 {condition}"
            ),
        ]
    );
}

/// Only with services that there are is a service looked for: by its name, whatever the method is.
#[test]
fn g_033_a_service_that_is_not_there_is_told_of() -> Tested {
    let text = machine(&[
        ("A", &task("B")),
        (
            "B",
            r#""Type": "ServiceTask", "ServiceName": "stok", "ServiceMethod": "any", "Next": "C""#,
        ),
        (
            "C",
            r#""Type": "ServiceTask", "ServiceName": "other", "ServiceMethod": "any", "IsAsync": true"#,
        ),
    ]);
    assert!(Definitions::new().json("m.json", &text).check().is_ok());
    let given = || Definitions::new().json("m.json", &text);
    assert!(given().services(["svc", "stok", "other"]).check().is_ok());
    let errors = given().services(["svc"]).services(["stock"]).check();
    assert_eq!(
        errors.err().ok_or("it is refused")?.to_string(),
        "m.json#/States/B/ServiceName: state [B]: service [stok] is not registered; did you mean [stock]?\n\
         m.json#/States/C/ServiceName: state [C]: service [other] is not registered; add it to the services"
    );
    let errors = given().services([""; 0]).check().err().ok_or("it is refused")?;
    assert_eq!(errors.problems().len(), 3);
    Ok(())
}

/// What a CompensateState names is called if the saga is undone.
#[test]
fn g_031_a_compensate_state_that_undoes_nothing_is_refused() {
    let undone_by = |name: &str| format!(r#"{}, "CompensateState": "{name}""#, task("B"));
    let sub = |name: &str| {
        format!(r#""Type": "SubStateMachine", "StateMachineName": "other", "CompensateState": "{name}", "Next": "E""#)
    };
    let states = [
        ("Sub", r#""Type": "SubStateMachine", "StateMachineName": "other""#),
        ("Whole", r#""Type": "CompensateSubMachine""#),
        ("C", r#""Type": "Choice", "Choices": [], "Default": "E""#),
        ("E", r#""Type": "Succeed""#),
        (
            "U",
            r#""Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "m""#,
        ),
        ("V", r#""Type": "ScriptTask", "ScriptContent": "1""#),
    ];
    let errors = |of: &str, by: &str| {
        let (task, sub) = (undone_by(by), sub(by));
        let first = match of {
            "task" => ("A", task.as_str()),
            _ => ("A", sub.as_str()),
        };
        let second = super::task("E");
        let mut all = vec![first, ("B", second.as_str())];
        all.extend(states);
        lines(&machine(&all))
    };
    for (by, word) in [
        ("Sub", "SubStateMachine"),
        ("Whole", "CompensateSubMachine"),
        ("C", "Choice"),
        ("E", "Succeed"),
    ] {
        let line = format!(
            "m.json#/States/A/CompensateState: CompensateState [{by}] of [A] is a {word}; \
             name a ServiceTask or a ScriptTask"
        );
        assert_eq!(errors("task", by), [line]);
    }
    for (by, word) in [("Sub", "SubStateMachine"), ("C", "Choice"), ("E", "Succeed")] {
        let line = format!(
            "m.json#/States/A/CompensateState: CompensateState [{by}] of [A] is a {word}; \
             name a ServiceTask, a ScriptTask or a CompensateSubMachine"
        );
        assert_eq!(errors("sub", by), [line]);
    }
    for (of, by) in [
        ("task", "U"),
        ("task", "V"),
        ("sub", "U"),
        ("sub", "V"),
        ("sub", "Whole"),
    ] {
        assert_eq!(errors(of, by), [""; 0], "{of} {by}");
    }
}

/// Sagas that began by such a file go on by it.
#[test]
fn g_031_a_stored_definition_is_not_held_to_a_newer_rule() -> Tested {
    let undone = format!(r#"{}, "CompensateState": "B""#, task("B"));
    let text = machine(&[("A", &undone), ("B", r#""Type": "Succeed""#)]);
    assert_eq!(lines(&text).len(), 1);
    assert_eq!(Source::stored(text)?.definition.name, "m");
    Ok(())
}

/// A CompensateSubMachine undoes what another state has run, and has no machine that it could run itself.
#[test]
fn what_undoes_a_machine_is_led_to_by_nothing() {
    let compensate = r#""Type": "CompensateSubMachine""#;
    let sub = r#""Type": "SubStateMachine", "StateMachineName": "other", "CompensateState": "C""#;
    assert!(check(&machine(&[("A", sub), ("C", compensate)])).is_ok());
    let hint = "it only undoes: name it as the CompensateState of a SubStateMachine, and lead elsewhere";
    assert_eq!(
        lines(&machine(&[("C", compensate)])),
        [format!(
            "m.json#/StartState: StartState [C] is a CompensateSubMachine; {hint}"
        )]
    );
    let choice = r#""Type": "Choice", "Choices": [{"Expression": "[a] == 1", "Next": "C"}], "Default": "B""#;
    let caught = format!(r#"{}, "Catch": [{{"Exceptions": ["x.Boom"], "Next": "C"}}]"#, task("C"));
    assert_eq!(
        lines(&machine(&[("A", choice), ("B", &caught), ("C", compensate)])),
        [
            format!("m.json#/States/A/Choices/0/Next: [A] leads to CompensateSubMachine [C]; {hint}"),
            format!("m.json#/States/B/Next: [B] leads to CompensateSubMachine [C]; {hint}"),
            format!("m.json#/States/B/Catch/0/Next: [B] leads to CompensateSubMachine [C]; {hint}"),
        ]
    );
}
