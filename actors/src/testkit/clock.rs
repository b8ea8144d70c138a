//! A clock that stands still until it is told to move.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use procession_kernel::Timestamp;

use crate::clock::{Clock, MachineTime};

#[derive(Default)]
struct State {
    now: Timestamp,
    /// How often the machine was started anew, and how long it has run since.
    boot: u64,
    since: Duration,
    /// Sleepers by deadline, then by the order in which they began.
    sleepers: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
    begun: u64,
}

/// A clock of the test: it moves only by [`advance`](Self::advance) and
/// [`jump`](Self::jump), and is set by [`step_wall`](Self::step_wall) and
/// [`set_back_to`](Self::set_back_to). Clones show the same time.
#[derive(Clone, Default)]
pub struct TestClock(Arc<Mutex<State>>);

impl TestClock {
    /// Makes a clock that stands at the time zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a clock that shows the same time, of the same machine, and goes its own way from here on.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = self.state();
        let (now, boot, since) = (state.now, state.boot, state.since);
        let fork = State {
            now,
            boot,
            since,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(fork)))
    }

    /// Sets the wall clock forward by this much: the machine's own time stands still. Wakes who is due.
    pub fn step_wall(&self, by: Duration) {
        let mut state = self.state();
        state.now = state.now.after(by);
        Self::wake_due(state);
    }

    /// Starts the machine anew: its time begins at zero, and is not comparable with what it was.
    pub fn reboot(&self) {
        let mut state = self.state();
        state.boot += 1;
        state.since = Duration::ZERO;
    }

    /// Moves on by this much, and wakes who is due.
    pub fn advance(&self, delay: Duration) {
        let to = self.state().now.after(delay);
        self.advance_to(to);
    }

    /// Sets the clock back to this instant, as an operator or a time server does; never forward. Whoever
    /// sleeps looks at it again.
    pub fn set_back_to(&self, to: Timestamp) {
        let mut state = self.state();
        state.now = state.now.min(to);
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        for (_, sleeper) in sleepers {
            sleeper.send(()).ok();
        }
    }

    /// Moves on to this instant; never back.
    pub fn advance_to(&self, to: Timestamp) {
        let mut state = self.state();
        let by = to.since(state.now);
        state.since += by;
        state.now = state.now.max(to);
        Self::wake_due(state);
    }

    fn wake_due(mut state: MutexGuard<'_, State>) {
        let behind = state.now.after(Duration::from_micros(1));
        let later = state.sleepers.split_off(&(behind, 0));
        let due = std::mem::replace(&mut state.sleepers, later);
        drop(state);
        for (_, sleeper) in due {
            // One that was dropped meanwhile sleeps no more.
            sleeper.send(()).ok();
        }
    }

    /// Jumps to the earliest deadline that somebody sleeps for; tells whether there was one.
    pub fn jump(&self) -> bool {
        let next = {
            let mut state = self.state();
            state.sleepers.retain(|_, sleeper| !sleeper.is_canceled());
            state.sleepers.keys().next().map(|(at, _)| *at)
        };
        match next {
            Some(at) => {
                self.advance_to(at);
                true
            }
            None => false,
        }
    }

    /// Gives the earliest deadline that somebody sleeps for.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let mut state = self.state();
        state.sleepers.retain(|_, sleeper| !sleeper.is_canceled());
        state.sleepers.keys().next().map(|(at, _)| *at)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    fn machine_time(&self) -> Option<MachineTime> {
        let state = self.state();
        let (boot, since) = (state.boot, state.since);
        Some(MachineTime { boot, since })
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        let mut state = self.state();
        if until <= state.now {
            return futures::future::ready(()).boxed();
        }
        let (sender, receiver) = oneshot::channel();
        state.begun += 1;
        let key = (until, state.begun);
        state.sleepers.insert(key, sender);
        async move {
            receiver.await.ok();
        }
        .boxed()
    }
}
