//! Rules of `latch`, one by one.

use super::*;

fn round(join: JoinPolicy, width: u32) -> Round {
    Round {
        first: 1,
        count: 3,
        join,
        width,
        keep_places: false,
    }
}

fn latch(round: &Round, standings: [LatchState; 3]) -> Latch {
    let mut latch = Latch::new(round);
    for (member, standing) in (1..).zip(standings) {
        latch.count(round, member, None, standing);
    }
    latch
}

#[test]
fn all_succeeded_waits_for_the_last_and_loses_with_the_first_failure() {
    use LatchState::{Active, Failing, Succeeded};
    let round = round(JoinPolicy::AllSucceeded, 0);
    assert_eq!(
        latch(&round, [Succeeded, Succeeded, Active]).join(&round.join),
        Join::Pending
    );
    assert_eq!(
        latch(&round, [Succeeded, Succeeded, Succeeded]).join(&round.join),
        Join::Met
    );
    assert_eq!(
        latch(&round, [Succeeded, Failing, Active]).join(&round.join),
        Join::Unmeetable
    );
}

#[test]
fn all_finished_counts_a_failing_child_only_when_it_has_ended() {
    use LatchState::{Failed, Failing, Succeeded};
    let round = round(JoinPolicy::AllFinished, 0);
    assert_eq!(
        latch(&round, [Succeeded, Failing, Failed]).join(&round.join),
        Join::Pending
    );
    assert_eq!(latch(&round, [Succeeded, Failed, Failed]).join(&round.join), Join::Met);
}

#[test]
fn at_least_n_is_lost_when_too_few_are_left() {
    use LatchState::{Active, Failed, Succeeded};
    let round = round(JoinPolicy::AtLeast(2), 0);
    assert_eq!(
        latch(&round, [Succeeded, Failed, Active]).join(&round.join),
        Join::Pending
    );
    assert_eq!(
        latch(&round, [Succeeded, Succeeded, Active]).join(&round.join),
        Join::Met
    );
    assert_eq!(
        latch(&round, [Failed, Failed, Active]).join(&round.join),
        Join::Unmeetable
    );
}

#[test]
fn a_named_set_ignores_the_others() {
    use LatchState::{Active, Failed, Succeeded};
    let round = round(JoinPolicy::Named(vec![0, 2]), 0);
    assert_eq!(
        latch(&round, [Succeeded, Failed, Active]).join(&round.join),
        Join::Pending
    );
    assert_eq!(
        latch(&round, [Succeeded, Failed, Succeeded]).join(&round.join),
        Join::Met
    );
    assert_eq!(
        latch(&round, [Failed, Succeeded, Active]).join(&round.join),
        Join::Unmeetable
    );
}

#[test]
fn a_child_that_moves_is_counted_once() {
    use LatchState::{Active, Failed, Failing, Held, Succeeded};
    let round = round(JoinPolicy::AllSucceeded, 1);
    let mut latch = latch(&round, [Active, Held, Held]);
    assert!(!latch.has_room(&round));
    latch.count(&round, 1, Some(Active), Failing);
    assert!(!latch.has_room(&round));
    latch.count(&round, 1, Some(Failing), Failed);
    assert!(latch.has_room(&round));
    latch.count(&round, 2, Some(Held), Succeeded);
    assert_eq!(
        (latch.held, latch.active, latch.unsuccessful, latch.ended),
        (1, 0, 1, 2)
    );
}
