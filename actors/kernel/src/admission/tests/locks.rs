//! Locks: order, descendants, all or nothing, and what a place reserves.

use super::*;

#[test]
fn e_067_exclusive_is_first_come_first_served() {
    let mut admissions = Admissions::default();
    assert!(admissions.ask(1, &["x t"]));
    for claim in 2..=4 {
        assert!(!admissions.ask(claim, &["x t"]));
    }
    assert_eq!(admissions.lacking(2), [(lock("t"), vec![1], false)]);
    assert_eq!(admissions.lacking(4), [(lock("t"), vec![3], false)]);
    let shown = admissions.locks();
    assert_eq!(shown[0].holders, [(ClaimId(1), LockMode::Exclusive)]);
    let waiting = [2, 3, 4].map(|claim| (ClaimId(claim), LockMode::Exclusive));
    assert_eq!(shown[0].waiting, waiting);
    for claim in 1..=3 {
        assert_eq!(admissions.end(claim), [claim + 1]);
    }
    assert_eq!(admissions.end(4), []);
    assert!(admissions.is_empty());
}

#[test]
fn e_068_what_is_asked_for_beside_each_holder() {
    for held in ["x ns", "x ns/t", "s ns/t", "x ns/t/r", "x /"] {
        for asked in ["ns", "ns/t", "ns/t/r", "ns/u", "other"]
            .iter()
            .flat_map(|path| ["x", "s"].map(|mode| format!("{mode} {path}")))
        {
            let mut admissions = Admissions::default();
            assert!(admissions.ask(1, &[held]));
            let conflict = needs(&[&asked]).locks[0].conflicts(&needs(&[held]).locks[0]);
            assert_eq!(admissions.ask(2, &[&asked]), !conflict, "{asked} beside {held}");
            assert_eq!(admissions.end(1), if conflict { vec![2] } else { vec![] });
        }
    }
}

#[test]
fn e_069_a_lock_for_the_stage_goes_to_the_next_and_one_to_the_end_does_not() {
    let mut admissions = Admissions::default();
    admissions.ask(1, &["x t"]);
    admissions.ask(2, &["x t"]);
    let (grant, served) = admissions.exchange(&needs(&["x t"]), request(1, &["x t"]));
    assert_eq!((grant, numbers(&served)), (Grant::Queued(lock("t")), vec![2]));
    assert_eq!(admissions.end(2), [1]);
    admissions.ask(3, &["x t"]);
    let (grant, served) = admissions.exchange(&Needs::default(), request(1, &["x t"]));
    assert_eq!((grant, served), (Grant::Granted, vec![]), "held on");
    assert_eq!(admissions.end(1), [3]);
}

#[test]
fn e_070_descendants_enter_and_exclude_each_other() {
    let mut admissions = Admissions::default();
    assert!(admissions.ask(1, &["x t"]));
    assert!(!admissions.ask(9, &["x t"]), "a stranger");
    assert!(admissions.ask_within(2, &[1], &["x t"]), "past the stranger");
    assert!(!admissions.ask_within(3, &[1], &["x t"]), "its brother holds it");
    assert!(admissions.ask_within(4, &[2, 1], &["x t"]), "a grandchild");
    assert_eq!(admissions.end(4), []);
    assert_eq!(admissions.end(2), [3]);
    assert_eq!(admissions.end(3), []);
    assert_eq!(admissions.end(1), [9]);
}

#[test]
fn what_an_ancestor_is_granted_lets_its_descendants_pass() {
    let mut admissions = Admissions::default();
    admissions.ask(8, &["x b"]);
    assert!(!admissions.ask(9, &["x a", "x b"]), "keeps its place on a");
    assert!(!admissions.ask_within(2, &[1], &["x a"]));
    let (grant, served) = admissions.request(Request {
        priority: 1,
        ..request(1, &["x a"])
    });
    assert_eq!((grant, numbers(&served)), (Grant::Granted, vec![2]));
}

#[test]
fn e_071_together_or_not_at_all() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(9, &["x y"]);
    let (grant, _) = admissions.request(request(1, &["k", "x x", "x y"]));
    assert_eq!(grant, Grant::Queued(lock("y")));
    assert!(admissions.held(ClaimId(1)).is_empty());
    assert_eq!(admissions.usage()[0].used, 0);
    assert_eq!(admissions.lacking(1), [(lock("y"), vec![9], false)]);
    assert_eq!(admissions.end(9), [1]);
    assert!(admissions.holds_all(ClaimId(1), &needs(&["k", "x x", "x y"])));
}

#[test]
fn a_writer_keeps_its_place_before_later_readers() {
    let mut admissions = Admissions::default();
    assert!(admissions.ask(1, &["s t"]));
    assert!(admissions.ask(2, &["s t"]));
    assert!(!admissions.ask(3, &["x t"]));
    assert!(!admissions.ask(4, &["s t"]));
    assert!(!admissions.ask(5, &["s t/r"]));
    assert!(admissions.ask(6, &["s u"]));
    assert_eq!(admissions.end(1), []);
    assert_eq!(admissions.end(2), [3]);
    assert_eq!(admissions.end(3), [4, 5]);
}

#[test]
fn one_that_lacks_only_a_permit_reserves_no_lock() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1, &["k"]);
    assert!(!admissions.ask(2, &["k", "x t"]));
    assert!(admissions.ask(3, &["x t"]));
    assert_eq!(admissions.overtaken(ClaimId(2)), 1);
    assert_eq!(admissions.end(1), [], "now it lacks the lock");
    assert_eq!(admissions.end(3), [2]);
}

#[test]
fn a_holder_of_what_a_waiter_needs_overtakes_it() {
    let mut admissions = Admissions::default();
    admissions.ask(1, &["x a"]);
    assert!(!admissions.ask(2, &["x a", "x b"]));
    assert!(admissions.ask(1, &["x b"]), "2 cannot go before 1 does");
    assert_eq!(admissions.overtaken(ClaimId(2)), 0, "and is not delayed by it");
    assert!(!admissions.ask(3, &["x b"]));
    assert_eq!(admissions.end(1), [2]);
    assert_eq!(admissions.end(2), [3]);
}

#[test]
fn one_at_a_high_path_waits_for_all_under_it() {
    let mut admissions = Admissions::default();
    for claim in 1..=3 {
        assert!(admissions.ask(claim, &[&format!("s ns/t{claim}/r"), &format!("x ns/t{claim}/q")]));
    }
    assert!(!admissions.ask(9, &["x ns"]));
    assert_eq!(admissions.lacking(9), [(lock("ns"), vec![1, 2, 3], false)]);
    assert_eq!(admissions.end(2), []);
    assert_eq!(admissions.end(1), []);
    assert_eq!(admissions.end(3), [9]);
}

#[test]
fn what_a_waiter_lacks_is_told_in_full() {
    let mut admissions = limited(&[("k", 1)]);
    assert!(admissions.ask(1, &["k", "s ns/table/tablet"]));
    assert!(admissions.ask(2, &["s ns/table"]));
    assert!(!admissions.ask(3, &["k", "x ns/table"]));
    assert!(!admissions.ask(4, &["k", "x ns/table"]));
    let missing = |claim, lacking: &Lacking| admissions.missing(ClaimId(claim), lacking);
    let both = Missing::Lock(LockNeed::exclusive("ns/table"), vec![ClaimId(1), ClaimId(2)]);
    assert_eq!(missing(3, &lock("ns/table")), Some(both.clone()));
    assert_eq!(
        missing(4, &lock("ns/table")),
        Some(both),
        "who is before it in the queue holds nothing"
    );
    let Some(Missing::Permit(limit)) = missing(3, &permit("k")) else {
        panic!("it waits for a permit, too");
    };
    assert_eq!((limit.used, limit.limit), (1, Some(1)));
    assert_eq!(
        missing(3, &lock("ns")),
        missing(3, &lock("ns/table")),
        "it asks for no such lock"
    );
    assert_eq!(missing(1, &permit("k")), None, "it has one");
    assert_eq!(missing(9, &permit("k")), None);
}

#[test]
fn what_was_lacked_once_is_told_no_more() {
    let mut admissions = limited(&[("k", 1), ("l", 1)]);
    assert!(admissions.ask(1, &["x a", "l"]));
    assert!(admissions.ask(2, &["x b", "k"]));
    assert!(!admissions.ask(3, &["x a", "x b"]));
    let missing = |admissions: &Admissions, claim, lacking: &Lacking| admissions.missing(ClaimId(claim), lacking);
    let of = |path: &str, by| {
        Some(Missing::Lock(
            LockNeed::exclusive(LockPath::parse(path)),
            vec![ClaimId(by)],
        ))
    };
    assert_eq!(missing(&admissions, 3, &lock("a")), of("a", 1));
    assert_eq!(missing(&admissions, 3, &lock("b")), of("b", 2));
    assert!(!admissions.ask(4, &["k", "l"]));
    assert_eq!(admissions.end(1), []);
    assert_eq!(
        missing(&admissions, 3, &lock("a")),
        of("b", 2),
        "it was told of a, which is free"
    );
    // One of two limits is lifted.
    assert_eq!(admissions.set_limit("l".into(), None), []);
    let Some(Missing::Permit(limit)) = missing(&admissions, 4, &permit("l")) else {
        panic!("it waits for the other permit");
    };
    assert_eq!((limit.key.as_str(), limit.limit, limit.used), ("k", Some(1), 1));
}
