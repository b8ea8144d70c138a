//! Waiters that were overtaken as often as the bound allows: what they reserve, and who waits for them.

use super::*;
use crate::id::ProcedureId;
use crate::waits::{Need, WaitGraph, WaitNode, WaitingFor};

/// Has a waiter overtaken up to the bound, by others that hold this for a moment.
fn overtake_to_the_bound(admissions: &mut Admissions, waiter: u64, texts: &[&str]) {
    for number in 0..u64::from(MAX_OVERTAKES) {
        assert_eq!(u64::from(admissions.overtaken(ClaimId(waiter))), number);
        assert!(admissions.ask(1_000 + number, texts));
        assert_eq!(admissions.end(1_000 + number), []);
    }
    assert_eq!(admissions.overtaken(ClaimId(waiter)), MAX_OVERTAKES);
}

/// Builds the graph of waits. Each claim is the root of its own number.
fn graph(admissions: &Admissions) -> WaitGraph {
    let mut graph = WaitGraph::new();
    for claim in admissions.waiting() {
        let mut needs = Vec::new();
        for blocker in admissions.blockers(claim) {
            let why = match blocker.lacking {
                Lacking::Lock(path) => WaitingFor::Lock(path),
                Lacking::Permit(key) => WaitingFor::Permit(key),
            };
            let need = |of| Need {
                why: why.clone(),
                of,
                queued_ahead: blocker.queued_ahead,
            };
            let by: Vec<ProcedureId> = blocker.by.iter().map(|claim| ProcedureId::root(claim.0)).collect();
            match blocker.any {
                true => needs.push(need(by)),
                false => needs.extend(by.into_iter().map(|id| need(vec![id]))),
            }
        }
        let id = ProcedureId::root(claim.0);
        let node = WaitNode {
            since: Timestamp(1),
            needs,
            priority: 0,
            head: id,
            can_abort: true,
        };
        graph.insert(id, node);
    }
    graph
}

/// Returns the numbers of the claims in each deadlock.
fn deadlocks(admissions: &Admissions) -> Vec<Vec<u64>> {
    let deadlocks = graph(admissions).deadlocks();
    let members = deadlocks
        .iter()
        .map(|deadlock| deadlock.cycle.iter().map(|link| link.from.family).collect());
    members.collect()
}

#[test]
fn a_deadlock_through_a_waiter_at_the_bound_is_found() {
    let mut admissions = limited(&[("k", 1)]);
    assert!(admissions.ask(1, &["k"]));
    assert!(!admissions.ask(2, &["k", "x t"]));
    assert!(admissions.ask(3, &["x y"]));
    overtake_to_the_bound(&mut admissions, 2, &["x t"]);
    assert!(!admissions.ask(3, &["x t"]), "2 reserves it, although it is free");
    assert!(deadlocks(&admissions).is_empty(), "1 can give its permit back");
    assert!(!admissions.ask(1, &["x y"]));
    assert_eq!(deadlocks(&admissions), [[1, 3, 2]]);
    assert_eq!(admissions.end(3), [1], "the victim gives back what it holds");
    assert_eq!(admissions.end(1), [2]);
}

#[test]
fn a_deadlock_behind_others_in_the_queue_of_a_waiter_at_the_bound_is_found() {
    let mut admissions = limited(&[("k", 1)]);
    assert!(admissions.ask(1, &["k"]));
    assert!(!admissions.ask(2, &["k", "x t"]));
    assert!(admissions.ask(3, &["x y"]));
    overtake_to_the_bound(&mut admissions, 2, &["x t"]);
    assert!(!admissions.ask(4, &["x t"]));
    assert!(!admissions.ask(3, &["x t"]));
    assert!(!admissions.ask(1, &["x y"]));
    assert_eq!(deadlocks(&admissions), [[1, 3, 4, 2]]);
}

#[test]
fn one_that_may_still_be_overtaken_is_in_no_deadlock_for_its_permit() {
    let mut admissions = limited(&[("k", 1)]);
    assert!(admissions.ask(1, &["k", "x u"]));
    assert!(admissions.ask(3, &["x y"]));
    assert!(admissions.ask(5, &["x t"]));
    assert!(!admissions.ask(2, &["k", "x t"]));
    assert!(!admissions.ask(3, &["x t"]));
    assert!(!admissions.ask(1, &["x y"]));
    assert!(deadlocks(&admissions).is_empty(), "2 lets 3 go first once 5 ends");
    assert_eq!(admissions.end(5), [3]);
}

#[test]
fn a_holder_of_the_permit_goes_before_a_waiter_at_the_bound_that_lacks_no_lock() {
    let mut admissions = limited(&[("k", 1)]);
    assert!(admissions.ask(1, &["k"]));
    assert!(!admissions.ask(2, &["k", "x t"]));
    overtake_to_the_bound(&mut admissions, 2, &["x t"]);
    admissions.restore(request(5, &["x t"]));
    assert!(!admissions.ask(1, &["x t"]), "5 holds it");
    assert!(deadlocks(&admissions).is_empty());
    assert_eq!(admissions.end(5), [1], "2 waits for the permit of 1");
}

#[test]
fn no_waiter_is_overtaken_for_a_lock_more_often_than_the_bound_allows() {
    let mut admissions = limited(&[("k", 1)]);
    admissions.ask(1, &["k"]);
    assert!(!admissions.ask(2, &["k", "x t"]));
    for claim in 0..u64::from(MAX_OVERTAKES) {
        assert!(admissions.ask(100 + claim, &["x t"]));
        assert_eq!(admissions.end(100 + claim), []);
    }
    assert!(!admissions.ask(200, &["x t"]), "now it reserves the lock");
    assert_eq!(admissions.cancel(ClaimId(200)), []);
    assert_eq!(admissions.overtaken(ClaimId(2)), MAX_OVERTAKES);
    let (grant, served) = admissions.exchange(&Needs::default(), request(1, &["x t"]));
    assert_eq!(
        (grant, served),
        (Grant::Granted, vec![]),
        "but not against one whose permit it waits for"
    );
    assert_eq!(admissions.end(1), [2]);
    assert_eq!(admissions.end(2), []);
}

#[test]
fn one_at_the_bound_that_lacks_a_lock_reserves_a_permit_of_any_limit() {
    let mut admissions = limited(&[("k", 1)]);
    assert!(admissions.ask(1, &["x t"]));
    assert!(!admissions.ask(2, &["other", "k", "x t"]));
    overtake_to_the_bound(&mut admissions, 2, &["k"]);
    assert!(!admissions.ask(3, &["k"]), "the permit is free, and kept for 2");
    assert_eq!(admissions.lacking(3), [(permit("k"), vec![2], true)]);
    assert!(admissions.ask(4, &["x u"]), "what 2 does not need is nobody's");
    assert_eq!(admissions.end(1), [2]);
    assert_eq!(admissions.end(2), [3]);
}

#[test]
fn each_of_many_permits_freed_at_once_counts() {
    let mut admissions = limited(&[("k", 0)]);
    let key = || LimitKey::from("k");
    assert!(!admissions.ask(1, &["k"]));
    (11..=13).for_each(|claim| assert!(!admissions.ask_with(claim, 9, &["k"])));
    assert_eq!(numbers(&admissions.set_limit(key(), Some(3))), [11, 12, 13]);
    assert_eq!(admissions.overtaken(ClaimId(1)), 3);
    assert_eq!(admissions.set_limit(key(), Some(0)), []);
    (11..=13).for_each(|claim| assert_eq!(admissions.end(claim), []));
    (21..=23).for_each(|claim| assert!(!admissions.ask_with(claim, 9, &["k"])));
    assert_eq!(
        numbers(&admissions.set_limit(key(), Some(3))),
        [21, 1, 22],
        "one is the bound, then it goes first"
    );
}

#[test]
fn a_permit_that_leaves_enough_for_all_who_wait_overtakes_nobody() {
    let mut admissions = limited(&[("k", 4)]);
    assert!(admissions.ask(1, &["x t"]));
    assert!(!admissions.ask(2, &["k", "x t"]));
    assert!(!admissions.ask(3, &["k", "x t"]));
    let overtaken = |admissions: &Admissions| [2, 3].map(|claim| admissions.overtaken(ClaimId(claim)));
    assert!(admissions.ask(4, &["k"]));
    assert!(admissions.ask(5, &["k"]));
    assert_eq!(overtaken(&admissions), [0, 0], "two are left for two");
    assert!(admissions.ask(6, &["k"]));
    assert_eq!(overtaken(&admissions), [0, 1], "one is left for the first");
    assert!(!admissions.ask(7, &["k"]), "one is kept for the first");
}
