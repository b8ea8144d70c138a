//! Submissions that bring their children: one commit, a root that waits, and ends with an output or runs then.

#![expect(
    clippy::expect_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on all else"
)]

use procession_kernel::{
    Answer, Birth, Blob, Brood, Effect, Epoch, Event, Gate, GraphNode, JoinPolicy, Kind, LimitKey, ProcedureId,
    ProcedureState, Refusal, RequestEffect, RequestId, Row, StageEffects, StageEnded, StageOutcome, Timestamp,
    WaitReason, Wake,
};

use crate::shell::{KIND, ROOT, Shell};

fn of_kind(kind: &str) -> Birth {
    Birth::new(
        Kind::from(kind),
        1,
        Blob::from(&b"first"[..]),
        Blob::from(&b"value"[..]),
    )
}

fn after(places: &[u32]) -> Birth {
    let gate = Gate {
        after: places.to_vec(),
        opens: JoinPolicy::AllSucceeded,
        or_wait: false,
    };
    Birth {
        graph: Some(Box::new(GraphNode {
            gate: Some(gate),
            ..GraphNode::default()
        })),
        ..of_kind("leaf")
    }
}

fn with(children: Vec<Birth>, output: Option<Blob>) -> Birth {
    Birth {
        brood: Some(Box::new(Brood {
            children,
            output,
            ..Brood::default()
        })),
        ..of_kind(KIND)
    }
}

fn submit(shell: &mut Shell, birth: Birth) -> Answer {
    let effects = shell.feed(0, Event::Submitted(RequestId(7), vec![birth.into()]));
    let reply = effects.into_iter().find_map(|effect| match effect {
        Effect::Requests(RequestEffect::Reply(_, answer)) => Some(answer),
        _ => None,
    });
    reply.expect("it is answered")
}

fn row(shell: &Shell, member: u32) -> &Row {
    shell.kernel.row(ProcedureId::new(1, member)).expect("it lives")
}

fn ended(shell: &mut Shell, member: u32, outcome: StageOutcome) -> Vec<Effect> {
    let run = row(shell, member).in_flight.expect("its stage is out").run;
    let id = ProcedureId::new(1, member);
    let report = StageEnded::new(id, run, Epoch(1), Timestamp(1), outcome);
    shell.feed(1, Event::StageEnded(Box::new(report)))
}

fn done() -> StageOutcome {
    StageOutcome::Done(Blob::default())
}

#[test]
fn a_root_is_born_with_its_children_and_runs_after_them() {
    let mut shell = Shell::empty(Epoch(1));
    let before = shell.kernel.seq();
    let birth = with(vec![of_kind("leaf"), after(&[0])], None);
    assert_eq!(submit(&mut shell, birth), Answer::Submitted(vec![ROOT]));
    assert_eq!(shell.kernel.seq(), before.next(), "one commit");
    let root = row(&shell, 0);
    assert_eq!(
        (root.state, root.wait.clone()),
        (ProcedureState::Waiting, Some(WaitReason::Children))
    );
    assert!(row(&shell, 1).in_flight.is_some());
    assert_eq!(row(&shell, 2).wait, Some(WaitReason::Gate));
    assert_eq!(row(&shell, 2).gate().map(|gate| gate.after.clone()), Some(vec![1]));
    ended(&mut shell, 1, done());
    ended(&mut shell, 2, done());
    let root = row(&shell, 0);
    assert!(root.in_flight.is_some() && root.visit == 0);
    assert_eq!(root.wake, Some(Wake::Children(1, 2)));
    shell.kernel.validate().expect("it is sound");
}

#[test]
fn a_root_ends_with_its_children_without_a_call() {
    let mut shell = Shell::empty(Epoch(1));
    let output = Blob::from(&b"output"[..]);
    submit(&mut shell, with(vec![of_kind("leaf")], Some(output.clone())));
    let effects = ended(&mut shell, 1, done());
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Requests(RequestEffect::Ended(ended)) if ended.id == ROOT => Some((ended.state, ended.output.clone())),
        _ => None,
    });
    assert_eq!(told, Some((ProcedureState::Success, Some(output))));
    assert!(shell.kernel.families().is_empty());
}

#[test]
fn a_root_fails_with_its_children_without_a_call() {
    let mut shell = Shell::empty(Epoch(1));
    submit(
        &mut shell,
        with(vec![of_kind("leaf"), after(&[0])], Some(Blob::default())),
    );
    let effects = ended(&mut shell, 1, StageOutcome::Fail("boom".to_owned()));
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Requests(RequestEffect::Ended(ended)) if ended.id == ROOT => Some(ended),
        _ => None,
    });
    let told = told.expect("it has ended");
    assert_eq!(told.state, ProcedureState::RolledBack);
    assert_eq!(told.cause.as_ref().map(|cause| cause.text.as_str()), Some("boom"));
    // The stage of the child cannot be undone, and the result lists it.
    let not_undone: Vec<u32> = told.not_undone.iter().map(|left| left.member).collect();
    assert_eq!(not_undone, [1]);
}

#[test]
fn a_root_asks_for_its_permits_when_it_goes_on() {
    let mut shell = Shell::empty(Epoch(1));
    let mut birth = with(vec![of_kind("leaf")], None);
    birth.admission.limits = vec![LimitKey::from("roots")];
    submit(&mut shell, birth);
    ended(&mut shell, 1, done());
    assert_eq!(row(&shell, 0).wait, Some(WaitReason::Permit(LimitKey::from("roots"))));
    shell.feed(1, Event::Granted(ROOT));
    assert!(row(&shell, 0).in_flight.is_some());
}

#[test]
fn a_stage_submits_a_family_with_its_children() {
    let mut shell = Shell::new(of_kind(KIND));
    let run = row(&shell, 0).in_flight.expect("it is out").run;
    let report = StageEnded {
        effects: StageEffects {
            submitted: vec![with(vec![of_kind("leaf"), after(&[0])], None).into()],
            ..StageEffects::default()
        }
        .boxed(),
        ..StageEnded::new(ROOT, run, Epoch(1), Timestamp(1), StageOutcome::Next(Blob::default()))
    };
    shell.feed(1, Event::StageEnded(Box::new(report)));
    let family = shell.kernel.families().get(&2).expect("it was born");
    assert_eq!(family.members.len(), 3);
    shell.kernel.validate().expect("it is sound");
}

#[test]
fn a_list_that_breaks_a_rule_is_refused_whole() {
    let detached = || Birth {
        detached: true,
        ..of_kind("leaf")
    };
    let nested = with(vec![of_kind("leaf")], None);
    let cases = [
        (
            with(vec![of_kind("leaf"), after(&[1])], None),
            "child 1 waits for itself",
        ),
        (
            with(Vec::new(), Some(Blob::default())),
            "nothing is waited for: no child is attached, or the join policy is met at once; submit the procedure without them",
        ),
        (
            with(vec![detached()], None),
            "nothing is waited for: no child is attached, or the join policy is met at once; submit the procedure without them",
        ),
        (
            with(vec![nested], None),
            "a child cannot be born with children of its own; let it spawn them",
        ),
    ];
    let mut shell = Shell::empty(Epoch(1));
    let before = shell.kernel.seq();
    for (birth, expected) in cases {
        assert_eq!(
            submit(&mut shell, birth),
            Answer::Refused(Refusal::BadChildren(expected.to_owned()))
        );
    }
    let unknown = with(vec![of_kind("other")], None);
    assert_eq!(
        submit(&mut shell, unknown),
        Answer::Refused(Refusal::UnknownKind(Kind::from("other")))
    );
    let mut large = of_kind("leaf");
    large.payload = Blob::from(vec![0; (1 << 20) + 1]);
    let refused = submit(&mut shell, with(vec![large], None));
    assert!(matches!(refused, Answer::Refused(Refusal::TooLarge(..))), "{refused:?}");
    assert_eq!((shell.kernel.seq(), shell.kernel.families().len()), (before, 0));
}
