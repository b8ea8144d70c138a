//! What is larger than a row may be makes a member rest: it neither fails the saga nor loses what was done.

#![expect(clippy::indexing_slicing, reason = "members of objects that the test makes itself")]

use std::sync::{Arc, Mutex, PoisonError};

use procession::operate::OperatorRequest;
use procession::saga::{Call, Fault, Saga, SagaInstance, SagaStatus, Sagas, Standing};
use procession::status::{Ending, note};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, ProcedureId};
use serde_json::{Value, json};

use crate::Tested;
use crate::kit::{Host, ask, by, status};

/// The engine's bound of a value; a context may have half of it.
const PAYLOAD: usize = 16 << 10;

type Log = Arc<Mutex<Vec<String>>>;

fn called(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a machine of these states with these params until it stays where it is.
fn run(states: &Value, params: &Value, drive: impl AsyncFnOnce(&Run, &Saga, &Log) -> Result<(), Trouble>) -> Tested {
    run_on(|builder| builder, states, params, drive)
}

/// As `run`, on an engine with bounds of its own.
fn run_on(
    bounds: impl FnOnce(Builder) -> Builder,
    states: &Value,
    params: &Value,
    drive: impl AsyncFnOnce(&Run, &Saga, &Log) -> Result<(), Trouble>,
) -> Tested {
    let log = Log::default();
    let sagas = sagas_of(states, &log)?;
    let set_up = |builder: Builder| bounds(builder.max_payload(PAYLOAD).sagas(sagas.clone()));
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let saga = start(run, &sagas, params).await?;
            drive(run, &saga, &log).await
        })?
        .done()
}

async fn start(run: &Run, sagas: &Sagas, params: &Value) -> Result<Saga, Trouble> {
    let machine = sagas.machine("outer")?.params(params)?;
    let handle = run.wait(run.executor.submit(machine)).await??;
    run.settle().await;
    Ok(run.executor.saga(handle.id()))
}

/// A machine of these states, with one that it may run.
fn sagas_of(states: &Value, log: &Log) -> Result<Sagas, Trouble> {
    let calls = Arc::clone(log);
    let inner = json!({ "Name": "inner", "StartState": "I", "States": { "I": task("I", ""), "I'": undo() } });
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
    Ok(sagas)
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

/// Each compensator puts 5,000 bytes under a name of its own, and a context may have 8,192.
#[test]
fn what_compensators_put_out_is_bounded() -> Tested {
    let names = ["S", "B", "C", "D"];
    let mut states = json!({});
    for (number, name) in names.iter().enumerate() {
        states[name] = task(name, names.get(number + 1).unwrap_or(&""));
        let mut undo = undo();
        undo["Output"] = json!({ (*name): "$.#root" });
        states[format!("{name}'")] = undo;
    }
    states["T"] = json!({ "Type": "CompensationTrigger" });
    states["D"]["Next"] = "T".into();
    run(&states, &json!({}), async |run, saga, log| {
        assert_eq!(called(log), ["S", "B", "C", "D", "D'", "C'", "B'", "S'"]);
        assert_eq!(status(saga).await?, (SagaStatus::Unknown, Some(SagaStatus::Success)));
        let instance = saga.instance().await?;
        assert_eq!(instance.context.keys().collect::<Vec<_>>(), ["D"], "the first one fits");
        let notes = run.executor.history(saga.id()).await?;
        let notes: Vec<String> = notes
            .iter()
            .filter(|entry| entry.ending == Ending::Undone)
            .filter_map(|entry| note::<Value>(entry).ok()?)
            .filter_map(|note: Value| Some(note.get("o")?.as_str()?.to_owned()))
            .collect();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(
            notes.iter().all(|note| note.contains("and 8192 are the limit")),
            "{notes:?}"
        );
        Ok(())
    })
}

/// A machine whose task leads to a state that is done by children.
fn with_children(state: &str, attributes: Value) -> Value {
    let mut states = json!({ "S": task("S", state), "S'": undo(), state: attributes, "L'": undo() });
    if state == "F" {
        for branch in ["A", "B"] {
            states[branch] = task(branch, "J");
            states[format!("{branch}'")] = undo();
        }
        states["J"] = json!({ "Type": "Join" });
    }
    states
}

fn of_each_type() -> [(&'static str, Value); 3] {
    let mut looped = task("L", "");
    looped["Loop"] = json!({ "Collection": "$.[list]" });
    [
        ("F", json!({ "Type": "Fork", "Branches": ["A", "B"] })),
        ("L", looped),
        (
            "M",
            json!({ "Type": "SubStateMachine", "StateMachineName": "inner", "Input": [{}] }),
        ),
    ]
}

#[test]
fn a_family_that_would_be_nested_too_deep_rests() -> Tested {
    for (state, attributes) in of_each_type() {
        let states = with_children(state, attributes);
        let params = json!({ "list": [1, 2] });
        run_on(
            |builder| builder.max_depth(1),
            &states,
            &params,
            async |run, saga, log| {
                let instance = saga.instance().await?;
                rests_at(&instance, state);
                let question = &instance.rests[0].question;
                let why = "what it runs would be on level 2 of the family, and 1 are the limit";
                assert!(question.contains(why), "{question}");
                assert_eq!(called(log), ["S"]);
                ask(run, saga.forward(&json!({}), by())).await??;
                run.settle().await;
                rests_at(&saga.instance().await?, state);
                ask(run, saga.compensate(by())).await??;
                run.settle().await;
                assert_eq!(
                    called(log),
                    ["S'"],
                    "what was done is undone, and nothing has failed before"
                );
                assert_eq!(status(saga).await?, (SagaStatus::Unknown, Some(SagaStatus::Success)));
                Ok(())
            },
        )?;
        run_on(
            |builder| builder.max_depth(2),
            &states,
            &params,
            async |_, saga, _| {
                assert_eq!(status(saga).await?, (SagaStatus::Success, None), "{state}");
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn more_children_than_the_engine_allows_rest() -> Tested {
    for (state, attributes) in of_each_type().into_iter().take(2) {
        let states = with_children(state, attributes);
        let params = json!({ "list": [1, 2] });
        run_on(
            |builder| builder.max_children(1),
            &states,
            &params,
            async |_, saga, _| {
                let instance = saga.instance().await?;
                rests_at(&instance, state);
                let question = &instance.rests[0].question;
                assert!(
                    question.contains("it would run 2 children at once, and 1 are the limit"),
                    "{question}"
                );
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn levels_above_a_saga_count() -> Tested {
    let inner = json!({ "Name": "inner", "StartState": "F", "States": {
        "F": { "Type": "Fork", "Branches": ["A", "B"] }, "A": task("A", "J"), "A'": undo(), "B": task("B", "J"),
        "B'": undo(), "J": { "Type": "Join" },
    } });
    let outer = json!({ "Name": "outer", "StartState": "M", "States": {
        "M": { "Type": "SubStateMachine", "StateMachineName": "inner", "Input": [{}] },
    } });
    let sagas = Sagas::builder()
        .json("inner.json", inner.to_string())
        .json("outer.json", outer.to_string())
        .method("svc", "call", async |_: Call, _: Vec<Value>| Ok(()))
        .build()?;
    // Two procedures, the saga, its sub machine, the branches of that.
    for (depth, rests) in [(4, true), (5, false)] {
        let set_up = |builder: Builder| builder.max_depth(depth).sagas(sagas.clone()).register::<Host>(());
        World::new()
            .run(FaultPlan::none(), set_up, async |run| {
                let saga = sagas.machine("outer")?;
                let host = run.wait(run.executor.submit(Host { saga, below: 1 })).await??;
                run.settle().await;
                let saga = run.executor.saga(ProcedureId::new(host.id().family, 2));
                let instance = saga.instance().await?;
                let rest = instance
                    .rests
                    .first()
                    .map(|rest| rest.question.as_str())
                    .unwrap_or_default();
                assert_eq!(
                    rest.contains("level 5 of the family, and 4 are the limit"),
                    rests,
                    "{instance:?}"
                );
                assert_eq!(instance.standing == Standing::Ended, !rests, "{instance:?}");
                Ok(())
            })?
            .done()?;
    }
    Ok(())
}

/// A Loop evaluates its condition, and the Inputs of its elements, in one stage.
#[test]
fn the_expressions_of_a_loop_are_bounded_together() -> Tested {
    // Some 8,000 steps for each of 800 elements.
    let long = "[list].?[#this < 0 or #this < -1 or #this < -2 or #this < -3]";
    let input = json!([{ "fails": "$.[fails]" }, format!("$.{long}")]);
    let condition = format!("{long}.size() > 0");
    for (input, condition) in [(Some(input), None), (None, Some(condition))] {
        let mut looped = task("L", "");
        looped["Loop"] = json!({ "Collection": "$.[list]" });
        if let Some(input) = input {
            looped["Input"] = input;
        }
        if let Some(condition) = condition {
            looped["Loop"]["CompletionCondition"] = condition.into();
        }
        let states = with_children("L", looped);
        let params = |elements: usize| json!({ "list": Vec::from_iter(0..elements) });
        run(&states, &params(800), async |_, saga, log| {
            let instance = saga.instance().await?;
            assert_eq!(instance.standing, Standing::Rests, "{instance:?}");
            let question = &instance.rests[0].question;
            assert!(question.contains("take more than 4000000 steps together"), "{question}");
            assert_eq!(called(log), ["S"]);
            Ok(())
        })?;
        run(&states, &params(100), async |_, saga, _| {
            assert_eq!(status(saga).await?, (SagaStatus::Success, None));
            Ok(())
        })?;
    }
    Ok(())
}

/// A task of this name with an Output: the 5,000 bytes of a result, of which the context holds one.
fn writing(state: &str, next: &str, output: &str) -> Value {
    let mut task = task(state, next);
    task["Output"] = json!({ output: "$.#root" });
    task
}

fn each(mut task: Value, collection: impl Into<Value>) -> Value {
    task["Loop"] = json!({ "Collection": collection.into() });
    task
}

/// What is replaced does not count beside what replaces it.
#[test]
fn a_variable_that_is_replaced_counts_once() -> Tested {
    let states = json!({
        "S": writing("S", "T", "x"), "T": writing("T", "F", "x"), "S'": undo(), "T'": undo(),
        "F": { "Type": "Fork", "Branches": ["A", "B"] }, "A": writing("A", "J", "x"), "B": writing("B", "J", "x"),
        "A'": undo(), "B'": undo(), "J": { "Type": "Join", "Next": "C" }, "C": task("C", ""), "C'": undo(),
    });
    run(&states, &json!({ "fails": "C" }), async |run, saga, log| {
        assert_eq!(called(log), ["S", "T", "A", "B", "C"]);
        let params = json!({ "x": "y".repeat(5_000), "fails": null });
        ask(run, saga.forward(&params, by())).await??;
        run.settle().await;
        assert_eq!(called(log), ["C"]);
        assert_eq!(status(saga).await?, (SagaStatus::Success, None));
        Ok(())
    })?;
    let states = json!({
        "S": each(writing("S", "T", "x"), "$.[list]"), "S'": undo(),
        "T": each(writing("T", "", "x"), "$.[list]"), "T'": undo(),
    });
    run(&states, &json!({ "list": [1] }), async |_, saga, log| {
        assert_eq!(called(log), ["S", "T"]);
        assert_eq!(status(saga).await?, (SagaStatus::Success, None));
        Ok(())
    })
}

/// What was done is not done again: a forward goes on behind it.
#[test]
fn an_output_that_does_not_fit_is_left_out() -> Tested {
    let sub = json!({
        "Type": "SubStateMachine", "StateMachineName": "inner", "Input": [{ "big": "$.[big]" }], "Next": "C",
    });
    let mut one = sub.clone();
    one["Output"] = json!({ "x": "$.[big]" });
    let several = each(one.clone(), "$.[list]");
    let cases = [
        (writing("D", "C", "x"), vec!["S", "D"]),
        (each(writing("D", "C", "x"), "$.[list]"), vec!["S", "D", "D"]),
        (one, vec!["S", "I"]),
        (several, vec!["S", "I", "I"]),
    ];
    for (attributes, calls) in cases {
        let states = json!({
            "S": task("S", "D"), "S'": undo(), "D": attributes, "D'": undo(), "C": task("C", ""), "C'": undo(),
        });
        let params = json!({ "big": "x".repeat(4_200), "list": [1, 2] });
        run(&states, &params, async |run, saga, log| {
            rests_at(&saga.instance().await?, "D");
            assert_eq!(called(log), calls);
            ask(run, saga.forward(&json!({}), by())).await??;
            run.settle().await;
            assert_eq!(called(log), ["C"], "{calls:?}");
            let instance = saga.instance().await?;
            assert_eq!(
                (instance.standing, instance.status),
                (Standing::Ended, SagaStatus::Success)
            );
            assert!(!instance.context.contains_key("x"), "{instance:?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// A fault of an element that was caught leads on, also where the list of results does not fit.
#[test]
fn a_caught_fault_leads_on_without_the_list() -> Tested {
    let mut caught = each(writing("S", "N", "x"), "$.[list]");
    caught["Input"] = json!([{ "fails": "$.[loopElement]" }]);
    caught["Catch"] = json!([{ "Exceptions": ["x.Boom"], "Next": "C" }]);
    let states = json!({
        "S": caught, "S'": undo(), "N": task("N", ""), "N'": undo(), "C": task("C", ""), "C'": undo(),
    });
    run(&states, &json!({ "list": ["", "S", ""] }), async |run, saga, log| {
        rests_at(&saga.instance().await?, "C");
        assert_eq!(called(log), ["S", "S", "S"]);
        ask(run, saga.forward(&json!({}), by())).await??;
        run.settle().await;
        assert_eq!(called(log), ["C"]);
        Ok(())
    })
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn params_have_a_deepest_nesting() -> Tested {
    let states = json!({ "S": task("S", ""), "S'": undo() });
    let sagas = sagas_of(&states, &Log::default())?;
    // They are an object themselves.
    assert!(sagas.machine("outer")?.params(&json!({ "x": nested(99) })).is_ok());
    let refused = sagas.machine("outer")?.params(&json!({ "x": nested(100) }));
    let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("nested more than 100 deep"), "{refused}");
    Ok(())
}

/// A circle puts its result into itself. It rests before a row cannot be read any more, goes on after a restart, and is undone.
#[test]
fn a_value_that_grows_in_a_circle_stays_readable() -> Tested {
    let states = json!({
        "S": {
            "Type": "SubStateMachine", "StateMachineName": "inner", "Input": [{ "p": "$.[x]" }],
            "Output": { "x": "$.#root" }, "Next": "More",
        },
        "More": { "Type": "Choice", "Choices": [{ "Expression": "[more] == true", "Next": "S" }], "Default": "End" },
        "End": { "Type": "Succeed" },
    });
    let (log, world) = (Log::default(), World::new());
    let sagas = sagas_of(&states, &log)?;
    let set_up = |builder: Builder| builder.sagas(sagas.clone());
    let id = world
        .run(FaultPlan::none(), set_up, async |run| {
            let saga = start(run, &sagas, &json!({ "x": 1, "more": true })).await?;
            rests_at(&saga.instance().await?, "S");
            Ok(saga.id())
        })?
        .done()?;
    let rounds = called(&log).len();
    assert_eq!(rounds, 100, "each round nests it one deeper");
    world
        .run(FaultPlan::none(), set_up, async |run| {
            run.settle().await;
            let saga = run.executor.saga(id);
            ask(run, saga.forward(&json!({}), by())).await??;
            run.settle().await;
            rests_at(&saga.instance().await?, "S");
            ask(run, saga.forward(&json!({ "x": nested(99) }), by())).await??;
            run.settle().await;
            rests_at(&saga.instance().await?, "S");
            ask(run, saga.compensate(by())).await??;
            run.settle().await;
            assert_eq!(saga.instance().await?.standing, Standing::Ended);
            Ok(())
        })?
        .done()?;
    let undone = called(&log).iter().filter(|state| *state == "I'").count();
    assert!(undone >= rounds, "{undone} of {rounds}");
    Ok(())
}

/// What a file lays around a value makes it deeper.
#[test]
fn what_a_child_takes_has_a_deepest_nesting() -> Tested {
    let around = json!([[["$.[deep]"]]]);
    let looped = each(task("L", ""), json!([["$.[deep]"]]));
    let sub = json!({ "Type": "SubStateMachine", "StateMachineName": "inner", "Input": around });
    let mut sent = task("A", "");
    sent["Input"] = around;
    sent["IsAsync"] = true.into();
    for (state, attributes) in [("M", sub), ("L", looped), ("A", sent)] {
        let states = json!({
            "S": task("S", state), "S'": undo(), state: attributes, "L'": undo(), "A'": undo(),
        });
        run(&states, &json!({ "deep": nested(99) }), async |run, saga, log| {
            rests_at(&saga.instance().await?, state);
            let deep = json!({ "deep": nested(98) });
            ask(run, saga.forward(&deep, by())).await??;
            run.settle().await;
            let mut calls = called(log);
            calls.dedup();
            assert_eq!(calls.first().map(String::as_str), Some("S"));
            assert_eq!(status(saga).await?, (SagaStatus::Success, None), "{state}: {calls:?}");
            Ok(())
        })?;
    }
    Ok(())
}
