//! A clock that stands still until a test moves it.

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
    /// The machine's boot count, and how long it has run since.
    boot: u64,
    since: Duration,
    /// Sleepers by deadline, then in order of arrival.
    sleepers: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
    begun: u64,
}

/// A test's clock. It moves only by [`advance`](Self::advance) and [`jump`](Self::jump), and is set by
/// [`step_wall`](Self::step_wall) and [`set_back_to`](Self::set_back_to). Clones show the same time.
#[derive(Clone, Default)]
pub struct TestClock(Arc<Mutex<State>>);

impl TestClock {
    /// Creates a clock at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an independent clock that starts with the same time on the same machine.
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

    /// Sets the wall clock forward by this much, while the machine's own time stands still. Wakes sleepers that are
    /// due.
    pub fn step_wall(&self, by: Duration) {
        let mut state = self.state();
        state.now = state.now.after(by);
        Self::wake_due(state);
    }

    /// Reboots the machine: its time begins at zero, and cannot be compared with earlier readings.
    pub fn reboot(&self) {
        let mut state = self.state();
        state.boot += 1;
        state.since = Duration::ZERO;
    }

    /// Moves the clock forward by this much, and wakes sleepers that are due.
    pub fn advance(&self, delay: Duration) {
        let to = self.state().now.after(delay);
        self.advance_to(to);
    }

    /// Sets the clock back to this instant, as an operator or a time server does; never forward. Sleepers look at the
    /// clock again.
    pub fn set_back_to(&self, to: Timestamp) {
        let mut state = self.state();
        state.now = state.now.min(to);
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        for (_, sleeper) in sleepers {
            sleeper.send(()).ok();
        }
    }

    /// Moves the clock forward to this instant; never back.
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
            // A sleeper that was dropped meanwhile needs no wake.
            sleeper.send(()).ok();
        }
    }

    /// Jumps to the earliest deadline of a sleeper; returns `false` if there was none.
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

    /// Returns the earliest deadline of a sleeper.
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
