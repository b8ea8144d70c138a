//! Time limits on a clock that a test moves.

#![cfg(feature = "testkit")]

use std::cell::Cell;
use std::future::{pending, ready};
use std::pin::pin;
use std::rc::Rc;

use futures::FutureExt;
use procession_kernel::Timestamp;

use super::*;
use crate::testkit::TestClock;

const TIME: Duration = Duration::from_secs(3);

fn clock_at(seconds: u64) -> (TestClock, Arc<dyn Clock>) {
    let clock = TestClock::new();
    clock.advance(Duration::from_secs(seconds));
    (clock.clone(), Arc::new(clock))
}

#[test]
fn a_result_in_time_counts_also_at_the_last_moment() {
    let (_, clock) = clock_at(0);
    for time in [TIME, Duration::ZERO] {
        assert_eq!(within(Arc::clone(&clock), time, ready(7)).now_or_never(), Some(Ok(7)));
    }
    let late = within(clock, Duration::ZERO, pending::<()>()).now_or_never();
    let text = late.map(|late| late.map_err(|elapsed| elapsed.to_string()));
    assert_eq!(text, Some(Err("timed out after 0 s".to_owned())));
}

#[test]
fn the_future_is_dropped_when_its_time_is_up() {
    struct Dropped(Rc<Cell<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let (clock, engine) = clock_at(10);
    let is_dropped = Rc::new(Cell::new(false));
    let held = Dropped(Rc::clone(&is_dropped));
    let mut limited = pin!(within(engine, TIME, async move {
        let _held = held;
        pending::<()>().await;
    }));
    assert_eq!(limited.as_mut().now_or_never(), None);
    clock.advance_to(Timestamp(12_999_999));
    assert_eq!(limited.as_mut().now_or_never(), None);
    clock.advance_to(Timestamp(13_000_000));
    assert!(!is_dropped.get());
    assert_eq!(limited.as_mut().now_or_never(), Some(Err(Elapsed { after: TIME })));
    assert!(is_dropped.get(), "not only when the caller drops the wait");
}

#[test]
fn a_clock_that_is_set_back_begins_the_time_anew_at_most() {
    let (clock, engine) = clock_at(3_600);
    let mut limited = pin!(within(engine, TIME, pending::<()>()));
    assert_eq!(limited.as_mut().now_or_never(), None);
    clock.set_back_to(Timestamp(0));
    assert_eq!(limited.as_mut().now_or_never(), None);
    assert_eq!(clock.next_deadline(), Some(Timestamp(3_000_000)));
    clock.advance(TIME);
    assert_eq!(limited.now_or_never(), Some(Err(Elapsed { after: TIME })));
}

#[test]
fn it_says_how_long_it_waited() {
    let said = |time| Elapsed { after: time }.to_string();
    assert_eq!(said(TIME), "timed out after 3 s");
    assert_eq!(said(Duration::from_millis(250)), "timed out after 0.25 s");
}
