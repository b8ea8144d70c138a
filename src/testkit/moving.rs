//! When everything is at rest: nothing runs, and nothing will before time passes.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use procession_actors::clock::Clock;
use procession_actors::testkit::TestClock;

/// Turns without any progress after which nothing is under way any more: several
/// times as many as a message needs through all actors.
pub(super) const QUIET_TURNS: usize = 64;

/// Polls of a future, with quiet turns between, after which it waits for time: more
/// than it takes to ask the engine something and to act on the answer.
const QUIET_ROUNDS: usize = 3;

/// An engine on this thread, by simulated time.
pub(super) trait Moving {
    type Progress: PartialEq;

    /// Returns what changes while anything goes on. A crowd of calls may take many turns without a commit: then fewer and
    /// fewer wait.
    fn progress(&self) -> Self::Progress;

    /// Returns `true` if another thread works for the engine.
    fn is_busy(&self) -> bool;

    /// Lets every other task that is ready have its turn, after so many quiet ones.
    fn turn(&self, quiet: usize) -> impl Future<Output = ()>;

    fn clock(&self) -> &TestClock;
}

/// Lets everything run that can run without time passing.
pub(super) async fn settle(moving: &impl Moving) {
    let mut before = moving.progress();
    let mut quiet = 0;
    while quiet < QUIET_TURNS {
        moving.turn(quiet).await;
        let now = moving.progress();
        quiet = if now == before && !moving.is_busy() {
            quiet + 1
        } else {
            0
        };
        before = now;
    }
}

/// Awaits a future without letting time pass.
pub(super) async fn at_rest<F: Future>(moving: &impl Moving, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let (mut before, mut quiet) = (moving.progress(), 0);
    loop {
        if let Poll::Ready(value) = futures::poll!(future.as_mut()) {
            return Some(value);
        }
        if quiet == QUIET_ROUNDS {
            return None;
        }
        settle(moving).await;
        let now = moving.progress();
        quiet = if now == before { quiet + 1 } else { 0 };
        before = now;
    }
}

/// Lets time pass, deadline by deadline, and everything run that it sets going.
pub(super) async fn pass(moving: &impl Moving, time: Duration) {
    let until = moving.clock().now().after(time);
    loop {
        settle(moving).await;
        match moving.clock().next_deadline().filter(|at| *at <= until) {
            Some(at) => moving.clock().advance_to(at),
            None => break,
        }
    }
    moving.clock().advance_to(until);
    settle(moving).await;
}
