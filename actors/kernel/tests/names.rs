//! Names of roots: written with the row, and refused if they are too long.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Answer, Birth, Blob, CHILD_NAME_MAX, Effect, Epoch, Event, Gate, GraphNode, JoinPolicy, Kernel, Kind, Record,
    Refusal, RequestEffect, RequestId, StageEnded, StageOutcome, Timestamp,
};

use crate::shell::{KIND, ROOT, Shell};

fn with(node: GraphNode) -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth {
        graph: Some(Box::new(node)),
        ..Birth::new(Kind::from(KIND), 1, stage, payload)
    }
}

fn named(name: &str) -> GraphNode {
    GraphNode {
        name: Some(name.to_owned()),
        ..GraphNode::default()
    }
}

fn refusal(birth: Birth) -> Refusal {
    let mut shell = Shell::empty(Epoch(1));
    let effects = shell.feed(0, Event::Submitted(RequestId(7), vec![birth.into()]));
    assert!(shell.kernel.families().is_empty(), "nothing is there");
    let refused = effects.into_iter().find_map(|effect| {
        if let Effect::Requests(RequestEffect::Reply(_, Answer::Refused(refusal))) = effect {
            Some(refusal)
        } else {
            None
        }
    });
    refused.expect("it is refused")
}

#[test]
fn a_root_has_the_name_of_its_submission_also_when_it_has_rested() {
    let mut shell = Shell::new(with(named("nightly import")));
    let name = |kernel: &Kernel| kernel.row(ROOT).and_then(|row| row.name().map(str::to_owned));
    assert_eq!(name(&shell.kernel).as_deref(), Some("nightly import"));
    let run = shell
        .kernel
        .row(ROOT)
        .and_then(|row| row.in_flight)
        .expect("it is out")
        .run;
    let waits = StageOutcome::Wait("go".into(), None, Blob::default());
    let report = StageEnded::new(ROOT, run, Epoch(1), Timestamp(1), waits);
    shell.feed(1, Event::StageEnded(Box::new(report)));
    assert_eq!(shell.kernel.families().frozen(), 1, "a name keeps nobody awake");
    assert_eq!(name(&shell.kernel).as_deref(), Some("nightly import"));

    let row = shell.kernel.row(ROOT).expect("it lives").clone();
    let mut started = Kernel::new(shell.kernel.rules().clone(), Epoch(2), 1);
    started.evolve(&Record::FamilyBegan(1));
    started.evolve(&Record::Row(Box::new(row)));
    assert_eq!(name(&started).as_deref(), Some("nightly import"));
}

#[test]
fn a_name_that_is_too_long_is_refused_and_so_is_a_root_behind_a_gate() {
    Shell::new(with(named(&"ä".repeat(CHILD_NAME_MAX))));
    let over = refusal(with(named(&"ä".repeat(CHILD_NAME_MAX + 1))));
    assert_eq!(over, Refusal::BadName(CHILD_NAME_MAX + 1, CHILD_NAME_MAX));
    let gate = Gate {
        after: vec![0],
        opens: JoinPolicy::AllSucceeded,
        or_wait: false,
    };
    let gated = GraphNode {
        gate: Some(gate),
        ..named("a")
    };
    let vital = GraphNode {
        vital: true,
        ..named("a")
    };
    for node in [gated, vital, GraphNode::default()] {
        assert!(matches!(refusal(with(node)), Refusal::BadChildren(_)));
    }
}
