//! What is had, and until when it is paid for.

use std::time::Duration;

use procession_kernel::Timestamp;

use super::{BURST, DEBT_MAX, Had, SPREAD, Spread, due};

const SPREADS: Spread = Spread { work: 2, over: SPREAD };
const NOW: Timestamp = Timestamp(1_000_000_000);

fn had(works: &[u64]) -> Had {
    let mut had = Had::default();
    for millis in works {
        had.add("ann", Duration::from_millis(*millis), NOW, SPREADS);
    }
    had
}

#[test]
fn one_that_has_rested_may_be_ahead() {
    let one = had(&[100]);
    assert!(due(one.whole) < NOW, "{:?}", one.whole);
    assert_eq!(due(one.of("ann")), NOW);
    assert_eq!(one.of("bob"), Timestamp::default());
    let two = had(&[100, 100]);
    assert_eq!(due(two.whole), NOW);
    assert_eq!(due(two.of("ann")), NOW.after(Duration::from_secs(4)));
}

#[test]
fn a_clock_that_was_set_back_shuts_nobody_out() {
    let mut had = had(&[200; 100]);
    assert_eq!(due(had.whole), NOW.after(DEBT_MAX));
    let before = Timestamp(1_000);
    had.add("ann", Duration::from_millis(1), before, SPREADS);
    let latest = before.after(DEBT_MAX);
    assert_eq!((due(had.whole), due(had.of("ann"))), (latest, latest));
}

#[test]
fn one_that_has_rested_is_forgotten() {
    let mut had = had(&[100]);
    had.add("bob", Duration::from_millis(1), NOW.after(BURST), SPREADS);
    assert_eq!(had.callers.keys().collect::<Vec<_>>(), ["bob"]);
}
