//! A stage that never returns, or blocks through its context, holds up nobody
//! but its own family.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::lifecycle::kit::{enumerate_client, submit};
use crate::support::{Act, Lab, Planned, Tested, chain, end, failing, kinds, live, plan, spawn};

fn never(name: &str) -> crate::support::Plan {
    plan(name, [Act::Held("never".to_owned(), Box::new(Act::Done(1)))])
}

#[test]
fn e_105_a_stage_that_never_returns_holds_up_no_stranger() -> Tested {
    let lab = Lab::default();
    // All run on one thread, so it is the worker of every stage.
    live(&lab, async |run| {
        let handle = run
            .wait(run.executor.submit(Planned(never("n"))).into_future())
            .await??;
        run.until("it runs", || lab.has("n1")).await?;
        for number in 0..20 {
            assert_eq!(
                end(run, Planned(chain(&format!("s{number}-"), 3)), &format!("s{number}")).await??,
                7
            );
        }
        assert!(handle.status().await?.going);
        Ok(())
    })
}

#[test]
fn e_105_its_family_waits_for_it_when_a_sibling_fails() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let root = plan("r", [spawn([never("n"), failing("f", 1)]), Act::Done(1)]);
        let handle = run.wait(run.executor.submit(Planned(root)).into_future()).await??;
        run.until("the sibling has failed", || lab.has("f1")).await?;
        run.pass(std::time::Duration::from_hours(1)).await;
        assert_eq!(handle.status().await?.state, ProcedureState::Failed);
        assert_eq!(lab.line(), "r1 n1 f1", "nothing is undone while a stage is out");
        lab.open("never");
        run.wait(handle.outcome()).await?.ok();
        assert_eq!(lab.line(), "r1 n1 f1 f1' r1'", "it succeeded, and is kept");
        Ok(())
    })
}

/// Waits for the test, on a thread for blocking work.
#[derive(Serialize, Deserialize)]
struct Blocking;

impl Procedure for Blocking {
    const KIND: &'static str = "blocking";
    type Stage = ();
    type Env = Arc<Mutex<Option<mpsc::Receiver<i64>>>>;
    type Output = i64;

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let gate = cx.env().lock().unwrap_or_else(PoisonError::into_inner).take();
        let gate = gate.ok_or_else(|| StageError::fail("it runs once"))?;
        let got = cx.blocking(move || gate.recv().unwrap_or(-1)).await?;
        Ok(Step::Done(got))
    }
}

#[test]
fn e_105_blocking_work_holds_up_no_stranger() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (open, gate) = mpsc::channel();
    let gate = Arc::new(Mutex::new(Some(gate)));
    let set_up = |builder| kinds(&lab, builder).register::<Blocking>(Arc::clone(&gate));
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let handle = run.wait(run.executor.submit(Blocking).into_future()).await??;
            for number in 0..20 {
                assert_eq!(
                    end(run, Planned(chain(&format!("s{number}-"), 3)), &format!("s{number}")).await??,
                    7
                );
            }
            assert!(handle.status().await?.going);
            open.send(11)?;
            // Its thread is outside the simulation, so it is simply awaited.
            assert_eq!(handle.outcome().await?, 11);
            Ok(())
        })?
        .done()?;
    Ok(())
}

#[test]
fn e_105_a_family_that_waits_for_it_through_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let root = plan("r", [spawn([never("n"), failing("f", 1)]), Act::Done(1)]);
        let handle = submit(run, Planned(root), "r").await?;
        run.settle().await;
        if lab.has("f1") && !lab.is_open("never") {
            assert!(
                !lab.has("f1'"),
                "nothing is undone while a stage is out: {}",
                lab.line()
            );
            assert!(handle.status().await?.ended.is_none());
        }
        lab.open("never");
        assert!(run.wait(handle.outcome()).await?.is_err(), "it is rolled back");
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 n1 f1 f1' r1'");
    assert_eq!(done.commits, 6);
    Ok(())
}
