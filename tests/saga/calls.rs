//! Calls: panics, time limits, and what services are told.

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::saga::{Call, Fault, Saga, SagaStatus, Sagas, Standing};
use procession::testkit::{FaultPlan, Run, TestClock, Trouble, World};
use procession::{Builder, ProcedureId};
use procession_actors::Fence;
use procession_actors::clock::Clock;
use serde_json::{Value, json};

use crate::Tested;
use crate::kit::{Host, KEPT, ask, by, crash_in_each_life, crashed, release, status};

/// A machine of one task and what catches its faults.
fn one(name: &str, attributes: &str) -> String {
    format!(
        r#"{{"Name": "{name}", "StartState": "Task", "States": {{
            "Task": {{"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "{name}"{attributes}}},
            "Fail": {{"Type": "Fail", "ErrorCode": "E"}}}}}}"#
    )
}

async fn start(sagas: &Sagas, run: &Run, machine: &str) -> Result<Saga, Trouble> {
    let machine = sagas.machine(machine)?;
    // Time stands still: a result that is kept for long would go.
    let handle = ask(run, run.executor.submit(machine).key("the saga").into_future()).await??;
    run.settle().await;
    let saga = run.executor.saga(handle.id());
    release(run, &saga).await?;
    Ok(saga)
}

fn live<T>(world: &World, sagas: &Sagas, drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
    world
        .run(FaultPlan::none(), |builder| builder.sagas(sagas.clone()), drive)?
        .done()
}

#[test]
fn g_036_a_panic_is_a_fault() -> Tested {
    let retry = r#", "Retry": [{"Exceptions": ["java.lang.Error"], "MaxAttempts": 1}]"#;
    let catch = r#", "Catch": [{"Exceptions": ["java.lang.Exception"], "Next": "Fail"}]"#;
    let panics = async |call: Call, (): ()| -> Result<(), Fault> {
        assert!(call.attempt() > 1, "it panics once");
        Ok(())
    };
    let sagas = Sagas::builder()
        .json("retried.json", one("retried", retry))
        .json("caught.json", one("caught", catch))
        .method("svc", "retried", panics)
        .method("svc", "caught", panics)
        .build()?;
    crashed(
        &sagas,
        3,
        || (),
        |builder| builder,
        async |run| {
            let retried = start(&sagas, run, "retried").await?;
            assert_eq!(ask(run, retried.outcome()).await??.status, SagaStatus::Success);
            Ok(())
        },
    )?;
    crashed(
        &sagas,
        3,
        || (),
        |builder| builder,
        async |run| {
            let caught = start(&sagas, run, "caught").await?;
            let instance = caught.instance().await?;
            if instance.standing != Standing::Ended {
                let rest = instance.rests.first().ok_or("a panic is no java.lang.Exception")?;
                assert_eq!(rest.error.class.as_deref(), Some("procession.Panic"));
            }
            // The worker is alive: it goes on with the second try.
            ask(run, caught.forward(&json!({}), by().key("forward"))).await??;
            run.settle().await;
            assert_eq!(status(&caught).await?, (SagaStatus::Success, None));
            Ok(())
        },
    )
}

/// A machine whose call takes ten seconds by the clock that is put there, and may take three.
fn late() -> Result<(Sagas, Arc<Mutex<TestClock>>), Trouble> {
    let clock: Arc<Mutex<TestClock>> = Arc::default();
    let its = Arc::clone(&clock);
    let sagas = Sagas::builder()
        .json("late.json", one("late", r#", "IsForUpdate": true"#))
        .method("svc", "late", async move |_: Call, (): ()| -> Result<(), Fault> {
            let clock = its.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let until = clock.now().after(Duration::from_secs(10));
            clock.sleep_until(until).await;
            Ok(())
        })
        .call_timeout("svc", Duration::from_secs(3))
        .build()?;
    Ok((sagas, clock))
}

#[test]
fn g_036_a_late_call_is_in_doubt() -> Tested {
    let (sagas, clock) = late()?;
    let put = |run: &Run| *clock.lock().unwrap_or_else(PoisonError::into_inner) = run.world.clock.clone();
    live(&World::new(), &sagas, async |run| {
        put(run);
        let saga = start(&sagas, run, "late").await?;
        run.pass(Duration::from_millis(2_999)).await;
        assert_eq!(saga.instance().await?.standing, Standing::Running);
        run.pass(Duration::from_millis(1)).await;
        assert_eq!(saga.instance().await?.standing, Standing::Rests);
        Ok(())
    })?;
    crashed(
        &sagas,
        3,
        || (),
        |builder| builder,
        async |run| {
            put(run);
            let saga = start(&sagas, run, "late").await?;
            run.pass(Duration::from_secs(3)).await;
            let instance = saga.instance().await?;
            assert_eq!(instance.standing, Standing::Rests);
            assert_eq!(
                instance.states.first().map(|state| state.status),
                Some(SagaStatus::Unknown)
            );
            let rest = instance.rests.first().ok_or("it rests")?;
            assert_eq!(rest.error.class.as_deref(), Some("procession.Timeout"));
            Ok(())
        },
    )
}

/// One call as its service was told of it.
#[derive(Clone, Debug)]
struct Told {
    state: String,
    token: String,
    attempt: u32,
    fence: Fence,
}

#[test]
fn g_036_what_services_are_told() -> Tested {
    let machine = r#"{"Name": "told", "StartState": "S1", "States": {
        "S1": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "call", "CompensateState": "S1'",
            "Retry": [{"Exceptions": ["x.Boom"], "IntervalSeconds": 1, "MaxAttempts": 1}], "Next": "S2"},
        "S2": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "call", "CompensateState": "S2'",
            "Catch": [{"Exceptions": ["java.lang.Throwable"], "Next": "T"}]},
        "S1'": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "call"},
        "S2'": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "call"},
        "T": {"Type": "CompensationTrigger"}}}"#;
    let log: Arc<Mutex<Vec<Told>>> = Arc::default();
    let told = Arc::clone(&log);
    // S1 fails twice, then is held in its third try, which a restart cuts off; S2 fails.
    let held: Arc<AtomicBool> = Arc::default();
    let is_held = Arc::clone(&held);
    let sagas = Sagas::builder()
        .json("told.json", machine)
        .method(
            "svc",
            "call",
            async move |call: Call, _: Vec<Value>| -> Result<(), Fault> {
                told.lock().unwrap_or_else(PoisonError::into_inner).push(Told {
                    state: call.state().to_owned(),
                    token: call.token().to_string(),
                    attempt: call.attempt(),
                    fence: call.fence(),
                });
                match (call.state(), call.attempt()) {
                    ("S1", 1 | 2) | ("S2", _) => Err(Fault::new("x.Boom", "boom")),
                    ("S1", _) if is_held.load(Ordering::Relaxed) => std::future::pending().await,
                    _ => Ok(()),
                }
            },
        )
        .build()?;
    let fresh = || {
        log.lock().unwrap_or_else(PoisonError::into_inner).clear();
        World::new()
    };
    let set_up = |builder: Builder| builder.sagas(sagas.clone()).retention(KEPT, KEPT);
    let is_forwarded = |world: &World, plan: FaultPlan| {
        held.store(true, Ordering::Relaxed);
        world.run(plan, set_up, async |run| {
            let saga = start(&sagas, run, "told").await?;
            run.pass(Duration::from_secs(1)).await;
            ask(run, saga.forward(&json!({}), by().key("forward"))).await??;
            run.settle().await;
            Ok(())
        })
    };
    let is_undone = |world: &World, plan: FaultPlan| {
        held.store(false, Ordering::Relaxed);
        world.run(plan, set_up, async |run| {
            let saga = start(&sagas, run, "told").await?;
            let outcome = ask(run, saga.outcome()).await??;
            assert_eq!(
                (outcome.status, outcome.compensation),
                (SagaStatus::Unknown, Some(SagaStatus::Success))
            );
            Ok(())
        })
    };
    let crashes = crash_in_each_life(fresh, &[&is_forwarded, &is_undone], |_| {
        let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        is_told_rightly(&log);
        Ok(())
    })?;
    assert!(crashes > 10, "{crashes}");
    Ok(())
}

/// Tries of a state have one token, and each call a fence of its own. A call that a crash cut off is made again.
fn is_told_rightly(log: &[Told]) {
    let mut calls: Vec<(&str, u32)> = log.iter().map(|told| (told.state.as_str(), told.attempt)).collect();
    calls.dedup();
    let expected = [("S1", 1), ("S1", 2), ("S1", 3), ("S2", 1), ("S2'", 1), ("S1'", 1)];
    assert_eq!(calls, expected);
    let is_growing = log.is_sorted_by(|earlier, later| earlier.fence < later.fence);
    assert!(is_growing, "{log:?}");
    let tokens = |state: &str| -> BTreeSet<String> {
        let of_state = log.iter().filter(|told| told.state == state);
        of_state.map(|told| told.token.clone()).collect()
    };
    for state in ["S1", "S2"] {
        let own = tokens(state);
        assert_eq!(own.len(), 1, "one for all tries: {log:?}");
        let compensator = own.iter().map(|token| format!("{token}-c")).collect();
        assert_eq!(tokens(&format!("{state}'")), compensator);
    }
    assert_ne!(tokens("S1"), tokens("S2"));
}

#[test]
fn g_036_a_call_names_its_saga_in_whatever_member_it_is_made() -> Tested {
    let outer = r#"{"Name": "outer", "StartState": "Task", "States": {
        "Task": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "log", "Next": "Sub"},
        "Sub": {"Type": "SubStateMachine", "StateMachineName": "inner", "Next": "Sent"},
        "Sent": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "log", "IsAsync": true}}}"#;
    let log: Arc<Mutex<BTreeSet<(ProcedureId, u32)>>> = Arc::default();
    let calls = Arc::clone(&log);
    let called = async move |call: Call, (): ()| -> Result<(), Fault> {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert((call.saga(), call.member().member));
        Ok(())
    };
    let inner = one("inner", "").replace(r#""ServiceMethod": "inner""#, r#""ServiceMethod": "log""#);
    let sagas = Sagas::builder()
        .json("outer.json", outer)
        .json("inner.json", inner)
        .method("svc", "log", called)
        .build()?;
    crashed(
        &sagas,
        6,
        || log.lock().unwrap_or_else(PoisonError::into_inner).clear(),
        |builder| builder.register::<Host>(()),
        async |run| {
            let saga = sagas.machine("outer")?;
            let host = run.executor.submit(Host { saga, below: 0 }).key("the host");
            let host = ask(run, host.into_future()).await??;
            run.settle().await;
            let saga = run.executor.saga(ProcedureId::new(host.id().family, 1));
            release(run, &run.executor.saga(host.id())).await?;
            let calls = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // The last one is a family of its own.
            let expected = [(saga.id(), 0), (saga.id(), 1), (saga.id(), 2)];
            assert_eq!(calls, BTreeSet::from(expected));
            Ok(())
        },
    )
}

#[test]
fn a_saga_that_failed_runs_again_with_its_input() -> Tested {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let down = Arc::new(AtomicBool::new(true));
    let is_down = Arc::clone(&down);
    let buys = async move |call: Call, (item,): (String,)| -> Result<Value, Fault> {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push((call.saga(), item));
        if is_down.load(Ordering::Relaxed) {
            return Err(Fault::new("DOWN", "the payment service is down"));
        }
        Ok(json!(7))
    };
    let attributes = r#", "Input": ["$.[item]"], "Output": {"price": "$.#root"},
        "Catch": [{"Exceptions": ["java.lang.Throwable"], "Next": "Fail"}]"#;
    let sagas = Sagas::builder()
        .json("buy.json", one("buy", attributes))
        .method("svc", "buy", buys)
        .build()?;
    live(&World::new(), &sagas, async |run| {
        let machine = sagas.machine("buy")?.params(&json!({"item": "book"}))?;
        let handle = ask(run, run.executor.submit(machine).key("order-1").into_future()).await??;
        run.settle().await;
        let failed = run.executor.saga(handle.id());
        assert_eq!(ask(run, failed.outcome()).await??.status, SagaStatus::Failed);
        down.store(false, Ordering::Relaxed);
        let again = run.executor.run_again(handle.id(), by()).await?;
        let second = run.executor.saga(again.submitted.ok_or("it does not run again")?);
        run.settle().await;
        let outcome = ask(run, second.outcome()).await??;
        assert_eq!(outcome.status, SagaStatus::Success);
        Ok(())
    })?;
    let calls = calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let [(first, _), (second, _)] = &calls[..] else {
        return Err(format!("{calls:?}").into());
    };
    assert_ne!(
        first, second,
        "a service does not take the second call for a repeat of the first"
    );
    assert!(calls.iter().all(|(_, item)| item == "book"), "{calls:?}");
    Ok(())
}

/// Ids of `$Sequence`: one for each element of a Loop and for each script, the same in every try and after a decision.
#[test]
fn ids_are_the_same_in_every_try_and_no_others_have_them() -> Tested {
    let machine = r#"{"Name": "ids", "StartState": "L", "States": {
        "L": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "note",
            "Input": ["$Sequence.ORDER|NO", "$.[loopElement]"], "Loop": {"Collection": "$.[list]", "Parallel": 0},
            "Next": "M"},
        "M": {"Type": "SubStateMachine", "StateMachineName": "below", "Input": [{"id": "$Sequence.ORDER|NO"}],
            "Loop": {"Collection": "$.[list]", "Parallel": 0}, "Next": "S"},
        "S": {"Type": "ScriptTask", "Input": [{"id": "$Sequence.ORDER|NO"}],
            "Retry": [{"Exceptions": ["x.Boom"], "IntervalSeconds": 1, "MaxAttempts": 1}], "Next": "Again"},
        "Again": {"Type": "ScriptTask", "Input": [{"id": "$Sequence.ORDER|NO"}]}}}"#;
    let below = r#"{"Name": "below", "StartState": "B", "States": {
        "B": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "note", "Input": ["$.[id]"]}}}"#;
    let log: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let noted = |log: &Arc<Mutex<Vec<(String, Value)>>>| {
        let log = Arc::clone(log);
        move |state: &str, id: &Value| {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push((state.to_owned(), id.clone()));
            // Each element, and the script, fails in its first two tries.
            log.iter().filter(|(_, known)| known == id).count() < 3
        }
    };
    let note = noted(&log);
    let script = noted(&log);
    let again = noted(&log);
    let sagas = Sagas::builder()
        .json("ids.json", machine)
        .json("below.json", below)
        .method(
            "svc",
            "note",
            async move |call: Call, (id, _): (Value, Option<Value>)| match note(call.state(), &id)
                && call.state() == "L"
            {
                true => Err(Fault::new("x.Boom", "boom")),
                false => Ok(()),
            },
        )
        .script("ids", "S", move |variables| {
            match script("S", variables.get("id").unwrap_or(&Value::Null)) {
                true => Err(Fault::new("x.Boom", "boom")),
                false => Ok(Value::Null),
            }
        })
        .script("ids", "Again", move |variables| {
            again("Again", variables.get("id").unwrap_or(&Value::Null));
            Ok(Value::Null)
        })
        .build()?;
    live(&World::new(), &sagas, async |run| {
        let machine = sagas.machine("ids")?.params(&json!({ "list": ["a", "b"] }))?;
        let handle = ask(run, run.executor.submit(machine).key("the saga").into_future()).await??;
        run.settle().await;
        let saga = run.executor.saga(handle.id());
        // A forward with params evaluates the Input of an element again, and one without them does not.
        ask(run, saga.forward(&json!({ "n": 1 }), by())).await??;
        run.settle().await;
        ask(run, saga.forward(&json!({}), by())).await??;
        run.pass(Duration::from_secs(1)).await;
        ask(run, saga.forward(&json!({}), by())).await??;
        run.settle().await;
        assert_eq!(status(&saga).await?, (SagaStatus::Success, None));
        Ok(())
    })?;
    let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let ids = |state: &str| -> Vec<String> {
        let of_state = log.iter().filter(|(of, _)| of == state);
        of_state.map(|(_, id)| id.to_string()).collect()
    };
    let mut all = BTreeSet::new();
    for (state, tries, different) in [("L", 6, 2), ("B", 2, 2), ("S", 3, 1), ("Again", 1, 1)] {
        let own = ids(state);
        let set: BTreeSet<String> = own.iter().cloned().collect();
        assert_eq!((own.len(), set.len()), (tries, different), "{state}: {log:?}");
        all.extend(set);
    }
    assert_eq!(all.len(), 6, "{log:?}");
    Ok(())
}
