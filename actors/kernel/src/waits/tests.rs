//! Rules of `waits`, one by one.

use super::*;

fn id(text: &str) -> ProcedureId {
    text.parse().expect("an id")
}

fn lock(path: &str) -> WaitingFor {
    WaitingFor::Lock(LockPath::parse(path))
}

/// What is wanted, and from which procedures.
type Wanted<'a> = (WaitingFor, &'a [&'a str]);

/// Creates a graph of waiting procedures, each with its priority and its wants.
fn graph(nodes: &[(&str, i16, &[Wanted<'_>])]) -> WaitGraph {
    let mut graph = WaitGraph::new();
    for (name, priority, needs) in nodes {
        let need = |(why, of): &Wanted<'_>| Need {
            why: why.clone(),
            of: of.iter().map(|of| id(of)).collect(),
            queued_ahead: false,
        };
        let node = WaitNode {
            since: Timestamp(id(name).family),
            needs: needs.iter().map(need).collect(),
            priority: *priority,
            head: ProcedureId::root(id(name).family),
            can_abort: true,
        };
        graph.insert(id(name), node);
    }
    graph
}

fn shown(links: &[Link]) -> Vec<String> {
    links
        .iter()
        .map(|link| format!("{} {} {} since {}", link.from, link.why, link.to, link.since.0))
        .collect()
}

#[test]
fn e_075_the_chain_is_shown_to_its_end() {
    let graph = graph(&[
        ("3.0", 0, &[(WaitingFor::Permit("k".into()), &["2.0"])]),
        ("2.0", 0, &[(WaitingFor::Latch, &["2.1"])]),
        ("2.1", 0, &[(lock("t"), &["1.0"])]),
        ("1.0", 0, &[]),
    ]);
    let chain = [
        "3.0 permit k 2.0 since 3",
        "2.0 latch 2.1 since 2",
        "2.1 lock t 1.0 since 2",
    ];
    assert_eq!(shown(&graph.chain(id("3.0"), 100)), chain);
    assert_eq!(shown(&graph.chain(id("3.0"), 2)), &chain[..2]);
    assert!(graph.chain(id("1.0"), 100).is_empty());
    assert!(graph.chain(id("9.0"), 100).is_empty());
    assert!(graph.deadlocks().is_empty());
}

#[test]
fn each_link_of_a_chain_is_given_once() {
    let graph = graph(&[
        ("1.0", 0, &[(lock("a"), &["2.0", "3.0", "2.0"]), (lock("b"), &["2.0"])]),
        ("2.0", 0, &[(lock("c"), &["1.0"])]),
        ("3.0", 0, &[(lock("c"), &["1.0"])]),
    ]);
    let chain = [
        "1.0 lock a 2.0 since 1",
        "1.0 lock a 3.0 since 1",
        "1.0 lock b 2.0 since 1",
        "2.0 lock c 1.0 since 2",
        "3.0 lock c 1.0 since 3",
    ];
    assert_eq!(shown(&graph.chain(id("1.0"), 100)), chain);
}

#[test]
fn e_076_a_deadlock_is_found_once() {
    let graph = graph(&[
        ("1.0", 0, &[(WaitingFor::Latch, &["1.1"])]),
        ("1.1", 0, &[(lock("y"), &["2.0"])]),
        ("2.0", 0, &[(WaitingFor::Latch, &["2.1"])]),
        ("2.1", 0, &[(lock("x"), &["1.0"])]),
        ("3.0", -5, &[(lock("x"), &["1.0"])]),
        ("4.0", 0, &[]),
    ]);
    let [deadlock] = &graph.deadlocks()[..] else {
        panic!("one deadlock");
    };
    let cycle = [
        "1.0 latch 1.1 since 1",
        "1.1 lock y 2.0 since 1",
        "2.0 latch 2.1 since 2",
        "2.1 lock x 1.0 since 2",
    ];
    assert_eq!(shown(&deadlock.cycle), cycle);
    assert_eq!(deadlock.victim, id("2.0"), "the youngest; one who waits behind is none");
}

#[test]
fn the_victim_is_one_that_has_not_ended() {
    let mut graph = graph(&[("2.0", 0, &[(lock("x"), &["1.3"])])]);
    let need = Need {
        why: lock("y"),
        of: vec![id("2.0")],
        queued_ahead: false,
    };
    // Its root has ended, but its parent has not.
    let outlives = WaitNode {
        since: Timestamp(1),
        needs: vec![need],
        priority: -1,
        head: id("1.2"),
        can_abort: true,
    };
    graph.insert(id("1.3"), outlives);
    let victims: Vec<ProcedureId> = graph.deadlocks().iter().map(|deadlock| deadlock.victim).collect();
    assert_eq!(victims, [id("1.2")]);
}

#[test]
fn the_victim_has_the_lowest_priority() {
    let graph = graph(&[
        ("1.3", -1, &[(lock("y"), &["2.0"])]),
        ("2.0", 0, &[(lock("x"), &["1.3"])]),
    ]);
    let victims: Vec<ProcedureId> = graph.deadlocks().iter().map(|deadlock| deadlock.victim).collect();
    assert_eq!(victims, [id("1.0")]);
}

#[test]
fn the_victim_is_one_that_can_be_aborted() {
    let mut graph = graph(&[
        ("1.0", -5, &[(lock("y"), &["2.0"])]),
        ("2.0", 7, &[(lock("x"), &["1.0"])]),
    ]);
    let victims = |graph: &WaitGraph| {
        graph
            .deadlocks()
            .iter()
            .map(|deadlock| (deadlock.victim, deadlock.can_abort))
            .collect::<Vec<_>>()
    };
    let bind = |graph: &mut WaitGraph, name| {
        if let Some(node) = graph.nodes.get_mut(&id(name)) {
            node.can_abort = false;
        }
    };
    bind(&mut graph, "1.0");
    assert_eq!(
        victims(&graph),
        [(id("2.0"), true)],
        "the other is beyond its point of no return"
    );
    bind(&mut graph, "2.0");
    assert_eq!(victims(&graph), [(id("1.0"), false)], "nobody can be");
    let remedies: Vec<String> = graph.deadlocks().iter().map(Deadlock::remedy).collect();
    let remedy = "no abort reaches any of them; bypassing 1.0 with all its descendants resolves it";
    assert_eq!(remedies, [remedy]);
}

#[test]
fn one_of_several_is_enough() {
    let cycle = |free: &[Wanted<'_>]| {
        graph(&[
            ("1.0", 0, &[(WaitingFor::Permit("k".into()), &["2.0", "3.0"])]),
            ("2.0", 0, &[(lock("x"), &["1.0"])]),
            ("3.0", 0, free),
        ])
    };
    assert!(cycle(&[]).deadlocks().is_empty());
    assert_eq!(cycle(&[(WaitingFor::Latch, &["1.0"])]).deadlocks().len(), 1);
}

#[test]
fn all_needs_must_be_met() {
    let graph = graph(&[
        ("1.0", 0, &[(lock("free"), &["3.0"]), (lock("y"), &["2.0"])]),
        ("2.0", 0, &[(lock("x"), &["1.0"])]),
        ("3.0", 0, &[]),
    ]);
    let deadlocks = graph.deadlocks();
    let cycles: Vec<Vec<String>> = deadlocks.iter().map(|deadlock| shown(&deadlock.cycle)).collect();
    assert_eq!(cycles, [["1.0 lock y 2.0 since 1", "2.0 lock x 1.0 since 2"]]);
}

#[test]
fn who_is_not_in_the_graph_can_move_and_what_nobody_keeps_is_met() {
    let graph = graph(&[("1.0", 0, &[(lock("x"), &["9.0"])]), ("2.0", 0, &[(lock("x"), &[])])]);
    assert!(graph.deadlocks().is_empty());
}

#[test]
fn a_component_before_another_has_its_own_cycle() {
    let graph = graph(&[
        ("1.0", 0, &[(lock("a"), &["3.0"]), (lock("b"), &["2.0"])]),
        ("2.0", 0, &[(lock("c"), &["1.0"])]),
        ("3.0", 0, &[(lock("d"), &["4.0"])]),
        ("4.0", 0, &[(lock("e"), &["3.0"])]),
        ("5.0", 0, &[(lock("f"), &["5.0"])]),
    ]);
    let deadlocks = graph.deadlocks();
    let first: Vec<ProcedureId> = deadlocks.iter().map(|deadlock| deadlock.cycle[0].from).collect();
    assert_eq!(first, [id("1.0"), id("3.0"), id("5.0")]);
    assert_eq!(
        deadlocks
            .iter()
            .map(|deadlock| deadlock.cycle.len())
            .collect::<Vec<_>>(),
        [2, 2, 1]
    );
}

#[test]
fn a_ring_of_a_hundred_thousand_is_one_cycle() {
    const MEMBERS: u64 = 100_000;
    let mut graph = WaitGraph::new();
    for number in 0..MEMBERS {
        let need = Need {
            why: lock("t"),
            of: vec![ProcedureId::root((number + 1) % MEMBERS)],
            queued_ahead: false,
        };
        let node = WaitNode {
            since: Timestamp(number),
            needs: vec![need],
            priority: 0,
            head: ProcedureId::root(number),
            can_abort: true,
        };
        graph.insert(ProcedureId::root(number), node);
    }
    let deadlocks = graph.deadlocks();
    assert_eq!(
        deadlocks
            .iter()
            .map(|deadlock| deadlock.cycle.len())
            .collect::<Vec<_>>(),
        [100_000]
    );
    assert_eq!(graph.chain(ProcedureId::root(7), 1_000).len(), 1_000);
    graph.nodes.remove(&ProcedureId::root(5));
    assert!(graph.deadlocks().is_empty());
}

#[test]
fn a_place_is_given_up_by_one_that_lacks_a_permit_alone() {
    // 3.0 wants a lock for which 2.0 is ahead in the queue. 2.0 also lacks a permit that the parent of 3.0 holds. The
    // locks that 2.0 needs are held by 9.0, which can move.
    let need = |why, of: &str, queued_ahead| Need {
        why,
        of: vec![id(of)],
        queued_ahead,
    };
    let node = |needs| WaitNode {
        since: Timestamp(0),
        needs,
        priority: 0,
        head: id("3.0"),
        can_abort: true,
    };
    let mut graph = WaitGraph::new();
    graph.insert(id("3.0"), node(vec![need(WaitingFor::Latch, "3.1", false)]));
    graph.insert(id("3.1"), node(vec![need(lock("t"), "2.0", true)]));
    let lacks_permit = need(WaitingFor::Permit("k".into()), "3.0", false);
    let second = |holder| node(vec![lacks_permit.clone(), need(lock("t"), holder, false)]);
    graph.insert(id("2.0"), second("9.0"));
    graph.insert(id("9.0"), node(Vec::new()));
    assert!(graph.deadlocks().is_empty());
    // If 3.0 itself holds the lock, nothing can move.
    graph.insert(id("2.0"), second("3.0"));
    let found = graph.deadlocks();
    let cycle = [
        "2.0 lock t 3.0 since 0",
        "3.0 latch 3.1 since 0",
        "3.1 lock t 2.0 since 0",
    ];
    assert_eq!(
        found.iter().map(|deadlock| shown(&deadlock.cycle)).collect::<Vec<_>>(),
        [cycle]
    );
}
