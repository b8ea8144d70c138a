//! Rates: so many begins in a time, whatever else happens: crashes, restarts, a clock that is set back.

use std::time::Duration;

use procession::errors::{StartError, SubmitError};
use procession::health::WakeSource;
use procession::limits::{Limit, LimitKey, RateUse};
use procession::messages::{Submit, SubmitBatch};
use procession::operate::OperatorRequest;
use procession::procedure::Timestamp;
use procession::provider::Clock;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, Executor};

use super::limits::{submit, usage};
use crate::lifecycle::kit::{crash, enumerate_in};
use crate::support::{Act, Lab, Limited, Plan, Planned, Tested, kinds, plan};

const MINUTE: Duration = Duration::from_secs(60);
const CALLS: &str = "calls";

/// One call in its second stage.
fn calling(name: &str) -> Plan {
    plan(name, [Act::Next, Act::Next, Act::Done(7)]).limited_in(2, CALLS)
}

fn paced(limit: Limit) -> impl Fn(&Lab, Builder) -> Builder {
    move |lab, builder| kinds(lab, builder).limit(CALLS, limit)
}

fn live<T>(limit: Limit, drive: impl AsyncFnOnce(&Lab, &Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
    let lab = Lab::default();
    let ended = World::new().run(
        FaultPlan::none(),
        |builder| paced(limit)(&lab, builder),
        async |run: &Run| drive(&lab, run).await,
    );
    ended?.done()
}

async fn rate(run: &Run) -> Result<RateUse, Trouble> {
    Ok(usage(run, CALLS).await?.rate.ok_or("the limit has a rate")?)
}

#[test]
fn no_more_begin_in_a_minute_than_the_rate_allows() -> Tested {
    let (_, lab) = enumerate_in(
        Lab::default,
        paced(Limit::per(2, MINUTE)),
        async |lab: &Lab, run: &Run| {
            let mut handles = Vec::new();
            for name in ["a", "b", "c", "d", "e"] {
                handles.push(submit(run, Planned(calling(name)), name).await?);
            }
            run.settle().await;
            let calls = |lab: &Lab| {
                ["a2", "b2", "c2", "d2", "e2"]
                    .iter()
                    .filter(|call| lab.has(call))
                    .count()
            };
            let first = calls(lab);
            assert!(
                first <= 2 || run.world.clock.now().since(Timestamp(0)) >= MINUTE,
                "{}",
                lab.line()
            );
            for handle in handles {
                assert_eq!(run.wait(handle.outcome()).await??, 7);
            }
            assert!(
                run.world.clock.now().since(Timestamp(0)) >= MINUTE * 2,
                "the last waits for two minutes"
            );
            assert_eq!(usage(run, CALLS).await?.used, 0);
            Ok(())
        },
    )?;
    assert!(lab.has("e3"));
    Ok(())
}

#[test]
fn one_that_waits_says_for_what_and_until_when() -> Tested {
    live(Limit::per(1, MINUTE), async |lab, run| {
        submit(run, Planned(calling("a")), "a").await?;
        let b = submit(run, Planned(calling("b")), "b").await?;
        run.settle().await;
        assert_eq!(
            run.executor.status(b.id()).await?.wait,
            Some(WaitReason::Permit(CALLS.into()))
        );
        let begun = rate(run).await?;
        let free_at = run.world.clock.now().after(MINUTE);
        assert_eq!((begun.begun, begun.free_at), (1, Some(free_at)));
        let explained = run.executor.explain(b.id()).await?;
        assert!(
            explained.deadlocks.is_empty() && explained.links.is_empty(),
            "{explained:?}"
        );
        let ends: Vec<_> = explained.ends.iter().map(|end| (end.id, end.until.clone())).collect();
        assert_eq!(ends, [(b.id(), WakeSource::Timer(free_at))]);
        // One behind it waits for it, and it for the time.
        let c = submit(run, Planned(calling("c")), "c").await?;
        run.settle().await;
        let behind = run.executor.explain(c.id()).await?;
        let links: Vec<_> = behind.links.iter().map(|link| (link.from, link.to)).collect();
        assert_eq!(links, [(c.id(), b.id())]);
        assert_eq!(behind.ends, explained.ends);
        run.pass(MINUTE - Duration::from_millis(1)).await;
        assert!(!lab.has("b2"));
        run.pass(Duration::from_millis(1)).await;
        assert!(lab.has("b3"));
        assert!(run.executor.verdicts().await?.is_empty());
        Ok(())
    })
}

#[test]
fn a_batch_that_is_refused_uses_nothing_of_a_rate() -> Tested {
    live(Limit::per(1, MINUTE), async |_, run| {
        let call = |name: &str, key: &str| -> Result<Submit, Trouble> {
            Ok(Submit::new(&Planned(plan(name, [Act::Done(7)]).limited_in(1, CALLS)))?.key(key))
        };
        let plain = |name: &str| Submit::new(&Planned(plan(name, [Act::Done(7)])));
        let batch = SubmitBatch(vec![plain("a")?.key("k")]);
        run.executor.supervisor().send(batch).await??;
        let batch = SubmitBatch(vec![call("b", "b")?, plain("c")?.key("k")]);
        let refused = run.executor.supervisor().send(batch).await?;
        assert!(matches!(refused, Err(SubmitError::KeyConflict { .. })), "{refused:?}");
        run.settle().await;
        assert_eq!(rate(run).await?.begun, 0);
        let d = submit(run, Planned(plan("d", [Act::Done(7)]).limited_in(1, CALLS)), "d").await?;
        run.settle().await;
        let status = run.executor.status(d.id()).await?;
        assert_eq!(status.state, ProcedureState::Success, "it waits for no time");
        assert_eq!(rate(run).await?.begun, 1);
        Ok(())
    })
}

#[test]
fn a_restart_hands_out_nothing_that_was_used_up() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| paced(Limit::per(2, MINUTE))(&lab, builder);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            for name in ["a", "b"] {
                let handle = submit(run, Planned(calling(name)), name).await?;
                assert_eq!(run.wait(handle.outcome()).await??, 7);
            }
            run.pass(Duration::from_secs(20)).await;
            Ok(())
        })?
        .done()?;
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            assert_eq!(rate(run).await?.begun, 2);
            let c = submit(run, Planned(calling("c")), "c").await?;
            run.settle().await;
            assert!(!lab.has("c2"), "{}", lab.line());
            run.pass(Duration::from_secs(40)).await;
            assert!(lab.has("c2"));
            assert_eq!(run.wait(c.outcome()).await??, 7);
            Ok(())
        })?
        .done()
}

#[test]
fn what_a_crash_lost_has_not_begun() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| paced(Limit::per(1, MINUTE))(&lab, builder);
    // The start, the submission, and then the stage's end, which brings the grant.
    let fault = FaultPlan::at(2, Fault::CrashBefore);
    world.run(fault, set_up, async |run: &Run| {
        submit(run, Planned(calling("a")), "a").await?;
        run.settle().await;
        crash::<Result<(), Trouble>>(run).await
    })?;
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let a = submit(run, Planned(calling("a")), "a").await?;
            run.settle().await;
            assert!(lab.has("a2"), "{}", lab.line());
            assert_eq!(run.wait(a.outcome()).await??, 7);
            Ok(())
        })?
        .done()
}

#[test]
fn a_clock_that_is_set_back_blocks_for_one_period_at_most() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    world.clock.advance_to(Timestamp(86_400_000_000));
    let set_up = |builder| paced(Limit::per(1, MINUTE))(&lab, builder);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            submit(run, Planned(calling("a")), "a").await?;
            submit(run, Planned(calling("b")), "b").await?;
            run.settle().await;
            assert!(!lab.has("b2"));
            run.world.clock.set_back_to(Timestamp(0));
            run.pass(MINUTE).await;
            assert!(lab.has("b2"), "{}", lab.line());
            Ok(())
        })?
        .done()
}

#[test]
fn attempts_and_undos_count_and_so_do_admissions_of_a_kind() -> Tested {
    live(Limit::per(2, MINUTE), async |lab, run| {
        let again = plan("a", [Act::Retry(1, Box::new(Act::Fail("boom".to_owned())))]).limited_in(1, CALLS);
        let a = submit(run, Planned(again), "a").await?;
        run.pass(Duration::from_secs(30)).await;
        assert_eq!(lab.line(), "a1 a1");
        assert_eq!(run.executor.status(a.id()).await?.state, ProcedureState::Failed);
        run.pass(MINUTE).await;
        assert_eq!(lab.line(), "a1 a1 a1'");
        let by = OperatorRequest::new("ann", "one an hour");
        run.executor
            .set_limit("limited", Limit::per(1, MINUTE * 60), by)
            .await?;
        submit(run, Limited(plan("b", [Act::Done(1)])), "b").await?;
        let c = submit(run, Limited(plan("c", [Act::Done(1)])), "c").await?;
        run.settle().await;
        assert_eq!(
            run.executor.status(c.id()).await?.wait,
            Some(WaitReason::Permit("limited".into()))
        );
        run.pass(MINUTE * 60).await;
        assert!(lab.has("c1"));
        Ok(())
    })
}

/// The limiter reads no clock as long as no limit has a rate.
#[test]
fn the_first_rate_counts_from_the_moment_it_is_set() -> Tested {
    live(Limit::at_once(0), async |lab, run| {
        for name in ["a", "b", "c", "d", "e"] {
            submit(run, Planned(calling(name)), name).await?;
        }
        run.pass(MINUTE * 60).await;
        let by = OperatorRequest::new("ann", "the partner asks for it");
        run.executor.set_limit(CALLS, Limit::per(2, MINUTE), by).await?;
        run.settle().await;
        let calls = |lab: &Lab| {
            ["a2", "b2", "c2", "d2", "e2"]
                .iter()
                .filter(|call| lab.has(call))
                .count()
        };
        assert_eq!(calls(lab), 2, "{}", lab.line());
        run.pass(MINUTE).await;
        assert_eq!(calls(lab), 4, "{}", lab.line());
        Ok(())
    })
}

#[test]
fn a_rate_changes_at_run_time_and_outlives_the_builders() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| paced(Limit::per(1, MINUTE))(&lab, builder);
    let by = |why: &str| OperatorRequest::new("ann", why);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            for name in ["a", "b", "c"] {
                submit(run, Planned(calling(name)), name).await?;
            }
            run.settle().await;
            assert!(lab.has("a2") && !lab.has("b2"));
            run.executor.set_limit(CALLS, Limit::per(2, MINUTE), by("more")).await?;
            run.settle().await;
            assert!(lab.has("b2") && !lab.has("c2"));
            let wrong = run
                .executor
                .set_limit(CALLS, Limit::per(2, Duration::ZERO), by("wrong"))
                .await;
            assert!(wrong.is_err_and(|error| error.to_string().contains("the shortest period is 1 ms")));
            Ok(())
        })?
        .done()?;
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let now = rate(run).await?;
            assert_eq!((now.rate.begins, now.begun), (2, 2));
            run.executor.set_limit(CALLS, None, by("no limit")).await?;
            run.settle().await;
            assert!(lab.has("c2"));
            assert_eq!(usage(run, CALLS).await?.rate, None);
            Ok(())
        })?
        .done()
}

#[actix_rt::test]
async fn a_period_that_no_limiter_can_keep_is_refused_at_the_start() -> Tested {
    let directory = tempfile::tempdir()?;
    let started = Executor::builder(directory.path().join("journal"))
        .limit(CALLS, Limit::per(1, Duration::from_micros(10)))
        .start()
        .await;
    match started {
        Err(StartError::BadLimit { key, why }) => {
            assert_eq!(key, LimitKey::from(CALLS));
            assert!(why.contains("1 ms"), "{why}");
            Ok(())
        }
        Err(other) => Err(other.into()),
        Ok(_) => Err("it started".into()),
    }
}
