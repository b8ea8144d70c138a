//! Threads that are gone in the middle of a call, since user code has stopped the arbiter that it
//! runs on: the call has failed, and is made again on another; each loss is told of, and nobody
//! else notices.
//! With real threads, as they are what it is about.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actix_rt::Arbiter;
use procession::health::Rule;
use procession::procedure::{Hooks, RetryPolicy};
use procession::provider::SystemClock;
use procession::status::{Ending, WaitReason};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::blocked::{until, until_told};
use crate::support::{Lab, Planned, Tested, chain, kinds};

/// Stops the arbiter that it runs on so many times, in its stage or in its undo, and waits for the end.
#[derive(Clone, Serialize, Deserialize)]
struct Stopping {
    in_undo: bool,
    times: u32,
}

impl Stopping {
    async fn stop(&self, calls: &AtomicU32) {
        if calls.fetch_add(1, Ordering::SeqCst) < self.times {
            Arbiter::current().stop();
            pending::<()>().await;
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stops {
    Here,
}

impl Procedure for Stopping {
    const KIND: &'static str = "stopping";
    type Stage = Stops;
    type Env = Arc<AtomicU32>;
    type Output = i64;

    fn first(&self) -> Stops {
        Stops::Here
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().base(Duration::from_millis(20))
    }

    fn retry_undo() -> RetryPolicy {
        Self::retry()
    }

    async fn execute(&mut self, _: Stops, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.in_undo {
            return Err(StageError::fail("so that it is undone"));
        }
        self.stop(cx.env()).await;
        Ok(Step::Done(9))
    }

    async fn rollback(&mut self, _: Stops, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        self.stop(cx.env()).await;
        Ok(())
    }
}

fn on_threads(
    health_check_every: Option<Duration>,
    drive: impl AsyncFnOnce(&Run, &Lab, &AtomicU32) -> Tested,
) -> Tested {
    let (lab, calls) = (Lab::default(), Arc::new(AtomicU32::new(0)));
    let set_up = |builder: Builder| {
        kinds(&lab, builder)
            .register::<Stopping>(Arc::clone(&calls))
            .clock(Arc::new(SystemClock))
            .workers(2)
            .health_check_every(health_check_every)
    };
    World::new()
        .run(FaultPlan::none(), set_up, async |run| drive(run, &lab, &calls).await)?
        .done()
}

async fn is_called_again(run: &Run, calls: &AtomicU32, in_undo: bool) -> Tested {
    let stopping = run.executor.submit(Stopping { in_undo, times: 1 }).await?;
    until(run, "its thread is gone", |_| calls.load(Ordering::SeqCst) == 1).await?;
    let verdicts = until_told(run, &BTreeSet::from([stopping.id()])).await?;
    let call = if in_undo { "undo" } else { "stage" };
    assert_eq!(
        verdicts.first().map(|verdict| verdict.rule),
        Some(Rule::ActorLost),
        "{verdicts:?}"
    );
    let facts = ["stage", "call"].map(|name| verdicts.first().and_then(|verdict| verdict.fact(name)));
    assert_eq!(facts, [Some("Here"), Some(call)]);
    let outcome = stopping.outcome().await;
    assert_eq!(outcome.ok(), (!in_undo).then_some(9));
    assert_eq!(
        calls.load(Ordering::SeqCst),
        2,
        "it was called once more, and no oftener"
    );
    until_told(run, &BTreeSet::new()).await?;
    let snapshot = until(run, "there are two workers", |snapshot| snapshot.workers.len() == 2).await?;
    assert_eq!((snapshot.late, snapshot.lost_wakes), (0, 0));
    Ok(())
}

#[test]
fn e_115_a_stage_whose_thread_is_gone_runs_again() -> Tested {
    on_threads(None, async |run, _, calls| is_called_again(run, calls, false).await)
}

#[test]
fn e_115_an_undo_whose_thread_is_gone_runs_again() -> Tested {
    on_threads(None, async |run, _, calls| is_called_again(run, calls, true).await)
}

#[test]
fn e_115_a_stage_that_stops_its_thread_each_time_uses_up_its_attempts() -> Tested {
    on_threads(Some(Duration::from_millis(20)), async |run, _, calls| {
        let (in_undo, times) = (false, u32::MAX);
        let stopping = run.executor.submit(Stopping { in_undo, times }).await?;
        // Its undo does it, too, and then waits for an operator.
        until(run, "it has run three times, and its undo as often", |_| {
            calls.load(Ordering::SeqCst) == 6
        })
        .await?;
        let waits = async || run.executor.status(stopping.id()).await.map(|status| status.wait);
        while waits().await? != Some(WaitReason::RollbackFailed) {
            until(run, "it goes on", |_| true).await?;
        }
        let history = run.executor.history(stopping.id()).await?;
        let endings: Vec<Ending> = history.iter().map(|entry| entry.ending).collect();
        assert_eq!(endings, [[Ending::Panic; 3], [Ending::UndoFailed; 3]].concat());
        let said = |text: Option<&str>| text.is_some_and(|text| text.contains("its thread ended"));
        assert!(history.iter().all(|entry| said(entry.error.as_deref())), "{history:?}");
        let verdicts = run.executor.verdicts().await?;
        let lost: Vec<_> = verdicts
            .iter()
            .filter(|verdict| verdict.rule == Rule::ActorLost)
            .collect();
        assert_eq!(lost.len(), 1, "{verdicts:?}");
        assert_eq!(lost[0].fact("times"), Some("6"));
        assert_eq!(run.executor.snapshot().await?.workers.len(), 2);
        Ok(())
    })
}

/// Half of their actors would be started on a thread that is gone.
#[test]
fn e_115_nobody_else_waits_for_a_thread_that_is_gone() -> Tested {
    // A call that was on its way to the thread when that ended is found by a health check.
    on_threads(Some(Duration::from_millis(20)), async |run, lab, calls| {
        let stopping = run
            .executor
            .submit(Stopping {
                in_undo: false,
                times: 1,
            })
            .await?;
        until(run, "its thread is gone", |_| calls.load(Ordering::SeqCst) == 1).await?;
        let mut chains = Vec::new();
        for number in 0..16 {
            chains.push(run.executor.submit(Planned(chain(&format!("c{number}-"), 3))).await?);
        }
        for chain in &chains {
            assert_eq!(chain.outcome().await?, 7);
        }
        assert_eq!(stopping.outcome().await?, 9);
        let ran = lab.calls();
        let once: BTreeSet<_> = ran.iter().cloned().collect();
        assert_eq!((ran.len(), once.len()), (16 * 3, 16 * 3), "{}", lab.line());
        Ok(())
    })
}

/// Ends at once. The first hook that is called for its kind stops the arbiter that it runs on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hooked;

impl Procedure for Hooked {
    const KIND: &'static str = "hooked";
    type Stage = Stops;
    type Env = Arc<AtomicU32>;
    type Output = ();

    fn first(&self) -> Stops {
        Stops::Here
    }

    async fn execute(&mut self, _: Stops, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }

    fn hooks() -> Hooks<Self> {
        Hooks::<Self>::new().on_finish(|calls, _| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                Arbiter::current().stop();
            }
        })
    }
}

#[test]
fn hooks_are_called_and_a_drain_ends_though_a_hook_has_stopped_its_thread() -> Tested {
    let calls = Arc::new(AtomicU32::new(0));
    let set_up = |builder: Builder| {
        let builder = builder.register::<Hooked>(Arc::clone(&calls));
        builder.clock(Arc::new(SystemClock)).workers(2)
    };
    let drive = async |run: &Run| {
        for expected in 1..=3 {
            run.executor.submit(Hooked).await?.outcome().await?;
            until(run, "its hook was called", |_| calls.load(Ordering::SeqCst) == expected).await?;
        }
        let report = run.executor.drain(Duration::from_secs(60)).await?;
        assert_eq!(report.unfinished_families, 0, "{report:?}");
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}
