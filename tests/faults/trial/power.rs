//! Power cuts: at every boundary of a sync, around every change of names, and anywhere.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use procession_cli::demo::draw::Draw;

use super::cuts::Cuts;
use super::ground::{Place, seed, states};
use super::library::{Fault, How, INPUT_OUTPUT};
use super::life::copy;
use super::pool::{Trial, all_are_sound, run};
use super::record::{Operation, Record};
use crate::Outcome;

/// Two lives: the first dies at work, or drains; checkpoints come as often as drawn.
fn two_lives(journal: &str, draw: &mut Draw) -> Outcome<(Place, Cuts)> {
    const CHECKPOINTS: [usize; 4] = [3_000, 6_000, 20_000, 200_000];
    let place = Place::new(journal)?;
    let filler = draw.one(&[0, 0, 700, 5_000]).copied().unwrap_or(0);
    for from in [0, 100] {
        let mut task = place.task(from, 15);
        task.filler = filler;
        task.checkpoint = draw.one(&CHECKPOINTS).copied().unwrap_or(6_000);
        task.drains = from > 0 || draw.chance(0.3);
        place.live_well(&task)?;
    }
    let cuts = Cuts {
        filler,
        ..place.cuts()?
    };
    Ok((place, cuts))
}

fn try_cuts(test: &str, cuts: Cuts, count: usize) -> Outcome {
    let seed = seed();
    let cuts = Cuts { seed, ..cuts };
    all_are_sound(test, &Trial::Cuts(cuts), count, seed)?;
    Ok(())
}

#[test]
fn the_library_sees_renames_and_syncs_of_the_store() -> Outcome {
    let (place, _) = two_lives("journal", &mut Draw::new(seed()))?;
    let record = Record::read(&place.record())?;
    let seen = |is_one: &dyn Fn(&Operation) -> bool| record.operations.iter().filter(|one| is_one(one)).count();
    // fjall's pointers to the newest list of tables come to be by renames alone.
    let current = seen(&|one| matches!(one, Operation::Renamed { to, .. } if to.ends_with("current")));
    assert!(current > 10, "{current} renames of \"current\"");
    assert!(seen(&|one| matches!(one, Operation::DirectorySynced { .. })) > 10);
    assert!(seen(&|one| matches!(one, Operation::Synced { .. })) > 30);
    assert!(seen(&|one| matches!(one, Operation::Noted { .. })) > 30);
    Ok(())
}

#[test]
fn a_power_cut_loses_nothing_that_was_told() -> Outcome {
    const CUTS: usize = 250;
    let mut draw = Draw::new(seed());
    for _ in 0..states(600, 500).div_ceil(CUTS) {
        let (_place, cuts) = two_lives("journal", &mut draw)?;
        try_cuts("power_two_lives", cuts, CUTS)?;
    }
    Ok(())
}

/// If this finds nothing, then neither can the others.
#[test]
fn the_control_without_syncs_finds_losses() -> Outcome {
    let (_place, cuts) = two_lives("journal", &mut Draw::new(seed()))?;
    let seed = seed();
    let cuts = Cuts {
        seed,
        without_syncs: true,
        ..cuts
    };
    let report = run(&Trial::Cuts(cuts), 60)?;
    report.tell("power_control", seed)?;
    assert!(
        report.wrong.len() >= 15,
        "only {} of 60 lost anything: the trial is blind",
        report.wrong.len()
    );
    Ok(())
}

/// The engine recovers from one power cut, works, and meets another at any instant of that.
#[test]
fn a_power_cut_in_the_recovery_from_another_loses_nothing() -> Outcome {
    const CUTS: usize = 30;
    let seed = seed();
    let mut draw = Draw::new(seed);
    let mut first = two_lives("journal", &mut draw)?;
    for number in 0..states(200, 150).div_ceil(CUTS) {
        if number % 20 == 19 {
            first = two_lives("journal", &mut draw)?;
        }
        let cuts = Cuts {
            seed,
            ..first.1.clone()
        };
        let place = Place::new("journal")?;
        let (ledger, state) = cuts.build(number, &place.root())?;
        let base = place.path().join("base");
        copy(&place.root(), &base)?;
        let mut task = place.task(1_000, 6);
        task.filler = cuts.filler;
        task.drains = number % 2 == 0;
        place.live_well(&task).map_err(|error| format!("{state}: {error}"))?;
        let nested = Cuts {
            base: Some(base),
            ledger,
            filler: cuts.filler,
            ..Cuts::new(&place.record(), &place.root(), "journal".as_ref())
        };
        nested.is_complete()?;
        try_cuts("power_nested", nested, CUTS).map_err(|error| format!("behind {state}: {error}"))?;
    }
    Ok(())
}

/// What a failed sync should have written is in memory alone. The next start of the same system reads it as if all
/// were well, and acknowledges more on top of it.
#[test]
fn a_power_cut_after_a_failed_sync_and_a_restart_loses_nothing() -> Outcome {
    const CUTS: usize = 40;
    let rounds = states(195, 160).div_ceil(CUTS);
    let mut draw = Draw::new(seed());
    for round in 0..rounds {
        let place = Place::new("journal")?;
        // One of the log, or any: of a table, a pointer, a directory.
        let (letters, path, among) = if round % 2 == 0 {
            ("s", Some("jnl".to_owned()), 80)
        } else {
            ("sd", None, 250)
        };
        let fault = Fault {
            at: 1 + draw.below(among),
            how: How::Once,
            error: INPUT_OUTPUT,
            letters: letters.to_owned(),
            path,
        };
        let mut first = place.task(0, 15);
        first.drains = draw.chance(0.5);
        let (status, lines) = place.live(&first, Some(&fault))?;
        let before = Record::read(&place.record())?;
        place
            .live_well(&place.task(100, 10))
            .map_err(|error| format!("after {status} {lines:?}: {error}"))?;
        let failed = |one: &Operation| {
            matches!(
                one,
                Operation::SyncFailed { .. } | Operation::DirectorySyncFailed { .. }
            )
        };
        assert!(
            before.operations.iter().any(failed),
            "no sync failed with {fault:?}: {lines:?}"
        );
        let cuts = Cuts {
            from: before.operations.len(),
            ..place.cuts()?
        };
        try_cuts("power_failed_sync", cuts, CUTS).map_err(|error| format!("{fault:?}: {error}"))?;
    }
    Ok(())
}

/// The log is closed at 64 MB, another begins, and the old one is removed once all of it is in tables.
#[test]
fn a_power_cut_around_a_change_of_logs_loses_nothing() -> Outcome {
    let place = Place::new("journal")?;
    let mut task = place.task(0, 110);
    task.filler = 1_000_000;
    task.checkpoint = 4_000_000;
    place.live_well(&task)?;
    let record = Record::read(&place.record())?;
    let is_log = |path: &Path| path.extension().is_some_and(|end| end == "jnl");
    let changes_logs =
        |one: &Operation| matches!(one, Operation::Created { path, .. } | Operation::Unlinked { path } if is_log(path));
    let numbered = record.operations.iter().enumerate();
    // The first one makes the store.
    let changes: Vec<usize> = numbered
        .filter(|(_, one)| changes_logs(one))
        .map(|(at, _)| at)
        .skip(1)
        .collect();
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else {
        return Err("the log did not change".into());
    };
    let cuts = Cuts {
        filler: task.filler,
        from: first - 10,
        until: last + 60,
        ..place.cuts()?
    };
    try_cuts("power_change_of_logs", cuts, states(5, 12))
}

/// Names are kept only where their directory was synced, and all that was not synced is lost.
fn try_strictest(test: &str, cuts: Cuts) -> Outcome {
    let cuts = Cuts {
        is_strictest: true,
        ..cuts
    };
    try_cuts(test, cuts, 12)
}

/// What says that the store is still being made is gone, and nobody has synced that yet: if it came back,
/// the store would look like one in which nothing was acknowledged.
#[test]
fn killed_behind_the_end_of_the_making_it_loses_nothing_later() -> Outcome {
    let place = Place::new("journal")?;
    let fault = Fault {
        at: 1,
        how: How::Kill,
        error: INPUT_OUTPUT,
        letters: "u".to_owned(),
        path: Some("store.unfinished".to_owned()),
    };
    let (status, lines) = place.live(&place.task(0, 1), Some(&fault))?;
    assert_eq!(status.signal(), Some(9), "it was not killed: {lines:?}");
    let from = Record::read(&place.record())?.operations.len();
    place.live_well(&place.task(100, 10))?;
    let cuts = Cuts { from, ..place.cuts()? };
    try_strictest("power_unfinished", cuts)
}

#[test]
fn in_directories_that_are_all_new_it_loses_nothing() -> Outcome {
    let place = Place::new("a/b/c")?;
    place.live_well(&place.task(0, 10))?;
    try_strictest("power_new_directories", place.cuts()?)
}
