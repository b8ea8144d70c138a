//! How far a clock is trusted if it runs with the machine, is set, or was not watched.

use super::*;
use crate::testkit::TestClock;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const SECOND: Duration = Duration::from_secs(1);

fn wall(last: Option<LastLook>) -> Wall {
    let rules = Rules {
        keep_after_end: HOUR,
        ..Rules::default()
    };
    Wall::new(last, &rules)
}

/// Returns a clock at ten days, and a wall that has looked at it.
fn watched() -> (TestClock, Wall) {
    let (clock, mut wall) = (TestClock::new(), wall(None));
    clock.advance(DAY * 10);
    assert_eq!(wall.look(&clock), clock.now());
    (clock, wall)
}

/// Returns how far the eviction limit lies behind the clock.
fn behind(wall: &mut Wall, clock: &TestClock) -> Duration {
    let until = wall.look(clock);
    clock.now().since(until)
}

#[test]
fn a_clock_that_runs_with_the_machine_is_believed() {
    let (clock, mut wall) = watched();
    clock.advance(DAY * 100);
    clock.step_wall(SET_FORWARD - SECOND);
    assert_eq!(behind(&mut wall, &clock), Duration::ZERO);
    clock.step_wall(SET_FORWARD - SECOND);
    assert_eq!(behind(&mut wall, &clock), Duration::ZERO, "each look begins anew");
}

#[test]
fn a_step_counts_for_as_long_as_results_are_kept() {
    let (clock, mut wall) = watched();
    let due = clock.now().after(HOUR / 2);
    clock.step_wall(DAY);
    assert_eq!(behind(&mut wall, &clock), DAY);
    assert_eq!(wall.goes_at(due), due.after(DAY));
    assert_eq!(
        wall.goes_at(due.after(HOUR)),
        clock.now().after(HOUR),
        "no later than the end"
    );
    clock.advance(HOUR - SECOND);
    assert_eq!(behind(&mut wall, &clock), DAY);
    clock.advance(SECOND);
    assert_eq!(behind(&mut wall, &clock), Duration::ZERO);
    assert_eq!((wall.ahead(), wall.goes_at(due)), (None, due));
}

#[test]
fn steps_add_up_and_a_step_back_takes_away() {
    let (clock, mut wall) = watched();
    let begun = clock.now();
    clock.step_wall(DAY);
    wall.look(&clock);
    clock.advance(HOUR / 2);
    clock.step_wall(DAY);
    assert_eq!(behind(&mut wall, &clock), DAY * 2);
    clock.advance(HOUR - SECOND);
    clock.set_back_to(begun.after(DAY + HOUR * 3 / 2 - SECOND));
    assert_eq!(behind(&mut wall, &clock), DAY);
    clock.set_back_to(begun.after(HOUR * 3 / 2 - SECOND));
    assert_eq!(behind(&mut wall, &clock), Duration::ZERO);
    clock.set_back_to(begun);
    assert_eq!(wall.look(&clock), begun, "set back, and believed");
}

#[test]
fn the_store_keeps_the_look() {
    let (clock, mut first) = watched();
    clock.step_wall(DAY);
    let written = first.take_look(&clock, clock.now(), false);
    clock.advance(HOUR / 2);
    let mut second = wall(written);
    assert_eq!(behind(&mut second, &clock), DAY);
    clock.advance(HOUR / 2);
    assert_eq!(
        behind(&mut second, &clock),
        Duration::ZERO,
        "the time between two lives counts"
    );
    // Another machine, or the same machine after a restart: the time that passed is unknown.
    clock.step_wall(DAY);
    clock.reboot();
    let mut third = wall(written);
    assert_eq!(behind(&mut third, &clock), DAY + DAY + HOUR);
    clock.advance(HOUR);
    assert_eq!(behind(&mut third, &clock), Duration::ZERO);
}

#[test]
fn the_longest_key_counts_and_is_kept() {
    let (clock, mut first) = watched();
    assert!(first.take_look(&clock, clock.now(), false).is_some());
    assert_eq!(
        first.take_look(&clock, clock.now(), false),
        None,
        "at most once a minute"
    );
    first.note_key(DAY);
    let written = first.take_look(&clock, clock.now(), false);
    assert!(written.is_some(), "but for a longer key");
    let mut second = wall(written);
    clock.step_wall(DAY);
    second.look(&clock);
    clock.advance(DAY - SECOND);
    assert_eq!(behind(&mut second, &clock), DAY);
    clock.advance(SECOND);
    assert_eq!(behind(&mut second, &clock), Duration::ZERO);
}

#[test]
fn a_drain_writes_more_often() {
    let (clock, mut wall) = watched();
    assert!(wall.take_look(&clock, clock.now(), false).is_some());
    clock.advance(WRITE_DRAINING);
    assert_eq!(wall.take_look(&clock, clock.now(), false), None);
    assert!(wall.take_look(&clock, clock.now(), true).is_some());
    clock.advance(WRITE_EVERY);
    assert!(wall.take_look(&clock, clock.now(), false).is_some());
}
