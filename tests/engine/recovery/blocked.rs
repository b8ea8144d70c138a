//! Stages that hold their threads: they are named, a worker is added in their
//! place, and nobody else waits for them. With real threads and the machine's
//! time, as threads are what it is about: so each step waits until what it is
//! about has come to be, since on a busy machine a sound worker may for a while
//! look blocked, too.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use procession::health::{Rule, UserCall, Verdict};
use procession::procedure::Timestamp;
use procession::provider::{Clock, SystemClock};
use procession::status::Snapshot;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::lifecycle::join_custom::Ruled;
use crate::support::{Act, Lab, Planned, Tested, chain, failing, kinds, plan, spawn, stuck};

/// After so long a test that hangs is given up; nothing is measured by it.
const LONGEST: Duration = Duration::from_mins(10);

/// Holds threads by name, until the test lets go of them.
#[derive(Clone, Default)]
pub(super) struct Grip(Arc<(Mutex<Hold>, Condvar)>);

#[derive(Default)]
pub(super) struct Hold {
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

    pub(super) fn free(&self, name: &str) {
        let (hold, freed) = &*self.0;
        hold.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .freed
            .insert(name.to_owned());
        freed.notify_all();
    }
}

/// Lets go of every thread, also when the test fails.
pub(super) struct FreeAll(pub(super) Grip);

impl Drop for FreeAll {
    fn drop(&mut self) {
        let (hold, freed) = &*self.0.0;
        hold.lock().unwrap_or_else(PoisonError::into_inner).all = true;
        freed.notify_all();
    }
}

/// Holds its thread.
#[derive(Serialize, Deserialize)]
pub(super) struct Holding(pub(super) String);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Holds {
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
            .register::<Ruled>(lab.clone())
            .clock(Arc::new(SystemClock))
            .workers(2)
            .blocked_after(Duration::from_millis(750))
            .worker_keep_alive(Duration::from_millis(500))
    };
    World::new()
        .run(FaultPlan::none(), set_up, async |run| drive(run, &lab, &grip).await)?
        .done()
}

pub(super) async fn until(run: &Run, reason: &str, condition: impl Fn(&Snapshot) -> bool) -> Result<Snapshot, Trouble> {
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

/// Waits until these are the verdicts, by rule and procedure, and gives them.
pub(super) async fn until_told(run: &Run, expected: &BTreeSet<ProcedureId>) -> Result<Vec<Verdict>, Trouble> {
    let end = SystemClock.now().after(LONGEST);
    loop {
        let verdicts = stuck(run).await?;
        let told: BTreeSet<ProcedureId> = verdicts.iter().filter_map(|verdict| verdict.procedure).collect();
        if told == *expected && verdicts.len() == expected.len() {
            return Ok(verdicts);
        }
        if SystemClock.now() > end {
            return Err(format!("these verdicts did not come about: {expected:?}, but {verdicts:?}").into());
        }
        SystemClock.sleep_until(soon()).await;
    }
}

/// Exactly these hold a worker each, and one extra worker runs.
fn one_is_added(snapshot: &Snapshot, expected: &BTreeSet<ProcedureId>) -> bool {
    let workers = &snapshot.workers;
    let extra = workers.iter().all(|worker| worker.extra == worker.blocked.is_none());
    blocked(snapshot) == *expected && workers.len() == 3 && extra
}

fn soon() -> Timestamp {
    SystemClock.now().after(Duration::from_millis(2))
}

pub(super) async fn holding(run: &Run, grip: &Grip, name: &str) -> Result<Handle<Holding>, Trouble> {
    let handle = run.executor.submit(Holding(name.to_owned())).await?;
    until(run, "it holds its thread", |_| grip.holds(name)).await?;
    Ok(handle)
}

pub(super) fn blocked(snapshot: &Snapshot) -> BTreeSet<ProcedureId> {
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
            one_is_added(snapshot, &both)
        })
        .await?;
        for worker in &snapshot.workers {
            if let Some(stage) = &worker.blocked {
                assert_eq!((stage.call, stage.stage.as_str()), (UserCall::Stage, "Tight"));
                assert!(stage.time >= Duration::from_millis(750), "{stage:?}");
            }
        }

        // Each has its verdict.
        let verdicts = until_told(run, &both).await?;
        assert!(
            verdicts.iter().all(|verdict| verdict.rule == Rule::BlockedWorker),
            "{verdicts:?}"
        );
        assert!(verdicts.iter().all(|verdict| verdict.fact("stage") == Some("Tight")));

        assert_eq!(third.outcome().await?, 7);
        run.executor.signal(waits.id(), "go", &1_i64).await?;
        assert_eq!(waits.outcome().await?, 2);
        let sleeps = plan("s", [Act::Sleep(20), Act::Done(5)]);
        assert_eq!(run.executor.submit(Planned(sleeps)).await?.outcome().await?, 5);
        assert!(a.status().await?.going && b.status().await?.going);
        until(run, "no more are added, but for a moment", |snapshot| {
            one_is_added(snapshot, &both)
        })
        .await?;

        grip.free("a");
        grip.free("b");
        assert_eq!((a.outcome().await?, b.outcome().await?), (9, 9));
        let snapshot = until(run, "there are two workers again", |snapshot| {
            let extra = snapshot.workers.iter().any(|worker| worker.extra);
            snapshot.workers.len() == 2 && blocked(snapshot).is_empty() && !extra
        })
        .await?;
        until_told(run, &BTreeSet::new()).await?;
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
            assert_eq!(chain.outcome().await?, 7);
        }
        for failed in &fails {
            assert!(failed.outcome().await.is_err());
        }
        assert!(a.status().await?.going, "it holds its thread all the while");
        let ran = lab.calls();

        grip.free("a");
        assert_eq!(a.outcome().await?, 9);
        let is_empty = |snapshot: &Snapshot| snapshot.workers.iter().all(|worker| worker.actors == 0);
        let snapshot = until(run, "the actors that were left are gone", is_empty).await?;
        let waiting: u64 = snapshot.workers.iter().map(|worker| worker.waiting).sum();
        assert_eq!(waiting, 0, "what was moved or lost waits no more");
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

/// The question is out, and has gone with its call.
#[test]
fn e_104_a_join_rule_that_waits_on_a_blocked_worker_is_asked_on_another() -> Tested {
    on_threads(async |run, _, grip| {
        let a = holding(run, grip, "a").await?;
        let mut ruled = Vec::new();
        for _ in 0..8 {
            let (fails, rounds, width) = (usize::MAX, 1, 0);
            ruled.push(run.executor.submit(Ruled { fails, rounds, width }).await?);
        }
        for ruled in &ruled {
            assert_eq!(ruled.outcome().await?, 2);
        }
        assert!(a.status().await?.going, "it holds its thread all the while");
        grip.free("a");
        assert_eq!(a.outcome().await?, 9);
        Ok(())
    })
}

#[test]
fn e_104_a_drain_does_not_wait_longer_for_a_blocked_worker_than_its_deadline() -> Tested {
    on_threads(async |run, _, grip| {
        let a = holding(run, grip, "a").await?;
        until(run, "it is blocked", |snapshot| blocked(snapshot).contains(&a.id())).await?;
        let report = run.executor.drain(Duration::from_millis(50)).await?;
        assert_eq!((report.finished_calls, report.cut_off_calls), (0, 1));
        Ok(())
    })
}
