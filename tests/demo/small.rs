//! E-121 to E-124 small enough to be crashed at every commit, on a disk in memory: conflicts on a
//! few tablets, a whole workload from a seed, and worlds that the verification must refuse.

use futures::future::join_all;
use procession::Builder;
use procession::status::{Outcome as End, ProcedureState};
use procession::testkit::{Ended, Fault, FaultPlan};
use procession_cli::demo::faults::Lot;
use procession_cli::demo::master::LIMITS;
use procession_cli::demo::procedures::{LoadTablet, MergeTablet, SplitTablet, Target};
use procession_cli::demo::verify::{self, Rule};
use procession_cli::demo::workload::{Action, Operation, Plan, Sizes, generate};

use crate::Outcome;
use crate::errors::{Lurker, Vandal};
use crate::lab::{Lab, clean};
use crate::world::{World, numbered};

/// Crashes a client at each of its commits, before it and after it, in a fresh world each time, until a
/// commit is never reached; gives how many there were. The client is driven again after the crash; `check` looks
/// at what it gave at its end.
fn at_every_commit<T>(
    fresh: impl Fn() -> Outcome<Lab>,
    set_up: impl Fn(Builder) -> Builder,
    drive: impl AsyncFn(&mut World) -> Outcome<T>,
    check: impl Fn(&Lab, T) -> Outcome,
) -> Outcome<u64> {
    for commit in 1.. {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let lab = fresh()?;
            let named = |why| format!("commit {commit}, {fault:?}: {why}");
            let life = |plan| {
                let unfinished = lab.unfinished()?;
                lab.live_with(plan, &set_up, async |world: &mut World| {
                    let resumed = world.executor.snapshot().await?.recovered.procedures;
                    assert_eq!(resumed, unfinished, "each start says how many it resumed");
                    drive(world).await
                })
            };
            let (given, crashed) = match life(FaultPlan::at(commit, fault)).map_err(named)? {
                Ended::Done(given) => (given, false),
                Ended::Crashed => (life(FaultPlan::none()).and_then(Ended::done).map_err(named)?, true),
            };
            check(&lab, given).map_err(named)?;
            if !crashed {
                return Ok(commit - 1);
            }
        }
    }
    Err("there is no end of commits".into())
}

/// Submits all at once, each with its own key, and waits for their ends.
async fn perform_all(world: &World, operations: &[Operation]) -> Outcome<Vec<End>> {
    let ends = operations.iter().map(async |operation| -> Outcome<End> {
        let id = operation.action.submit(&world.executor, &operation.key()).await?;
        Ok(world.executor.outcome(id).await?)
    });
    join_all(ends).await.into_iter().collect()
}

async fn within_limits(world: &World) -> Outcome {
    for limit in world.executor.limits().await? {
        let allowed = LIMITS.iter().find(|(kind, _)| limit.key.as_str() == *kind);
        let allowed = allowed.map(|(_, allowed)| *allowed);
        assert_eq!(limit.limit, allowed);
        assert!(limit.used <= allowed.unwrap_or(0), "{} of {}", limit.used, limit.key);
    }
    Ok(())
}

#[test]
fn e_121_conflicts_are_crashed_at_every_commit() -> Outcome {
    let fresh = || Lab::new(12, 2, async |world: &mut World| world.create("t", 0, 2).await);
    let first = || Target::Holding(String::new());
    let actions: [Action; 3] = [
        SplitTablet::new(Lot::fair(0), "t", first()).into(),
        LoadTablet::new(Lot::fair(0), "t", first()).into(),
        MergeTablet::new(Lot::fair(0), "t", first()).into(),
    ];
    let operations: Vec<Operation> = (0..)
        .zip(actions)
        .map(|(number, action)| Operation { number, action })
        .collect();
    let drive = async |world: &mut World| {
        within_limits(world).await?;
        let ends = perform_all(world, &operations).await?;
        within_limits(world).await?;
        world.verify().await?;
        Ok(ends)
    };
    let check = |_: &Lab, ends: Vec<End>| {
        for end in ends {
            let text = end.cause.as_ref().map_or("", |cause| cause.text.as_str());
            let finds = [
                "is gone",
                "is loaded already",
                "only one",
                "too few rows",
                "is on ",
                "one key",
            ];
            let ok = end.state == ProcedureState::Success || finds.iter().any(|part| text.contains(part));
            assert!(ok && clean(&end), "{} {:?}: {text}", end.kind, end.state);
        }
        Ok(())
    };
    let commits = at_every_commit(fresh, |builder| builder, drive, check)?;
    assert!(commits > 12, "{commits}");
    Ok(())
}

/// Lane after lane, so that the commits come in about the same order in each run.
async fn run(world: &mut World, plan: &Plan) -> Outcome<usize> {
    world.expected = plan.expected.clone();
    let mut rolled_back = 0;
    for group in plan.lanes.iter().flat_map(|lane| &lane.groups) {
        for end in perform_all(world, &group.operations).await? {
            assert!(clean(&end), "{} {:?}", end.kind, end.cause);
            rolled_back += usize::from(end.state == ProcedureState::RolledBack);
        }
    }
    world.verify().await?;
    Ok(rolled_back)
}

#[test]
fn e_122_and_e_123_a_small_workload_is_crashed_at_every_commit() -> Outcome {
    /// Few enough rows that a table has two tablets.
    const ROWS: usize = 4;
    let sizes = Sizes {
        seed: 5,
        tables: 2,
        operations: 4,
        fail_rate: 0.3,
        servers: 2,
    };
    let plan = generate(&sizes, &numbered(ROWS));
    let fresh = || Lab::new(ROWS, sizes.servers, async |_: &mut World| Ok(()));
    let drive = async |world: &mut World| run(world, &plan).await;
    let calm = fresh()?.live(FaultPlan::none(), drive)?.done()?;
    assert!(calm > 0 && !plan.expected.tables.is_empty(), "some are rolled back");
    let check = |_: &Lab, rolled_back: usize| {
        assert_eq!(rolled_back, calm, "each meets the fault that the seed gives it");
        Ok(())
    };
    let commits = at_every_commit(fresh, |builder| builder, drive, check)?;
    assert!(commits > 20, "{commits}");
    Ok(())
}

/// What the verification says is wrong.
async fn findings(world: &World) -> Outcome<Vec<(Rule, String)>> {
    let (files, input) = (world.master.files(), world.master.input());
    Ok(verify::verify(&world.executor, files, input, &world.expected)
        .await?
        .findings)
}

#[test]
fn e_124_a_changed_meta_row_is_named_whatever_commit_it_crashes_at() -> Outcome {
    let fresh = || Lab::new(6, 1, async |world: &mut World| world.create("t", 0, 1).await);
    let vandal = Vandal { table: "t".to_owned() };
    let drive = async |world: &mut World| {
        world.executor.submit(vandal.clone()).key("v").await?.await?;
        findings(world).await
    };
    let check = |_: &Lab, found: Vec<(Rule, String)>| {
        let named = [" at schema 2, and should be ", "has schema 1, and its table 2"];
        let is_named = |(found, part): (&(Rule, String), &str)| found.0 == Rule::Meta && found.1.contains(part);
        let all = found.len() == named.len() && found.iter().zip(named).all(is_named);
        if all { Ok(()) } else { Err(format!("{found:?}").into()) }
    };
    let set_up = |builder: Builder| builder.register::<Vandal>(());
    assert_eq!(at_every_commit(fresh, set_up, drive, check)?, 2);
    Ok(())
}

#[test]
fn e_124_a_lock_and_a_permit_that_are_held_are_named_whatever_commit_it_crashes_at() -> Outcome {
    let fresh = || Lab::new(6, 1, async |_: &mut World| Ok(()));
    let drive = async |world: &mut World| {
        for key in ["1", "2"] {
            world.executor.submit(Lurker).key(key).await?;
        }
        while world.executor.snapshot().await?.going > 0 {
            tokio::task::yield_now().await;
        }
        findings(world).await
    };
    let check = |_: &Lab, found: Vec<(Rule, String)>| {
        let parts = [
            "2 procedures with their",
            "1 permits of lurker are held, and 1 procedures wait",
            "still holds table/t, exclusive",
            "still waits for table/t",
        ];
        let named = |(found, part): (&(Rule, String), &str)| found.0 == Rule::Unfinished && found.1.contains(part);
        assert!(
            found.len() == parts.len() && found.iter().zip(parts).all(named),
            "{found:?}"
        );
        Ok(())
    };
    let set_up = |builder: Builder| builder.register::<Lurker>(()).limit("lurker", 1);
    assert_eq!(at_every_commit(fresh, set_up, drive, check)?, 3);
    Ok(())
}
