//! Rates: a permit given back is not a begin given back, the time alone serves, and in the order of service.

use std::time::Duration;

use super::*;
use crate::limit::Limit;
use crate::rate_window::RateWindow;

const SECOND: Duration = Duration::from_secs(1);

fn at(milliseconds: u64) -> Timestamp {
    Timestamp(1_000_000_000 + milliseconds * 1_000)
}

/// Creates a limit `k` of two begins in a second.
fn two_a_second() -> Admissions {
    let mut admissions = Admissions::new([(LimitKey::from("k"), Limit::per(2, SECOND))]);
    admissions.move_to(at(0));
    admissions
}

fn rate_of(admissions: &Admissions) -> Option<(u32, Option<Timestamp>)> {
    let rate = admissions.usage_of(&"k".into())?.rate?;
    Some((rate.begun, rate.free_at))
}

/// Returns when each thing that a claim lacks comes, if the time alone brings it.
fn comes_at(admissions: &Admissions, claim: u64) -> Vec<Option<Timestamp>> {
    let blockers = admissions.blockers(ClaimId(claim));
    blockers.into_iter().map(|blocker| blocker.at).collect()
}

#[test]
fn what_has_begun_counts_for_a_period_whether_it_runs_or_not() {
    let mut admissions = two_a_second();
    assert!(admissions.ask(1, &["k"]));
    admissions.move_to(at(300));
    assert!(admissions.ask(2, &["k"]));
    assert!(!admissions.ask(3, &["k"]));
    assert_eq!(
        admissions.lacking(3),
        [(permit("k"), vec![], true)],
        "only the time helps"
    );
    assert_eq!(comes_at(&admissions, 3), [Some(at(1_000))]);
    assert_eq!((admissions.end(1), admissions.end(2)), (vec![], vec![]));
    assert_eq!(
        (rate_of(&admissions), admissions.wanted_at()),
        (Some((2, Some(at(1_000)))), Some(at(1_000)))
    );
    assert_eq!(admissions.move_to(at(999)), []);
    assert_eq!(numbers(&admissions.move_to(at(1_000))), [3]);
    assert_eq!(
        (rate_of(&admissions), admissions.wanted_at()),
        (Some((2, Some(at(1_300)))), None)
    );
    assert_eq!(admissions.end(3), []);
    assert!(admissions.is_empty());
}

#[test]
fn a_claim_that_keeps_its_permit_does_not_begin_again_and_one_that_exchanges_it_does() {
    let mut admissions = two_a_second();
    assert!(admissions.ask(1, &["k"]));
    assert!(admissions.ask(1, &["k"]));
    assert_eq!(rate_of(&admissions), Some((1, None)));
    let (grant, _) = admissions.exchange(&needs(&["k"]), request(1, &["k"]));
    assert_eq!(grant, Grant::Granted);
    let (grant, _) = admissions.exchange(&needs(&["k"]), request(1, &["k"]));
    assert_eq!(grant, Grant::Queued(permit("k")));
    assert_eq!(numbers(&admissions.move_to(at(1_000))), [1]);
}

#[test]
fn the_time_serves_by_priority_and_then_by_arrival() {
    let mut admissions = two_a_second();
    (1..=2).for_each(|claim| assert!(admissions.ask(claim, &["k"])));
    (3..=5).for_each(|claim| assert!(!admissions.ask(claim, &["k"])));
    assert!(!admissions.ask_with(6, 9, &["k"]));
    assert_eq!(numbers(&admissions.move_to(at(1_000))), [6, 3]);
    assert_eq!(numbers(&admissions.move_to(at(2_000))), [4, 5]);
}

#[test]
fn nobody_waits_for_more_than_a_period_behind_a_clock_that_was_set_back() {
    let mut admissions = two_a_second();
    (1..=2).for_each(|claim| assert!(admissions.ask(claim, &["k"])));
    assert!(!admissions.ask(3, &["k"]));
    let back = Timestamp(5);
    assert_eq!(admissions.move_to(back), []);
    assert_eq!(admissions.wanted_at(), Some(back.after(SECOND)));
    assert_eq!(numbers(&admissions.move_to(back.after(SECOND))), [3]);
}

#[test]
fn a_restored_holder_does_not_begin_and_what_began_before_counts() {
    let mut admissions = two_a_second();
    let mut window = RateWindow::default();
    window.begin(at(0), SECOND);
    admissions.restore_window(&"k".into(), window);
    assert_eq!(admissions.restore(request(1, &["k"])), []);
    assert_eq!(rate_of(&admissions), Some((1, None)));
    assert!(admissions.ask(2, &["k"]));
    assert!(!admissions.ask(3, &["k"]));
}

#[test]
fn permits_and_begins_are_limited_together() {
    let limit = Limit::per(3, SECOND).and_at_once(1);
    let mut admissions = Admissions::new([(LimitKey::from("k"), limit)]);
    admissions.move_to(at(0));
    assert!(admissions.ask(1, &["k"]));
    (2..=4).for_each(|claim| assert!(!admissions.ask(claim, &["k"])));
    assert_eq!(admissions.lacking(2), [(permit("k"), vec![1], true)]);
    assert_eq!((admissions.end(1), admissions.end(2)), (vec![2], vec![3]));
    assert_eq!((admissions.end(3), admissions.wanted_at()), (vec![], Some(at(1_000))));
    assert_eq!(numbers(&admissions.move_to(at(1_000))), [4]);
}

#[test]
fn a_rate_changes_at_once_and_remembers_what_has_begun() {
    let mut admissions = two_a_second();
    (1..=2).for_each(|claim| assert!(admissions.ask(claim, &["k"])));
    (3..=6).for_each(|claim| assert!(!admissions.ask(claim, &["k"])));
    let key = || LimitKey::from("k");
    assert_eq!(numbers(&admissions.set_limit(key(), Limit::per(3, SECOND))), [3]);
    assert_eq!(admissions.set_limit(key(), Limit::per(0, SECOND)), []);
    assert_eq!((admissions.wanted_at(), admissions.move_to(at(9_000))), (None, vec![]));
    assert_eq!(numbers(&admissions.set_limit(key(), None)), [4, 5, 6]);
    assert!(!admissions.has_rates());
}

#[test]
fn one_that_waits_for_a_lock_uses_nothing_of_a_rate() {
    let mut admissions = two_a_second();
    assert!(admissions.ask(1, &["l", "x a"]));
    assert!(!admissions.ask(2, &["k", "x a"]));
    assert!(admissions.ask(3, &["k"]));
    assert_eq!(rate_of(&admissions), Some((1, None)));
    assert_eq!(admissions.end(1), [2]);
    assert_eq!(rate_of(&admissions), Some((2, Some(at(1_000)))));
}

#[test]
fn one_behind_a_kept_permit_is_served_by_the_time_alone() {
    let mut admissions = two_a_second();
    assert!(admissions.ask(1, &["l", "x a"]));
    assert!(!admissions.ask(2, &["k", "x a"]));
    assert!(admissions.ask(3, &["k"]));
    assert!(
        !admissions.ask(4, &["k"]),
        "the second begin is kept for the first waiter"
    );
    assert_eq!(
        admissions.lacking(4),
        [(permit("k"), vec![], true)],
        "neither 3, which has begun, nor 2 must move"
    );
    assert_eq!(comes_at(&admissions, 4), [Some(at(1_000))]);
    assert_eq!(admissions.wanted_at(), Some(at(1_000)));
    assert_eq!(numbers(&admissions.move_to(at(1_000))), [4]);
    assert_eq!(admissions.wanted_at(), None);
}

#[test]
fn a_waiter_is_told_of_holders_only_if_they_have_what_it_lacks() {
    let limit = |begins, at_once| Limit::per(begins, SECOND).and_at_once(at_once);
    let mut admissions = Admissions::new([(LimitKey::from("k"), limit(1, 2))]);
    admissions.move_to(at(0));
    assert!(admissions.ask(1, &["k"]));
    assert!(!admissions.ask(2, &["k"]));
    assert_eq!(admissions.lacking(2), [(permit("k"), vec![], true)]);
    assert_eq!(comes_at(&admissions, 2), [Some(at(1_000))]);
    assert_eq!(admissions.set_limit("k".into(), limit(1, 1)), []);
    assert_eq!(admissions.lacking(2), [(permit("k"), vec![1], true)], "it lacks both");
    assert_eq!(comes_at(&admissions, 2), [None]);
    assert_eq!(admissions.set_limit("k".into(), limit(0, 2)), []);
    assert_eq!(admissions.lacking(2), [(permit("k"), vec![], true)]);
    assert_eq!(comes_at(&admissions, 2), [None], "no time helps");
}

#[test]
fn the_only_begin_of_a_rate_that_is_kept_for_a_waiter_comes_from_nobody_else() {
    let mut admissions = Admissions::new([(LimitKey::from("k"), Limit::per(1, SECOND))]);
    admissions.move_to(at(0));
    assert!(admissions.ask(1, &["l", "x a"]));
    assert!(!admissions.ask(2, &["k", "x a"]));
    assert!(!admissions.ask(3, &["k"]));
    assert_eq!(admissions.lacking(3), [(permit("k"), vec![2], true)]);
    assert_eq!(comes_at(&admissions, 3), [None]);
}

#[test]
fn one_that_never_came_to_be_has_not_begun() {
    let mut admissions = two_a_second();
    assert!(admissions.ask(1, &["other", "k", "x a"]));
    admissions.move_to(at(300));
    assert!(admissions.ask(2, &["k"]));
    assert!(!admissions.ask(3, &["k"]));
    assert!(!admissions.ask(4, &["k"]));
    assert_eq!(
        numbers(&admissions.withdraw(ClaimId(1))),
        [3],
        "the time is not waited for"
    );
    assert_eq!(
        rate_of(&admissions),
        Some((2, Some(at(1_300)))),
        "its own begin is taken back, and no other"
    );
    assert_eq!(admissions.withdraw(ClaimId(4)), [], "it waited, and had begun nothing");
    admissions.move_to(at(1_300));
    assert!(admissions.ask(5, &["k"]));
    admissions.move_to(at(2_299));
    assert_eq!(admissions.withdraw(ClaimId(2)), []);
    assert_eq!(
        rate_of(&admissions),
        Some((1, None)),
        "what counts no more is not taken back"
    );
    assert_eq!(admissions.withdraw(ClaimId(9)), []);
}

#[test]
fn one_that_had_begun_before_the_rate_was_set_takes_nothing_back() {
    let mut admissions = limited(&[("k", 9)]);
    admissions.move_to(at(0));
    assert!(admissions.ask(1, &["k"]));
    assert_eq!(admissions.set_limit("k".into(), Limit::per(2, SECOND)), []);
    assert!(admissions.ask(2, &["k"]));
    assert_eq!(admissions.withdraw(ClaimId(1)), []);
    assert_eq!(rate_of(&admissions), Some((1, None)));
}
