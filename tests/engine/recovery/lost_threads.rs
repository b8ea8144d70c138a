//! Threads that are gone in the middle of a call, since user code has stopped the arbiter that it
//! runs on: the call is made again on another, each loss is told of, and nobody else notices.
//! With real threads, as they are what it is about.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actix_rt::Arbiter;
use procession::provider::SystemClock;
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, Procedure, Rule, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::blocked::{until, until_told};
use crate::support::{Lab, Planned, Tested, chain, kinds};

/// Stops the arbiter that it runs on the first time, in its stage or in its undo, and waits for the end.
#[derive(Clone, Serialize, Deserialize)]
struct Stopping {
    in_undo: bool,
}

impl Stopping {
    async fn once(&self, calls: &AtomicU32) {
        if calls.fetch_add(1, Ordering::SeqCst) == 0 {
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

    async fn execute(&mut self, _: Stops, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.in_undo {
            return Err(StageError::fail("so that it is undone"));
        }
        self.once(cx.env()).await;
        Ok(Step::Done(9))
    }

    async fn rollback(&mut self, _: Stops, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        self.once(cx.env()).await;
        Ok(())
    }
}

fn on_threads(audit_every: Option<Duration>, drive: impl AsyncFnOnce(&Run, &Lab, &AtomicU32) -> Tested) -> Tested {
    let (lab, calls) = (Lab::default(), Arc::new(AtomicU32::new(0)));
    let set_up = |builder: Builder| {
        kinds(&lab, builder)
            .register::<Stopping>(Arc::clone(&calls))
            .clock(Arc::new(SystemClock))
            .workers(2)
            .audit_every(audit_every)
    };
    World::new()
        .run(FaultPlan::none(), set_up, async |run| drive(run, &lab, &calls).await)?
        .done()
}

async fn is_called_again(run: &Run, calls: &AtomicU32, in_undo: bool) -> Tested {
    let stopping = run.executor.submit(Stopping { in_undo }).await?;
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

/// Half of their actors would be started on a thread that is gone.
#[test]
fn e_115_nobody_else_waits_for_a_thread_that_is_gone() -> Tested {
    // A call that was on its way to the thread when that ended is found by an audit.
    on_threads(Some(Duration::from_millis(20)), async |run, lab, calls| {
        let stopping = run.executor.submit(Stopping { in_undo: false }).await?;
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
