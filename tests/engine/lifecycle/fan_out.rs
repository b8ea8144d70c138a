//! Many children under one parent, few of them at once.

use procession::ProcedureId;
use procession::procedure::JoinPolicy;
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};

use super::kit::{Changes, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, kinds, live_in, plan};

const CHILDREN: u64 = 10_000;
const WIDTH: u32 = 8;

fn wide(children: u64) -> Plan {
    let children = vec![chain("c", 1); usize::try_from(children).unwrap_or_default()];
    plan(
        "r",
        [Act::Spawn(children, JoinPolicy::AllSucceeded, WIDTH), Act::Done(1)],
    )
}

/// Calls of children.
fn child_calls(lab: &Lab) -> usize {
    lab.calls().iter().filter(|call| call.name.starts_with('c')).count()
}

/// The most children that were set going at once, after any commit.
fn most_active(changes: &Changes) -> usize {
    let mut active = std::collections::BTreeSet::new();
    let mut most = 0;
    for change in changes.all() {
        for row in change.rows.iter().filter(|row| row.id.member > 0) {
            if row.going {
                active.insert(row.id);
            } else {
                active.remove(&row.id);
            }
        }
        most = most.max(active.len());
    }
    most
}

async fn ended(run: &Run, plan: &Plan) -> Result<(u64, usize), Trouble> {
    let changes = Changes::watch(run).await?;
    let handle = submit(run, Planned(plan.clone()), "k").await?;
    assert_eq!(run.wait(handle.outcome()).await??, 1);
    run.settle().await;
    Ok((run.executor.snapshot().await?.commits, most_active(&changes)))
}

#[test]
fn e_015_wide_fan_out() -> Tested {
    let (lab, plan) = (Lab::default(), wide(CHILDREN));
    let found = live_in(&World::new(), &lab, async |run| ended(run, &plan).await)?;
    assert_eq!(found, (CHILDREN + 3, WIDTH as usize));
    assert_eq!((child_calls(&lab), lab.count("r2")), (10_000, 1));
    Ok(())
}

#[test]
fn e_015_wide_fan_out_crashes_half_way() -> Tested {
    let (world, lab, plan) = (World::new(), Lab::default(), wide(CHILDREN));
    // After the submit and the spawn, the end of the 5,000th child.
    let half = FaultPlan::at(2 + CHILDREN / 2, Fault::CrashAfter);
    let first = world.run(
        half,
        |builder| kinds(&lab, builder),
        async |run| ended(run, &plan).await,
    )?;
    assert!(matches!(first, Ended::Crashed));
    let (commits, active) = live_in(&world, &lab, async |run| {
        let found = ended(run, &plan).await?;
        let tree = run.executor.tree(ProcedureId::root(1)).await?;
        assert!(tree.iter().all(|row| row.ended.is_some()));
        Ok(found)
    })?;
    assert_eq!(commits, CHILDREN / 2 + 1);
    assert!(active <= WIDTH as usize, "{active} were active");
    let twice = child_calls(&lab) - 10_000;
    assert!(twice <= WIDTH as usize, "{twice} ran twice");
    assert_eq!(lab.count("r2"), 1);
    Ok(())
}

/// The same with few, so that every crash can be tried.
#[test]
fn e_015_a_narrow_fan_out_survives_every_crash() -> Tested {
    // Named each, so that one that ran too often is noticed.
    let children: Vec<Plan> = (0..5).map(|number| chain(&format!("c{number}-"), 1)).collect();
    let narrow = Act::Spawn(children, JoinPolicy::AllSucceeded, 3);
    let (done, lab) = enumerate_plan(&plan("r", [narrow, Act::Done(1)]))?;
    assert_eq!((done.commits, child_calls(&lab)), (8, 5));
    Ok(())
}
