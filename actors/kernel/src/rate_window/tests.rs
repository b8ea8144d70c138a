//! The promise of a rate: no time of a period's length has more begins than it allows, across restarts and steps of the
//! clock; and none waits for longer than it must.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// What happens between two tries to begin.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// So much time passes, in µs.
    Pass(u64),
    /// The clock is set back by this much.
    StepBack(u64),
    /// The engine starts again. What it granted and had not committed never began.
    Restart,
    /// What was granted is committed.
    Commit,
    /// So many try to begin.
    Begin(u32),
    /// It waits until the next may begin.
    Wait,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0_u64..3_000_000).prop_map(Event::Pass),
        4 => (0_u64..40_000).prop_map(Event::Pass),
        1 => (0_u64..5_000_000).prop_map(Event::StepBack),
        1 => Just(Event::Restart),
        6 => Just(Event::Commit),
        6 => (1_u32..40).prop_map(Event::Begin),
        3 => Just(Event::Wait),
    ];
    prop::collection::vec(event, 1..120)
}

fn rates() -> impl Strategy<Value = Rate> {
    let begins = prop_oneof![1_u32..6, 50_u32..300];
    let period = prop_oneof![Just(1_000_u64), 100_000_u64..2_000_000];
    (begins, period).prop_map(|(begins, period)| Rate {
        begins,
        period: Duration::from_micros(period),
    })
}

/// A clock, and the time that really passed.
struct World {
    wall: u64,
    real: u64,
}

impl World {
    fn pass(&mut self, time: u64) {
        self.wall += time;
        self.real += time;
    }

    const fn now(&self) -> Timestamp {
        Timestamp(self.wall)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

proptest! {
    #[test]
    fn no_period_has_more_begins_than_the_rate_allows(rate in rates(), events in events()) {
        let mut world = World { wall: 10_000_000_000, real: 0 };
        // The limiter's window, and the one on disk, which counts a begin when its commit is decided.
        let (mut window, mut stored) = (RateWindow::default(), RateWindow::default());
        let (mut begun, mut granted): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        let period = micros(rate.period);
        for event in events {
            match event {
                Event::Pass(time) => world.pass(time),
                Event::StepBack(time) => world.wall -= time,
                Event::Commit => {
                    granted.iter().for_each(|_| stored.begin(world.now(), rate.period));
                    begun.append(&mut granted);
                }
                Event::Restart => {
                    window = stored.clone();
                    granted.clear();
                }
                Event::Begin(tries) => {
                    for _ in 0..tries {
                        window.move_to(world.now(), rate.period);
                        if window.spare(rate) > 0 {
                            window.begin(world.now(), rate.period);
                            granted.push(world.real);
                        }
                    }
                }
                Event::Wait => {
                    window.move_to(world.now(), rate.period);
                    if let Some(at) = window.free_at(rate) {
                        let time = micros(at.since(world.now()));
                        prop_assert!(time <= period, "it is blocked for {time} µs, and a period has {period}");
                        world.pass(time);
                        window.move_to(world.now(), rate.period);
                        prop_assert!(window.spare(rate) > 0, "what was promised for {at:?} is not free");
                    }
                }
            }
            prop_assert!(window.groups.len() <= GROUPS_MAX);
        }
        begun.append(&mut granted);
        for within in begun.windows(rate.begins as usize + 1) {
            let (first, last) = (within.first().copied(), within.last().copied());
            let time = last.zip(first).map(|(last, first)| last - first);
            prop_assert!(time >= Some(period), "{} begins in {time:?} µs", rate.begins + 1);
        }
    }

    #[test]
    fn a_begin_counts_for_little_longer_than_a_period(rate in rates(), passes in prop::collection::vec(0_u64..50_000, 1..200)) {
        let mut window = RateWindow::default();
        let (mut now, mut begun) = (Timestamp(1), VecDeque::new());
        let longest = rate.period + rate.period / PARTS;
        for pass in passes {
            now = now.after(Duration::from_micros(pass));
            window.move_to(now, rate.period);
            while begun.front().is_some_and(|at: &Timestamp| at.after(longest) <= now) {
                begun.pop_front();
            }
            // What counts for the window may have been forgotten by a count that is a little longer, never more.
            prop_assert!(window.begun() as usize <= begun.len());
            if window.spare(rate) > 0 {
                window.begin(now, rate.period);
                begun.push_back(now);
            }
        }
    }
}

#[test]
fn a_change_of_the_period_keeps_the_window_small() {
    let mut window = RateWindow::default();
    let mut now = Timestamp(1);
    for round in 0..50_u32 {
        let period = Duration::from_millis(if round % 2 == 0 { 1 } else { 10_000_000 });
        for _ in 0..200 {
            now = now.after(Duration::from_micros(20));
            window.begin(now, period);
        }
        assert!(window.groups.len() <= GROUPS_MAX);
    }
}

#[test]
fn a_rate_of_nothing_is_never_free() {
    let rate = Rate {
        begins: 0,
        period: Duration::from_secs(1),
    };
    assert_eq!(
        (RateWindow::default().spare(rate), RateWindow::default().free_at(rate)),
        (0, None)
    );
}
