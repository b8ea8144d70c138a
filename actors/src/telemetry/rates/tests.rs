//! Each is counted once, by its own time; what is a minute old counts no more.

use procession_kernel::{ProcedureState, Timestamp};

use super::{KindRate, Rates, STEP, STEPS};

const fn second(second: u64) -> Timestamp {
    Timestamp(second * STEP + 7)
}

#[test]
fn what_is_a_minute_old_counts_no_more() {
    let mut rates = Rates::default();
    for at in [100, 101, 130, 130, 159] {
        rates.started(second(at));
    }
    assert_eq!(
        [99, 100, 129, 159, 160, 161, 189, 190, 218, 219].map(|at| rates.of(second(at)).started),
        [0, 1, 2, 5, 4, 3, 3, 1, 1, 0]
    );
    rates.ended(ProcedureState::Success, second(159));
    rates.ended(ProcedureState::RolledBack, second(160));
    let rate = KindRate {
        started: 4,
        ended: 2,
        failed: 1,
    };
    assert_eq!(rates.of(second(160)), rate);
}

#[test]
fn no_more_is_kept_than_a_minute() {
    let mut rates = Rates::default();
    for at in 0..STEPS * 5 {
        rates.started(second(at));
    }
    assert_eq!(rates.seconds.len() as u64 + 1, STEPS);
    assert_eq!(u64::from(rates.of(second(STEPS * 5 - 1)).started), STEPS);
}

#[test]
fn a_clock_that_was_set_back_begins_anew() {
    let mut rates = Rates::default();
    rates.started(second(1_000));
    rates.started(second(990));
    assert_eq!(rates.of(second(1_000)).started, 2, "a little back is the same minute");
    rates.started(second(500));
    assert_eq!((rates.of(second(500)).started, rates.of(second(1_000)).started), (1, 0));
}
