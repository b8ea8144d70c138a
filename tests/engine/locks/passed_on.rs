//! A lock passes on with the decision that releases it: the end of its holder and the beginning of the next share a
//! sync, and the next begins only once both are on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use procession::Executor;
use procession::provider::{AppendError, Batch, JournalStore, Receipt};
use procession::testkit::{MemoryDisk, MemoryStore};

use super::kit::holder;
use crate::support::{Act, InterceptedStore, Lab, Planned, StoreCalls, Tested, kinds, plan};

const WAITERS: usize = 40;
/// Syncs of the first hand-over, before the engine knows that somebody waits, and of the drain.
const MORE: usize = 4;

/// Counts the batches, each of which takes a sync.
struct Counted(Arc<AtomicUsize>);

impl StoreCalls for Counted {
    fn append<'a>(&'a self, store: &'a MemoryStore, batch: Batch) -> BoxFuture<'a, Result<Receipt, AppendError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        store.append(batch)
    }
}

#[test]
fn one_lock_takes_one_sync_a_holder() -> Tested {
    let (lab, appends) = (Lab::default(), Arc::new(AtomicUsize::new(0)));
    actix_rt::System::new().block_on(async {
        let store = InterceptedStore::open(&MemoryDisk::new(), Counted(Arc::clone(&appends)))?;
        let builder = kinds(&lab, Executor::builder(Arc::new(store)).workers(1));
        let executor = builder.health_check_every(None).start().await?;
        let first = executor.submit(Planned(holder("first", "t"))).await?;
        let mut waiters = Vec::new();
        for number in 0..WAITERS {
            let waiter = plan(&format!("w{number}"), [Act::Done(1)]).exclusive("t");
            waiters.push(executor.submit(Planned(waiter)).await?);
        }
        let waiting = |lock: &procession::limits::LockView| lock.waiting.len();
        assert_eq!(executor.locks().await?.iter().map(waiting).sum::<usize>(), WAITERS);
        let before = appends.load(Ordering::SeqCst);
        lab.open("first");
        first.outcome().await?;
        for waiter in waiters {
            waiter.outcome().await?;
        }
        let took = appends.load(Ordering::SeqCst) - before;
        assert!(took <= 1 + WAITERS + MORE, "{took} syncs");
        assert_eq!(lab.clashes(), Vec::<String>::new());
        executor.drain(std::time::Duration::from_secs(10)).await?;
        Ok(())
    })
}
