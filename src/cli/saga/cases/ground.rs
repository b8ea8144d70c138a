//! The engine on which a case is lived: in a journal in memory that can crash, or in a directory.

use std::future::Future;
use std::time::Duration;

use procession::Executor;
use procession::testkit::{Run, Simulated, TestClock};

/// An engine on the current thread, whose time a case moves.
pub trait Ground {
    /// Returns the engine.
    fn executor(&self) -> &Executor;
    /// Returns its clock.
    fn clock(&self) -> &TestClock;
    /// Returns the commits of this life.
    fn commits(&self) -> u64;
    /// Lets everything run that can run without time passing.
    fn settle(&self) -> impl Future<Output = ()>;
    /// Awaits a future without letting time pass.
    fn at_rest<F: Future>(&self, future: F) -> impl Future<Output = Option<F::Output>>;
    /// Lets time pass.
    fn pass(&self, time: Duration) -> impl Future<Output = ()>;
}

impl Ground for Run {
    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn clock(&self) -> &TestClock {
        &self.world.clock
    }

    fn commits(&self) -> u64 {
        self.store.commits()
    }

    fn settle(&self) -> impl Future<Output = ()> {
        self.settle()
    }

    fn at_rest<F: Future>(&self, future: F) -> impl Future<Output = Option<F::Output>> {
        self.at_rest(future)
    }

    fn pass(&self, time: Duration) -> impl Future<Output = ()> {
        self.pass(time)
    }
}

impl Ground for Simulated {
    fn executor(&self) -> &Executor {
        &self.executor
    }

    fn clock(&self) -> &TestClock {
        &self.clock
    }

    fn commits(&self) -> u64 {
        self.commits()
    }

    fn settle(&self) -> impl Future<Output = ()> {
        self.settle()
    }

    fn at_rest<F: Future>(&self, future: F) -> impl Future<Output = Option<F::Output>> {
        self.at_rest(future)
    }

    fn pass(&self, time: Duration) -> impl Future<Output = ()> {
        self.pass(time)
    }
}
