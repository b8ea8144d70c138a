//! A panic within the engine itself: it takes no more commits, says why, and answers everybody.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use procession::Executor;
use procession::errors::{AskError, ProcedureError, SubmitError};
use procession::health::Rule;
use procession::procedure::Timestamp;
use procession::provider::{AppendError, Batch, Clock, JournalStore, Receipt};
use procession::testkit::{FaultPlan, MemoryDisk, MemoryStore, Run, TestClock, World};

use crate::support::{Act, InterceptedStore, Lab, Planned, StoreCalls, Tested, chain, kinds, live_in, plan};

const TEXT: &str = "as planned by the test";

/// A clock of the host that panics when it is told to, once.
struct Faulty {
    clock: TestClock,
    panics: Arc<AtomicBool>,
}

impl Clock for Faulty {
    fn now(&self) -> Timestamp {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "{TEXT}");
        self.clock.now()
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(until)
    }
}

fn held(name: &str) -> Planned {
    Planned(plan(name, [Act::Held("gate".to_owned(), Box::new(Act::Done(7)))]))
}

#[test]
fn a_panic_in_a_handler_stops_the_engine_which_says_why() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let panics = Arc::new(AtomicBool::new(false));
    let clock = Faulty {
        clock: world.clock.clone(),
        panics: Arc::clone(&panics),
    };
    let drive = async |run: &Run| {
        let first = run.wait(run.executor.submit(held("a")).into_future()).await??;
        run.until("its stage runs", || lab.has("a1")).await?;
        let executor = run.executor.clone();
        let waiter = actix_rt::spawn(async move { executor.outcome(first.id()).await });
        run.settle().await;

        panics.store(true, Ordering::SeqCst);
        let told = run.executor.submit(Planned(chain("b", 1))).into_future().await.err();
        assert!(!panics.load(Ordering::SeqCst), "it has panicked");
        assert!(
            matches!(&told, Some(SubmitError::JournalFailed(why)) if why.contains(TEXT)),
            "{told:?}"
        );
        let told = run.wait(waiter).await??;
        assert!(
            matches!(&told, Err(AskError::JournalFailed(why)) if why.contains(TEXT)),
            "{told:?}"
        );
        // The process stays up to say so.
        let snapshot = run.wait(run.executor.snapshot()).await??;
        assert!(snapshot.poisoned.is_some_and(|why| why.contains("panicked")));
        let verdicts = run.wait(run.executor.verdicts()).await??;
        assert!(
            verdicts.iter().any(|verdict| verdict.rule == Rule::StoreFailed),
            "{verdicts:?}"
        );
        let later = run.executor.submit(Planned(chain("c", 1))).into_future().await.err();
        assert!(matches!(later, Some(SubmitError::JournalFailed(_))), "{later:?}");
        lab.open("gate");
        run.settle().await;
        assert!(!lab.has("b1"), "nothing new begins");
        Ok(())
    };
    world
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder).clock(Arc::new(clock)),
            drive,
        )?
        .done()?;
    // What was acknowledged goes on at the next start.
    live_in(&world, &lab, async |run| {
        let all = run
            .executor
            .list(procession::status::ListFilter::default(), None, 10)
            .await?;
        for status in all.items {
            run.wait(run.executor.outcome(status.id)).await??;
        }
        assert_eq!(lab.count("a1"), 2);
        Ok(())
    })
}

/// Panics in the next commit once it is told to.
struct Panicking(Arc<AtomicBool>);

impl StoreCalls for Panicking {
    fn append<'a>(&'a self, store: &'a MemoryStore, batch: Batch) -> BoxFuture<'a, Result<Receipt, AppendError>> {
        assert!(!self.0.load(Ordering::SeqCst), "{TEXT}");
        store.append(batch)
    }
}

#[test]
fn a_panic_of_the_store_stops_the_engine_which_says_why() -> Tested {
    let panics = Arc::new(AtomicBool::new(false));
    let store = InterceptedStore::open(&MemoryDisk::new(), Panicking(Arc::clone(&panics)))?;
    let lab = Lab::default();
    let builder = kinds(&lab, Executor::builder(Arc::new(store)).inline());
    actix_rt::System::new().block_on(async move {
        let executor = builder.start().await?;
        let waits = Planned(plan("w", [Act::Wait("go".to_owned(), None), Act::Done(1)]));
        let handle = executor.submit(waits).await?;
        panics.store(true, Ordering::SeqCst);
        let submitted = executor.submit(Planned(chain("b", 1))).into_future();
        // A hang is what it was: the machine's patience ends it.
        let told = tokio::time::timeout(std::time::Duration::from_secs(30), submitted)
            .await?
            .err();
        assert!(
            matches!(&told, Some(SubmitError::JournalFailed(why)) if why.contains(TEXT)),
            "{told:?}"
        );
        let told = handle.outcome().await.err();
        assert!(
            matches!(told, Some(ProcedureError::Ask(AskError::JournalFailed(_)))),
            "{told:?}"
        );
        assert!(
            executor
                .snapshot()
                .await?
                .poisoned
                .is_some_and(|why| why.contains(TEXT))
        );
        Ok(())
    })
}
