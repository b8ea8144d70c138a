//! What is only warned of, because Seata's own files have it.

use super::{machine, task, warnings};

#[test]
fn g_011_an_update_that_nothing_undoes_is_warned_of() {
    let update = format!(r#"{}, "IsForUpdate": true"#, task("B"));
    let undone = format!(r#"{}, "IsForUpdate": true, "CompensateState": "C""#, task(""));
    let compensator = format!(r#"{}, "IsForUpdate": true, "Retry": [{{"MaxAttempts": 1}}]"#, task(""));
    assert_eq!(
        warnings(&machine(&[("A", &update), ("B", &undone), ("C", &compensator)])),
        [
            "m.json#/States/A/IsForUpdate: state [A]: IsForUpdate without a CompensateState: compensation will rest \
             there; name a CompensateState, or undo it by hand and skip it",
            "m.json#/States/C/Retry: state [C]: Retry of a compensator has no effect; \
             compensation_tries of the machine says how often it is tried",
        ]
    );
}

#[test]
fn g_031_what_has_no_effect_is_warned_of() {
    let service = format!(
        r#"{}, "ServiceType": "dubbo", "IsPersist": false, "Catches": [], "style": 1, "edge": 2, "catch": 3, "Name": 4"#,
        task("M")
    );
    let sub = r#""Type": "SubStateMachine", "StateMachineName": "other", "Retry": [{"MaxAttempts": 1}], "Next": "F""#;
    let fork = r#""Type": "Fork", "Branches": ["J"], "Next": "A""#;
    let join = r#""Type": "Join""#;
    let alone = task("");
    assert_eq!(
        warnings(&machine(&[
            ("A", &service),
            ("M", sub),
            ("F", fork),
            ("J", join),
            ("Alone", &alone)
        ])),
        [
            "m.json#/States/A/Catches: state [A]: \"Catches\" is ignored; did you mean [Catch]?",
            "m.json#/States/A/ServiceType: state [A]: ServiceType \"dubbo\" is ignored; \
             the service is found by its name; remove ServiceType",
            "m.json#/States/A/IsPersist: state [A]: IsPersist is ignored: every step is durable; remove it",
            "m.json#/States/M/Retry: state [M]: Retry of a SubStateMachine has no effect; \
             its failure is a status and no fault: let states inside the machine retry",
            "m.json#/States/F/Next: state [F]: Next of a Fork is ignored; remove it: its Join says what follows",
            "m.json#/States/Alone: nothing leads to [Alone]; let a state lead to it, or remove it",
            "m.json#/States/M/StateMachineName: state [M]: machine [other] is in none of these files; add its file",
        ]
    );
}
