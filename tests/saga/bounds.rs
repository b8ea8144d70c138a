//! What is larger than a row may be makes a member rest: it neither fails the saga nor loses what was done.

#![expect(clippy::indexing_slicing, reason = "members of objects that the test makes itself")]

use std::sync::{Arc, Mutex, PoisonError};

use procession::operate::OperatorRequest;
use procession::saga::{Call, Fault, Saga, SagaInstance, SagaStatus, Sagas, Standing};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use serde_json::{Value, json};

use crate::Tested;
use crate::kit::{ask, by, status};

/// The engine's bound of a value; a context may have half of it.
const PAYLOAD: usize = 16 << 10;

type Log = Arc<Mutex<Vec<String>>>;

fn called(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a machine of these states with these params until it stays where it is.
fn run(states: &Value, params: &Value, drive: impl AsyncFnOnce(&Run, &Saga, &Log) -> Result<(), Trouble>) -> Tested {
    let log = Log::default();
    let calls = Arc::clone(&log);
    let inner = json!({ "Name": "inner", "StartState": "I", "States": { "I": task("I", "") } });
    let outer = json!({ "Name": "outer", "StartState": "S", "States": states });
    let sagas = Sagas::builder()
        .json("inner.json", inner.to_string())
        .json("outer.json", outer.to_string())
        .method("svc", "call", async move |call: Call, arguments: Vec<Value>| {
            let state = call.state().to_owned();
            calls.lock().unwrap_or_else(PoisonError::into_inner).push(state.clone());
            match arguments.first().and_then(|argument| argument.get("fails")) {
                Some(fails) if fails.as_str() == Some(&state) => Err(Fault::new("x.Boom", "boom")),
                _ => Ok(json!("r".repeat(5_000))),
            }
        })
        .build()?;
    let set_up = |builder: procession::Builder| builder.max_payload(PAYLOAD).sagas(sagas.clone());
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let machine = sagas.machine("outer")?.params(params)?;
            let handle = run.wait(run.executor.submit(machine)).await??;
            run.settle().await;
            drive(run, &run.executor.saga(handle.id()), &log).await
        })?
        .done()
}

fn task(state: &str, next: &str) -> Value {
    let mut task = json!({ "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "call" });
    task["Input"] = json!([{ "fails": "$.[fails]" }]);
    task["CompensateState"] = format!("{state}'").into();
    if !next.is_empty() {
        task["Next"] = next.into();
    }
    task
}

fn undo() -> Value {
    json!({ "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "call" })
}

/// It rests there for its size, and nothing was undone.
fn rests_at(instance: &SagaInstance, state: &str) {
    assert_eq!(instance.standing, Standing::Rests, "{instance:?}");
    let rest = instance
        .rests
        .first()
        .map(|rest| (rest.state.as_str(), rest.error.code.as_deref()));
    assert_eq!(rest, Some((state, Some("OverBound"))), "{instance:?}");
}

fn large() -> String {
    "x".repeat(6_000)
}

#[test]
fn the_input_of_a_child_is_bounded() -> Tested {
    let two = json!([{ "a": "$.[big]", "b": "$.[big]" }]);
    let sub = json!({ "Type": "SubStateMachine", "StateMachineName": "inner", "Input": two });
    let mut looped = task("L", "");
    looped["Input"] = two.clone();
    looped["Loop"] = json!({ "Collection": "$.[list]" });
    let mut sent = task("A", "");
    sent["Input"] = two.clone();
    sent["IsAsync"] = true.into();
    for (state, attributes) in [("M", sub), ("L", looped), ("A", sent)] {
        let states = json!({
            "S": task("S", state), "S'": undo(), state: attributes, "L'": undo(), "A'": undo(),
        });
        let params = json!({ "big": large(), "list": [1] });
        run(&states, &params, async |_, saga, log| {
            rests_at(&saga.instance().await?, state);
            assert_eq!(called(log), ["S"]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn what_branches_write_together_is_bounded() -> Tested {
    let branch = |name: &str| {
        let mut task = task(name, "J");
        task["Output"] = json!({ name: "$.#root" });
        task
    };
    let states = json!({
        "S": { "Type": "Fork", "Branches": ["A", "B"] }, "A": branch("A"), "B": branch("B"), "A'": undo(), "B'": undo(),
        "J": { "Type": "Join", "Next": "C" }, "C": task("C", ""), "C'": undo(),
    });
    run(&states, &json!({}), async |run, saga, log| {
        let instance = saga.instance().await?;
        rests_at(&instance, "C");
        assert_eq!(called(log), ["A", "B"]);
        // What fits is there, in the order of the branches.
        assert_eq!(instance.context.keys().collect::<Vec<_>>(), ["A"]);
        ask(run, saga.forward(&json!({}), by())).await??;
        run.settle().await;
        assert_eq!(called(log), ["C"]);
        assert_eq!(status(saga).await?, (SagaStatus::Success, None));
        Ok(())
    })
}

#[test]
fn what_a_decision_brings_is_bounded() -> Tested {
    let states = json!({ "S": task("S", "C"), "S'": undo(), "C": task("C", ""), "C'": undo() });
    let params = json!({ "big": large(), "fails": "C" });
    run(&states, &params, async |run, saga, log| {
        assert_eq!(called(log), ["S", "C"]);
        ask(run, saga.forward(&json!({ "more": large() }), by())).await??;
        run.settle().await;
        rests_at(&saga.instance().await?, "C");
        ask(run, saga.skip(&json!({ "more": large() }), by())).await??;
        run.settle().await;
        rests_at(&saga.instance().await?, "C");
        assert_eq!(called(log), [""; 0], "a decision that does not fit changes nothing");
        ask(
            run,
            saga.forward(&json!({ "fails": "" }), OperatorRequest::new("ann", "smaller")),
        )
        .await??;
        run.settle().await;
        assert_eq!(status(saga).await?, (SagaStatus::Success, None));
        Ok(())
    })
}
