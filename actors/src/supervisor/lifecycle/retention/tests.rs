//! When results are looked at, and what a finished look leaves.

use std::time::Duration;

use procession_kernel::Rules;

use super::*;
use crate::testkit::TestClock;

const MINUTE: Duration = Duration::from_mins(1);

fn retention(next_due: Timestamp) -> Retention {
    Retention {
        next_due: Some(next_due),
        is_evicting: false,
        wall: Wall::new(None, &Rules::default()),
    }
}

fn found(next: Option<Timestamp>) -> FoundDue {
    Some(Ok(DueResults {
        next,
        ..DueResults::default()
    }))
}

#[test]
fn one_look_is_under_way_at_a_time_and_arms_nothing_meanwhile() {
    let clock = TestClock::new();
    let due = clock.now().after(MINUTE);
    let mut retention = retention(due);
    assert_eq!(retention.begin(&clock), None);
    assert_eq!(retention.wakes_at(), Some(due));
    clock.advance(MINUTE);
    assert_eq!(retention.begin(&clock), Some(due));
    assert!(retention.note_due(Some(due)));
    assert_eq!(retention.wakes_at(), None);
    assert_eq!(retention.begin(&clock), None);
}

#[test]
fn a_due_that_is_noted_during_a_look_is_not_lost() {
    let clock = TestClock::new();
    let mut retention = retention(clock.now());
    assert!(retention.begin(&clock).is_some());
    let (sooner, later) = (clock.now().after(MINUTE), clock.now().after(MINUTE * 2));
    assert!(retention.note_due(Some(sooner)));
    assert!(matches!(retention.end(found(Some(later))), Eviction::Families(doomed) if doomed.is_empty()));
    assert_eq!(retention.wakes_at(), Some(sooner));
}

#[test]
fn a_store_that_does_not_answer_is_looked_at_again_and_damage_is_not() {
    let clock = TestClock::new();
    let mut retention = retention(clock.now());
    assert!(retention.begin(&clock).is_some());
    let gone = StoreError::Io {
        place: "a disk".to_owned(),
        why: "no answer".to_owned(),
    };
    assert!(matches!(
        retention.end(Some(Err(ReadError::Store(gone)))),
        Eviction::ReadAgain(_)
    ));
    assert_eq!(retention.wakes_at(), None);
    assert!(retention.note_due(Some(clock.now())));
    assert!(retention.begin(&clock).is_some());
    assert!(matches!(retention.end(None), Eviction::Nothing));
}
