//! Each is counted once, by its own time; what is a minute old counts no more.

use super::{Rate, Rates, STEP, STEPS};
use procession_kernel::{Kind, Timestamp};

fn job() -> Kind {
    Kind::new("job")
}

fn started(rates: &Rates, second: u64) -> u32 {
    rates.of(&job(), Timestamp(second * STEP + 7)).started
}

#[test]
fn a_minute_is_counted_whatever_the_order_of_telling() {
    let mut rates = Rates::default();
    for second in [100, 130, 101, 159, 159, 40] {
        rates.count(&job(), Timestamp(second * STEP), |rate| rate.started += 1);
    }
    assert_eq!(rates.of(&Kind::new("other"), Timestamp(0)), Rate::default());
    assert_eq!([99, 100, 101, 159].map(|second| started(&rates, second)), [0, 1, 2, 5]);
    assert_eq!(
        [160, 161, 189, 190, 218, 219].map(|second| started(&rates, second)),
        [4, 3, 3, 2, 2, 0]
    );
}

#[test]
fn no_more_is_kept_than_is_told() {
    let mut rates = Rates::default();
    for second in 0..STEPS * 5 {
        rates.count(&job(), Timestamp(second * STEP), |rate| rate.ended += 1);
    }
    assert_eq!(rates.0.get(&job()).map(|counts| counts.len() as u64), Some(STEPS));
    assert_eq!(rates.of(&job(), Timestamp((STEPS * 5 - 1) * STEP)).ended, 60);
}

#[test]
fn what_was_counted_before_a_new_reading_is_kept() {
    let (mut before, mut after) = (Rates::default(), Rates::default());
    for second in [10, 10, 11] {
        before.count(&job(), Timestamp(second * STEP), |rate| rate.started += 1);
    }
    // Of the two of the first second one is gone; of the last there is one more.
    for second in [10, 11, 11] {
        after.count(&job(), Timestamp(second * STEP), |rate| rate.started += 1);
    }
    after.keep(before);
    assert_eq!([10, 11].map(|second| started(&after, second)), [2, 4]);
}
