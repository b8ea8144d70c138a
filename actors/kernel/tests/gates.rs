//! Graphs of children: gates that open, gates that can no longer open, rules of their own, the width, vital children,
//! operators, starts.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    AdmissionEffect, Birth, Blob, BypassAs, BypassScope, CauseKind, Effect, Epoch, Event, Gate, GraphNode, JoinPolicy,
    JoinRuling, Kernel, Kind, LimitKey, OperatorRequest, ProcedureId, ProcedureState, Record, RequestId, Row,
    StageCall, StageEnded, StageOutcome, StageTask, StoredTarget, Timestamp, UndoEnded, Verb, WaitReason, WaitingFor,
    WakeSource, check_rows,
};

use crate::shell::{KIND, ROOT, Shell};

use JoinPolicy::{AllFinished, AllSucceeded, AtLeast, Custom, Named};

const fn member(number: u32) -> ProcedureId {
    ProcedureId::new(1, number)
}

/// A kind without rollback, so that a failure is an end.
const LEAF: &str = "leaf";

fn of_kind(kind: &str) -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from(kind), 1, stage, payload)
}

fn birth() -> Birth {
    of_kind(LEAF)
}

fn node(gate: Gate) -> Birth {
    let graph = GraphNode {
        gate: Some(gate),
        ..GraphNode::default()
    };
    Birth {
        graph: Some(Box::new(graph)),
        ..birth()
    }
}

fn gate(after: &[u32], opens: JoinPolicy) -> Gate {
    Gate {
        after: after.to_vec(),
        opens,
        or_wait: false,
    }
}

fn after(places: &[u32]) -> Birth {
    node(gate(places, AllSucceeded))
}

fn or_wait(places: &[u32]) -> Birth {
    node(Gate {
        or_wait: true,
        ..gate(places, AllSucceeded)
    })
}

fn vital() -> Birth {
    let graph = GraphNode {
        vital: true,
        ..GraphNode::default()
    };
    Birth {
        graph: Some(Box::new(graph)),
        ..birth()
    }
}

/// A root that has spawned these children.
fn spawned(births: Vec<Birth>, join: JoinPolicy, width: u32) -> Shell {
    let mut shell = Shell::new(of_kind(KIND));
    let outcome = StageOutcome::Spawn {
        births,
        join,
        width,
        then: Blob::from(&b"joined"[..]),
    };
    ended(&mut shell, ROOT, outcome);
    shell
}

fn ended(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) -> Vec<Effect> {
    let in_flight = row(shell, id).in_flight.expect("its stage is out");
    let report = StageEnded::new(id, in_flight.run, Epoch(1), Timestamp(1), outcome);
    shell.feed(1, Event::StageEnded(Box::new(report)))
}

fn succeeds(shell: &mut Shell, number: u32) {
    ended(shell, member(number), StageOutcome::Done(Blob::default()));
}

fn fails(shell: &mut Shell, number: u32) {
    ended(shell, member(number), StageOutcome::Fail("boom".to_owned()));
}

fn operate(shell: &mut Shell, verb: Verb) -> Vec<Effect> {
    let by = OperatorRequest::new("somebody", "a test");
    let request = Event::Requested(RequestId(9), Box::new(verb), Box::new(by), StoredTarget::None);
    shell.feed(1, request)
}

fn row(shell: &Shell, id: ProcedureId) -> &Row {
    shell.kernel.row(id).expect("it lives")
}

fn runs(shell: &Shell) -> Vec<u32> {
    let family = shell.kernel.families().get(&1).expect("it lives");
    let out = family.members.iter().filter(|row| row.in_flight.is_some());
    out.map(|row| row.id.member).collect()
}

fn state(shell: &Shell, number: u32) -> (ProcedureState, Option<WaitReason>) {
    let row = row(shell, member(number));
    (row.state, row.wait.clone())
}

const AT_GATE: (ProcedureState, Option<WaitReason>) = (ProcedureState::Initializing, Some(WaitReason::Gate));
const SHUT: (ProcedureState, Option<WaitReason>) = (ProcedureState::RolledBack, None);

#[test]
fn a_child_begins_in_the_commit_of_the_last_sibling_before_it() {
    let mut shell = spawned(vec![birth(), after(&[0]), after(&[0]), after(&[1, 2])], AllSucceeded, 0);
    assert_eq!(runs(&shell), [1]);
    let born = row(&shell, member(4)).revision;
    succeeds(&mut shell, 1);
    assert_eq!(runs(&shell), [2, 3]);
    succeeds(&mut shell, 2);
    assert_eq!((state(&shell, 4), row(&shell, member(4)).revision), (AT_GATE, born));
    succeeds(&mut shell, 3);
    assert_eq!(runs(&shell), [4]);
    assert!(row(&shell, member(4)).gate().is_some(), "the graph can still be drawn");
    succeeds(&mut shell, 4);
    assert_eq!(runs(&shell), [0]);
}

#[test]
fn each_policy_opens_a_gate_or_shuts_it() {
    // The policy, how each of three siblings ends, and how the child behind them stands after each end.
    let opens = (ProcedureState::Runnable, None);
    let cases = [
        (AllSucceeded, [true, true, true], [AT_GATE, AT_GATE, opens.clone()]),
        (AllSucceeded, [true, false, true], [AT_GATE, SHUT, SHUT]),
        (AllFinished, [false, true, false], [AT_GATE, AT_GATE, opens.clone()]),
        (AtLeast(2), [true, true, false], [AT_GATE, opens.clone(), opens.clone()]),
        (AtLeast(2), [false, true, false], [AT_GATE, AT_GATE, SHUT]),
        (Named(vec![1]), [false, true, true], [AT_GATE, opens.clone(), opens]),
        (Named(vec![1, 1]), [true, false, true], [AT_GATE, SHUT, SHUT]),
    ];
    for (policy, ends, states) in cases {
        let child = node(gate(&[0, 1, 2], policy.clone()));
        let mut shell = spawned(vec![birth(), birth(), birth(), child], AllFinished, 0);
        for ((number, succeeded), expected) in (1..).zip(ends).zip(states) {
            if succeeded {
                succeeds(&mut shell, number);
            } else {
                fails(&mut shell, number);
            }
            assert_eq!(state(&shell, 4), expected, "{policy:?} after {number}");
        }
    }
}

#[test]
fn dependants_of_a_shut_gate_end_in_the_same_commit_with_the_first_cause() {
    let mut shell = spawned(vec![birth(), after(&[0]), after(&[1]), birth()], AllFinished, 0);
    fails(&mut shell, 1);
    let revision = row(&shell, member(1)).revision;
    for number in [2, 3] {
        let row = row(&shell, member(number));
        assert_eq!(
            (row.state, row.visit, row.revision),
            (ProcedureState::RolledBack, 0, revision)
        );
        let cause = row.rare().cause.as_ref().expect("it has one");
        assert_eq!((cause.kind, cause.origin), (CauseKind::GateShut, member(1)));
        assert_eq!(cause.text, "its gate can no longer open: boom");
    }
    succeeds(&mut shell, 4);
    assert_eq!(runs(&shell), [0]);
}

#[test]
fn a_gate_is_settled_when_its_sibling_begins_to_roll_back() {
    let mut shell = spawned(
        vec![of_kind(KIND), after(&[0]), node(gate(&[0], AllFinished))],
        AllFinished,
        0,
    );
    ended(&mut shell, member(1), StageOutcome::Next(Blob::default()));
    let effects = ended(&mut shell, member(1), StageOutcome::Fail("boom".to_owned()));
    assert!(
        !effects.is_empty() && row(&shell, member(1)).is_failing(),
        "its stages are undone first"
    );
    assert_eq!((state(&shell, 2), state(&shell, 3)), (SHUT, AT_GATE));
}

#[test]
fn a_parent_fails_when_shut_gates_leave_its_policy_unmet() {
    let mut shell = spawned(
        vec![birth(), after(&[0]), node(gate(&[0], AllFinished)), birth()],
        AtLeast(3),
        0,
    );
    fails(&mut shell, 1);
    assert_eq!(row(&shell, ROOT).state, ProcedureState::Failed);
    assert_eq!(
        runs(&shell),
        [4],
        "the gate that opens in this commit lets nobody begin"
    );
}

#[test]
fn one_that_would_rather_wait_stays_for_an_operator() {
    let stays = || {
        let mut shell = spawned(vec![birth(), or_wait(&[0]), after(&[1])], AllFinished, 0);
        assert_eq!(shell.kernel.wake_source_of(member(2)), WakeSource::Nothing);
        let needs = shell.kernel.needs_of(member(2)).expect("it lives").needs;
        assert!(matches!(&needs[..], [need] if need.why == WaitingFor::Gate && need.of == [member(1)]));
        fails(&mut shell, 1);
        assert_eq!((state(&shell, 2), state(&shell, 3)), (AT_GATE, AT_GATE));
        assert_eq!(
            shell.kernel.wake_source_of(member(2)),
            WakeSource::Operator(WaitReason::Gate)
        );
        assert!(shell.kernel.needs_of(member(2)).expect("it lives").needs.is_empty());
        shell
    };
    let mut retried = stays();
    operate(&mut retried, Verb::RetryNow(member(2)));
    assert_eq!(runs(&retried), [2]);
    succeeds(&mut retried, 2);
    assert_eq!(runs(&retried), [3]);

    let mut bypassed = stays();
    operate(
        &mut bypassed,
        Verb::Bypass(member(2), BypassScope::Alone, BypassAs::Failed),
    );
    assert_eq!(state(&bypassed, 3), SHUT);
    assert_eq!(runs(&bypassed), [0]);

    let mut passed = stays();
    operate(
        &mut passed,
        Verb::Bypass(member(2), BypassScope::Alone, BypassAs::Success),
    );
    assert_eq!(runs(&passed), [3]);
}

#[test]
fn those_at_a_gate_take_no_place_in_the_width_and_join_its_queue() {
    let mut shell = spawned(
        vec![birth(), after(&[0]), birth(), after(&[0]), birth(), birth()],
        AllSucceeded,
        2,
    );
    assert_eq!(runs(&shell), [1, 3]);
    succeeds(&mut shell, 1);
    assert_eq!(runs(&shell), [2, 3], "the lowest number of those that may begin");
    let width = (ProcedureState::Initializing, Some(WaitReason::Width));
    assert_eq!((state(&shell, 4), state(&shell, 5)), (width.clone(), width));
    succeeds(&mut shell, 3);
    assert_eq!(runs(&shell), [2, 4]);
    succeeds(&mut shell, 2);
    succeeds(&mut shell, 4);
    assert_eq!(runs(&shell), [5, 6]);
}

#[test]
fn an_operator_opens_a_gate_within_the_width() {
    let mut shell = spawned(vec![birth(), after(&[0]), after(&[0])], AllSucceeded, 1);
    operate(&mut shell, Verb::RetryNow(member(3)));
    assert_eq!(runs(&shell), [1]);
    assert_eq!(state(&shell, 3).1, Some(WaitReason::Width));
    succeeds(&mut shell, 1);
    assert_eq!(runs(&shell), [2], "both may begin, and it has the lower number");
    succeeds(&mut shell, 2);
    assert_eq!(runs(&shell), [3]);
}

#[test]
fn a_vital_child_that_fails_fails_its_parent_at_once() {
    let mut shell = spawned(vec![vital(), birth(), birth()], AllFinished, 2);
    fails(&mut shell, 1);
    assert_eq!(row(&shell, ROOT).state, ProcedureState::Failed);
    assert_eq!(runs(&shell), [2]);
    succeeds(&mut shell, 2);
    assert_eq!(
        row(&shell, member(2)).state,
        ProcedureState::Success,
        "it keeps its result"
    );
    assert_eq!(row(&shell, member(3)).visit, 0);

    let mut other = spawned(vec![birth(), birth(), birth()], AllFinished, 2);
    fails(&mut other, 1);
    assert_eq!(runs(&other), [2, 3]);
}

/// A vital child behind these siblings.
fn vital_after(places: &[u32]) -> Birth {
    let graph = after(places)
        .graph
        .map(|node| Box::new(GraphNode { vital: true, ..*node }));
    Birth { graph, ..birth() }
}

#[test]
fn a_vital_child_that_ends_at_its_gate_fails_its_parent_at_once() {
    for births in [
        vec![birth(), vital_after(&[0]), birth(), after(&[0])],
        vec![birth(), after(&[0]), birth(), vital_after(&[1])],
    ] {
        let mut shell = spawned(births, AllFinished, 2);
        fails(&mut shell, 1);
        let root = row(&shell, ROOT);
        let cause = root
            .rare()
            .cause
            .as_ref()
            .map(|cause| (cause.origin, cause.text.as_str()));
        assert_eq!((root.state, cause), (ProcedureState::Failed, Some((member(1), "boom"))));
        assert_eq!((state(&shell, 2), state(&shell, 4)), (SHUT, SHUT));
        assert_eq!(runs(&shell), [3]);
    }
    let mut waits = vital_after(&[0]);
    if let Some(gate) = waits.graph.as_mut().and_then(|node| node.gate.as_mut()) {
        gate.or_wait = true;
    }
    let mut shell = spawned(vec![birth(), waits], AllFinished, 0);
    fails(&mut shell, 1);
    assert_eq!(
        (state(&shell, 2), state(&shell, 0).1),
        (AT_GATE, Some(WaitReason::Children))
    );
}

#[test]
fn past_its_point_of_no_return_a_parent_goes_on_without_its_vital_child() {
    let mut birth_of_root = of_kind(KIND);
    birth_of_root.next_needs.next_is_no_return = Some("the bridge".to_owned());
    let mut shell = Shell::new(birth_of_root);
    let outcome = StageOutcome::Spawn {
        births: vec![vital(), birth(), after(&[1])],
        join: AllFinished,
        width: 0,
        then: Blob::default(),
    };
    ended(&mut shell, ROOT, outcome);
    fails(&mut shell, 1);
    assert_eq!(runs(&shell), [0, 2]);
    succeeds(&mut shell, 2);
    assert_eq!(runs(&shell), [0, 3], "the list goes on without its parent");
}

#[test]
fn permits_are_asked_for_when_the_gate_opens() {
    let mut limited = after(&[0]);
    limited.admission.limits = vec![LimitKey::from("tables")];
    let mut shell = spawned(vec![birth(), limited], AllSucceeded, 0);
    assert_eq!(state(&shell, 2), AT_GATE);
    ended(&mut shell, member(1), StageOutcome::Done(Blob::default()));
    let asks = AdmissionEffect::Ask(member(2));
    assert!(shell.told.contains(&asks), "{:?}", shell.told);
    assert_eq!(state(&shell, 2).1, Some(WaitReason::Permit(LimitKey::from("tables"))));
}

#[test]
fn a_family_that_fails_ends_those_at_their_gates_without_a_call() {
    let mut shell = spawned(vec![birth(), birth(), after(&[1]), or_wait(&[0])], AllSucceeded, 0);
    fails(&mut shell, 1);
    assert_eq!(row(&shell, ROOT).state, ProcedureState::Failed);
    let effects = operate(&mut shell, Verb::RetryNow(member(4)));
    let refused = format!("{effects:?}").contains("does not begin any more");
    assert!(refused && state(&shell, 4) == AT_GATE, "{effects:?}");
    succeeds(&mut shell, 2);
    assert_eq!((state(&shell, 3), runs(&shell)), (AT_GATE, Vec::new()));
}

/// Builds a kernel from the rows of another one.
fn restarted(kernel: &Kernel) -> Kernel {
    let mut started = Kernel::new(kernel.rules().clone(), Epoch(2), 1);
    for (number, family) in kernel.families() {
        started.evolve(&Record::FamilyBegan(number));
        for row in &family.members {
            started.evolve(&Record::Row(row.clone()));
        }
    }
    started
}

#[test]
fn gates_are_counted_from_the_rows_at_a_start() {
    let births = vec![
        birth(),
        birth(),
        after(&[0, 1]),
        node(gate(&[1, 2], Named(vec![1]))),
        after(&[0]),
    ];
    let mut shell = spawned(births, AllFinished, 0);
    for number in [1, 2] {
        let started = restarted(&shell.kernel);
        assert_eq!(started.families(), shell.kernel.families());
        started.validate().expect("it is sound");
        succeeds(&mut shell, number);
    }
    assert_eq!(runs(&shell), [3, 5]);
    let started = restarted(&shell.kernel);
    assert_eq!(started.families(), shell.kernel.families());
}

#[test]
fn a_move_that_was_not_followed_is_found_and_repaired() {
    for (succeeded, expected) in [(true, (ProcedureState::Runnable, None)), (false, SHUT)] {
        let mut shell = spawned(vec![birth(), after(&[0]), birth()], AllFinished, 0);
        let mut lost = row(&shell, member(1)).clone();
        lost.in_flight = None;
        lost.ended = Some(Timestamp(1));
        lost.state = if succeeded {
            ProcedureState::Success
        } else {
            ProcedureState::RolledBack
        };
        shell.kernel.evolve(&Record::Row(Box::new(lost)));
        assert_eq!(state(&shell, 2), AT_GATE);
        let (granted, unknown) = (Vec::new(), Vec::new());
        shell.feed(1, Event::HealthCheckDue { granted, unknown });
        assert_eq!((state(&shell, 2), shell.kernel.found()), (expected, 1));
    }
}

#[test]
fn a_long_chain_behind_a_failure_ends_in_one_commit() {
    let mut births = vec![birth()];
    births.extend((0..20_000).map(|place| after(&[place])));
    let mut shell = spawned(births, AllFinished, 0);
    fails(&mut shell, 1);
    assert_eq!(state(&shell, 20_001), SHUT);
    assert_eq!(runs(&shell), [0]);
}

#[test]
fn a_list_with_an_impossible_gate_is_refused_with_its_place() {
    let named = |characters: usize| {
        let graph = GraphNode {
            name: Some("ä".repeat(characters)),
            ..GraphNode::default()
        };
        Birth {
            graph: Some(Box::new(graph)),
            ..birth()
        }
    };
    let detached = Birth {
        detached: true,
        ..after(&[0])
    };
    let two = |last: Birth| vec![birth(), birth(), last];
    let cases = [
        (two(after(&[0, 2])), "child 2 waits for itself"),
        (
            vec![birth(), after(&[2]), birth()],
            "child 1 waits for child 2, which is not listed before it",
        ),
        (two(after(&[1, 0, 1])), "child 2 waits for child 1 twice"),
        (two(after(&[])), "child 2 has a gate and waits for no child"),
        (
            two(node(gate(&[0, 1], AtLeast(0)))),
            "child 2: AtLeast needs 1 to 2, got 0",
        ),
        (
            two(node(gate(&[0, 1], AtLeast(3)))),
            "child 2: AtLeast needs 1 to 2, got 3",
        ),
        (
            two(node(gate(&[0], Named(Vec::new())))),
            "child 2: Named lists no place",
        ),
        (
            two(node(gate(&[0], Named(vec![1])))),
            "child 2: Named lists place 1 of the 1 before it, counted from 0",
        ),
        (two(named(201)), "a name of 201 characters is over the limit of 200"),
        (
            two(detached),
            "a detached child of kind \"leaf\" cannot have a name or a gate",
        ),
    ];
    for (births, expected) in cases {
        let shell = spawned(births, AllSucceeded, 0);
        let root = row(&shell, ROOT);
        let cause = root.rare().cause.as_ref().expect("it failed");
        assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::OverBound, expected));
        let members = shell.kernel.families().get(&1).map(|family| family.members.len());
        assert_eq!(members, Some(1), "{expected}");
    }
    let shell = spawned(two(named(200)), AllSucceeded, 0);
    assert_eq!(
        row(&shell, member(3)).name().map(|name| name.chars().count()),
        Some(200)
    );
}

#[test]
fn gates_are_bounded() {
    let mut shell = Shell::empty(Epoch(1));
    let mut rules = shell.kernel.rules().clone();
    (rules.bounds.gate, rules.bounds.edges) = (2, 3);
    shell.kernel = Kernel::new(rules, Epoch(1), 0);
    let cases = [
        (
            vec![birth(), birth(), birth(), after(&[0, 1, 2])],
            "child 3 waits for 3 children, over the limit of 2",
        ),
        (
            vec![birth(), after(&[0]), after(&[0, 1]), after(&[0])],
            "the gates of the list name 4 children, over the limit of 3; let one child stand between many",
        ),
    ];
    for (family, (births, expected)) in (1..).zip(cases) {
        shell.feed(0, Event::Submitted(RequestId(2), vec![of_kind(KIND).into()]));
        let outcome = StageOutcome::Spawn {
            births,
            join: AllSucceeded,
            width: 0,
            then: Blob::default(),
        };
        let root = ProcedureId::root(family);
        let run = row(&shell, root).in_flight.expect("it is out").run;
        let report = StageEnded::new(root, run, Epoch(1), Timestamp(1), outcome);
        shell.feed(1, Event::StageEnded(Box::new(report)));
        let cause = row(&shell, root).rare().cause.as_ref().expect("it failed");
        assert_eq!(cause.text, expected);
    }
}

#[test]
fn rows_with_gates_that_no_engine_writes_are_refused() {
    let sound = || {
        let shell = spawned(vec![birth(), after(&[0])], AllSucceeded, 0);
        let family = shell.kernel.families().get(&1).expect("it lives");
        family.members.iter().map(|row| (**row).clone()).collect::<Vec<Row>>()
    };
    check_rows(&sound()).expect("an engine wrote them");
    let edits: [fn(&mut Gate); 6] = [
        |gate| gate.after = vec![2],
        |gate| gate.after = vec![3],
        |gate| gate.after = vec![0],
        |gate| gate.after = vec![1, 1],
        |gate| gate.after.clear(),
        |gate| gate.opens = AtLeast(2),
    ];
    for edit in edits {
        let mut rows = sound();
        let gate = rows
            .get_mut(2)
            .and_then(|row| row.rare_mut().graph.as_mut()?.gate.as_mut());
        edit(gate.expect("it has one"));
        let why = check_rows(&rows).expect_err("no engine wrote them");
        assert!(why.contains("gate"), "{why}");
    }
    let mut rows = sound();
    rows.get_mut(2).expect("it is there").rare_mut().graph = None;
    check_rows(&rows).expect_err("it waits at no gate");
}

fn custom(places: &[u32]) -> Birth {
    node(gate(places, Custom))
}

fn custom_or_wait(places: &[u32]) -> Birth {
    node(Gate {
        or_wait: true,
        ..gate(places, Custom)
    })
}

/// Returns the members whose own rules the effects ask, each with the siblings before it.
fn asked(effects: &[Effect]) -> Vec<(u32, Vec<u32>)> {
    let calls = effects.iter().filter_map(Effect::call);
    let gates = calls.filter(|call| call.task == StageTask::Gate);
    let numbers = |call: &StageCall| call.before.iter().map(|id| id.member).collect();
    gates.map(|call| (call.id.member, numbers(call))).collect()
}

fn rules(shell: &mut Shell, number: u32, seen: u32, ruling: JoinRuling) -> Vec<Effect> {
    let id = member(number);
    shell.feed(1, Event::GateRuled { id, seen, ruling })
}

fn unmeetable() -> JoinRuling {
    JoinRuling::Unmeetable("no".to_owned())
}

#[test]
fn a_rule_is_asked_after_each_end_and_opens_the_gate() {
    let mut shell = spawned(vec![of_kind(KIND), birth(), custom(&[1, 0])], AllFinished, 0);
    let effects = ended(&mut shell, member(2), StageOutcome::Fail("boom".to_owned()));
    assert_eq!(asked(&effects), [(3, vec![2, 1])], "in the order given");
    assert_eq!(shell.kernel.calls_of(member(3)).len(), 1);
    let seq = shell.kernel.seq();
    assert_eq!(asked(&rules(&mut shell, 3, 1, JoinRuling::Pending)), []);
    assert_eq!((state(&shell, 3), shell.kernel.seq()), (AT_GATE, seq), "no commit");
    let effects = ended(&mut shell, member(1), StageOutcome::Done(Blob::default()));
    assert_eq!(asked(&effects), [(3, vec![2, 1])]);
    rules(&mut shell, 3, 2, JoinRuling::Met);
    assert_eq!(runs(&shell), [3]);
    let late = shell.kernel.late();
    rules(&mut shell, 3, 2, unmeetable());
    assert_eq!(
        (runs(&shell), shell.kernel.late()),
        (vec![3], late + 1),
        "it has gone on"
    );
}

#[test]
fn a_rule_is_not_asked_while_a_sibling_rolls_back() {
    let mut shell = spawned(vec![of_kind(KIND), custom(&[0])], AllFinished, 0);
    ended(&mut shell, member(1), StageOutcome::Next(Blob::default()));
    let effects = ended(&mut shell, member(1), StageOutcome::Fail("boom".to_owned()));
    assert_eq!(asked(&effects), []);
    assert_eq!(shell.kernel.calls_of(member(2)), []);
    let entries = shell.history.iter().rev().cloned().collect();
    let mut effects = shell.feed(1, Event::StackLoaded(member(1), entries));
    for _ in 0..2 {
        let undone = effects.iter().filter_map(Effect::call).find_map(StageCall::undone);
        let (scope, number) = undone.expect("an undo is out");
        let report = UndoEnded::new(scope, number, Timestamp(1), Ok(()));
        effects = shell.feed(1, Event::UndoEnded(Box::new(report)));
    }
    assert_eq!(asked(&effects), [(2, vec![1])], "its rollback has ended");
}

#[test]
fn a_ruling_that_missed_an_end_changes_nothing() {
    for ruling in [JoinRuling::Met, unmeetable(), JoinRuling::Pending] {
        let mut shell = spawned(vec![birth(), birth(), custom(&[0, 1])], AllFinished, 0);
        succeeds(&mut shell, 1);
        succeeds(&mut shell, 2);
        let seq = shell.kernel.seq();
        rules(&mut shell, 3, 1, ruling);
        assert_eq!((state(&shell, 3), shell.kernel.seq()), (AT_GATE, seq));
    }
}

#[test]
fn a_rule_that_cannot_be_met_ends_the_child_and_those_behind_it() {
    // The ruling, the siblings that it saw ended, and the reason.
    let cases = [
        (unmeetable(), 1, "no"),
        (
            JoinRuling::Pending,
            2,
            "all children before it have ended, and its own rule is still pending",
        ),
    ];
    for (ruling, seen, why) in cases {
        let mut shell = spawned(vec![birth(), birth(), custom(&[0, 1]), after(&[2])], AllFinished, 0);
        fails(&mut shell, 1);
        if seen == 2 {
            succeeds(&mut shell, 2);
        }
        let seq = shell.kernel.seq();
        rules(&mut shell, 3, seen, ruling);
        assert_eq!(shell.kernel.seq(), seq.next());
        assert_eq!((state(&shell, 3), state(&shell, 4)), (SHUT, SHUT));
        let cause = row(&shell, member(3)).rare().cause.as_ref().expect("it has one");
        assert_eq!((cause.kind, cause.origin), (CauseKind::GateShut, member(1)));
        assert_eq!(cause.text, format!("its gate can no longer open: {why}"));
        assert_eq!(row(&shell, member(4)).rare().cause.as_ref(), Some(cause));
    }
    let mut shell = spawned(vec![birth(), custom(&[0])], AllFinished, 0);
    succeeds(&mut shell, 1);
    rules(&mut shell, 2, 1, unmeetable());
    let cause = row(&shell, member(2)).rare().cause.as_ref().expect("it has one");
    assert_eq!(cause.origin, member(2), "no sibling is to blame");
    assert_eq!(runs(&shell), [0], "and its end lets the parent go on");
}

#[test]
fn with_or_wait_a_rule_that_cannot_be_met_leaves_the_child_to_a_person() {
    let stays = || {
        let mut shell = spawned(vec![birth(), birth(), custom_or_wait(&[0, 1])], AllFinished, 0);
        fails(&mut shell, 1);
        let seq = shell.kernel.seq();
        rules(&mut shell, 3, 1, unmeetable());
        let needs = shell.kernel.needs_of(member(3)).expect("it lives").needs;
        assert!(
            matches!(&needs[..], [need] if need.of == [member(2)]),
            "the next end may change it"
        );
        assert_eq!(shell.kernel.wake_source_of(member(3)), WakeSource::Nothing);
        assert_eq!(shell.kernel.seq(), seq);
        succeeds(&mut shell, 2);
        assert!(shell.kernel.needs_of(member(3)).expect("it lives").needs.is_empty());
        let seq = shell.kernel.seq();
        rules(&mut shell, 3, 2, unmeetable());
        assert_eq!(
            (state(&shell, 3), shell.kernel.seq()),
            (AT_GATE, seq),
            "a reading, not a commit"
        );
        let source = shell.kernel.wake_source_of(member(3));
        assert_eq!(source, WakeSource::Operator(WaitReason::Gate));
        let family = shell.kernel.families().get(&1).expect("it lives");
        assert_eq!(family.gates.unmeetable(3), Some("no"));
        shell.kernel.validate().expect("it is sound");
        shell
    };
    let mut retried = stays();
    operate(&mut retried, Verb::RetryNow(member(3)));
    assert_eq!(runs(&retried), [3]);
    let family = retried.kernel.families().get(&1).expect("it lives");
    assert_eq!(family.gates.unmeetable(3), None);

    let mut bypassed = stays();
    operate(
        &mut bypassed,
        Verb::Bypass(member(3), BypassScope::Alone, BypassAs::Failed),
    );
    assert_eq!(runs(&bypassed), [0]);

    let mut ruled_again = stays();
    rules(&mut ruled_again, 3, 2, JoinRuling::Met);
    assert_eq!(runs(&ruled_again), [3]);
}

#[test]
fn a_start_asks_again_if_a_sibling_has_ended() {
    let births = vec![birth(), birth(), custom_or_wait(&[0]), custom(&[1])];
    let mut shell = spawned(births, AllFinished, 0);
    fails(&mut shell, 1);
    rules(&mut shell, 3, 1, unmeetable());
    let mut started = Shell {
        told: Vec::new(),
        early: Vec::new(),
        kernel: restarted(&shell.kernel),
        history: Vec::new(),
    };
    assert_eq!(asked(&started.feed(1, Event::Recovered)), [(3, vec![1])]);
    rules(&mut started, 3, 1, JoinRuling::Met);
    assert_eq!(runs(&started), [2, 3]);
}

#[test]
fn a_rule_of_a_family_that_fails_is_not_asked_and_not_heard() {
    let mut shell = spawned(vec![birth(), birth(), birth(), custom(&[0, 1])], AllSucceeded, 0);
    let effects = ended(&mut shell, member(1), StageOutcome::Done(Blob::default()));
    assert_eq!(asked(&effects), [(4, vec![1, 2])]);
    let effects = ended(&mut shell, member(2), StageOutcome::Fail("boom".to_owned()));
    assert_eq!(asked(&effects), []);
    let late = shell.kernel.late();
    rules(&mut shell, 4, 2, JoinRuling::Met);
    assert_eq!((runs(&shell), shell.kernel.late()), (vec![3], late + 1));
}
