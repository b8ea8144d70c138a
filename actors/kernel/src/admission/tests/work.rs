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
