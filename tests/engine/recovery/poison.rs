//! A stage that kills the process: found, run alone, paused; all others end.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};

use procession::messages::{Submit, SubmitBatch};
use procession::operate::{OperatorRequest, PauseScope};
use procession::provider::Space;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{Ended, FaultPlan, MemoryStore, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use procession_actors::journal::keys;
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Planned, Tested, chain, enumerate_later, kinds, live_in, plan};

/// The process, as a stage sees it: how to kill it, how often that was done.
#[derive(Clone, Default)]
struct Process {
    store: Arc<Mutex<Option<Arc<MemoryStore>>>>,
    lab: Lab,
}

impl Process {
    fn begin(&self, run: &Run) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&run.store));
    }

    fn kill(&self) -> bool {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).take();
        store.inspect(|store| store.crash()).is_some()
    }

    fn deaths(&self) -> usize {
        self.lab.noted().len()
    }
}

/// Kills the process, until the lab says that it is cured.
#[derive(Serialize, Deserialize)]
struct Deadly;

impl Procedure for Deadly {
    const KIND: &'static str = "deadly";
    type Stage = String;
    type Env = Process;
    type Output = u32;

    fn first(&self) -> String {
        "Explode".to_owned()
    }

    async fn execute(&mut self, _: String, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let process = cx.env().clone();
        if process.lab.is_open("cured") {
            return Ok(Step::Done(cx.attempt()));
        }
        // The store of this life is known once the test has it.
        while !process.kill() {
            tokio::task::yield_now().await;
        }
        process.lab.note("died");
        std::future::pending().await
    }
}

fn set_up(process: &Process, builder: Builder) -> Builder {
    kinds(&process.lab, builder).register::<Deadly>(process.clone())
}

fn names() -> Vec<String> {
    (0..10).map(|number| format!("c{number}-")).collect()
}

/// The deadly one at this place among ten chains of three, in one batch.
fn batch(place: usize) -> Result<SubmitBatch, Trouble> {
    let mut submits = Vec::new();
    for name in names() {
        submits.push(Submit::new(&Planned(chain(&name, 3)))?);
    }
    submits.insert(place, Submit::new(&Deadly)?.key("deadly"));
    Ok(SubmitBatch(submits))
}

/// One life that is to end in a crash.
fn dies(world: &World, process: &Process, first: Option<usize>) -> Tested {
    let ended = world.run(
        FaultPlan::none(),
        |builder| set_up(process, builder),
        async |run| {
            process.begin(run);
            if let Some(place) = first {
                run.wait(run.executor.supervisor().send(batch(place)?)).await???;
            }
            run.until("the process has died", || false).await
        },
    )?;
    assert!(matches!(ended, Ended::Crashed));
    Ok(())
}

async fn deadly(run: &Run) -> Result<ProcedureId, Trouble> {
    Ok(run
        .wait(run.executor.submit(Deadly).key("deadly").into_future())
        .await??
        .id())
}

fn poison_at(place: usize) -> Tested {
    let (world, process) = (World::new(), Process::default());
    dies(&world, &process, Some(place))?;
    dies(&world, &process, None)?;
    // At the third start it runs as the only suspect, beside the healthy.
    dies(&world, &process, None)?;
    assert_eq!(process.deaths(), 3);

    world
        .run(
            FaultPlan::none(),
            |builder| set_up(&process, builder),
            async |run| {
                process.begin(run);
                let id = deadly(run).await?;
                run.settle().await;
                let status = run.executor.status(id).await?;
                assert_eq!(
                    (status.state, status.wait),
                    (ProcedureState::Runnable, Some(WaitReason::Poison))
                );
                assert_eq!((status.stage.as_str(), status.attempt), ("Explode", 0));
                let all = run
                    .executor
                    .list(procession::status::ListFilter::default(), None, 100)
                    .await?
                    .items;
                let ended = all
                    .iter()
                    .filter(|status| status.state == ProcedureState::Success)
                    .count();
                assert_eq!(ended, 10, "the chains all end: {all:#?}");
                Ok(())
            },
        )?
        .done()?;
    assert_eq!(process.deaths(), 3, "paused, it does not run");
    for name in names() {
        assert!((1..=4).contains(&process.lab.count(&format!("{name}1"))));
        assert!(process.lab.has(&format!("{name}3")));
    }

    // Another try that kills again, and one when its fault is gone.
    let ended = world.run(
        FaultPlan::none(),
        |builder| set_up(&process, builder),
        async |run| {
            process.begin(run);
            let id = deadly(run).await?;
            let by = OperatorRequest::new("somebody", "another try");
            // Both let it go on.
            if place == 0 {
                run.executor.retry_now(id, by).await?;
            } else {
                run.executor.resume(PauseScope::One(id), by).await?;
            }
            run.until("the process has died", || false).await
        },
    )?;
    assert!(matches!(ended, Ended::Crashed));
    assert_eq!(process.deaths(), 4);
    process.lab.open("cured");
    world
        .run(
            FaultPlan::none(),
            |builder| set_up(&process, builder),
            async |run| {
                let id = deadly(run).await?;
                assert_eq!(
                    run.wait(run.executor.outcome(id)).await??.output::<u32>()?,
                    Some(1),
                    "no attempt was used"
                );
                Ok(())
            },
        )?
        .done()?;
    Ok(())
}

#[test]
fn e_106_poison_that_runs_before_the_healthy() -> Tested {
    poison_at(0)
}

#[test]
fn e_106_poison_that_runs_behind_the_healthy() -> Tested {
    poison_at(10)
}

#[test]
fn e_106_a_drain_in_its_place_counts_nothing() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let stage = || Planned(plan("a", [Act::Held("at last".to_owned(), Box::new(Act::Done(5)))]));
    for life in 1..=4 {
        live_in(&world, &lab, async |run| {
            let handle = run.wait(run.executor.submit(stage()).key("k").into_future()).await??;
            run.until("its stage runs", || lab.count("a1") == life).await?;
            assert!(handle.status().await?.going, "it is no suspect");
            let report = run.wait(run.executor.drain(std::time::Duration::ZERO)).await??;
            assert_eq!((report.finished_calls, report.cut_off_calls), (0, 1));
            Ok(())
        })?;
    }
    lab.open("at last");
    live_in(&world, &lab, async |run| {
        let handle = run.wait(run.executor.submit(stage()).key("k").into_future()).await??;
        assert_eq!(run.wait(handle.outcome()).await??, 5);
        Ok(())
    })?;
    assert!(lab.calls().iter().all(|call| call.attempt == 1));
    Ok(())
}

/// The start that pauses it is crashed at each of its commits, and so is the life after it.
#[test]
fn e_106_it_is_paused_however_that_start_crashes() -> Tested {
    let prepare = || {
        let (world, process) = (World::new(), Process::default());
        dies(&world, &process, Some(0))?;
        dies(&world, &process, None)?;
        dies(&world, &process, None)?;
        Ok((world, process))
    };
    let drive = async |process: &Process, run: &Run, _: usize| {
        process.begin(run);
        let id = deadly(run).await?;
        run.settle().await;
        assert_eq!(run.executor.status(id).await?.wait, Some(WaitReason::Poison));
        let all = run
            .executor
            .list(procession::status::ListFilter::default(), None, 100)
            .await?
            .items;
        let ended = all.iter().filter(|status| status.state == ProcedureState::Success);
        assert_eq!(ended.count(), 10, "the chains all end: {all:#?}");
        Ok(())
    };
    let check = |process: &Process, _: usize| {
        assert_eq!(process.deaths(), 3, "paused, it does not run");
        Ok(())
    };
    let commits = enumerate_later(prepare, set_up, drive, check)?;
    assert!(commits >= 1, "{commits}");
    Ok(())
}

/// Two suspects; the first cannot be run when its turn comes, and is set aside.
#[test]
fn when_the_suspect_that_runs_is_set_aside_the_next_one_goes_at_once() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let held = |name: &str| Planned(plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(5)))]));
    let mut ids = Vec::new();
    for life in 0..2 {
        live_in(&world, &lab, async |run| {
            for name in ["a", "b"] {
                let submit = run.executor.submit(held(name)).key(name);
                ids.push(run.wait(submit.into_future()).await??.id());
            }
            run.until("both run", || lab.count("a1") > life && lab.count("b1") > life)
                .await
        })?;
    }
    let [a, b, ..] = ids[..] else {
        return Err("two were submitted".into());
    };
    crate::retention::world::write(&world, |batch| {
        batch.delete(Space::Payloads, &keys::payload(a, keys::PAYLOAD));
    })?;
    lab.open("b");
    live_in(&world, &lab, async |run| {
        run.settle().await;
        let quarantined = run.executor.snapshot().await?.quarantined;
        assert_eq!(quarantined.first().map(|(family, _)| *family), Some(a.family));
        let status = run.executor.status(b).await?;
        assert_eq!(
            status.state,
            ProcedureState::Success,
            "no health check was needed: {status:?}"
        );
        Ok(())
    })
}
