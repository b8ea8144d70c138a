//! Keys and decisions: what is refused, and what two people decide at once.

use std::time::Duration;

use procession::errors::SubmitError;
use procession::saga::{DecideError, Saga, SagaStatus, Standing};
use procession::status::WaitReason;
use procession::testkit::{FaultPlan, Run};
use serde_json::json;

use crate::Tested;
use crate::kit::{Ground, RECOVERY, RECOVERY_MACHINE, ask, by, crashed, release, status};

fn ground() -> Result<Ground, procession::testkit::Trouble> {
    Ground::new(&[RECOVERY], RECOVERY_MACHINE)
}

#[test]
fn g_001_the_key_is_the_business_key() -> Tested {
    let ground = Ground::new(&["simple_statelang.json"], "simpleTestStateMachine")?;
    ground.live(async |run| {
        let first = ground.start(run, "order-42", json!({})).await?;
        let again = ground.start(run, "order-42", json!({})).await?;
        assert_eq!(first.id(), again.id());
        assert_eq!(ground.calls(), ["FirstState", "SecondState"]);
        let other = ground
            .sagas
            .machine("simpleTestStateMachine")?
            .params(&json!({ "a": 1 }))?;
        let refused = run.wait(run.executor.submit(other).key("order-42")).await?;
        assert!(
            matches!(&refused, Err(SubmitError::KeyConflict { id, .. }) if *id == first.id()),
            "{refused:?}"
        );
        Ok(())
    })
}

#[test]
fn a_call_that_process_after_process_died_with_is_listed_as_unknown_and_undone() -> Tested {
    let ground = ground()?;
    ground.rules(json!([{ "state": "SecondState", "held": true }]))?;
    let id = ground.live(async |run| Ok(ground.start(run, "order", json!({ "a": 1 })).await?.id()))?;
    for _ in 0..2 {
        ground.live(async |run| {
            run.settle().await;
            Ok(())
        })?;
    }
    ground.live(async |run| {
        run.settle().await;
        let saga = run.executor.saga(id);
        assert_eq!(run.executor.status(id).await?.wait, Some(WaitReason::Poison));
        let listed = async || -> Result<Vec<(String, SagaStatus, bool)>, procession::testkit::Trouble> {
            let states = saga.instance().await?.states.into_iter();
            Ok(states.map(|of| (of.state, of.status, of.is_compensated)).collect())
        };
        let first = |is_undone| ("FirstState".to_owned(), SagaStatus::Success, is_undone);
        assert_eq!(listed().await?, [first(false)]);
        ask(run, saga.compensate(by())).await??;
        run.settle().await;
        let second = ("SecondState".to_owned(), SagaStatus::Unknown, true);
        assert_eq!(listed().await?, [first(true), second]);
        let died = saga.instance().await?.states.pop().and_then(|state| state.fault);
        let why = (
            "procession.Panic".to_owned(),
            "the process died while it ran".to_owned(),
        );
        assert_eq!(died, Some(why));
        Ok(())
    })
}

#[test]
fn a_state_of_a_sub_machine_is_shown_as_undone_whatever_has_its_name_above() -> Tested {
    let files = ["same_name.json", "simple_statelang_with_compensation.json"];
    let ground = Ground::new(&files, "sameName")?;
    ground.live(async |run| {
        let saga = ground.start(run, "order", json!({ "a": 1 })).await?;
        let states = saga.instance().await?.states.into_iter();
        let mut undone: Vec<(String, bool)> = states
            .filter(|of| of.state != "Sub")
            .map(|of| (of.state, of.is_compensated))
            .collect();
        undone.sort();
        let of = |state: &str, is_undone| (state.to_owned(), is_undone);
        let expected = [of("FirstState", false), of("FirstState", true), of("SecondState", true)];
        assert_eq!(undone, expected);
        Ok(())
    })
}

/// One saga in each standing.
struct Each {
    runs: Saga,
    rests: Saga,
    succeeded: Saga,
    undone: Saga,
    stuck: Saga,
}

async fn each(ground: &Ground, run: &Run) -> Result<Each, procession::testkit::Trouble> {
    let start = async |key, params| ground.start(run, key, params).await;
    let rests = start("rests", json!({ "a": 1, "fooThrowException": "true" })).await?;
    let succeeded = start("succeeded", json!({ "a": 1 })).await?;
    let undone = start("undone", json!({ "a": 1, "barThrowException": "true" })).await?;
    let failing = json!({ "a": 1, "barThrowException": "true", "compensateFooThrowException": "true" });
    let stuck = start("stuck", failing).await?;
    run.pass(Duration::from_secs(5)).await;
    ground.rules(json!([{ "state": "SecondState", "held": true }]))?;
    let runs = start("runs", json!({ "a": 1 })).await?;
    Ok(Each {
        runs,
        rests,
        succeeded,
        undone,
        stuck,
    })
}

#[test]
fn g_015_decisions_that_are_refused_change_nothing() -> Tested {
    let ground = ground()?;
    ground.live(async |run| {
        let each = each(&ground, run).await?;
        let standings = [
            (&each.runs, Standing::Running),
            (&each.rests, Standing::Rests),
            (&each.succeeded, Standing::Ended),
            (&each.undone, Standing::Ended),
            (&each.stuck, Standing::CompensationRests),
        ];
        for (saga, standing) in standings {
            assert_eq!(saga.instance().await?.standing, standing);
        }
        let commits = run.store.commits();
        let does_not_rest = [
            (&each.runs, "the saga does not rest: it is at [SecondState]"),
            (&each.succeeded, "the saga does not rest: it has ended"),
            (&each.undone, "the saga does not rest: it has ended"),
            (
                &each.stuck,
                "the saga does not rest: it is being rolled back, and its rollback rests at [FirstState]",
            ),
        ];
        for (saga, why) in does_not_rest {
            for refused in [
                ask(run, saga.forward(&json!({}), by())).await?,
                ask(run, saga.skip(&json!({}), by())).await?,
            ] {
                let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
                assert!(refused.starts_with(why), "{refused}");
            }
        }
        for saga in [&each.runs, &each.rests, &each.succeeded, &each.undone] {
            assert!(ask(run, saga.skip_compensation(by())).await?.is_err());
        }
        for saga in [&each.succeeded, &each.undone] {
            let refused = ask(run, saga.compensate(by())).await?;
            assert!(refused.is_err_and(|error| error.to_string().contains("has ended")));
        }
        run.settle().await;
        assert_eq!(run.store.commits(), commits, "what is refused commits nothing");
        Ok(())
    })
}

#[test]
fn g_015_a_dry_run_tells_and_does_nothing() -> Tested {
    let ground = ground()?;
    ground.live(async |run| {
        let each = each(&ground, run).await?;
        let commits = run.store.commits();
        for decided in [
            ask(run, each.rests.forward(&json!({}), by().dry_run())).await??,
            ask(run, each.rests.skip(&json!({}), by().dry_run())).await??,
        ] {
            let at: Vec<&str> = decided.members.iter().map(|member| member.state.as_str()).collect();
            assert_eq!(at, ["FirstState"]);
        }
        let planned = ask(run, each.rests.compensate(by().dry_run())).await??;
        let plan = planned.plan.ok_or("a dry run has a plan")?;
        let history = run.executor.history(each.rests.id()).await?;
        let undone = plan.stages(&history);
        assert_eq!(undone.len(), 1, "{undone:?}");
        assert!(undone.iter().all(|stage| stage.why.is_none()));
        assert!(ask(run, each.stuck.skip_compensation(by().dry_run())).await?.is_ok());
        run.settle().await;
        assert_eq!(run.store.commits(), commits);
        assert_eq!(each.rests.instance().await?.standing, Standing::Rests);
        Ok(())
    })
}

#[test]
fn g_015_of_two_forwards_at_once_one_acts() -> Tested {
    for seed in 0..200 {
        let ground = ground()?;
        ground.live_with(&ground.sagas, FaultPlan::none().late(seed, 8), async |run| {
            let params = json!({ "a": 1, "fooThrowException": "true" });
            let saga = ground.start(run, "the saga", params).await?;
            run.settle().await;
            ground.calls();
            // What goes on does not come to rest again before both are answered.
            ground.rules(json!([{ "state": "FirstState", "held": true }]))?;
            let (one, two) = (json!({ "by": 1 }), json!({ "by": 2 }));
            let both = async { futures::join!(saga.forward(&one, by()), saga.forward(&two, by())) };
            let (first, second) = run.wait(both).await?;
            run.settle().await;
            let acted = [first.is_ok(), second.is_ok()];
            assert_eq!(
                acted.iter().filter(|acted| **acted).count(),
                1,
                "seed {seed}: {first:?}, {second:?}"
            );
            let other = first.err().or(second.err());
            assert!(
                matches!(other, Some(DecideError::Superseded | DecideError::NotResting { .. })),
                "seed {seed}: {other:?}"
            );
            // It rests again, and what was superseded is not kept for that.
            ground.rules(json!([]))?;
            run.settle().await;
            let instance = saga.instance().await?;
            assert_eq!(instance.standing, Standing::Rests);
            assert_eq!(instance.context.get("by"), Some(&json!(if acted[0] { 1 } else { 2 })));
            assert_eq!(ground.calls(), ["FirstState"], "seed {seed}");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn g_015_an_answer_that_is_no_decision_leaves_it_at_rest() -> Tested {
    let ground = ground()?;
    ground.live(async |run| {
        let params = json!({ "a": 1, "fooThrowException": "true" });
        let saga = ground.start(run, "the saga", params).await?;
        ground.calls();
        ask(run, run.executor.decide(saga.id(), &"yes", by())).await??;
        run.settle().await;
        let instance = saga.instance().await?;
        assert_eq!(instance.standing, Standing::Rests);
        assert_eq!(instance.rests.len(), 1);
        assert!(ground.calls().is_empty());
        // A retry is a forward without params.
        ground.rules(json!([{ "state": "FirstState", "answer": { "n": 1 } }]))?;
        ask(run, run.executor.retry_now(saga.id(), by())).await??;
        run.settle().await;
        assert_eq!(ground.calls(), ["FirstState", "SecondState"]);
        assert_eq!(status(&saga).await?, (SagaStatus::Success, None));
        Ok(())
    })
}

/// As the scenario, each time with a crash. A decision that is sent again has the same key.
#[test]
fn g_015_of_two_forwards_one_acts_however_the_engine_crashes() -> Tested {
    let ground = ground()?;
    crashed(
        &ground.sagas,
        6,
        || ground.double.begin_anew(ground.world.clock.clone()),
        |builder| builder,
        async |run| {
            let params = json!({ "a": 1, "fooThrowException": "true" });
            let saga = ground.start(run, "the saga", params).await?;
            release(run, &saga).await?;
            let forward = async |number: u32| {
                let by = by().key(format!("forward {number}"));
                saga.forward(&json!({ "by": number, "fooThrowException": null }), by)
                    .await
            };
            let (first, second) = ask(run, async { futures::join!(forward(1), forward(2)) }).await?;
            let other = match (first, second) {
                (Ok(_), Err(other)) => other,
                both => return Err(format!("{both:?}").into()),
            };
            let is_said = matches!(other, DecideError::Superseded | DecideError::NotResting { .. });
            assert!(is_said, "{other:?}");
            run.settle().await;
            release(run, &saga).await?;
            let instance = saga.instance().await?;
            assert_eq!(instance.standing, Standing::Ended);
            assert_eq!(instance.context.get("by"), Some(&json!(1)));
            Ok(())
        },
    )
}

#[test]
fn g_015_a_stray_answer_and_a_retry_however_the_engine_crashes() -> Tested {
    let ground = ground()?;
    crashed(
        &ground.sagas,
        6,
        || ground.double.begin_anew(ground.world.clock.clone()),
        |builder| builder,
        async |run| {
            let params = json!({ "a": 1, "fooThrowException": "true" });
            let saga = ground.start(run, "the saga", params).await?;
            release(run, &saga).await?;
            ask(run, run.executor.decide(saga.id(), &"yes", by().key("stray"))).await??;
            run.settle().await;
            release(run, &saga).await?;
            // The rule outlasts the engine, so it is there for a call that a crash cuts off.
            ground.rules(json!([{ "state": "FirstState", "answer": { "n": 1 } }]))?;
            ask(run, run.executor.retry_now(saga.id(), by().key("retry"))).await??;
            run.settle().await;
            release(run, &saga).await?;
            assert_eq!(status(&saga).await?, (SagaStatus::Success, None));
            Ok(())
        },
    )
}

/// A plan is for the members that it lists: of those that have gone, or come, the act is refused.
#[test]
fn g_015_a_plan_is_for_the_members_that_it_lists() -> Tested {
    let ground = Ground::new(&["fork.json"], "fork")?;
    ground.live(async |run| {
        ground.rules(json!([
            { "state": "A1", "fault": { "class": "x.Boom" } },
            { "state": "B1", "fault": { "class": "x.Boom" } },
        ]))?;
        let saga = ground.start(run, "the saga", json!({})).await?;
        let plan = ask(run, saga.forward(&json!({}), by().dry_run())).await??;
        assert_eq!(plan.members.len(), 2);
        ground.rules(json!([]))?;
        // Whichever of them goes on, the plan was for both.
        let first = plan
            .members
            .iter()
            .min_by_key(|member| member.since)
            .ok_or("it rests")?;
        let branch = run.executor.saga(first.id);
        let alone = ask(run, branch.forward(&json!({}), by().dry_run())).await??;
        ask(run, branch.forward(&json!({}), by().expecting(alone.revision))).await??;
        run.settle().await;
        let commits = run.store.commits();
        for decided in [
            ask(run, saga.forward(&json!({}), by().expecting(plan.revision))).await?,
            ask(run, saga.skip(&json!({}), by().expecting(plan.revision))).await?,
            ask(run, saga.forward(&json!({}), by().expecting(plan.revision).dry_run())).await?,
        ] {
            assert!(matches!(decided, Err(DecideError::Superseded)), "{decided:?}");
        }
        assert_eq!(run.store.commits(), commits);
        let again = ask(run, saga.forward(&json!({}), by().dry_run())).await??;
        assert_eq!(again.members.len(), 1);
        ask(run, saga.forward(&json!({}), by().expecting(again.revision))).await??;
        run.settle().await;
        assert_eq!(status(&saga).await?, (SagaStatus::Success, None));
        Ok(())
    })?;
    Ok(())
}

#[test]
fn g_013_a_rollback_that_rests_has_a_verdict() -> Tested {
    let ground = ground()?;
    ground.live(async |run| {
        let failing = json!({ "a": 1, "barThrowException": "true", "compensateFooThrowException": "true" });
        let saga = ground.start(run, "the saga", failing).await?;
        run.pass(Duration::from_secs(5)).await;
        let verdicts = run.executor.verdicts().await?;
        let verdict = verdicts.iter().find(|verdict| verdict.procedure == Some(saga.id()));
        let verdict = verdict.ok_or("nobody is told of it")?;
        assert_eq!(verdict.rule.to_string(), "rollback_failed", "{verdict:?}");
        Ok(())
    })
}
