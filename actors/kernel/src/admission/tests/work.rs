//! Counts the evaluations of waiters: a long queue costs only what it serves.

use std::collections::BTreeSet;

use super::*;

const WAITERS: u64 = 10_000;

/// Makes `WAITERS` requests and ends them, one after another. Returns the number of evaluations.
fn evaluations(admissions: &mut Admissions, ask: impl Fn(u64) -> Request) -> u64 {
    for claim in 1..=WAITERS {
        admissions.request(ask(claim));
    }
    let mut running: BTreeSet<ClaimId> = (1..=WAITERS).map(ClaimId).collect();
    running.retain(|claim| !admissions.is_waiting(*claim));
    while let Some(claim) = running.pop_first() {
        running.extend(admissions.release(claim).into_iter().map(|served| served.id));
    }
    assert_eq!(admissions.waiting().count(), 0);
    admissions.evaluations
}

#[test]
fn a_queue_for_one_path_costs_a_few_evaluations_each() {
    let mut admissions = Admissions::default();
    assert!(evaluations(&mut admissions, |claim| request(claim, &["x t"])) <= 4 * WAITERS);
}

#[test]
fn readers_and_writers_at_all_heights_cost_a_few_evaluations_each() {
    let mut admissions = Admissions::default();
    let lock = |claim| ["x ns", "s ns/t", "x ns/t/r", "s ns/t/r", "s ns"][usize::try_from(claim % 5).unwrap()];
    assert!(evaluations(&mut admissions, |claim| request(claim, &[lock(claim)])) <= 6 * WAITERS);
}

#[test]
fn a_queue_for_two_limits_costs_a_few_evaluations_each() {
    let mut admissions = limited(&[("k", 3), ("l", 2), ("all", 4)]);
    let kind = |claim| if claim % 2 == 0 { "k" } else { "l" };
    assert!(evaluations(&mut admissions, |claim| request(claim, &[kind(claim), "all"])) <= 6 * WAITERS);
}

#[test]
fn those_who_wait_for_permit_and_lock_cost_a_few_evaluations_each() {
    let mut admissions = limited(&[("k", 5)]);
    let path = |claim| format!("x t{}", claim % 3);
    assert!(evaluations(&mut admissions, |claim| request(claim, &["k", &path(claim)])) <= 8 * WAITERS);
}

#[test]
fn children_inside_cost_a_few_evaluations_each_whatever_waits_outside() {
    let mut admissions = Admissions::default();
    admissions.ask(1_000_000, &["x t"]);
    for stranger in 0..WAITERS {
        admissions.ask(2_000_000 + stranger, &["x t"]);
    }
    for child in 1..=WAITERS {
        admissions.request(Request {
            within: vec![ClaimId(1_000_000)],
            ..request(child, &["x t"])
        });
    }
    for child in 1..=WAITERS {
        admissions.release(ClaimId(child));
    }
    assert!(admissions.evaluations <= 5 * WAITERS);
}

#[test]
fn a_lock_that_was_free_for_many_costs_a_few_looks_at_each_when_it_is_taken() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1_000_000, &["k"]);
    for claim in 1..=WAITERS {
        assert!(!admissions.ask(claim, &["k", "x t"]));
    }
    let waiters = usize::try_from(WAITERS).unwrap();
    for taken in 1..=2 {
        assert!(admissions.ask(2_000_000, &["x t"]), "they lack only the permit");
        assert!(admissions.looks <= taken * waiters);
        assert_eq!(admissions.end(2_000_000), []);
        assert!(admissions.looks <= taken * waiters);
    }
    assert!(admissions.evaluations <= 6 * WAITERS);
    assert_eq!(admissions.end(1_000_000), [1]);
}

#[test]
fn locks_of_all_heights_that_were_free_for_many_cost_a_few_looks_at_each_when_one_is_taken() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1_000_000, &["k"]);
    let lock = |claim| match claim % 4 {
        0 => "x ns".to_owned(),
        1 => "s ns".to_owned(),
        2 => format!("x ns/t{claim}"),
        _ => format!("s ns/t{}", claim % 64),
    };
    for claim in 1..=WAITERS {
        assert!(!admissions.ask(claim, &["k", &lock(claim)]));
    }
    assert!(admissions.ask(2_000_000, &["x ns"]), "they lack only the permit");
    assert!(admissions.looks <= usize::try_from(WAITERS).unwrap());
    assert!(admissions.evaluations <= 4 * WAITERS);
}
