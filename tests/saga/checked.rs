//! `Check::saga`: it finds services that are wrong, and nothing in those that are right.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use procession::saga::{Call, Fault, Sagas};
use procession::testkit::{Check, Trouble};
use serde_json::{Value, json};

use crate::Tested;

/// Two tasks for an update, in branches of a Fork, and one behind them that only looks.
const DEFINITION: &str = r#"{ "Name": "order", "StartState": "Fork", "States": {
    "Fork": { "Type": "Fork", "Branches": ["Reserve", "Charge"] },
    "Reserve": { "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "do", "Input": ["tea"],
        "CompensateState": "Release", "Next": "Join" },
    "Charge": { "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "do", "Input": ["money"],
        "CompensateState": "Refund", "Next": "Join" },
    "Join": { "Type": "Join", "Next": "Look" },
    "Look": { "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "look" },
    "Release": { "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "undo", "Input": ["tea"] },
    "Refund": { "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "undo", "Input": ["money"] } } }"#;

/// What is wrong with the services.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// The compensator of this does not undo it.
    Stays(&'static str),
    /// A call that is made again is done again.
    Repeats,
    /// The task that looks fails whenever it is called.
    AlwaysFails,
}

/// How much of each there is, and the calls that were done.
type Outside = Arc<Mutex<(BTreeMap<String, u32>, Vec<String>)>>;

fn sagas(outside: &Outside, wrong: Wrong) -> Result<Sagas, Trouble> {
    let (done, undone) = (Arc::clone(outside), Arc::clone(outside));
    let builder = Sagas::builder()
        .json("order.json", DEFINITION)
        .method("svc", "do", async move |call: Call, (what,): (String,)| {
            let mut outside = done.lock().unwrap_or_else(PoisonError::into_inner);
            let token = call.token().to_string();
            if wrong == Wrong::Repeats || !outside.1.contains(&token) {
                outside.1.push(token);
                *outside.0.entry(what).or_default() += 1;
            }
            Ok(())
        })
        .method("svc", "undo", async move |_: Call, (what,): (String,)| {
            let mut outside = undone.lock().unwrap_or_else(PoisonError::into_inner);
            if wrong != Wrong::Stays("tea") || what != "tea" {
                outside.0.remove(&what);
            }
            Ok(())
        })
        .method("svc", "look", async move |_: Call, _: Vec<Value>| match wrong {
            Wrong::AlwaysFails => Err(Fault::new("x.Boom", "boom")),
            Wrong::Nothing | Wrong::Stays(_) | Wrong::Repeats => Ok(()),
        });
    Ok(builder.build()?)
}

fn check(wrong: Wrong) -> Check<(Outside, Sagas)> {
    let fresh = move || {
        let outside = Outside::default();
        let sagas = sagas(&outside, wrong)?;
        Ok((outside, sagas))
    };
    Check::saga_with(fresh, "order", &json!({ "n": 1 })).picture(|(outside, _)| {
        let outside = outside.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(outside.0.clone())
    })
}

#[test]
fn services_that_are_right_pass_every_check() -> Tested {
    let checked = check(Wrong::Nothing).everything()?;
    assert!(checked.runs > 50, "{checked:?}");
    assert!(checked.crashes > 40, "{checked:?}");
    Ok(())
}

#[test]
fn a_compensator_that_does_not_undo_is_found() {
    let finding = check(Wrong::Stays("tea")).fail_each_stage().err();
    let said = finding.map(|finding| finding.to_string()).unwrap_or_default();
    assert!(
        said.contains("it was rolled back, and the picture is not as before"),
        "{said}"
    );
    assert!(said.contains("tea"), "{said}");
}

#[test]
fn a_call_that_repeats_its_effect_is_found() {
    let finding = check(Wrong::Repeats).run_stages_twice().err();
    let said = finding.map(|finding| finding.to_string()).unwrap_or_default();
    assert!(said.contains("the picture differs"), "{said}");
}

#[test]
fn what_rests_goes_forward_and_is_compensated_in_the_end() -> Tested {
    let check = check(Wrong::AlwaysFails);
    let finding = check.succeeds().err();
    let said = finding.map(|finding| finding.to_string()).unwrap_or_default();
    assert!(said.contains("it waits for a decision"), "{said}");
    check.crash_at_every_commit()?;
    Ok(())
}

#[test]
fn params_and_names_that_are_wrong_are_told() {
    let outside = Outside::default();
    let Ok(sagas) = sagas(&outside, Wrong::Nothing) else {
        return;
    };
    let said =
        |finding: Option<procession::testkit::Finding>| finding.map(|finding| finding.to_string()).unwrap_or_default();
    let unknown = said(Check::saga(&sagas, "oder", &json!({})).succeeds().err());
    assert!(unknown.contains("no machine [oder] is registered"), "{unknown}");
    let params = said(Check::saga(&sagas, "order", &[1]).succeeds().err());
    assert!(params.contains("they are no object"), "{params}");
}
