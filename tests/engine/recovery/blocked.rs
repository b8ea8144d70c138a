//! Stages that hold their threads: they are named, a worker is added in their
//! place, and nobody else waits for them. With real threads and the machine's
//! time, as threads are what it is about.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use procession::provider::{Clock, SystemClock};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{
    Builder, Handle, Procedure, ProcedureId, Rule, Snapshot, StageContext, StageError, Step, Timestamp, UserCall,
};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Planned, Tested, chain, failing, kinds, plan, spawn};

/// Longest wait for anything: far more than all of it takes.
const LONGEST: Duration = Duration::from_secs(60);

/// Holds threads by name, until the test lets go of them.
#[derive(Clone, Default)]
struct Grip(Arc<(Mutex<Hold>, Condvar)>);

#[derive(Default)]
struct Hold {
    held: BTreeSet<String>,
    freed: BTreeSet<String>,
    all: bool,
}

impl Grip {
    fn hold(&self, name: &str) {
        let (hold, freed) = &*self.0;
        let mut hold = hold.lock().unwrap_or_else(PoisonError::into_inner);
        hold.held.insert(name.to_owned());
        let is_held = |hold: &mut Hold| !hold.all && !hold.freed.contains(name);
        drop(freed.wait_while(hold, is_held).unwrap_or_else(PoisonError::into_inner));
    }

    fn holds(&self, name: &str) -> bool {
        let (hold, _) = &*self.0;
        hold.lock().unwrap_or_else(PoisonError::into_inner).held.contains(name)
    }

    fn free(&self, name: &str) {
        let (hold, freed) = &*self.0;
        hold.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .freed
            .insert(name.to_owned());
        freed.notify_all();
    }
}

/// Lets go of every thread, also when the test fails.
struct FreeAll(Grip);

impl Drop for FreeAll {
    fn drop(&mut self) {
        let (hold, freed) = &*self.0.0;
        hold.lock().unwrap_or_else(PoisonError::into_inner).all = true;
        freed.notify_all();
    }
}

/// Holds its thread.
#[derive(Serialize, Deserialize)]
struct Holding(String);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Holds {
    Tight,
}

impl Procedure for Holding {
    const KIND: &'static str = "holds_its_thread";
    type Stage = Holds;
    type Env = Grip;
    type Output = i64;

    fn first(&self) -> Holds {
        Holds::Tight
    }

    async fn execute(&mut self, _: Holds, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().hold(&self.0);
        Ok(Step::Done(9))
    }
}

/// Runs on two workers of its own.
fn on_threads(drive: impl AsyncFnOnce(&Run, &Lab, &Grip) -> Tested) -> Tested {
    let (lab, grip) = (Lab::default(), Grip::default());
    let _free = FreeAll(grip.clone());
    let set_up = |builder: Builder| {
        kinds(&lab, builder)
            .register::<Holding>(grip.clone())
            .clock(Arc::new(SystemClock))
            .workers(2)
            .blocked_after(Duration::from_millis(750))
            .worker_keep_alive(Duration::from_millis(500))
    };
    World::new()
        .run(FaultPlan::none(), set_up, async |run| drive(run, &lab, &grip).await)?
        .done()
}

async fn until(run: &Run, reason: &str, condition: impl Fn(&Snapshot) -> bool) -> Result<Snapshot, Trouble> {
    let end = SystemClock.now().after(LONGEST);
    loop {
        let snapshot = run.executor.snapshot().await?;
        if condition(&snapshot) {
            return Ok(snapshot);
        }
        if SystemClock.now() > end {
            return Err(format!("it did not come about that {reason}: {:?}", snapshot.workers).into());
        }
        SystemClock.sleep_until(soon()).await;
    }
}

fn soon() -> Timestamp {
    SystemClock.now().after(Duration::from_millis(2))
}

async fn holding(run: &Run, grip: &Grip, name: &str) -> Result<Handle<Holding>, Trouble> {
    let handle = run.executor.submit(Holding(name.to_owned())).await?;
    until(run, "it holds its thread", |_| grip.holds(name)).await?;
    Ok(handle)
}

fn blocked(snapshot: &Snapshot) -> BTreeSet<ProcedureId> {
    let stages = snapshot.workers.iter().filter_map(|worker| worker.blocked.as_ref());
    stages.map(|stage| stage.procedure).collect()
}

#[test]
fn e_104_blocked_workers_are_named_and_one_is_added() -> Tested {
    on_threads(async |run, lab, grip| {
        let waits = plan("w", [Act::Wait("go".to_owned(), None), Act::Done(2)]);
        let waits = run.executor.submit(Planned(waits)).await?;
        until(run, "it waits", |snapshot| snapshot.going == 0).await?;

        let (a, b) = (holding(run, grip, "a").await?, holding(run, grip, "b").await?);
        let third = run.executor.submit(Planned(chain("c", 3))).await?;
        let both = BTreeSet::from([a.id(), b.id()]);
        let snapshot = until(run, "both are blocked, and a worker is added", |snapshot| {
            blocked(snapshot) == both && snapshot.workers.len() == 3
        })
        .await?;
        for worker in &snapshot.workers {
            assert_eq!(worker.extra, worker.blocked.is_none(), "{worker:?}");
            if let Some(stage) = &worker.blocked {
                assert_eq!((stage.call, stage.stage.as_str()), (UserCall::Stage, "Tight"));
                assert!(stage.time >= Duration::from_millis(750), "{stage:?}");
            }
        }

        // Each has its verdict.
        let verdicts = run.executor.verdicts().await?;
        assert!(
            verdicts.iter().all(|verdict| verdict.rule == Rule::BlockedWorker),
            "{verdicts:?}"
        );
        assert!(verdicts.iter().all(|verdict| verdict.fact("stage") == Some("Tight")));
        let told: BTreeSet<ProcedureId> = verdicts.iter().filter_map(|verdict| verdict.procedure).collect();
        assert_eq!((told, verdicts.len()), (both.clone(), 2));

        assert_eq!(third.wait_for(LONGEST).await?, 7);
        run.executor.signal(waits.id(), "go", &1_i64, None).await?;
        assert_eq!(waits.wait_for(LONGEST).await?, 2);
        let sleeps = plan("s", [Act::Sleep(20), Act::Done(5)]);
        assert_eq!(run.executor.submit(Planned(sleeps)).await?.wait_for(LONGEST).await?, 5);
        assert!(a.status().await?.going && b.status().await?.going);
        let snapshot = run.executor.snapshot().await?;
        assert_eq!(
            (blocked(&snapshot), snapshot.workers.len()),
            (both, 3),
            "no more are added"
        );

        grip.free("a");
        grip.free("b");
        assert_eq!((a.wait_for(LONGEST).await?, b.wait_for(LONGEST).await?), (9, 9));
        let snapshot = until(run, "there are two workers again", |snapshot| {
            snapshot.workers.len() == 2 && blocked(snapshot).is_empty()
        })
        .await?;
        assert!(snapshot.workers.iter().all(|worker| !worker.extra));
        assert_eq!(run.executor.verdicts().await?, []);
        assert_eq!((lab.line().as_str(), snapshot.late), ("w1 c1 c2 c3 w2 s1 s2", 0));
        Ok(())
    })
}

/// The actors of about half of them are started on the blocked worker before it is known to be.
#[test]
fn e_104_what_waits_on_a_blocked_worker_is_moved_and_runs_once() -> Tested {
    on_threads(async |run, lab, grip| {
        let a = holding(run, grip, "a").await?;
        let mut chains = Vec::new();
        let mut fails = Vec::new();
        for number in 0..8 {
            chains.push(run.executor.submit(Planned(chain(&format!("c{number}-"), 3))).await?);
            let child = failing(&format!("f{number}-"), 2);
            let root = plan(&format!("r{number}-"), [spawn([child]), Act::Done(1)]);
            fails.push(run.executor.submit(Planned(root)).await?);
        }
        for chain in &chains {
            assert_eq!(chain.wait_for(LONGEST).await?, 7);
        }
        for failed in &fails {
            assert!(failed.wait_for(LONGEST).await.is_err());
        }
        assert!(a.status().await?.going, "it holds its thread all the while");
        let ran = lab.calls();

        grip.free("a");
        assert_eq!(a.wait_for(LONGEST).await?, 9);
        let is_empty = |snapshot: &Snapshot| snapshot.workers.iter().all(|worker| worker.actors == 0);
        let snapshot = until(run, "the actors that were left are gone", is_empty).await?;
        assert_eq!(lab.calls(), ran, "none of them began");
        assert_eq!(snapshot.late, 0);
        let mut once = ran.clone();
        once.sort();
        once.dedup();
        // A chain of three, and a root with a child of two, each undone.
        assert_eq!((ran.len(), once.len()), (8 * (3 + 6), 8 * (3 + 6)), "{}", lab.line());
        Ok(())
    })
}

#[test]
fn e_104_a_drain_does_not_wait_longer_for_a_blocked_worker_than_its_deadline() -> Tested {
    on_threads(async |run, _, grip| {
        let a = holding(run, grip, "a").await?;
        until(run, "it is blocked", |snapshot| blocked(snapshot).contains(&a.id())).await?;
        let report = run.executor.drain(Duration::from_millis(50)).await?;
        assert_eq!((report.finished, report.left), (0, 1));
        Ok(())
    })
}
