//! When a batch may go to the journal behind another batch (docs/decisions/0029).

use procession_kernel::{
    Birth, Blob, Commit, Effect, Epoch, Event, Kernel, Kind, KindRules, Receipt, RequestEffect, RequestId, Rules, Seq,
    Submission, Timestamp,
};

use super::Commits;
use crate::journal::encode;

/// Decides on this many submissions. Each is a commit of its own in the open batch.
fn submit(kernel: &mut Kernel, commits: &mut Commits, number: usize) {
    submit_with(kernel, commits, number, false);
}

/// Decides on this many submissions whose first stage is pure, or is not.
fn submit_with(kernel: &mut Kernel, commits: &mut Commits, number: usize, is_pure: bool) {
    for _ in 0..number {
        let mut birth = Birth::new(Kind::from("k"), 1, Blob::default(), Blob::default());
        birth.next_needs.is_pure = is_pure;
        let decision = kernel.decide(
            Timestamp(1),
            Event::Submitted(RequestId(1), vec![Submission::from(birth)]),
        );
        let ready = commits.open();
        for record in decision.durable() {
            encode::write(&mut ready.batch, record).expect("it can be encoded");
        }
        ready.batch.advance_to(kernel.seq().next());
        let (_, immediate) = kernel.apply(decision, &mut ready.commit);
        assert_eq!(immediate.calls.is_empty(), !is_pure);
    }
}

fn kernel() -> Kernel {
    let rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        speculation: true,
        ..Rules::default()
    };
    Kernel::new(rules, Epoch(1), 0)
}

#[test]
fn a_batch_follows_one_that_is_no_larger() {
    let (mut kernel, mut commits) = (kernel(), Commits::new(Epoch(1), 4_096, 2));
    submit(&mut kernel, &mut commits, 4);
    let first = commits.next_batch().expect("nothing is under way");
    submit(&mut kernel, &mut commits, 3);
    assert!(commits.next_batch().is_none(), "it grows until it is as large");
    submit(&mut kernel, &mut commits, 2);
    let second = commits.next_batch().expect("it is as large");
    assert!(second.len() >= first.len());
    submit(&mut kernel, &mut commits, 9);
    assert!(commits.next_batch().is_none(), "two are under way");
    assert!(commits.proved(first.seq()).is_some());
    assert!(commits.next_batch().is_some());
}

#[test]
fn what_is_small_waits_for_the_receipt_and_a_full_batch_for_its_place_alone() {
    let (mut kernel, mut commits) = (kernel(), Commits::new(Epoch(1), 2, 2));
    submit(&mut kernel, &mut commits, 2);
    assert!(commits.next_batch().is_some());
    submit(&mut kernel, &mut commits, 1);
    assert!(commits.next_batch().is_none());
    let waiting = commits.proved(Seq(2)).expect("one is under way");
    let receipt = Receipt::new(Epoch(1), waiting.seq);
    assert!(
        waiting
            .commits
            .into_iter()
            .all(|commit| commit.release(&receipt).is_ok())
    );
    assert_eq!(commits.next_batch().map(|batch| batch.seq()), Some(kernel.seq()));

    // The second batch is full after two commits, although it has fewer writes than the first batch, which also
    // reserved family numbers.
    let (mut kernel, mut commits) = (self::kernel(), Commits::new(Epoch(1), 2, 2));
    submit(&mut kernel, &mut commits, 2);
    let first = commits.next_batch().expect("nothing is under way");
    submit(&mut kernel, &mut commits, 3);
    let full = commits.next_batch().expect("it takes no more");
    assert!(full.len() < first.len());
}

/// Decides on a request that is refused, which leaves no record, and holds its effects.
fn refuse(kernel: &mut Kernel, commits: &mut Commits, request: u64) {
    let birth = Birth::new(Kind::from("unknown"), 1, Blob::default(), Blob::default());
    let event = Event::Submitted(RequestId(request), vec![Submission::from(birth)]);
    let decision = kernel.decide(Timestamp(1), event);
    let mut commit = Commit::new();
    kernel.apply(decision, &mut commit);
    assert!(commits.hold(commit).is_none(), "it waits for what was decided before");
}

/// Takes the receipt of the oldest batch, and returns the requests that it answers, in order.
fn answered(commits: &mut Commits, durable: Seq) -> Vec<u64> {
    let waiting = commits.proved(durable).expect("one is under way");
    let receipt = Receipt::new(Epoch(1), durable);
    let released = waiting.commits.into_iter().flat_map(|commit| commit.release(&receipt));
    let mut answered = Vec::new();
    for effect in released.flatten() {
        if let Effect::Requests(RequestEffect::Reply(RequestId(request), _)) = effect {
            answered.push(request);
        }
    }
    answered
}

#[test]
fn effects_without_records_keep_their_place_among_those_of_commits() {
    let (mut kernel, mut commits) = (kernel(), Commits::new(Epoch(1), 2, 2));
    submit(&mut kernel, &mut commits, 1);
    refuse(&mut kernel, &mut commits, 2);
    submit(&mut kernel, &mut commits, 1);
    // That batch is full now, and the next is not opened before there is something for it.
    refuse(&mut kernel, &mut commits, 3);
    submit(&mut kernel, &mut commits, 1);
    refuse(&mut kernel, &mut commits, 4);
    let first = commits.next_batch().expect("nothing is under way").seq();
    let rest = kernel.seq();
    assert_eq!(answered(&mut commits, first), [1, 2, 1, 3]);
    commits.next_batch().expect("the other is open");
    // Nothing is open: it waits behind what is under way.
    refuse(&mut kernel, &mut commits, 5);
    assert_eq!(answered(&mut commits, rest), [1, 4, 5]);
}

#[test]
fn a_batch_whose_hold_is_over_is_not_held_again() {
    let (mut kernel, mut commits) = (kernel(), Commits::new(Epoch(1), 4_096, 2));
    submit(&mut kernel, &mut commits, 4);
    let first = commits.next_batch().expect("nothing is under way");
    // A batch of a stage that runs already is held back while the journal is busy.
    submit_with(&mut kernel, &mut commits, 1, true);
    commits.overtaken(true);
    assert!(commits.may_gather());
    let hold = commits.gather().expect("it begins");
    assert_eq!(commits.gather(), None, "it goes on");
    assert!(commits.may_gather());
    // Its time is up before the receipt comes: the batch must not wait for the stage any longer.
    assert!(commits.end_hold(hold));
    assert!(commits.next_batch().is_none(), "the journal is busy");
    assert!(commits.proved(first.seq()).is_some());
    assert!(!commits.may_gather());
    assert!(commits.next_batch().is_some());
    // The time of a batch that has gone is not that of the next.
    submit_with(&mut kernel, &mut commits, 1, true);
    commits.overtaken(true);
    let next = commits.gather().expect("another begins");
    assert!(!commits.end_hold(hold));
    assert!(commits.may_gather());
    assert!(commits.end_hold(next));
}
