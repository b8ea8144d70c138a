//! Calls: panics, time limits, and what services are told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::saga::{Call, Fault, Machine, Saga, SagaStatus, Sagas, Standing};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use procession_actors::Fence;
use procession_actors::clock::Clock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Tested;
use crate::kit::{ask, by, status};

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
    let handle = run.wait(run.executor.submit(machine).key("the saga")).await??;
    run.settle().await;
    Ok(run.executor.saga(handle.id()))
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
    live(&World::new(), &sagas, async |run| {
        let retried = start(&sagas, run, "retried").await?;
        assert_eq!(run.wait(retried.outcome()).await??.status, SagaStatus::Success);
        Ok(())
    })?;
    live(&World::new(), &sagas, async |run| {
        let caught = start(&sagas, run, "caught").await?;
        let instance = caught.instance().await?;
        let rest = instance.rests.first().ok_or("a panic is no java.lang.Exception")?;
        assert_eq!(rest.error.class.as_deref(), Some("procession.Panic"));
        // The worker is alive: it goes on with the second try.
        ask(run, caught.forward(&json!({}), by())).await??;
        run.settle().await;
        assert_eq!(status(&caught).await?, (SagaStatus::Success, None));
        Ok(())
    })
}

#[test]
fn g_036_a_late_call_is_in_doubt() -> Tested {
    let world = World::new();
    let clock = world.clock.clone();
    let sagas = Sagas::builder()
        .json("late.json", one("late", r#", "IsForUpdate": true"#))
        .method("svc", "late", async move |_: Call, (): ()| -> Result<(), Fault> {
            let until = clock.now().after(Duration::from_secs(10));
            clock.sleep_until(until).await;
            Ok(())
        })
        .call_timeout("svc", Duration::from_secs(3))
        .build()?;
    live(&world, &sagas, async |run| {
        let saga = start(&sagas, run, "late").await?;
        run.pass(Duration::from_millis(2_999)).await;
        assert_eq!(saga.instance().await?.standing, Standing::Running);
        run.pass(Duration::from_millis(1)).await;
        let instance = saga.instance().await?;
        assert_eq!(instance.standing, Standing::Rests);
        assert_eq!(
            instance.states.first().map(|state| state.status),
            Some(SagaStatus::Unknown)
        );
        let rest = instance.rests.first().ok_or("it rests")?;
        assert_eq!(rest.error.class.as_deref(), Some("procession.Timeout"));
        Ok(())
    })
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
    let sagas = Sagas::builder()
        .json("told.json", machine)
        .method(
            "svc",
            "call",
            async move |call: Call, _: Vec<Value>| -> Result<(), Fault> {
                let calls = {
                    let mut log = told.lock().unwrap_or_else(PoisonError::into_inner);
                    log.push(Told {
                        state: call.state().to_owned(),
                        token: call.token().to_string(),
                        attempt: call.attempt(),
                        fence: call.fence(),
                    });
                    log.len()
                };
                match (call.state(), calls) {
                    ("S1", 1 | 2) | ("S2", _) => Err(Fault::new("x.Boom", "boom")),
                    ("S1", 3) => std::future::pending().await,
                    _ => Ok(()),
                }
            },
        )
        .build()?;
    let world = World::new();
    live(&world, &sagas, async |run| {
        let saga = start(&sagas, run, "told").await?;
        run.pass(Duration::from_secs(1)).await;
        assert_eq!(saga.instance().await?.standing, Standing::Rests);
        ask(run, saga.forward(&json!({}), by())).await??;
        run.settle().await;
        Ok(())
    })?;
    live(&world, &sagas, async |run| {
        let saga = start(&sagas, run, "told").await?;
        let outcome = run.wait(saga.outcome()).await??;
        assert_eq!(
            (outcome.status, outcome.compensation),
            (SagaStatus::Unknown, Some(SagaStatus::Success))
        );
        Ok(())
    })?;
    let log = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let calls: Vec<(&str, u32)> = log.iter().map(|told| (told.state.as_str(), told.attempt)).collect();
    let expected = [
        ("S1", 1),
        ("S1", 2),
        ("S1", 3),
        ("S1", 3),
        ("S2", 1),
        ("S2'", 1),
        ("S1'", 1),
    ];
    assert_eq!(calls, expected);
    assert!(
        log.is_sorted_by(|earlier, later| earlier.fence < later.fence),
        "{log:?}"
    );
    let token = |place: usize| log.get(place).map(|told| told.token.clone()).unwrap_or_default();
    assert!(
        (1..4).all(|place| token(place) == token(0)),
        "one for all tries: {log:?}"
    );
    assert_ne!(token(4), token(0));
    assert_eq!(token(5), format!("{}-c", token(4)));
    assert_eq!(token(6), format!("{}-c", token(0)));
    Ok(())
}

/// A procedure of the host's own that runs a saga as a child.
#[derive(Serialize, Deserialize)]
struct Host {
    saga: Machine,
}

impl Procedure for Host {
    const KIND: &'static str = "host";
    type Stage = bool;
    type Env = ();
    type Output = ();

    fn first(&self) -> bool {
        false
    }

    async fn execute(&mut self, is_back: bool, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if is_back {
            return Ok(Step::Done(()));
        }
        let children = Children::new().and_compensated(&self.saga)?;
        Ok(Step::Spawn { children, then: true })
    }
}

#[test]
fn g_036_a_call_names_its_saga_in_whatever_member_it_is_made() -> Tested {
    let outer = r#"{"Name": "outer", "StartState": "Task", "States": {
        "Task": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "log", "Next": "Sub"},
        "Sub": {"Type": "SubStateMachine", "StateMachineName": "inner", "Next": "Sent"},
        "Sent": {"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "log", "IsAsync": true}}}"#;
    let log: Arc<Mutex<Vec<(ProcedureId, u32)>>> = Arc::default();
    let calls = Arc::clone(&log);
    let called = async move |call: Call, (): ()| -> Result<(), Fault> {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push((call.saga(), call.member().member));
        Ok(())
    };
    let inner = one("inner", "").replace(r#""ServiceMethod": "inner""#, r#""ServiceMethod": "log""#);
    let sagas = Sagas::builder()
        .json("outer.json", outer)
        .json("inner.json", inner)
        .method("svc", "log", called)
        .build()?;
    let set_up = |builder: Builder| builder.sagas(sagas.clone()).register::<Host>(());
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let saga = sagas.machine("outer")?;
            let host = run.wait(run.executor.submit(Host { saga })).await??;
            run.settle().await;
            let saga = ProcedureId::new(host.id().family, 1);
            let calls = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
            assert_eq!(
                calls,
                [(saga, 1), (saga, 2), (saga, 0)],
                "the last one is a family of its own"
            );
            Ok(())
        })?
        .done()
}
