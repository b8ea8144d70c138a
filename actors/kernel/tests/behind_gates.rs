//! What waits behind a member at gates: how many, and who moves when an operator ends it.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Answer, Birth, Blob, BypassAs, BypassScope, Effect, Epoch, Event, Gate, GraphNode, JoinPolicy, Kind,
    OperatorRequest, PLAN_NAMED, Plan, ProcedureId, RequestEffect, RequestId, StageEnded, StageOutcome, StoredTarget,
    Timestamp, Verb,
};

use crate::shell::{ROOT, Shell};

const fn member(number: u32) -> ProcedureId {
    ProcedureId::new(1, number)
}

/// A child without rollback.
fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from("leaf"), 1, stage, payload)
}

fn after(places: &[u32]) -> Birth {
    let gate = Gate {
        after: places.to_vec(),
        opens: JoinPolicy::AllSucceeded,
        or_wait: false,
    };
    let graph = GraphNode {
        gate: Some(gate),
        ..GraphNode::default()
    };
    Birth {
        graph: Some(Box::new(graph)),
        ..birth()
    }
}

/// A root that has spawned these children.
fn spawned(births: Vec<Birth>, width: u32) -> Shell {
    let mut shell = Shell::new(birth());
    let outcome = StageOutcome::Spawn {
        births,
        join: JoinPolicy::AllFinished,
        width,
        then: Blob::from(&b"joined"[..]),
    };
    ended(&mut shell, ROOT, outcome);
    shell
}

fn ended(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) {
    let in_flight = shell.kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.expect("its stage is out").run;
    let report = StageEnded::new(id, run, Epoch(1), Timestamp(1), outcome);
    shell.feed(1, Event::StageEnded(Box::new(report)));
}

fn behind(shell: &Shell, number: u32) -> usize {
    shell.kernel.waiting_behind(member(number), 1_000, &mut 10_000)
}

/// The plan of a request.
fn plan_of(shell: &mut Shell, verb: Verb) -> Plan {
    let by = Box::new(OperatorRequest::new("ann", "see first").dry_run());
    let request = Event::Requested(RequestId(9), Box::new(verb), by, StoredTarget::None);
    let mut effects = shell.feed(1, request).into_iter();
    let plan = effects.find_map(|effect| {
        if let Effect::Requests(RequestEffect::Reply(_, Answer::Operated(operated))) = effect {
            operated.plan
        } else {
            None
        }
    });
    *plan.expect("a dry run has a plan")
}

fn bypass(number: u32) -> Verb {
    Verb::Bypass(member(number), BypassScope::Alone, BypassAs::Success)
}

#[test]
fn those_behind_a_member_are_counted_once_each() {
    let births = vec![birth(), after(&[0]), after(&[0]), after(&[1, 2]), birth()];
    let mut shell = spawned(births, 0);
    let counts: Vec<usize> = (0..=5).map(|number| behind(&shell, number)).collect();
    assert_eq!(counts, [0, 3, 1, 1, 0, 0]);
    ended(&mut shell, member(1), StageOutcome::Done(Blob::default()));
    let counts: Vec<usize> = (0..=5).map(|number| behind(&shell, number)).collect();
    assert_eq!(counts, [0, 0, 1, 1, 0, 0], "an open gate keeps nobody back");
    let unknown = ProcedureId::root(7);
    assert_eq!(shell.kernel.waiting_behind(unknown, 1_000, &mut 10_000), 0);
}

#[test]
fn a_count_is_bounded_by_what_it_finds_and_by_its_steps() {
    let mut births = vec![birth()];
    births.extend((0..5_000).map(|place| after(&[place])));
    let shell = spawned(births, 0);
    let mut steps = 10_000;
    assert_eq!(shell.kernel.waiting_behind(member(1), 1_000, &mut steps), 1_000);
    assert_eq!(steps, 9_000);
    assert_eq!(shell.kernel.waiting_behind(member(1), 10_000, &mut steps), 5_000);
    // What is left is for all counts together.
    assert_eq!(shell.kernel.waiting_behind(member(1), 10_000, &mut steps), 4_000);
    assert_eq!(
        (shell.kernel.waiting_behind(member(1), 1_000, &mut steps), steps),
        (0, 0)
    );
}

#[test]
fn a_plan_names_gates_that_open_then_those_that_go_on() {
    let births = vec![birth(), birth(), after(&[0]), after(&[1]), after(&[0, 1])];
    let mut shell = spawned(births, 0);
    assert_eq!(plan_of(&mut shell, bypass(1)).moves_next, [member(3)]);
    assert_eq!(
        plan_of(&mut shell, bypass(3)).moves_next,
        [],
        "nobody waits for this one alone"
    );
    let opened = plan_of(&mut shell, Verb::RetryNow(member(5)));
    assert_eq!((opened.moves_next, opened.truncated), (vec![member(5)], false));

    // The first gives its place to the lowest number whose gate opens; the other gate opens too, and its member waits
    // for the next place. The fourth stays where it is.
    let mut narrow = spawned(vec![birth(), after(&[0]), after(&[0]), birth()], 1);
    assert_eq!(plan_of(&mut narrow, bypass(1)).moves_next, [member(2), member(3)]);

    let mut last = spawned(vec![birth()], 0);
    assert_eq!(plan_of(&mut last, bypass(1)).moves_next, [ROOT]);
    let mut held = spawned(vec![birth(), birth()], 1);
    assert_eq!(plan_of(&mut held, bypass(1)).moves_next, [member(2)]);
}

#[test]
fn a_plan_with_very_many_gates_is_cut() {
    let mut births = vec![birth()];
    births.extend((0..PLAN_NAMED + 1).map(|_| after(&[0])));
    let mut shell = spawned(births, 0);
    let plan = plan_of(&mut shell, bypass(1));
    assert_eq!((plan.moves_next.len(), plan.truncated), (PLAN_NAMED, true));
}

#[test]
fn a_plan_names_nobody_whose_family_fails() {
    let mut shell = spawned(vec![birth(), after(&[0])], 0);
    let plan = plan_of(&mut shell, Verb::Abort(ROOT));
    assert_eq!(plan.moves_next, []);
}
