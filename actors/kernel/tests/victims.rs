//! Whom an abort reaches, so that a deadlock can be resolved by it.

#![expect(clippy::expect_used, reason = "a test names what it expects, and fails on all else")]

use procession_kernel::{
    Birth, Blob, Epoch, Event, JoinPolicy, Kind, ProcedureId, ProcedureState, StageEnded, StageOutcome, Timestamp,
};

use crate::shell::{KIND, ROOT, Shell};

fn member(member: u32) -> ProcedureId {
    ProcedureId::new(1, member)
}

fn birth() -> Birth {
    let (stage, payload) = (Blob::from(&b"first"[..]), Blob::from(&b"value"[..]));
    Birth::new(Kind::from(KIND), 1, stage, payload)
}

fn ended(shell: &mut Shell, id: ProcedureId, outcome: StageOutcome) {
    let in_flight = shell.kernel.row(id).and_then(|row| row.in_flight);
    let run = in_flight.expect("its stage is out").run;
    let report = StageEnded::new(id, run, Epoch(1), Timestamp(1), outcome);
    shell.feed(1, Event::StageEnded(Box::new(report)));
}

fn spawns(children: usize, join: JoinPolicy) -> StageOutcome {
    StageOutcome::Spawn {
        births: vec![birth(); children],
        join,
        width: 0,
        then: Blob::from(&b"joined"[..]),
    }
}

#[test]
fn no_abort_reaches_a_member_that_fails_with_the_root_though_its_parent_has_ended() {
    let mut shell = Shell::new(birth());
    ended(&mut shell, ROOT, spawns(2, JoinPolicy::AllSucceeded));
    // The first child waits for nobody, and succeeds while its own child lives on.
    ended(&mut shell, member(1), spawns(1, JoinPolicy::Named(Vec::new())));
    ended(&mut shell, member(1), StageOutcome::Done(Blob::default()));
    let of_grandchild = |shell: &Shell| {
        let node = shell.kernel.needs_of(member(3)).expect("it lives");
        (node.head, node.can_abort)
    };
    assert_eq!(of_grandchild(&shell), (member(3), true), "it outlives its parent");
    ended(&mut shell, member(2), StageOutcome::Fail("boom".to_owned()));
    let root = shell.kernel.row(ROOT).expect("it is not undone yet");
    assert_eq!(root.state, ProcedureState::Failed);
    assert_eq!(of_grandchild(&shell), (ROOT, false), "it is rolled back with the root");
}
