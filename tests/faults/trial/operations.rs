//! Every file operation of a short life fails in turn.

use std::collections::BTreeMap;

use procession_cli::demo::draw::Draw;

use super::failing::Failing;
use super::ground::{Place, seed};
use super::library::{Fault, How, INPUT_OUTPUT, NO_MORE_FILES, NO_ROOM};
use super::pool::{Trial, all_are_sound};
use crate::Outcome;

/// Every operation that changes something.
const CHANGES: &str = "wsdtrumc";
/// Cases of each test where `TRIAL_CASES` says nothing.
const CASES: usize = 160;

/// Every way in which operations fail.
const WAYS: [(How, i32, &str); 6] = [
    (How::Once, INPUT_OUTPUT, CHANGES),
    (How::On, INPUT_OUTPUT, CHANGES),
    (How::Short, NO_ROOM, CHANGES),
    (How::Kill, INPUT_OUTPUT, CHANGES),
    (How::Once, INPUT_OUTPUT, "g"),
    (How::Once, NO_MORE_FILES, "co"),
];

/// Returns every operation that each way knows in a life without a fault.
fn every_case(failing: &Failing) -> Outcome<Vec<Fault>> {
    let mut cases = Vec::new();
    for (how, error, letters) in WAYS {
        let operations = failing.operations(letters)?;
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for operation in &operations {
            *kinds.entry(&operation[..1]).or_default() += 1;
        }
        // A library that does not see one of them any more makes this trial a sound one.
        let unseen = letters
            .chars()
            .filter(|letter| !kinds.contains_key(letter.to_string().as_str()));
        let unseen: String = unseen
            .filter(|letter| failing.base.is_none() || *letter != 'm')
            .collect();
        if !unseen.is_empty() {
            return Err(format!("no operation \"{unseen}\" was seen among {kinds:?}").into());
        }
        cases.extend((1..=operations.len()).map(|at| Fault {
            at,
            how,
            error,
            letters: letters.to_owned(),
            path: None,
        }));
    }
    Ok(cases)
}

/// Keeps as many as `TRIAL_CASES` says, which may say all, spread over all of them.
fn some_of(cases: Vec<Fault>, seed: u64) -> Vec<Fault> {
    let wanted = match std::env::var("TRIAL_CASES") {
        Ok(text) if text == "all" => cases.len(),
        Ok(text) => text.parse().unwrap_or(CASES),
        Err(_) => CASES,
    };
    let apart = (cases.len() / wanted.max(1)).max(1);
    let first = Draw::new(seed).below(apart);
    cases.into_iter().skip(first).step_by(apart).collect()
}

fn try_all(test: &str, mut failing: Failing) -> Outcome {
    let seed = seed();
    failing.cases = some_of(every_case(&failing)?, seed);
    let count = failing.cases.len();
    let report = all_are_sound(test, &Trial::Failing(failing), count, seed)?;
    // Threads differ from life to life, so a few of the last operations may not come about.
    let met: usize = report
        .said
        .iter()
        .filter(|(what, _)| !what.starts_with("nothing"))
        .map(|(_, count)| count)
        .sum();
    assert!(
        met * 10 > count * 8,
        "only {met} of {count} met their fault: {:?}",
        report.said
    );
    Ok(())
}

#[test]
fn whatever_operation_fails_from_the_first_start_on_nothing_is_lost() -> Outcome {
    let place = Place::new("journal")?;
    let failing = Failing {
        place: place.path().to_owned(),
        base: None,
        task: place.task(0, 10),
        cases: Vec::new(),
    };
    try_all("operations_first_start", failing)
}

#[test]
fn whatever_operation_fails_in_a_recovery_and_after_nothing_is_lost() -> Outcome {
    let place = Place::new("journal")?;
    let mut before = place.task(0, 15);
    before.drains = false;
    place.live_well(&before)?;
    let failing = Failing {
        place: place.path().to_owned(),
        base: Some(place.path().to_owned()),
        task: place.task(100, 10),
        cases: Vec::new(),
    };
    try_all("operations_recovery", failing)
}
