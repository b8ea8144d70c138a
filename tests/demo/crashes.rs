//! E-117 to E-120 under crashes: at every commit of a procedure, and with every
//! stage and undo run twice.

use std::collections::BTreeSet;

use procession::status::ProcedureState;
use procession::testkit::{Fault, FaultPlan};
use procession_cli::demo::faults::{Fault as Meant, Lot, Moment};
use procession_cli::demo::input::Share;
use procession_cli::demo::procedures::{
    CreateTable, DeleteTable, MergeTablet, MoveTablet, SplitTablet, Target, UnloadTablet, UpdateTable,
};
use procession_cli::demo::workload::{Action, ExpectedTable};

use crate::Outcome;
use crate::lab::{Files, Lab, clean, twice_each};
use crate::twelve::cases;
use crate::world::World;

const WHOLE: Share = Share { index: 0, of: 3 };

fn first() -> Target {
    Target::Holding(String::new())
}

fn doomed(kind: &str, stage: &str, ordinal: u32) -> Lot {
    Lot::doomed(
        1,
        Meant {
            kind: kind.into(),
            stage: stage.into(),
            ordinal,
            moment: Moment::After,
        },
    )
}

/// No file is in two places.
fn in_one_place(files: &Files) -> Outcome {
    match files.0.iter().find(|(_, places)| places.len() > 1) {
        Some((name, places)) => Err(format!("{name} is in {places:?}").into()),
        None => Ok(()),
    }
}

/// The files hold all of these rows, some of them perhaps in two files.
fn all_there(files: &Files, rows: usize) -> Outcome {
    in_one_place(files)?;
    let finished = files.0.iter().filter(|(name, _)| name.ends_with(".rows"));
    let lines: BTreeSet<&str> = finished
        .flat_map(|(_, places)| places)
        .flat_map(|(_, text)| text.lines())
        .collect();
    if lines.len() == rows {
        Ok(())
    } else {
        Err(format!("{} of {rows} rows are there", lines.len()).into())
    }
}

/// Crashes an action at each of its commits, before it and after it, in a fresh
/// world each time, until a commit is never reached.
fn at_every_commit(
    set_up: impl Fn() -> Outcome<Lab>,
    action: &Action,
    look: impl Fn(&Files) -> Outcome,
    check: impl Fn(&Lab) -> Outcome,
) -> Outcome<u64> {
    for commit in 1.. {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let lab = set_up()?;
            let once = |life: usize| {
                if life == 0 {
                    FaultPlan::at(commit, fault)
                } else {
                    FaultPlan::none()
                }
            };
            let survived = lab.survive(action, once, &look)?;
            assert!(
                clean(&survived.end),
                "commit {commit}, {fault:?}: {:?}",
                survived.end.cause
            );
            check(&lab).map_err(|why| format!("commit {commit}, {fault:?}: {why}"))?;
            if survived.lives == 1 {
                return Ok(commit - 1);
            }
        }
    }
    Err("there is no end of commits".into())
}

fn furnished() -> Outcome<Lab> {
    Lab::new(60, 3, async |world: &mut World| world.furnish().await)
}

fn one_tablet(rows: usize) -> Outcome<Lab> {
    Lab::new(rows, 2, async |world: &mut World| world.create("t", 0, 1).await)
}

#[test]
fn e_117_each_of_the_twelve_succeeds_also_under_double_execution() -> Outcome {
    for case in cases() {
        let action = (case.make)(Lot::fair(1));
        for plan in [|_| FaultPlan::none(), twice_each] {
            let mut lab = furnished()?;
            let survived = lab.survive(&action, plan, in_one_place)?;
            let (end, lives) = (survived.end, survived.lives);
            assert_eq!(end.state, ProcedureState::Success, "{}: {:?}", action.kind(), end.cause);
            let changed = lab.live(FaultPlan::none(), async |world: &mut World| {
                (case.then)(world);
                Ok(world.expected.clone())
            })?;
            lab.expected = changed.done()?;
            lab.verify()
                .map_err(|why| format!("{} in {lives} lives: {why}", action.kind()))?;
        }
    }
    Ok(())
}

#[test]
fn e_117_each_of_the_twelve_under_rollback_double_execution() -> Outcome {
    for case in cases() {
        let lab = furnished()?;
        let before = lab.picture()?;
        let (kind, last) = case
            .stages
            .iter()
            .rfind(|(kind, _)| *kind == case.stages[0].0)
            .ok_or("no stage")?;
        let action = (case.make)(doomed(kind, last, 0));
        let survived = lab.survive(&action, twice_each, in_one_place)?;
        assert_eq!(survived.end.state, ProcedureState::RolledBack, "{kind}");
        assert!(clean(&survived.end), "{kind}");
        assert_eq!(lab.picture()?, before, "{kind} at {last}");
    }
    Ok(())
}

#[test]
fn e_118_a_move_is_crashed_at_every_commit() -> Outcome {
    let commits = at_every_commit(
        || one_tablet(60),
        &MoveTablet::new(Lot::fair(1), "t", first(), Some("s2")).into(),
        in_one_place,
        |lab| {
            let files = lab.picture()?.files;
            assert!(
                files
                    .keys()
                    .all(|path| path.parent().is_some_and(|server| server.ends_with("s2")))
            );
            lab.verify()
        },
    )?;
    // Submission; the two looks; the mover's three stages; two of each of its children.
    assert_eq!(commits, 10);
    Ok(())
}

#[test]
fn e_118_a_move_that_fails_is_crashed_at_every_commit() -> Outcome {
    for (kind, stage) in [("unload_tablet", "Close"), ("load_tablet", "Open")] {
        let before = one_tablet(60)?.picture()?.meta;
        let failing = MoveTablet::new(doomed(kind, stage, 0), "t", first(), Some("s2"));
        at_every_commit(
            || one_tablet(60),
            &failing.into(),
            in_one_place,
            |lab| {
                assert_eq!(lab.picture()?.meta, before);
                lab.verify()
            },
        )?;
    }
    Ok(())
}

#[test]
fn e_119_split_and_merge_are_crashed_at_every_commit() -> Outcome {
    let all = |files: &Files| all_there(files, 1_000);
    let split: Action = SplitTablet::new(Lot::fair(1), "t", first()).into();
    at_every_commit(|| one_tablet(3_000), &split, all, Lab::verify)?;
    let halves = || Lab::new(3_000, 2, async |world: &mut World| world.create("t", 0, 2).await);
    let merge: Action = MergeTablet::new(Lot::fair(1), "t", first()).into();
    at_every_commit(halves, &merge, all, Lab::verify)?;
    Ok(())
}

#[test]
fn e_120_fan_out_over_64_tablets_is_crashed_at_ten_commits() -> Outcome {
    // A creation that fails, an update that fails, one that succeeds, and a deletion.
    let table = || Lab::new(3_000, 4, async |world: &mut World| world.create("t", 0, 64).await);
    let nothing = || Lab::new(3_000, 4, async |_: &mut World| Ok(()));
    let fails = CreateTable::new(doomed("load_tablet", "Open", 40), "t", WHOLE, 64);
    at_ten(nothing, &fails.into(), 64 * 2, |_| {})?;
    let fails = UpdateTable::new(doomed("move_tablet", "Finish", 40), "t", "a", "b");
    at_ten(table, &fails.into(), 64 * 7, |_| {})?;
    let succeeds = UpdateTable::new(Lot::fair(1), "t", "a", "b");
    at_ten(table, &succeeds.into(), 64 * 7, |lab| {
        let mut updated = ExpectedTable::new(WHOLE);
        updated.schema = 2;
        updated.properties.insert("a".into(), "b".into());
        lab.expected.tables.insert("t".into(), updated);
    })?;
    at_ten(table, &DeleteTable::new(Lot::fair(1), "t").into(), 64 * 2, |lab| {
        lab.expected.tables.clear()
    })
}

/// Crashes at ten commits, spread over about so many, all in one world's life.
fn at_ten(set_up: impl Fn() -> Outcome<Lab>, action: &Action, commits: u64, then: impl Fn(&mut Lab)) -> Outcome {
    let mut lab = set_up()?;
    let step = commits / 10;
    let crashes = |life: usize| match life {
        0..5 => FaultPlan::at(step, Fault::CrashAfter),
        5..10 => FaultPlan::at(step, Fault::CrashBefore),
        _ => FaultPlan::none(),
    };
    let survived = lab.survive(action, crashes, in_one_place)?;
    assert!(
        clean(&survived.end) && survived.lives > 8,
        "{} lives: {:?}",
        survived.lives,
        survived.end.cause
    );
    then(&mut lab);
    lab.verify()
}

#[test]
fn a_tablet_that_is_unloaded_twice_is_unloaded_once() -> Outcome {
    let mut lab = one_tablet(60)?;
    let action = UnloadTablet::new(Lot::fair(1), "t", first()).into();
    lab.survive(&action, twice_each, in_one_place)?;
    lab.expected.tables.insert(
        "t".into(),
        ExpectedTable {
            offline: 1,
            ..ExpectedTable::new(WHOLE)
        },
    );
    lab.verify()
}
