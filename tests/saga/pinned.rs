//! Definitions that change, and services that go, while sagas are on their way.

use std::cell::Cell;
use std::time::Duration;

use procession::operate::PauseScope;
use procession::procedure::Kind;
use procession::saga::{Saga, SagaStatus, Sagas, Standing};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, ProcedureId};
use serde_json::json;

use crate::Tested;
use crate::kit::{Ground, KEPT, ask, by, crash_in_each_life, status};
use crate::runner::Double;

/// Two machines that can reach each other, in a version whose last states have this number.
fn circle(version: u32) -> [(String, String); 2] {
    let task = |method: &str, next: &str| {
        format!(r#"{{"Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "{method}"{next}}}"#)
    };
    let sub = |machine: &str, next: &str| {
        format!(
            r#"{{"Type": "SubStateMachine", "StateMachineName": "{machine}", "Input": [{{"a": "$.[a]"}}], "Next": "{next}"}}"#
        )
    };
    let outer = format!(
        r#"{{"Name": "outer", "StartState": "S1", "States": {{"S1": {}, "Inner": {}, "O{version}": {}}}}}"#,
        task("s1", r#", "Next": "Inner""#),
        sub("inner", &format!("O{version}")),
        task("o", ""),
    );
    let inner = format!(
        r#"{{"Name": "inner", "StartState": "I1", "States": {{"I1": {}, "Which": {{"Type": "Choice",
            "Choices": [{{"Expression": "[a] == 'again'", "Next": "Outer"}}], "Default": "J{version}"}},
            "Outer": {}, "J{version}": {}}}}}"#,
        task("i1", r#", "IsForUpdate": true, "Next": "Which""#),
        sub("outer", &format!("J{version}")),
        task("j", ""),
    );
    [("outer.json".to_owned(), outer), ("inner.json".to_owned(), inner)]
}

fn registered(double: &Double, files: &[(String, String)]) -> Result<Sagas, Trouble> {
    let texts: Vec<Vec<u8>> = files.iter().map(|(_, text)| text.clone().into_bytes()).collect();
    let named = files
        .iter()
        .fold(Sagas::builder(), |builder, (name, text)| builder.json(name, text));
    Ok(double.register(named, &texts).build()?)
}

/// Starts a saga of this key and params, whose kind may be paused.
async fn submit(sagas: &Sagas, run: &Run, key: &str) -> Result<Saga, Trouble> {
    let machine = sagas.machine("outer")?.params(&json!({ "a": 1 }))?;
    let handle = run.wait(run.executor.submit(machine).key(key)).await??;
    run.settle().await;
    Ok(run.executor.saga(handle.id()))
}

#[test]
fn g_032_pinned() -> Tested {
    let ground = Ground::new(&[], "outer")?;
    let (old, new) = (
        registered(&ground.double, &circle(1))?,
        registered(&ground.double, &circle(2))?,
    );
    let outer = || PauseScope::Kind(Kind::from("saga.outer"));
    let (first, waiting) = ground.live_with(&old, FaultPlan::none(), async |run| {
        ground.rules(json!([{ "state": "I1", "fault": { "class": "x.Boom" } }]))?;
        let first = submit(&old, run, "first").await?;
        assert_eq!(first.instance().await?.standing, Standing::Rests);
        assert_eq!(ground.calls(), ["S1", "I1"]);
        ask(run, run.executor.pause(outer(), by())).await??;
        let waiting = submit(&old, run, "waiting").await?;
        assert!(ground.calls().is_empty());
        Ok((first.id(), waiting.id()))
    })?;
    ground.live_with(&new, FaultPlan::none(), async |run| {
        ground.rules(json!([]))?;
        ask(run, run.executor.resume(outer(), by())).await??;
        run.settle().await;
        assert_eq!(ground.calls(), ["S1", "I1", "J2", "O2"], "it had not begun");
        let again = submit(&new, run, "waiting").await?;
        assert_eq!(again.id(), waiting, "the key stands for the same saga");
        let saga = run.executor.saga(first);
        ask(run, saga.forward(&json!({}), by())).await??;
        run.settle().await;
        assert_eq!(ground.calls(), ["I1", "J1", "O1"], "it goes on by what it began with");
        assert_eq!(status(&saga).await?, (SagaStatus::Success, None));
        submit(&new, run, "new").await?;
        assert_eq!(ground.calls(), ["S1", "I1", "J2", "O2"]);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn g_033_a_service_that_is_gone() -> Tested {
    let two = r#"{"Name": "two", "StartState": "First", "States": {
        "First": {"Type": "ServiceTask", "ServiceName": "demoService", "ServiceMethod": "foo", "Next": "Second"},
        "Second": {"Type": "ServiceTask", "ServiceName": "demoService", "ServiceMethod": "bar",
            "Retry": [{"Exceptions": ["java.lang.Throwable"], "IntervalSeconds": 60, "MaxAttempts": 1}]}}}"#;
    let one = r#"{"Name": "one", "StartState": "First", "States": {
        "First": {"Type": "ServiceTask", "ServiceName": "demoService", "ServiceMethod": "foo"}}}"#;
    let file = |name: &str, text: &str| (format!("{name}.json"), text.to_owned());
    let ground = Ground::new(&[], "two")?;
    let both = registered(&ground.double, &[file("two", two), file("one", one)])?;
    let without = registered(&ground.double, &[file("one", one)])?;
    let fresh = || {
        let world = World::new();
        ground.double.begin_anew(world.clock.clone());
        (world, Cell::new(None))
    };
    type Left = (World, Cell<Option<ProcedureId>>);
    let begins = |(world, id): &Left, plan: FaultPlan| {
        ground.rules(json!([{ "state": "Second", "fault": { "class": "x.Boom" } }]))?;
        world.run(plan, given(&both), async |run| {
            let saga = ground.start_of(&both, run, "the saga", json!({})).await?;
            id.set(Some(saga.id()));
            Ok(())
        })
    };
    let lacks_it = |(world, id): &Left, plan: FaultPlan| {
        ground.rules(json!([]))?;
        world.run(plan, given(&without), async |run| {
            let other = without.machine("one")?;
            let other = run.wait(run.executor.submit(other).key("other")).await??;
            run.pass(Duration::from_hours(24)).await;
            assert!(run.executor.status(other.id()).await?.ended.is_some());
            let id = id.get().ok_or("it was submitted")?;
            let row = run.executor.status(id).await?;
            assert!(row.set_aside, "{row:?}");
            let why = format!("{:?}", run.executor.explain(id).await?);
            assert!(
                why.contains("state [Second]: service [demoService] has no method [bar]"),
                "{why}"
            );
            Ok(())
        })
    };
    let has_it_again = |(world, id): &Left, plan: FaultPlan| {
        world.run(plan, given(&both), async |run| {
            let saga = run.executor.saga(id.get().ok_or("it was submitted")?);
            let outcome = run.wait(saga.outcome()).await??;
            assert_eq!(outcome.status, SagaStatus::Success);
            Ok(())
        })
    };
    let crashes = crash_in_each_life(fresh, &[&begins, &lacks_it, &has_it_again], |_| {
        // A call is made again that a crash cut off. While the service is gone the other saga alone runs.
        let mut calls = ground.calls();
        calls.dedup();
        assert_eq!(calls, ["First", "Second", "First", "Second"]);
        Ok(())
    })?;
    assert!(crashes > 10, "{crashes}");
    Ok(())
}

/// Lets an engine run these sagas.
fn given(sagas: &Sagas) -> impl FnOnce(Builder) -> Builder {
    let sagas = sagas.clone();
    move |builder| builder.sagas(sagas).retention(KEPT, KEPT)
}

#[test]
fn g_032_definitions_are_stored_however_the_start_crashes() -> Tested {
    for commit in 0.. {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let ground = Ground::new(&[], "outer")?;
            let (old, new) = (
                registered(&ground.double, &circle(1))?,
                registered(&ground.double, &circle(2))?,
            );
            ground.rules(json!([{ "state": "I1", "fault": { "class": "x.Boom" } }]))?;
            let start = async |run: &Run| submit(&old, run, "first").await;
            let set_up = |builder: procession::Builder| builder.sagas(old.clone());
            let ended = ground.world.run(FaultPlan::at(commit, fault), set_up, start)?;
            if let Ended::Done(_) = ended {
                assert!(commit > 6, "two files and two bundles are stored, and the saga begins");
                return Ok(());
            }
            let first = ground.live_with(&old, FaultPlan::none(), async |run| Ok(start(run).await?.id()))?;
            ground.calls();
            ground.rules(json!([]))?;
            ground.live_with(&new, FaultPlan::none(), async |run| {
                let saga = run.executor.saga(first);
                ask(run, saga.forward(&json!({}), by())).await??;
                run.settle().await;
                assert_eq!(ground.calls(), ["I1", "J1", "O1"], "commit {commit}, {fault:?}");
                Ok(())
            })?;
        }
    }
    Ok(())
}
