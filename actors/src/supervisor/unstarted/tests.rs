//! Who is kept at hand, and for how long.

use procession_kernel::{
    Birth, Blob, Commit, Epoch, Event, JoinPolicy, Kernel, Kind, KindRules, ProcedureId, RequestId, Rules, Seq,
    StageEnded, StageOutcome, Timestamp,
};

use super::{BOUND, EACH, Unstarted};

const NOW: Timestamp = Timestamp(1);

fn birth(bytes: usize) -> Birth {
    let stage = Blob::from(&b"\xc0"[..]);
    Birth::new(Kind::from("k"), 1, stage, Blob::from(vec![7; bytes]))
}

/// A parent has children of one byte size each, one at a time; gives what is kept.
fn after_spawn(children: u32, bytes: usize) -> (Unstarted, Kernel) {
    let rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    let mut kernel = Kernel::new(rules, Epoch(1), 0);
    let mut unstarted = Unstarted::default();
    let mut run = |kernel: &mut Kernel, event: Event| {
        let decision = kernel.decide(NOW, event);
        unstarted.note(decision.records());
        kernel.fold(decision, &mut Commit::new());
    };
    run(&mut kernel, Event::Submitted(RequestId(1), vec![birth(bytes).into()]));
    let root = ProcedureId::root(1);
    let going = kernel.row(root).and_then(|row| row.going);
    let outcome = StageOutcome::Spawn {
        births: (0..children).map(|_| birth(bytes)).collect(),
        join: JoinPolicy::default(),
        width: 1,
        then: Blob::default(),
    };
    let run_of = going.map_or(Seq(0), |going| going.run);
    let mut ended = StageEnded::new(root, run_of, Epoch(1), NOW, outcome);
    ended.payload = Some(Blob::from(vec![8; bytes]));
    run(&mut kernel, Event::StageEnded(Box::new(ended)));
    (unstarted, kernel)
}

#[test]
fn those_who_wait_for_their_turn_are_kept_and_those_who_run_are_not() {
    let (mut unstarted, kernel) = after_spawn(3, 10);
    let of = |member| ProcedureId::new(1, member);
    assert!(kernel.row(of(1)).is_some_and(|row| row.going.is_some()));
    assert_eq!(unstarted.take(of(0)), None, "the parent has begun");
    assert_eq!(unstarted.take(of(1)), None, "the first child is on its way");
    assert_eq!(unstarted.take(of(2)), Some(Blob::from(vec![7; 10])));
    assert_eq!(unstarted.take(of(2)), None, "it is given once");
    assert_eq!(unstarted.bytes, EACH + 10);
    unstarted.forget(2);
    assert_eq!(unstarted.values.len(), 1);
    unstarted.forget(1);
    assert_eq!((unstarted.bytes, unstarted.values.len()), (0, 0));
}

#[test]
fn beyond_the_bound_values_are_left_in_the_store() {
    let bytes = BOUND / 32;
    let (unstarted, _) = after_spawn(40, bytes);
    assert_eq!(unstarted.values.len(), 31);
    assert!(unstarted.bytes <= BOUND);
}
