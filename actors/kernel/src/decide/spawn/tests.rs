//! Several children of one list move in one decision.

use crate::decide::Draft;
use crate::decision::{Commit, Receipt};
use crate::event::{Birth, Event, StageEnded, StageOutcome};
use crate::id::{Blob, Epoch, Kind, ProcedureId, RequestId, Timestamp};
use crate::kernel::{Kernel, KindRules, Rules};
use crate::lifecycle::ProcedureState;
use crate::row::JoinPolicy;
use crate::wait::WaitReason;

const NOW: Timestamp = Timestamp(1_000_000);
const ROOT: ProcedureId = ProcedureId::root(1);

fn birth() -> Birth {
    Birth::new(Kind::from("kind"), 1, Blob::default(), Blob::default())
}

fn feed(kernel: &mut Kernel, event: Event) {
    let decision = kernel.decide(NOW, event);
    let mut commit = Commit::new();
    kernel.apply(decision, &mut commit);
    commit
        .release(&Receipt::new(Epoch(1), kernel.seq()))
        .unwrap_or_default();
}

fn family(children: usize, join: JoinPolicy, width: u32) -> Kernel {
    let rules = Rules {
        kinds: [(Kind::from("kind"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    let mut kernel = Kernel::new(rules, Epoch(1), 0);
    feed(&mut kernel, Event::Submitted(RequestId(1), vec![birth().into()]));
    let run = kernel.row(ROOT).and_then(|row| row.in_flight).expect("it is out").run;
    let outcome = StageOutcome::Spawn {
        births: vec![birth(); children],
        join,
        width,
        then: Blob::default(),
    };
    let report = StageEnded::new(ROOT, run, Epoch(1), NOW, outcome);
    feed(&mut kernel, Event::StageEnded(Box::new(report)));
    kernel
}

fn succeed(draft: &mut Draft<'_>, member: u32) {
    draft.change(ProcedureId::new(1, member), |row| {
        row.state = ProcedureState::Success;
        row.ended = Some(NOW);
        row.in_flight = None;
    });
}

fn is_out(draft: &Draft<'_>, member: u32) -> bool {
    draft
        .row(ProcedureId::new(1, member))
        .is_some_and(|row| row.in_flight.is_some())
}

fn child_moved(draft: &mut Draft<'_>, member: u32) {
    assert_eq!(
        draft.child_moved(ProcedureId::new(1, member)),
        None,
        "nothing has failed"
    );
}

#[test]
fn children_that_end_in_one_decision_are_all_counted() {
    for join in [
        JoinPolicy::AllSucceeded,
        JoinPolicy::AllFinished,
        JoinPolicy::AtLeast(3),
    ] {
        let kernel = family(3, join, 0);
        let mut one_by_one = Draft::new(&kernel, NOW);
        for member in 1..=3 {
            assert!(!is_out(&one_by_one, 0), "child {member} has not ended yet");
            succeed(&mut one_by_one, member);
            child_moved(&mut one_by_one, member);
        }
        assert!(is_out(&one_by_one, 0));

        let mut together = Draft::new(&kernel, NOW);
        (1..=3).for_each(|member| succeed(&mut together, member));
        child_moved(&mut together, 2);
        assert!(is_out(&together, 0));
    }
}

#[test]
fn a_child_that_moves_twice_is_counted_once() {
    let kernel = family(2, JoinPolicy::AtLeast(1), 0);
    let mut draft = Draft::new(&kernel, NOW);
    draft.change(ProcedureId::new(1, 1), |row| row.state = ProcedureState::Failed);
    child_moved(&mut draft, 1);
    draft.change(ProcedureId::new(1, 1), |row| {
        row.state = ProcedureState::RolledBack;
        row.ended = Some(NOW);
    });
    child_moved(&mut draft, 1);
    assert!(!is_out(&draft, 0), "the other child can still succeed");
    succeed(&mut draft, 2);
    child_moved(&mut draft, 2);
    assert!(is_out(&draft, 0));
}

#[test]
fn each_place_that_falls_free_in_the_width_is_filled_once() {
    let kernel = family(6, JoinPolicy::AllFinished, 2);
    let mut draft = Draft::new(&kernel, NOW);
    succeed(&mut draft, 1);
    succeed(&mut draft, 2);
    child_moved(&mut draft, 1);
    child_moved(&mut draft, 2);
    assert!(is_out(&draft, 3) && is_out(&draft, 4));
    let held = |member| draft.row(ProcedureId::new(1, member)).and_then(|row| row.wait.clone());
    assert_eq!(held(5), Some(WaitReason::Width));
    assert_eq!(held(6), Some(WaitReason::Width));
}
