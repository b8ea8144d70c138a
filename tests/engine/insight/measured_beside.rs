//! A store that is slow to tell its size holds up only callers that ask for it: the embedded one tells it under the
//! lock that a sync holds.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use procession::Executor;
use procession::provider::JournalStore;
use procession::testkit::{MemoryDisk, MemoryStore};

use crate::support::{InterceptedStore, Lab, Planned, StoreCalls, Tested, chain, kinds};

/// The longest that a size is held back, so that a supervisor that asks for it fails the test instead of hanging.
const PATIENCE: Duration = Duration::from_secs(5);

/// Holds back whoever asks for the size.
#[derive(Default)]
struct Gate {
    shut: Mutex<bool>,
    moved: Condvar,
}

impl Gate {
    fn set(&self, shut: bool) {
        *self.shut.lock().unwrap_or_else(PoisonError::into_inner) = shut;
        self.moved.notify_all();
    }

    /// Waits while the gate is shut; opens it if nobody else does.
    fn pass(&self) {
        let shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.moved.wait_timeout_while(shut, PATIENCE, |shut| *shut);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    fn is_shut(&self) -> bool {
        *self.shut.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks the thread that asks the store for its size.
struct Gated(Arc<Gate>);

impl StoreCalls for Gated {
    fn size_bytes(&self, store: &MemoryStore) -> Option<u64> {
        self.0.pass();
        store.size_bytes()
    }

    fn reads_block(&self) -> bool {
        true
    }
}

#[test]
fn a_store_that_is_slow_to_tell_its_size_holds_up_no_turn() -> Tested {
    actix_rt::System::new().block_on(async {
        let gate = Arc::new(Gate::default());
        let store = InterceptedStore::open(&MemoryDisk::new(), Gated(Arc::clone(&gate)))?;
        let builder = Executor::builder(Arc::new(store)).workers(1);
        let executor = kinds(&Lab::default(), builder).health_check_every(None).start().await?;
        gate.set(true);
        let (snapshot, verdicts) = (executor.clone(), executor.clone());
        let snapshot = actix_rt::spawn(async move { snapshot.snapshot().await });
        let verdicts = actix_rt::spawn(async move { verdicts.verdicts().await });
        // The supervisor takes both before this, because they wait in its mailbox first.
        tokio::task::yield_now().await;
        executor.submit(Planned(chain("beside", 3))).await?.outcome().await?;
        assert_eq!(verdicts.await??, []);
        assert!(gate.is_shut(), "nobody waited for the size");
        assert!(!snapshot.is_finished());
        gate.set(false);
        assert!(snapshot.await??.size_bytes.is_some());
        executor.shutdown().await;
        Ok(())
    })
}
