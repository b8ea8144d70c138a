//! What was read of a finished family is old when something else is decided of it
//! meanwhile: an eviction is not undone by it, and no other change is lost.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use procession::errors::{AskError, StoreError};
use procession::operate::OperatorRequest;
use procession::provider::{JournalStore, Space};
use procession::status::Mark;
use procession::testkit::{MemoryDisk, MemoryStore, TestClock, Trouble};
use procession::{Executor, Handle, ProcedureId};

use crate::support::{InterceptedStore, Lab, Planned, StoreCalls, Tested, chain, kinds};

/// Turns in which everything has happened that can.
const TURNS: usize = 500;

/// Holds each row, once it is read, until it is let go.
struct Slow(Arc<AtomicBool>);

impl StoreCalls for Slow {
    fn get<'a>(
        &'a self,
        store: &'a MemoryStore,
        space: Space,
        key: Vec<u8>,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        let is_row = space == Space::Procedures;
        let read = store.get(space, key);
        let holds = Arc::clone(&self.0);
        Box::pin(async move {
            let value = read.await;
            while is_row && holds.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            value
        })
    }
}

/// An engine on such a store, with one root that has ended.
struct Scene {
    executor: Executor,
    clock: TestClock,
    holds: Arc<AtomicBool>,
    ended: Handle<Planned>,
}

impl Scene {
    async fn new(disk: &MemoryDisk) -> Result<Self, Trouble> {
        let (lab, clock, holds) = (Lab::default(), TestClock::default(), Arc::default());
        let slow = InterceptedStore::open(disk, Slow(Arc::clone(&holds)))?;
        let builder = Executor::builder(Arc::new(slow)).inline();
        let executor = kinds(&lab, builder.clock(Arc::new(clock.clone()))).start().await?;
        let ended = executor.submit(Planned(chain("a", 1))).into_future().await?;
        ended.outcome().await?;
        Ok(Self {
            executor,
            clock,
            holds,
            ended,
        })
    }

    fn id(&self) -> ProcedureId {
        self.ended.id()
    }

    /// From now on rows that are read are held, or let go.
    fn hold(&self, holds: bool) {
        self.holds.store(holds, Ordering::Relaxed);
    }

    /// Replaces the output, and tells the answer.
    fn overrides(&self, output: i64) -> tokio::task::JoinHandle<Result<(), AskError>> {
        let (executor, id) = (self.executor.clone(), self.id());
        actix_rt::spawn(async move {
            let operated = executor.override_result(id, &output, OperatorRequest::new("ann", "wrong"));
            operated.await.map(drop)
        })
    }

    fn acknowledges(&self) -> tokio::task::JoinHandle<Result<(), AskError>> {
        let (executor, id) = (self.executor.clone(), self.id());
        actix_rt::spawn(async move { executor.acknowledge(id).await })
    }
}

async fn turns() {
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
}

fn play(scene: impl AsyncFnOnce(Scene, &MemoryDisk) -> Tested) -> Tested {
    let disk = MemoryDisk::new();
    actix_rt::System::new().block_on(async { scene(Scene::new(&disk).await?, &disk).await })
}

fn is_gone(disk: &MemoryDisk) {
    for space in [Space::Procedures, Space::Payloads, Space::History, Space::Finished] {
        assert!(disk.dump(&space).is_empty(), "{space:?} holds something");
    }
}

#[test]
fn what_was_evicted_while_its_row_was_read_is_not_brought_back() -> Tested {
    play(async |scene, disk| {
        scene.hold(true);
        let asked = [scene.overrides(9), scene.acknowledges()];
        turns().await;
        scene.clock.advance(Duration::from_mins(16));
        turns().await;
        is_gone(disk);
        scene.hold(false);
        for answer in asked {
            let answer = answer.await?;
            assert!(
                matches!(answer, Err(AskError::Unknown(id)) if id == scene.id()),
                "{answer:?}"
            );
        }
        is_gone(disk);
        Ok(())
    })
}

#[test]
fn two_changes_at_once_both_stand() -> Tested {
    play(async |scene, disk| {
        scene.hold(true);
        let asked = [scene.overrides(8), scene.overrides(9), scene.acknowledges()];
        turns().await;
        scene.hold(false);
        for answer in asked {
            answer.await??;
        }
        assert_eq!(scene.ended.outcome().await?, 9);
        let status = scene.ended.status().await?;
        assert_eq!(status.mark, Some(Mark::Overridden));
        // It goes when the acknowledgement says, not later.
        scene.clock.advance(Duration::from_mins(5));
        turns().await;
        is_gone(disk);
        Ok(())
    })
}
