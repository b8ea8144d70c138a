//! How long the waits are, and when the trouble is over.

use super::*;

fn refused() -> StoreError {
    StoreError::Io {
        place: "here".to_owned(),
        why: "no answer".to_owned(),
    }
}

fn stack(family: u64) -> FailedRead {
    FailedRead::Stack(ProcedureId::root(family))
}

#[test]
fn waits_double_up_to_the_longest_and_begin_anew_when_a_read_succeeds() {
    let mut reads = FailedReads::default();
    let mut waits = Vec::new();
    for _ in 0..13 {
        reads.failed(stack(1), &refused(), Timestamp(7));
        waits.extend(reads.arm().map(|wait| wait.as_millis()));
        assert!(reads.arm().is_none(), "one round at a time");
        assert_eq!(reads.round().len(), 1);
    }
    assert_eq!(
        waits,
        [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_000, 10_000, 10_000]
    );
    let trouble = reads.trouble().expect("it fails");
    assert_eq!(
        (trouble.since, trouble.failures, trouble.waiting),
        (Timestamp(7), 13, 1)
    );

    reads.failed(stack(2), &refused(), Timestamp(8));
    // This read belongs to another family, which never failed.
    reads.succeeded(ReadSubject::Stack(ProcedureId::root(3)));
    assert_eq!(reads.trouble().map(|trouble| trouble.waiting), Some(2));
    reads.succeeded(ReadSubject::Stack(ProcedureId::root(1)));
    assert_eq!(reads.trouble().map(|trouble| trouble.since), Some(Timestamp(7)));
    assert_eq!(reads.arm(), Some(SHORTEST));
    reads.round();
    reads.succeeded(ReadSubject::Stack(ProcedureId::root(2)));
    assert!(reads.trouble().is_none());
}

#[test]
fn reads_of_a_quarantined_family_are_no_trouble_any_more() {
    let mut reads = FailedReads::default();
    reads.failed(stack(1), &refused(), Timestamp(7));
    reads.failed(stack(2), &refused(), Timestamp(7));
    reads.forget_family(1);
    assert_eq!(reads.trouble().map(|trouble| trouble.waiting), Some(1));
    assert!(reads.arm().is_some());
    assert_eq!(reads.round().len(), 1, "only that of the other family is retried");
    reads.forget_family(2);
    assert!(reads.trouble().is_none());
}

#[test]
fn a_round_is_bounded_and_leaves_the_others_for_the_next() {
    let mut reads = FailedReads::default();
    let all = 2 * AT_ONCE + 1;
    for family in 0..all as u64 {
        reads.failed(stack(family), &refused(), Timestamp(0));
    }
    let mut rounds = Vec::new();
    while reads.arm().is_some() {
        rounds.push(reads.round().len());
    }
    assert_eq!(rounds, [AT_ONCE, AT_ONCE, 1]);
}
