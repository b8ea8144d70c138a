//! What is had, and until when it is paid for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use procession_actors::clock::Clock;
use procession_kernel::Timestamp;

use super::super::access::Grant;
use super::{BURST, DEBT_MAX, Had, SPREAD, Spread, Turns, due};

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

/// A wall clock that goes where it is set, and nowhere by itself.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        match until <= self.now() {
            true => futures::future::ready(()).boxed(),
            false => futures::future::pending().boxed(),
        }
    }
}

#[test]
fn a_clock_that_was_set_forward_is_no_work() {
    let clock = Arc::new(SetClock(AtomicU64::new(NOW.0)));
    let turns = Turns::new(Arc::clone(&clock) as Arc<dyn Clock>);
    let ann = Grant::All { who: "ann".to_owned() };
    let turn = turns.take(&ann).now_or_never().expect("nobody is before it");
    clock.0.store(NOW.after(Duration::from_secs(3_600)).0, Ordering::SeqCst);
    drop(turn);
    let again = turns.take(&ann).now_or_never();
    assert!(
        again.is_some_and(|turn| turn.is_ok()),
        "it pays for an hour in which nothing was done"
    );
}
