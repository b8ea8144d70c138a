//! Limits: how many permits are granted, which waiter is next, and which requests may overtake others.

use super::*;

#[test]
fn e_060_the_one_over_the_limit_waits_and_is_served_once() {
    let mut admissions = limited(&[("k", 20)]);
    for claim in 1..=20 {
        assert!(admissions.ask(claim, &["k"]));
    }
    assert!(!admissions.ask(21, &["k"]));
    for claim in 101..=200 {
        assert!(admissions.ask(claim, &["l"]));
    }
    let (_, holders, any) = admissions.lacking(21).remove(0);
    assert_eq!((holders, any), ((1..=20).collect(), true));
    assert_eq!(admissions.end(1), [21]);
    assert_eq!(admissions.end(1), [], "given back exactly once");
}

#[test]
fn e_061_raising_serves_exactly_the_difference_and_lowering_takes_nothing_back() {
    let mut admissions = limited(&[("k", 1)]);
    for claim in 1..=10 {
        admissions.ask(claim, &["k"]);
    }
    let key = || LimitKey::from("k");
    assert_eq!(numbers(&admissions.set_limit(key(), Some(4))), [2, 3, 4]);
    assert_eq!(admissions.set_limit(key(), Some(1)), []);
    for claim in 1..=3 {
        assert_eq!(admissions.end(claim), []);
    }
    assert_eq!(admissions.end(4), [5]);
    assert_eq!(numbers(&admissions.set_limit(key(), None)), [6, 7, 8, 9, 10]);
}

#[test]
fn e_062_kinds_do_not_delay_each_other_and_higher_priority_goes_first() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1, &["k"]);
    assert!(!admissions.ask(2, &["k"]));
    assert!(!admissions.ask(3, &["k"]));
    assert!(!admissions.ask_with(4, 5, &["k"]));
    assert!(admissions.ask(5, &["l"]));
    assert_eq!(ids(&admissions.waiting().collect::<Vec<_>>()), [4, 2, 3]);
    assert_eq!(admissions.end(1), [4]);
    assert_eq!(admissions.end(4), [2]);
    assert_eq!(admissions.end(2), [3]);
}

#[test]
fn e_063_a_permit_given_back_is_asked_for_again_behind_all_who_wait() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1, &["k", "x a"]);
    admissions.ask(2, &["k"]);
    assert_eq!(numbers(&admissions.give_back(ClaimId(1), &needs(&["k"]))), [2]);
    assert_eq!(admissions.held(ClaimId(1)), needs(&["x a"]));
    assert!(!admissions.ask(1, &["k", "x a"]));
    admissions.ask(3, &["k"]);
    assert_eq!(admissions.end(2), [1]);
    assert!(admissions.holds_all(ClaimId(1), &needs(&["x a", "k"])));
    let (grant, served) = admissions.exchange(&needs(&["k"]), request(1, &["k"]));
    assert_eq!((grant, numbers(&served)), (Grant::Queued(permit("k")), vec![3]));
}

#[test]
fn e_066_kind_named_key_and_global_together() {
    let mut admissions = limited(&[("move", 5), ("move/x", 1), ("move/y", 1), ("all", 3)]);
    assert!(admissions.ask(1, &["move", "move/x", "all"]));
    assert!(!admissions.ask(2, &["move", "move/x", "all"]));
    assert!(admissions.ask(3, &["move", "move/y", "all"]));
    assert!(!admissions.ask(4, &["move", "move/y", "all"]));
    assert!(admissions.ask(5, &["all"]));
    assert!(!admissions.ask(6, &["all"]));
    assert_eq!(admissions.lacking(2)[0], (permit("move/x"), vec![1], true));
    assert_eq!(admissions.lacking(4)[0], (permit("move/y"), vec![3], true));
    assert_eq!(admissions.lacking(6), [(permit("all"), vec![1, 3, 5], true)]);
    let usage: Vec<_> = admissions
        .usage()
        .iter()
        .map(|limit| (limit.used, limit.waiting, limit.had_to_wait))
        .collect();
    assert_eq!(usage, [(3, 3, 1), (2, 2, 0), (1, 1, 1), (1, 1, 1)]);
    let crowds = admissions.limit_details(2);
    let all = crowds.first().expect("it is known");
    assert_eq!((ids(&all.holders), ids(&all.waiting)), (vec![1, 3], vec![2, 4]));
    assert_eq!((all.usage.used, all.usage.waiting), (3, 3), "the rest is counted");
    assert_eq!(admissions.end(1), [2]);
}

#[test]
fn a_limit_named_twice_is_taken_once() {
    let mut admissions = limited(&[("k", 2)]);
    assert!(admissions.ask(1, &["k", "k"]));
    assert!(admissions.ask(2, &["k", "k"]));
    assert!(!admissions.ask(3, &["k", "k"]));
    assert_eq!(admissions.end(1), [3]);
}

#[test]
fn restored_holders_count_even_over_the_limit() {
    let mut admissions = limited(&[("k", 1)]);
    for claim in [1, 2] {
        assert_eq!(admissions.restore(request(claim, &["k", "x a"])), []);
    }
    assert!(!admissions.ask(3, &["k", "x a"]));
    assert_eq!(admissions.end(1), []);
    assert_eq!(admissions.end(2), [3]);
}

#[test]
fn one_who_leaves_the_queue_keeps_what_it_holds() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1, &["k"]);
    admissions.ask(2, &["x a"]);
    assert!(!admissions.ask(2, &["k"]));
    assert!(!admissions.ask(3, &["k"]));
    assert_eq!(admissions.cancel(ClaimId(2)), []);
    assert_eq!(admissions.held(ClaimId(2)), needs(&["x a"]));
    assert_eq!(admissions.end(1), [3]);
}

#[test]
fn one_who_waits_and_asks_again_waits_for_both_in_its_place() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1, &["k"]);
    admissions.ask(2, &["k"]);
    admissions.ask(3, &["k"]);
    assert!(!admissions.ask(2, &["x a"]));
    assert!(admissions.held(ClaimId(2)).is_empty());
    assert_eq!(admissions.end(1), [2]);
    assert!(admissions.holds_all(ClaimId(2), &needs(&["k", "x a"])));
}

#[test]
fn the_head_of_a_kind_that_waits_for_a_lock_keeps_one_permit_spare() {
    let mut admissions = limited(&[("k", 3)]);
    admissions.ask(1, &["x a"]);
    assert!(!admissions.ask(2, &["k", "x a"]));
    assert!(!admissions.ask(3, &["k", "x a"]));
    assert!(admissions.ask(4, &["k"]));
    assert!(admissions.ask(5, &["k"]));
    assert!(!admissions.ask(6, &["k"]), "one is kept for 2, and none for 3");
    assert_eq!(admissions.lacking(6), [(permit("k"), vec![2, 4, 5], true)]);
    assert_eq!(admissions.end(1), [2]);
    assert_eq!(admissions.end(4), [], "kept for 3, who lacks the lock of 2");
    assert_eq!(admissions.end(2), [3, 6]);
}

#[test]
fn a_limit_that_is_set_while_many_wait_knows_who_comes_first() {
    let mut admissions = Admissions::default();
    admissions.ask(1, &["x t"]);
    admissions.ask(2, &["k", "x t"]);
    admissions.set_limit("k".into(), Some(1));
    assert!(
        !admissions.ask(3, &["other", "k"]),
        "it is kept for the first of its kind"
    );
    assert_eq!(admissions.lacking(3), [(permit("k"), vec![2], true)]);
    assert_eq!(numbers(&admissions.set_limit("k".into(), None)), [3]);
    admissions.set_limit("k".into(), Some(2));
    assert_eq!(admissions.end(3), []);
    assert_eq!(admissions.end(1), [2]);
    assert_eq!(admissions.end(2), []);
    assert!(admissions.is_empty());
}

#[test]
fn one_that_waited_before_the_start_has_its_place_even_if_it_asks_late() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.restore(request(1, &["k"]));
    let ask_again = |admissions: &mut Admissions, claim, priority, place| {
        let request = Request {
            priority,
            ..request(claim, &["k"])
        };
        let answer = admissions.request_in_place(request, place);
        assert_eq!(answer, (Grant::Queued(permit("k")), Vec::new()));
    };
    ask_again(&mut admissions, 2, 0, 2);
    ask_again(&mut admissions, 4, 0, 4);
    assert!(!admissions.ask(5, &["k"]), "it is new");
    assert!(!admissions.ask_with(6, 9, &["k"]));
    ask_again(&mut admissions, 3, 0, 3);
    ask_again(&mut admissions, 7, 9, 1);
    assert_eq!(ids(&admissions.waiting().collect::<Vec<_>>()), [7, 6, 2, 3, 4, 5]);
}

#[test]
fn raising_a_priority_changes_who_is_next() {
    let mut admissions = limited(&[("k", 1)]);
    for claim in 1..=3 {
        admissions.ask(claim, &["k"]);
    }
    assert_eq!(admissions.set_priority(ClaimId(3), 1), []);
    assert_eq!(admissions.end(1), [3]);
    assert_eq!(admissions.set_priority(ClaimId(9), 1), []);
}

#[test]
fn no_waiter_is_overtaken_for_a_permit_more_often_than_the_bound_allows() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask_with(1, 9, &["k"]);
    admissions.ask(2, &["k"]);
    for number in 0..u64::from(MAX_OVERTAKES) {
        assert!(!admissions.ask_with(100 + number, 9, &["k"]));
        let holder = if number == 0 { 1 } else { 99 + number };
        assert_eq!(admissions.end(holder), [100 + number]);
        assert_eq!(u64::from(admissions.overtaken(ClaimId(2))), number + 1);
    }
    assert!(!admissions.ask_with(200, 9, &["k"]));
    assert_eq!(admissions.end(99 + u64::from(MAX_OVERTAKES)), [2]);
}

#[test]
fn one_that_had_to_wait_is_counted_once_where_there_was_no_permit() {
    let mut admissions = limited(&[("k", 1), ("m", 5)]);
    let counted = |admissions: &Admissions| {
        let usage = admissions.usage();
        (usage[0].had_to_wait, usage[1].had_to_wait)
    };
    assert!(admissions.ask(1, &["k", "m", "x a"]));
    assert_eq!(counted(&admissions), (0, 0));
    assert!(!admissions.ask(2, &["k", "m"]));
    assert_eq!(counted(&admissions), (1, 0), "the other limit had room");
    assert!(!admissions.ask(2, &["k", "m"]));
    admissions.set_priority(ClaimId(2), 7);
    assert_eq!(counted(&admissions), (1, 0), "it waits still");
    assert!(!admissions.ask(3, &["m", "x a"]));
    assert_eq!(counted(&admissions), (1, 0), "it lacks a lock alone");
    assert!(!admissions.ask(4, &["k", "x a"]));
    assert_eq!(counted(&admissions), (2, 0), "it lacks both");
    assert_eq!(admissions.end(1), [2, 3]);
    assert_eq!(admissions.end(2), []);
    assert_eq!(admissions.end(3), [4]);
    assert!(!admissions.ask(5, &["k"]));
    assert_eq!(counted(&admissions), (3, 0), "who has gone is counted still");
}

#[test]
fn a_grant_names_the_generation_of_the_newest_request() {
    let mut admissions = limited(&[("k", 1)]);
    let of_generation = |generation| {
        let id = ClaimId(2);
        Request {
            claim: Claim { id, generation },
            ..request(2, &["k"])
        }
    };
    assert!(admissions.ask(1, &["k"]));
    assert!(!admissions.ask_for(of_generation(3)));
    let newest = of_generation(4);
    let claim = newest.claim;
    assert!(!admissions.ask_for(newest), "it asks again while it waits");
    assert_eq!(admissions.release(ClaimId(1)), [claim]);
    assert_eq!(admissions.release(claim.id), [], "it was served once");
    assert_eq!(admissions.request(of_generation(5)), (Grant::Granted, vec![]));
    let restored = of_generation(6);
    let claim = restored.claim;
    admissions.restore(restored);
    assert!(!admissions.ask(1, &["k"]));
    assert_eq!(
        admissions.exchange(&needs(&["k"]), request(2, &["k"])).1,
        [Claim::first(ClaimId(1))]
    );
    assert_eq!(claim.generation, 6);
    assert_eq!(
        admissions.release(ClaimId(1)),
        [Claim::first(ClaimId(2))],
        "an exchange is a request"
    );
}
