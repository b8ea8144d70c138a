//! In a healthy engine a health check finds nothing, whatever is on its way.

use std::sync::Arc;
use std::time::Duration;

use procession::health::{Rule, Thresholds};
use procession::limits::{LockNeed, LockPath};
use procession::provider::SystemClock;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Executor, Handle};

use super::kit::set_up;
use crate::support::{
    Act, Active, Holding, Lab, Limited, Plan, Planned, Tested, at_every_commit, chain, failing, live_through, plan,
    spawn,
};

/// Procedures that meet at every path and limit, some of which fail.
fn busy(number: usize) -> Plan {
    let (near, far) = (format!("t{}", number % 5), format!("t{}/r{}", number % 3, number % 7));
    let locks = [
        LockNeed::exclusive(LockPath::parse(&far)),
        LockNeed::shared(LockPath::parse(&near)),
    ];
    match number % 4 {
        0 => chain("c", 3).locks(locks),
        1 => plan("s", [Act::Sleep(number as u64 % 40), Act::Next, Act::Done(1)]).exclusive(&near),
        2 => failing("f", 2).exclusive(&far),
        _ => plan(
            "p",
            [spawn([chain("x", 2).exclusive(&near), chain("y", 1)]), Act::Done(1)],
        ),
    }
}

async fn submit(executor: &Executor, number: usize) -> Result<Handle<Planned>, Trouble> {
    let plan = busy(number);
    let id = match number % 3 {
        0 => executor.submit(Active(plan)).await?.id(),
        1 => executor.submit(Limited(plan)).await?.id(),
        _ if number.is_multiple_of(2) => executor.submit(Holding(plan)).await?.id(),
        _ => executor.submit(Planned(plan)).await?.id(),
    };
    Ok(executor.handle(id))
}

/// Health checks on and on, while others run; gives how many there were.
fn checks(executor: &Executor) -> tokio::task::JoinHandle<Result<usize, String>> {
    let executor = executor.clone();
    actix_rt::spawn(async move {
        for number in 0.. {
            let Ok(mut verdicts) = executor.verdicts().await else {
                return Ok(number);
            };
            // Some of them fail, and have ended then.
            verdicts.retain(|verdict| verdict.rule != Rule::UnacknowledgedFailures);
            if !verdicts.is_empty() {
                return Err(format!("{verdicts:?}"));
            }
            tokio::task::yield_now().await;
            if executor
                .snapshot()
                .await
                .is_ok_and(|snapshot| number > 0 && snapshot.live_families == 0)
            {
                return Ok(number);
            }
        }
        Ok(0)
    })
}

async fn drive(run: &Run, lab: &Lab, families: usize) -> Tested {
    let mut handles = Vec::new();
    for number in 0..families {
        handles.push(submit(&run.executor, number).await?);
    }
    let checks = checks(&run.executor);
    for handle in &handles {
        // How it ends does not matter here.
        run.wait(run.executor.outcome(handle.id())).await??;
    }
    assert!(checks.await?? > 1, "{}", lab.calls().len());
    assert_eq!(run.executor.snapshot().await?.lost_wakes, 0);
    Ok(())
}

fn limits(lab: &Lab, builder: Builder) -> Builder {
    let set_up = set_up(lab, builder).limit("active", 3);
    // Who waits in a long line for its permit is passed by many who need its locks alone: that is load.
    set_up.thresholds(Thresholds::default().overtaken(u32::MAX).free(Duration::ZERO))
}

#[test]
fn e_108_health_checks_find_nothing_while_all_is_on_its_way() -> Tested {
    let lab = Lab::default();
    World::new()
        .run(
            FaultPlan::none(),
            |builder| limits(&lab, builder),
            async |run| drive(run, &lab, 120).await,
        )?
        .done()
}

#[test]
fn e_108_health_checks_find_nothing_with_threads() -> Tested {
    let lab = Lab::default();
    let set_up = |builder: Builder| {
        let builder = limits(&lab, builder).clock(Arc::new(SystemClock));
        builder
            .workers(2)
            .merge(64)
            .in_flight(2)
            .health_check_every(Some(Duration::from_millis(5)))
    };
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let mut handles = Vec::new();
            for number in 0..300 {
                handles.push(submit(&run.executor, number).await?);
            }
            let checks = checks(&run.executor);
            for handle in &handles {
                run.executor.outcome(handle.id()).await?;
            }
            assert!(checks.await?? > 1);
            assert_eq!(run.executor.snapshot().await?.lost_wakes, 0);
            Ok(())
        })?
        .done()
}

/// A few of them, small enough to be crashed at every commit, with health checks all the while in every life.
#[test]
fn e_108_health_checks_find_nothing_however_it_crashes() -> Tested {
    let families = || {
        let parent = plan("p", [spawn([chain("x", 1).exclusive("t")]), Act::Done(1)]);
        let sleeps = plan("s", [Act::Sleep(40), Act::Done(1)]).exclusive("t");
        [(parent, "p"), (sleeps, "s")]
    };
    let drive = async |_: &Lab, run: &Run| {
        let mut handles = Vec::new();
        for (plan, key) in families() {
            handles.push(run.executor.submit(Limited(plan)).key(key).await?);
        }
        let checks = checks(&run.executor);
        for handle in handles {
            run.wait(handle.outcome()).await??;
        }
        checks.await??;
        assert_eq!(run.executor.snapshot().await?.lost_wakes, 0);
        Ok(())
    };
    let done = at_every_commit(false, |faults| {
        live_through(faults, |_| Lab::default(), limits, drive, |_, _| Ok(()))
    })?;
    assert!(done.commits >= 8, "{done:?}");
    Ok(())
}
