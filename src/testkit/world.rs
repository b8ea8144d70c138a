//! What survives a crash, and one engine's life in it.

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use procession_actors::journal::JournalStore;
use procession_actors::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};
use procession_actors::testkit::TestClock;
use procession_actors::testkit::life::live;
use procession_kernel::Timestamp;

use super::moving::{self, Moving, QUIET_TURNS};
use crate::executor::{Builder, Executor};
use crate::status::{Mailboxes, Snapshot};

/// Anything that goes wrong in a scenario.
pub type Trouble = Box<dyn std::error::Error>;

/// How often everything is found at rest, with no timer armed, before that is believed: whoever looks at
/// the engine from another thread wakes its actors from there, and such wakes are served behind all others.
const REST_ROUNDS: usize = 64;

/// Turns after which something that always makes progress is taken for a loop.
const TURNS_MAX: usize = 20_000_000;

/// What survives a crash: disk and clock.
///
/// Work that a stage does on other threads, as in
/// [`CallContext::blocking`](crate::procedure::CallContext::blocking), is outside the simulation:
/// [`Run::wait`] does not know that it is under way, and lets time pass. A
/// [`Check`](super::Check) knows.
#[derive(Clone, Default)]
pub struct World {
    /// The bytes of the journal.
    pub disk: MemoryDisk,
    /// The engine's clock, which begins at zero unless the world was made with another.
    pub clock: TestClock,
}

/// How one engine's life ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// The scenario came to its end.
    Done(T),
    /// The store crashed; nothing in memory is left.
    Crashed,
}

impl<T> Ended<T> {
    /// Returns the scenario's result.
    ///
    /// # Errors
    ///
    /// A sentence, if the store crashed.
    pub fn done(self) -> Result<T, Trouble> {
        match self {
            Self::Done(value) => Ok(value),
            Self::Crashed => Err("the engine crashed where the scenario was to end".into()),
        }
    }
}

/// One engine's life.
pub struct Run {
    /// The engine.
    pub executor: Executor,
    /// Its store, for counting and for withheld receipts.
    pub store: Arc<MemoryStore>,
    /// What survives it.
    pub world: World,
}

impl World {
    /// Makes an empty world at the time zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty world with this clock, at the time that it shows.
    #[must_use]
    pub fn with_clock(clock: TestClock) -> Self {
        Self {
            clock,
            ..Self::default()
        }
    }

    /// Makes a copy, which goes its own way from here on. No engine may run in this one.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            disk: self.disk.fork(),
            clock: self.clock.fork(),
        }
    }

    /// Lives one engine's life: starts it with these faults, and drives it until
    /// the scenario ends or the store crashes. All on the current thread, one
    /// commit a batch, so that every decision is a commit of its own. Whatever
    /// is in memory at the end is dropped at once, and writes no more. A health check
    /// before that must not find a wake that was lost.
    ///
    /// `set_up` may give the engine another clock: [`Run::now`] reads that one then, while [`Run::wait`] and
    /// [`Run::pass`] move the world's alone. It may not give it another store.
    ///
    /// # Errors
    ///
    /// What the start or the scenario says, or a sentence if `set_up` gives the engine a store of its own.
    pub fn run<T>(
        &self,
        plan: FaultPlan,
        set_up: impl FnOnce(Builder) -> Builder,
        drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
    ) -> Result<Ended<T>, Trouble> {
        // A test compiles this anew, so what does not depend on it stands below.
        let (store, builder) = self.prepare(plan)?;
        let begin = self.clone().begin(set_up(builder), Arc::clone(&store))?;
        let mut value = None;
        let life = async {
            let run = begin.await?;
            value = Some(drive(&run).await?);
            run.check_wakes().await
        };
        let has_ended = lived(Box::pin(life), &store)?;
        Ok(value.filter(|_| has_ended).map_or(Ended::Crashed, Ended::Done))
    }

    /// Opens the store for one life, and makes a builder on it.
    fn prepare(&self, plan: FaultPlan) -> Result<(Arc<MemoryStore>, Builder), Trouble> {
        let store = Arc::new(MemoryStore::open(&self.disk, plan)?);
        let builder = Executor::builder(store.clone())
            .inline()
            .clock(Arc::new(self.clock.clone()));
        Ok((store, builder))
    }

    /// Checks the builder; the future starts its engine.
    fn begin(
        self,
        builder: Builder,
        store: Arc<MemoryStore>,
    ) -> Result<LocalBoxFuture<'static, Result<Run, Trouble>>, Trouble> {
        let own: Arc<dyn JournalStore> = store.clone();
        if !builder.uses_store(&own) {
            let text = "an engine in a World has the World's store; set up the builder that you are given, or start the \
                        engine without a World";
            return Err(text.into());
        }
        let started = async move {
            let executor = builder.start().await?;
            Ok(Run {
                executor,
                store,
                world: self,
            })
        };
        Ok(Box::pin(started))
    }
}

/// Lives a life on this store. Returns `false` if the store crashed before its end.
fn lived(life: LocalBoxFuture<'_, Result<(), Trouble>>, store: &MemoryStore) -> Result<bool, Trouble> {
    let mut outcome = None;
    let life = async { outcome = Some(life.await) };
    let has_ended = live(Box::pin(life), store.crashed());
    // From here on nothing of this life may reach the disk, whoever still holds the store.
    store.crash();
    match outcome.filter(|_| has_ended) {
        Some(outcome) => outcome.map(|()| true),
        None => Ok(false),
    }
}

impl Run {
    /// Reads the engine's clock: the world's, unless the builder was given another.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.executor.engine().clock().now()
    }

    /// No wake was lost, as far as a health check can tell; one that drained or failed cannot be asked, nor
    /// one that waits for a receipt that is withheld, be it from the next commit on.
    async fn check_wakes(&self) -> Result<(), Trouble> {
        let mut asked = pin!(self.lost_wakes());
        loop {
            if self.store.is_withholding() {
                return Ok(());
            }
            match futures::poll!(asked.as_mut()) {
                Poll::Ready(Some(lost)) if lost > 0 => {
                    return Err(format!("the engine lost {lost} wakes, which a health check has found").into());
                }
                Poll::Ready(_) => return Ok(()),
                Poll::Pending => turn().await,
            }
        }
    }

    /// Has the engine audit itself, and gives how many wakes were lost; none if it does not answer.
    async fn lost_wakes(&self) -> Option<u64> {
        let failed = |snapshot: &Snapshot| snapshot.poisoned.is_some();
        if self.executor.snapshot().await.as_ref().map_or(true, failed) || self.executor.verdicts().await.is_err() {
            return None;
        }
        let snapshot = self.executor.snapshot().await.ok()?;
        Some(snapshot.lost_wakes)
    }

    /// Lets everything run that can run without time passing.
    pub async fn settle(&self) {
        moving::settle(self).await;
    }

    /// Waits for a future; whenever nothing else can run, the clock jumps to
    /// the next deadline. The functions of a [`Check`](super::Check) need it not: they
    /// await the engine directly.
    ///
    /// # Errors
    ///
    /// A sentence, if nothing is left that could ever end the wait.
    pub async fn wait<T>(&self, future: impl IntoFuture<Output = T>) -> Result<T, Trouble> {
        let (mut future, mut at_rest) = (pin!(future.into_future()), 0);
        for _ in 0..TURNS_MAX {
            if let Poll::Ready(value) = futures::poll!(&mut future) {
                return Ok(value);
            }
            self.settle().await;
            if let Poll::Ready(value) = futures::poll!(&mut future) {
                return Ok(value);
            }
            at_rest = if self.world.clock.jump() { 0 } else { at_rest + 1 };
            if at_rest == REST_ROUNDS {
                return Err("nothing is left to wait for: no timer is armed and nothing runs".into());
            }
        }
        Err("the wait does not end: timers fire on and on".into())
    }

    /// Awaits a future without letting time pass: gives its value, or none once everything is at rest
    /// and the value is still not there. Give `&mut future` to go on with it later. [`wait`](Self::wait)
    /// lets the clock jump instead.
    ///
    /// ```
    /// use procession::testkit::{Fault, FaultPlan, World};
    /// use procession::procedure::Noop;
    /// use std::{future::IntoFuture, pin::pin};
    ///
    /// # fn main() -> Result<(), procession::testkit::Trouble> {
    /// World::new().run(FaultPlan::none(), |builder| builder.register::<Noop>(()), async |run| {
    ///     run.store.fault_next(Fault::Withhold);
    ///     let mut submitted = pin!(run.executor.submit(Noop).into_future());
    ///     assert!(run.at_rest(submitted.as_mut()).await.is_none(), "its commit is not acknowledged");
    ///     run.store.release_receipts();
    ///     assert!(run.at_rest(submitted).await.is_some());
    ///     Ok(())
    /// })?.done()
    /// # }
    /// ```
    pub async fn at_rest<F: Future>(&self, future: F) -> Option<F::Output> {
        moving::at_rest(self, future).await
    }

    /// Waits for a condition without letting time pass.
    ///
    /// # Errors
    ///
    /// The reason given, if everything is at rest and the condition does not hold.
    pub async fn until(&self, reason: &str, condition: impl Fn() -> bool) -> Result<(), Trouble> {
        let mut quiet = 0;
        let mut before = self.progress();
        while !condition() {
            turn().await;
            let now = self.progress();
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
            if quiet > QUIET_TURNS {
                return Err(format!("everything is at rest, and it is not so that {reason}").into());
            }
        }
        Ok(())
    }

    /// Lets time pass, deadline by deadline, and everything run that it sets going.
    pub async fn pass(&self, time: Duration) {
        moving::pass(self, time).await;
    }
}

impl Moving for Run {
    type Progress = (u64, u64, u64, Mailboxes);

    fn progress(&self) -> Self::Progress {
        let (commits, reads) = (self.store.commits(), self.store.reads());
        let waiting = self.executor.mailboxes();
        (commits, reads, self.store.appended_bytes(), waiting)
    }

    /// Everything runs on this thread.
    fn is_busy(&self) -> bool {
        false
    }

    async fn turn(&self, _: usize) {
        turn().await;
    }

    fn clock(&self) -> &TestClock {
        &self.world.clock
    }
}

/// Lets every other task that is ready have its turn.
async fn turn() {
    tokio::task::yield_now().await;
}
