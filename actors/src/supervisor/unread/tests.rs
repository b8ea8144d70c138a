//! How long is waited, and when the trouble is over.

use super::*;

fn refused() -> StoreError {
    StoreError::Io {
        place: "here".to_owned(),
        why: "no answer".to_owned(),
    }
}

fn stack(family: u64) -> Unread {
    Unread::Stack(ProcedureId::root(family))
}

#[test]
fn waits_double_up_to_the_longest_and_begin_anew_when_a_read_succeeds() {
    let mut unreadable = Unreadable::default();
    let mut waits = Vec::new();
    for _ in 0..13 {
        unreadable.failed(stack(1), &refused(), Timestamp(7));
        waits.extend(unreadable.arm().map(|wait| wait.as_millis()));
        assert!(unreadable.arm().is_none(), "one round at a time");
        assert_eq!(unreadable.round().len(), 1);
    }
    assert_eq!(
        waits,
        [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_000, 10_000, 10_000]
    );
    let trouble = unreadable.trouble().expect("it fails");
    assert_eq!(
        (trouble.since, trouble.failures, trouble.waiting),
        (Timestamp(7), 13, 1)
    );

    unreadable.failed(stack(2), &refused(), Timestamp(8));
    // Of another family, which never failed.
    unreadable.succeeded(Subject::Stack(ProcedureId::root(3)));
    assert_eq!(unreadable.trouble().map(|trouble| trouble.waiting), Some(2));
    unreadable.succeeded(Subject::Stack(ProcedureId::root(1)));
    assert_eq!(unreadable.trouble().map(|trouble| trouble.since), Some(Timestamp(7)));
    assert_eq!(unreadable.arm(), Some(SHORTEST));
    unreadable.round();
    unreadable.succeeded(Subject::Stack(ProcedureId::root(2)));
    assert!(unreadable.trouble().is_none());
}

#[test]
fn a_round_is_bounded_and_leaves_the_others_for_the_next() {
    let mut unreadable = Unreadable::default();
    let all = 2 * AT_ONCE + 1;
    for family in 0..all as u64 {
        unreadable.failed(stack(family), &refused(), Timestamp(0));
    }
    let mut rounds = Vec::new();
    while unreadable.arm().is_some() {
        rounds.push(unreadable.round().len());
    }
    assert_eq!(rounds, [AT_ONCE, AT_ONCE, 1]);
}
