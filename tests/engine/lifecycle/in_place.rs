//! Which thread commits: the supervisor's own while one procedure is active and
//! the store is fast, else the journal's.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use futures::future::BoxFuture;
use procession::provider::{AppendError, Batch, Clock, JournalStore, Receipt, SystemClock};
use procession::testkit::{MemoryDisk, MemoryStore};
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::support::{InterceptedStore, Lab, Planned, StoreCalls, Tested, chain, kinds};

/// Notes the threads that append, and takes its time when told to.
struct Watched {
    at_once: bool,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    threads: Vec<ThreadId>,
    slow: bool,
}

fn seen(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds the thread, as a store that appends on it does.
fn dawdle() {
    let end = SystemClock.now().after(Duration::from_millis(50));
    while SystemClock.now() < end {
        thread::yield_now();
    }
}

impl StoreCalls for Watched {
    fn append<'a>(&'a self, store: &'a MemoryStore, batch: Batch) -> BoxFuture<'a, Result<Receipt, AppendError>> {
        let slow = {
            let mut seen = seen(&self.seen);
            seen.threads.push(thread::current().id());
            std::mem::take(&mut seen.slow)
        };
        if slow {
            dawdle();
        }
        store.append(batch)
    }

    fn appends_at_once(&self) -> bool {
        self.at_once
    }
}

/// Is active until it is let go.
#[derive(Serialize, Deserialize)]
struct Lingers;

#[derive(Clone, Default)]
struct Door {
    begun: Arc<Notify>,
    open: Arc<Notify>,
}

impl Procedure for Lingers {
    const KIND: &'static str = "lingers";
    type Stage = ();
    type Env = Door;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().begun.notify_one();
        cx.env().open.notified().await;
        Ok(Step::Done(()))
    }
}

struct Bench {
    executor: Executor,
    seen: Arc<Mutex<Seen>>,
    door: Door,
}

impl Bench {
    async fn start(at_once: bool) -> Result<Self, Box<dyn std::error::Error>> {
        let (door, notes) = (Door::default(), Arc::new(Mutex::new(Seen::default())));
        let calls = Watched {
            at_once,
            seen: Arc::clone(&notes),
        };
        let store = InterceptedStore::open(&MemoryDisk::new(), calls)?;
        let builder = Executor::builder(Arc::new(store)).workers(1);
        let executor = kinds(&Lab::default(), builder)
            .register::<Lingers>(door.clone())
            .health_check_every(None)
            .start()
            .await?;
        Ok(Self {
            executor,
            seen: notes,
            door,
        })
    }

    /// Runs a chain of stages by itself; gives the threads that committed it, one after another.
    async fn chain(&self, name: &str) -> Result<Vec<ThreadId>, Box<dyn std::error::Error>> {
        seen(&self.seen).threads.clear();
        self.executor.submit(Planned(chain(name, 6))).await?.outcome().await?;
        Ok(seen(&self.seen).threads.clone())
    }
}

#[test]
fn the_only_active_procedure_commits_on_the_supervisors_thread() -> Tested {
    actix_rt::System::new().block_on(async {
        let bench = Bench::start(true).await?;
        let alone = bench.chain("alone").await?;
        let home = *alone.first().ok_or("nothing was committed")?;
        assert!(alone.iter().all(|thread| *thread == home), "{alone:?}");
        assert_eq!(alone.len(), 7, "submit and six stages, none of them merged");

        // With another one active, the supervisor stays free.
        let lingers = bench.executor.submit(Lingers).await?;
        bench.door.begun.notified().await;
        let beside = bench.chain("beside").await?;
        // When it was submitted, the other one was the only one.
        assert!(beside.iter().skip(1).all(|thread| *thread != home), "{beside:?}");
        bench.door.open.notify_one();
        lingers.outcome().await?;

        let again = bench.chain("again").await?;
        assert!(again.iter().all(|thread| *thread == home), "{again:?}");
        bench.executor.drain(Duration::from_secs(60)).await?;
        Ok(())
    })
}

#[test]
fn a_slow_commit_sends_the_next_ones_to_the_journals_thread() -> Tested {
    actix_rt::System::new().block_on(async {
        let bench = Bench::start(true).await?;
        let home = *bench.chain("first").await?.first().ok_or("nothing was committed")?;
        seen(&bench.seen).slow = true;
        let threads = bench.chain("slow").await?;
        assert_eq!(threads.first(), Some(&home), "it was the slow one");
        assert!(threads.iter().skip(1).all(|thread| *thread != home), "{threads:?}");
        bench.executor.drain(Duration::from_secs(60)).await?;
        Ok(())
    })
}

#[test]
fn a_store_that_does_not_append_at_once_is_left_to_the_journals_thread() -> Tested {
    actix_rt::System::new().block_on(async {
        let bench = Bench::start(false).await?;
        let threads = bench.chain("alone").await?;
        let journal = *threads.first().ok_or("nothing was committed")?;
        assert!(threads.iter().all(|thread| *thread == journal), "{threads:?}");
        let other = Bench::start(true).await?.chain("alone").await?;
        assert!(!other.contains(&journal));
        bench.executor.drain(Duration::from_secs(60)).await?;
        Ok(())
    })
}
