//! What is counted of stages by their names, of refusals, and at a health check.

use std::future::IntoFuture;
use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use procession::errors::SubmitError;
use procession::limits::{Limit, LockNeed};
use procession::operate::{BypassAs, BypassScope, OperatorRequest};
use procession::procedure::RetryPolicy;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::metrics::Read;
use crate::support::{Act, Holding, Lab, Limited, Planned, Tested, UndoAct, end, kinds, plan, spawn};

/// Goes through stages with names, of which one panics once; fails at the end if it is told so.
#[derive(Clone, Serialize, Deserialize)]
struct Staged {
    fails: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Prepare,
    Copy(u32),
    Check,
}

impl Procedure for Staged {
    const KIND: &'static str = "staged";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Prepare
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Prepare => Ok(Step::Next(Stage::Copy(1))),
            Stage::Copy(part) if part < 3 => Ok(Step::Next(Stage::Copy(part + 1))),
            Stage::Copy(_) => Ok(Step::Next(Stage::Check)),
            Stage::Check if self.fails => Err(StageError::fail("it is wrong")),
            Stage::Check if cx.attempt() == 1 => panic!("the first attempt panics"),
            Stage::Check => Ok(Step::Done(())),
        }
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(3)
    }
}

fn staged(builder: Builder) -> Builder {
    builder.register::<Staged>(())
}

/// Runs it with a recorder of its own, and gives what that has read.
fn recorded(set_up: impl Fn(Builder) -> Builder, drive: impl AsyncFnOnce(&Run) -> Tested) -> Result<Read, Trouble> {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || World::new().run(FaultPlan::none(), set_up, drive)?.done())?;
    Ok(Read::of(&recorder.snapshotter()))
}

#[test]
fn stages_and_undos_are_measured_by_their_names() -> Tested {
    let read = recorded(staged, async |run| {
        end(run, Staged { fails: false }, "a").await??;
        assert!(end(run, Staged { fails: true }, "b").await?.is_err());
        run.settle().await;
        Ok(())
    })?;
    let count = |series: &str| read.samples(series).len();
    assert_eq!(count("stage_seconds staged Prepare ok"), 2);
    assert_eq!(
        count("stage_seconds staged Copy ok"),
        6,
        "what a stage carries is no part of its name"
    );
    assert_eq!(count("stage_seconds staged Check panicked"), 1);
    assert_eq!(count("stage_seconds staged Check ok"), 1);
    assert_eq!(count("stage_seconds staged Check failed"), 1);
    assert_eq!(count("undo_seconds staged Copy ok"), 3);
    assert_eq!(count("undo_seconds staged Prepare ok"), 1);
    assert_eq!(read.value("panics_total staged"), 1.0);
    Ok(())
}

/// Has a stage of another name in each of its visits.
#[derive(Clone, Serialize, Deserialize)]
struct ManyNames;

impl Procedure for ManyNames {
    const KIND: &'static str = "many_names";
    type Stage = String;
    type Env = ();
    type Output = ();

    fn first(&self) -> String {
        "stage 0".to_owned()
    }

    async fn execute(&mut self, stage: String, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let number = stage
            .strip_prefix("stage ")
            .and_then(|number| number.parse::<u32>().ok());
        Ok(match number {
            Some(number) if number < 99 => Step::Next(format!("stage {}", number + 1)),
            Some(_) | None => Step::Done(()),
        })
    }
}

#[test]
fn a_kind_cannot_flood_the_recorder_with_names() -> Tested {
    let read = recorded(
        |builder| builder.register::<ManyNames>(()),
        async |run| {
            end(run, ManyNames, "a").await??;
            Ok(())
        },
    )?;
    assert_eq!(read.samples("stage_seconds many_names stage 63 ok").len(), 1);
    assert_eq!(read.samples("stage_seconds many_names stage 64 ok").len(), 0);
    assert_eq!(read.samples("stage_seconds many_names other ok").len(), 36);
    Ok(())
}

#[test]
fn refusals_are_counted_by_kind_and_reason() -> Tested {
    let read = recorded(staged, async |run| {
        end(run, Staged { fails: false }, "a").await??;
        let other = run.executor.submit(Staged { fails: true }).key("a");
        let refused = run.wait(other.into_future()).await?;
        assert!(matches!(refused, Err(SubmitError::KeyConflict { .. })));
        let unknown = run.executor.submit(Limited(plan("u", [Act::Done(1)])));
        let refused = run.wait(unknown.into_future()).await?;
        assert!(matches!(refused, Err(SubmitError::UnknownKind { .. })));
        Ok(())
    })?;
    assert_eq!(read.value("refused_total staged key_conflict"), 1.0);
    assert_eq!(read.value("refused_total unregistered unknown_kind"), 1.0);
    assert_eq!(read.sum("refused_total"), 2.0);
    Ok(())
}

#[test]
fn a_health_check_shows_what_waits_for_an_operator() -> Tested {
    let lab = Lab::default();
    let mut failing = plan("f", [Act::Next, Act::Fail("boom".to_owned())]);
    failing.undos.insert(1, UndoAct::Fail(99));
    let read = recorded(
        |builder| kinds(&lab, builder),
        async |run| {
            run.wait(run.executor.submit(Planned(failing)).into_future()).await??;
            run.pass(Duration::from_hours(1)).await;
            run.executor.verdicts().await?;
            Ok(())
        },
    )?;
    assert_eq!(read.value("rollback_failed "), 1.0);
    assert_eq!(read.value("stuck rollback_failed"), 1.0);
    assert_eq!(read.value("stuck deadlock"), 0.0);
    assert_eq!(read.value("active planned failed"), 1.0, "it is being rolled back");
    Ok(())
}

#[test]
fn a_health_check_shows_who_waits_for_a_lock_and_how_long() -> Tested {
    let lab = Lab::default();
    let wants = |name: &str, act: Act| Holding(plan(name, [act, Act::Done(1)]).locks([LockNeed::exclusive("t")]));
    let read = recorded(
        |builder| kinds(&lab, builder),
        async |run| {
            for work in [
                wants("a", Act::Sleep(3_600_000)),
                wants("b", Act::Next),
                wants("c", Act::Next),
            ] {
                run.wait(run.executor.submit(work).into_future()).await??;
                run.settle().await;
            }
            run.pass(Duration::from_secs(90)).await;
            run.executor.verdicts().await?;
            Ok(())
        },
    )?;
    assert_eq!(read.value("lock_waiters "), 2.0);
    assert_eq!(read.value("oldest_runnable_seconds "), 90.0);
    Ok(())
}

#[test]
fn a_health_check_shows_how_many_signals_wait_and_how_long() -> Tested {
    let lab = Lab::default();
    let waits = |name: &str| plan(name, [Act::Wait("go".to_owned(), None), Act::Done(1)]);
    let read = recorded(
        |builder| kinds(&lab, builder),
        async |run| {
            let one = run
                .wait(run.executor.submit(Planned(waits("a"))).into_future())
                .await??
                .id();
            let other = run
                .wait(run.executor.submit(Limited(waits("b"))).into_future())
                .await??
                .id();
            run.settle().await;
            run.executor.signal(one, "noise", &1).await?;
            run.pass(Duration::from_secs(60)).await;
            for id in [one, one, other] {
                run.executor.signal(id, "noise", &1).await?;
            }
            // This one is consumed at once.
            run.executor.signal(other, "go", &1).await?;
            run.pass(Duration::from_secs(30)).await;
            run.executor.verdicts().await?;
            Ok(())
        },
    )?;
    assert_eq!(read.value("signals_waiting planned"), 3.0);
    assert_eq!(read.value("oldest_signal_seconds planned"), 90.0);
    assert_eq!(read.value("signals_waiting limited"), 0.0, "it has ended");
    assert_eq!(read.value("oldest_signal_seconds limited"), 0.0);
    Ok(())
}

#[test]
fn each_question_is_counted_once_and_an_answer_is_none() -> Tested {
    let lab = Lab::default();
    let read = recorded(
        |builder| kinds(&lab, builder),
        async |run| {
            let asks = plan(
                "a",
                [
                    Act::Ask("go?".to_owned(), None),
                    Act::Ask("sure?".to_owned(), None),
                    Act::Done(1),
                ],
            );
            let handle = run.wait(run.executor.submit(Planned(asks)).into_future()).await??;
            for key in ["first", "second"] {
                run.settle().await;
                let by = || OperatorRequest::new("ann", "a test").key(key);
                run.executor.decide(handle.id(), &true, by()).await?;
                run.executor.decide(handle.id(), &true, by()).await?;
            }
            run.wait(handle).await??;
            Ok(())
        },
    )?;
    assert_eq!(read.value("asked_total planned"), 2.0);
    assert_eq!(read.value("asked_total limited"), 0.0);
    Ok(())
}

#[test]
fn a_limit_shows_what_its_rate_has_left_and_how_many_had_to_wait() -> Tested {
    let lab = Lab::default();
    let read = recorded(
        |builder| {
            let rate = Limit::per(2, Duration::from_mins(1));
            kinds(&lab, builder).limit("planned", rate).limit("limited", 1)
        },
        async |run| {
            for name in ["a", "b", "c", "d"] {
                run.wait(run.executor.submit(Planned(plan(name, [Act::Done(1)]))).into_future())
                    .await??;
                run.settle().await;
            }
            // The first two begin at once, the third a minute later.
            run.pass(Duration::from_secs(61)).await;
            run.settle().await;
            let next = plan("e", [Act::Done(1)]);
            run.wait(run.executor.submit(Limited(next)).into_future()).await??;
            run.settle().await;
            Ok(())
        },
    )?;
    assert_eq!(read.value("limiter_had_to_wait_total planned"), 2.0);
    assert_eq!(read.value("limiter_rate_left planned"), 0.0);
    assert_eq!(read.value("limiter_had_to_wait_total limited"), 0.0);
    assert_eq!(read.value("limiter_rate_left limited"), f64::INFINITY, "it has no rate");
    Ok(())
}

/// The second one's family is gone when its stage reports.
#[test]
fn what_comes_too_late_is_counted_by_its_kind() -> Tested {
    let lab = Lab::default();
    let read = recorded(
        |builder| kinds(&lab, builder),
        async |run| {
            let held = |name: &str| plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(5)))]);
            let below = plan(
                "r",
                [spawn([held("a")]), Act::Wait("go".to_owned(), None), Act::Done(1)],
            );
            let lives = run.executor.submit(Planned(below)).await?;
            let goes = run.executor.submit(Limited(held("b"))).await?;
            run.settle().await;
            let child = ProcedureId::new(lives.id().family, 1);
            for id in [child, goes.id()] {
                let by = OperatorRequest::new("ann", "it hangs");
                run.executor
                    .bypass(id, BypassScope::Alone, BypassAs::Success, by)
                    .await?;
            }
            run.settle().await;
            lab.open("a");
            lab.open("b");
            run.settle().await;
            assert_eq!(run.executor.snapshot().await?.late, 2);
            Ok(())
        },
    )?;
    assert_eq!(read.value("late_wakes_total planned"), 1.0);
    assert_eq!(read.value("late_wakes_total limited"), 1.0);
    assert_eq!(read.value("late_wakes_total unknown"), 0.0);
    Ok(())
}
