//! Blocked workers across a crash: on real threads and the machine's time, as in `blocked`, with
//! short times and as few procedures as may be, so that it can be crashed at each commit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use procession::provider::SystemClock;
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure, ProcedureId};

use super::blocked::{FreeAll, Grip, Holding, blocked, until, until_told};
use crate::support::{Lab, Planned, Tested, chain, kinds};

async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    Ok(run.executor.submit(procedure).key(key).await?)
}

/// Two hold their threads, and a third ends meanwhile; then they are let go, one after the other. Once both were
/// blocked in one life, later ones let them end at once.
async fn drive(run: &Run, lab: &Lab, grip: &Grip) -> Result<u64, Trouble> {
    let a = submit(run, Holding("a".to_owned()), "a").await?;
    let b = submit(run, Holding("b".to_owned()), "b").await?;
    let both: BTreeSet<ProcedureId> = BTreeSet::from([a.id(), b.id()]);
    if lab.noted().is_empty() {
        until(run, "both are blocked", |snapshot| blocked(snapshot) == both).await?;
        until_told(run, &both).await?;
        let third = submit(run, Planned(chain("c", 1)), "c").await?;
        assert_eq!(third.outcome().await?, 7);
        assert!(a.status().await?.going && b.status().await?.going);
        lab.note("they were blocked");
    }
    grip.free("a");
    assert_eq!(a.outcome().await?, 9);
    grip.free("b");
    assert_eq!(b.outcome().await?, 9);
    until(run, "nobody is blocked, and there are two workers again", |snapshot| {
        snapshot.workers.len() == 2 && blocked(snapshot).is_empty()
    })
    .await?;
    until_told(run, &BTreeSet::new()).await?;
    let all = run
        .executor
        .list(procession::status::ListFilter::default(), None, 10)
        .await?;
    assert!(all.items.iter().all(|status| status.ended.is_some()), "{:?}", all.items);
    Ok(run.store.commits())
}

fn live(world: &World, lab: &Lab, plan: FaultPlan) -> Result<Ended<u64>, Trouble> {
    let grip = Grip::default();
    // What a crash leaves behind on its threads goes on when it is over, and must leave no trace.
    let _free = FreeAll(grip.clone());
    let set_up = |builder: Builder| {
        kinds(lab, builder)
            .register::<Holding>(grip.clone())
            .clock(Arc::new(SystemClock))
            .workers(2)
            .blocked_after(Duration::from_millis(60))
            .worker_keep_alive(Duration::from_millis(30))
    };
    world.run(plan, set_up, async |run| drive(run, lab, &grip).await)
}

#[test]
fn e_104_blocked_workers_are_found_again_whatever_commit_it_crashes_at() -> Tested {
    let plain = World::new();
    let commits = live(&plain, &Lab::default(), FaultPlan::none())?.done()?;
    // The start's own, three submissions, three ends.
    assert_eq!(commits, 7);
    for commit in 0..commits {
        let cuts = plain.disk.torn_points(commit);
        let torn = cuts.into_iter().nth(1).map(|cut| Fault::Torn { cut });
        for fault in [Fault::CrashBefore, Fault::CrashAfter].into_iter().chain(torn) {
            let (world, lab) = (World::new(), Lab::default());
            let ended = live(&world, &lab, FaultPlan::at(commit, fault))?;
            assert!(matches!(ended, Ended::Crashed), "commit {commit}, {fault:?}");
            let ended = live(&world, &lab, FaultPlan::none()).and_then(Ended::done);
            ended.map_err(|why| format!("commit {commit}, {fault:?}: {why}"))?;
            assert!((1..=2).contains(&lab.count("c1")), "{}", lab.line());
        }
    }
    Ok(())
}
