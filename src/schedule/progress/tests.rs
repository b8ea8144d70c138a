//! Rules of `progress`: which ticks run, wait and are skipped.

use super::*;

const MINUTE: u64 = 60_000_000;

/// A tick a minute.
const TICKS: Ticks = Ticks::Every(MINUTE);

fn minute(number: u64) -> Timestamp {
    Timestamp(number * MINUTE)
}

fn turn(now: Timestamp, catch_up: CatchUp, overlap: Overlap) -> Turn<'static> {
    Turn {
        now,
        ticks: &TICKS,
        catch_up,
        overlap,
        until: None,
        is_asked: false,
    }
}

/// One that has looked at all ticks up to this minute.
fn at(number: u64) -> Progress {
    Progress {
        upto: Some(minute(number)),
        ..Progress::default()
    }
}

fn busy(progress: Progress) -> Progress {
    let running = Some(Running {
        key: "run".to_owned(),
        cancelled: false,
    });
    Progress { running, ..progress }
}

fn minutes(due: &[Due]) -> Vec<u64> {
    due.iter().map(|due| due.at.0 / MINUTE).collect()
}

#[test]
fn the_first_turn_runs_nothing_and_knows_the_next_tick() {
    let mut progress = Progress::default();
    let orders = progress.turn(&turn(Timestamp(5 * MINUTE + 1), CatchUp::All(9), Overlap::Allow));
    assert_eq!(orders, Orders::default());
    assert_eq!(progress.next, Some(minute(6)));
}

#[test]
fn missed_ticks_are_caught_up_as_the_policy_says() {
    let late = Timestamp(9 * MINUTE + 1);
    let caught_up = |catch_up, now| {
        let mut progress = at(2);
        minutes(&progress.turn(&turn(now, catch_up, Overlap::Allow)).start)
    };
    assert_eq!(caught_up(CatchUp::Last, late), [9]);
    assert_eq!(caught_up(CatchUp::All(3), late), [7, 8, 9]);
    assert_eq!(caught_up(CatchUp::All(100), late), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(caught_up(CatchUp::All(0), late), [9], "a tick in time is not missed");
    assert_eq!(caught_up(CatchUp::Skip, late), [9], "it is late by a microsecond");
    let hourly = Ticks::Every(60 * MINUTE);
    let mut progress = at(2);
    let skips = Turn {
        ticks: &hourly,
        ..turn(minute(61), CatchUp::Skip, Overlap::Allow)
    };
    assert!(progress.turn(&skips).start.is_empty(), "it is late by a minute");
}

#[test]
fn ticks_in_time_count_whatever_the_policy_says_of_missed_ones() {
    let each_second = Ticks::Every(1_000_000);
    let due = |catch_up, second: u64| {
        let mut progress = at(2);
        let now = Timestamp(2 * MINUTE + second * 1_000_000);
        let late = Turn {
            ticks: &each_second,
            ..turn(now, catch_up, Overlap::Allow)
        };
        let start = progress.turn(&late).start;
        let first = start.first().map_or(0, |due| due.at.0 / 1_000_000 - 120);
        (first, start.len())
    };
    for catch_up in [CatchUp::Skip, CatchUp::Last, CatchUp::All(0), CatchUp::All(2)] {
        assert_eq!(due(catch_up, 5), (1, 5), "{catch_up:?}: none of them is a minute late");
        assert_eq!(due(catch_up, 300), (241, 60), "{catch_up:?}: the others are");
    }
    assert_eq!(due(CatchUp::All(100), 300), (201, 100));
    let mut progress = at(2);
    let none = progress.turn(&turn(Timestamp(2 * MINUTE + 1), CatchUp::All(0), Overlap::Allow));
    assert_eq!(none, Orders::default());
    let in_time = progress.turn(&turn(minute(3), CatchUp::All(0), Overlap::Allow));
    assert_eq!(minutes(&in_time.start), [3]);
}

#[test]
fn a_clock_that_is_set_back_makes_no_tick_due_twice() {
    let mut progress = at(5);
    assert_eq!(
        minutes(&progress.turn(&turn(minute(6), CatchUp::All(9), Overlap::Allow)).start),
        [6]
    );
    for now in [3, 5, 6] {
        let orders = progress.turn(&turn(minute(now), CatchUp::All(9), Overlap::Allow));
        assert_eq!(orders, Orders::default(), "at minute {now}");
        assert_eq!(progress.next, Some(minute(7)));
    }
}

#[test]
fn a_tick_that_is_due_while_a_run_goes_on_meets_the_policy() {
    let met = |overlap| {
        let mut progress = busy(at(2));
        let orders = progress.turn(&turn(minute(5), CatchUp::All(9), overlap));
        (
            minutes(&orders.start),
            minutes(&progress.waiting),
            progress.skipped,
            orders.cancel,
        )
    };
    assert_eq!(met(Overlap::Skip), (vec![], vec![], 3, false));
    assert_eq!(met(Overlap::Queue(2)), (vec![], vec![3, 4], 1, false));
    assert_eq!(met(Overlap::Cancel), (vec![], vec![5], 0, true));
    assert_eq!(met(Overlap::Allow), (vec![3, 4, 5], vec![], 0, false));
}

#[test]
fn what_waits_runs_one_by_one_once_the_run_before_it_has_ended() {
    let mut progress = busy(at(2));
    progress.turn(&turn(minute(4), CatchUp::All(9), Overlap::Queue(9)));
    assert_eq!(minutes(&progress.waiting), [3, 4]);
    progress.running = None;
    let orders = progress.turn(&turn(minute(5), CatchUp::All(9), Overlap::Queue(9)));
    assert_eq!(
        (minutes(&orders.start), minutes(&progress.waiting)),
        (vec![3], vec![4, 5])
    );
    // It was promised, whatever the policy is by now.
    progress.running = None;
    let orders = progress.turn(&turn(minute(5), CatchUp::All(9), Overlap::Skip));
    assert_eq!((minutes(&orders.start), minutes(&progress.waiting)), (vec![4], vec![5]));
    let orders = progress.turn(&turn(minute(5), CatchUp::All(9), Overlap::Allow));
    assert_eq!(minutes(&orders.start), [5]);
}

#[test]
fn a_run_is_cancelled_once() {
    let mut progress = busy(at(2));
    assert!(progress.turn(&turn(minute(3), CatchUp::Last, Overlap::Cancel)).cancel);
    if let Some(running) = &mut progress.running {
        running.cancelled = true;
    }
    let orders = progress.turn(&turn(minute(4), CatchUp::Last, Overlap::Cancel));
    assert!(!orders.cancel);
    assert_eq!((minutes(&progress.waiting), progress.skipped), (vec![4], 1));
}

/// A turn of `Cancel`, in which a run may be asked for.
fn cancelling(now: Timestamp, is_asked: bool) -> Turn<'static> {
    Turn {
        is_asked,
        ..turn(now, CatchUp::All(9), Overlap::Cancel)
    }
}

/// Minutes of the runs, and whether they were asked for.
fn told(due: &[Due]) -> Vec<(u64, bool)> {
    due.iter().map(|due| (due.at.0 / MINUTE, due.asked)).collect()
}

#[test]
fn a_run_that_was_asked_for_cancels_none() {
    let mut progress = busy(at(2));
    let orders = progress.turn(&cancelling(Timestamp(2 * MINUTE + 7), true));
    assert_eq!(orders, Orders::default());
    assert_eq!(told(&progress.waiting), [(2, true)]);
    // One waits at a time.
    progress.turn(&cancelling(Timestamp(2 * MINUTE + 8), true));
    assert_eq!(told(&progress.waiting), [(2, true)]);
}

#[test]
fn a_tick_that_cancels_leaves_the_run_that_was_asked_for() {
    let mut progress = busy(at(2));
    progress.turn(&cancelling(Timestamp(2 * MINUTE + 7), true));
    assert!(progress.turn(&cancelling(minute(3), false)).cancel);
    progress.turn(&cancelling(minute(4), false));
    assert_eq!(told(&progress.waiting), [(2, true), (4, false)]);
    assert_eq!(progress.skipped, 1);

    // The tick that waits behind the run that was asked for does not abort it. The next tick does.
    progress.running = None;
    let orders = progress.turn(&cancelling(Timestamp(4 * MINUTE + 1), false));
    assert_eq!(told(&orders.start), [(2, true)]);
    let mut progress = busy(progress);
    let orders = progress.turn(&cancelling(Timestamp(4 * MINUTE + 2), false));
    assert_eq!((orders, told(&progress.waiting)), (Orders::default(), vec![(4, false)]));
    assert!(progress.turn(&cancelling(minute(5), false)).cancel);
    assert_eq!(told(&progress.waiting), [(5, false)]);
}

#[test]
fn a_tick_and_a_request_of_one_turn_both_count() {
    let mut progress = at(2);
    let orders = progress.turn(&cancelling(minute(4), true));
    assert_eq!(told(&orders.start), [(4, false)]);
    assert_eq!(told(&progress.waiting), [(4, true)]);
}

#[test]
fn a_run_that_ended_before_it_was_cancelled_makes_way_for_the_newest_tick() {
    let mut progress = busy(at(2));
    progress.turn(&cancelling(minute(3), false));
    progress.running = None;
    let orders = progress.turn(&cancelling(minute(5), false));
    assert_eq!(told(&orders.start), [(5, false)]);
    assert_eq!((progress.waiting.as_slice(), progress.skipped), (&[][..], 1));

    // What a queue has left is several ticks.
    let mut progress = busy(at(2));
    progress.turn(&turn(minute(4), CatchUp::All(9), Overlap::Queue(9)));
    progress.running = None;
    let orders = progress.turn(&cancelling(Timestamp(4 * MINUTE + 1), false));
    assert_eq!(told(&orders.start), [(4, false)]);
    assert_eq!((progress.waiting.as_slice(), progress.skipped), (&[][..], 1));
}

#[test]
fn a_run_that_was_asked_for_waits_where_a_tick_is_skipped_and_one_is_enough() {
    let asks = |progress: &mut Progress, overlap| {
        let asked = Turn {
            is_asked: true,
            ..turn(Timestamp(2 * MINUTE + 7), CatchUp::Last, overlap)
        };
        progress.turn(&asked)
    };
    for overlap in [Overlap::Skip, Overlap::Queue(0)] {
        let mut progress = busy(at(2));
        for _ in 0..3 {
            assert_eq!(asks(&mut progress, overlap), Orders::default());
        }
        assert_eq!((progress.waiting.len(), progress.skipped), (1, 0));
    }
    let mut idle = at(2);
    let orders = asks(&mut idle, Overlap::Skip);
    assert!(orders.start.iter().all(|due| due.asked) && orders.start.len() == 1);
    assert_eq!(idle.next, Some(minute(3)), "the timetable goes on");
}

#[test]
fn behind_the_last_tick_it_is_over() {
    let last = |now| Turn {
        until: Some(minute(5)),
        ..turn(now, CatchUp::All(9), Overlap::Queue(9))
    };
    let mut progress = at(3);
    assert_eq!(minutes(&progress.turn(&last(minute(4))).start), [4]);
    assert_eq!((progress.next, progress.is_over()), (Some(minute(5)), false));
    assert_eq!(minutes(&progress.turn(&last(minute(50))).start), [5]);
    assert!(progress.is_over());
}
