//! A lock passes on with the decision that releases it: the end of its holder and the beginning of the next share a
//! sync, and the next begins only once both are on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use procession::limits::LockView;
use procession::testkit::MemoryDisk;
use procession::{Executor, Handle};

use super::kit::{held, holder};
use crate::support::{Act, CountsAppends, InterceptedStore, Lab, Planned, Tested, kinds, plan};

const WAITERS: usize = 40;
const STAGES: usize = 20;
const PATIENCE: Duration = Duration::from_secs(10);
/// Syncs of the first hand-over, before the engine knows that somebody waits, and of the drain.
const MORE: usize = 4;

/// An engine with one worker, on a store that counts.
async fn engine(lab: &Lab, appends: &Arc<AtomicUsize>) -> Result<Executor, Box<dyn std::error::Error>> {
    let store = InterceptedStore::open(&MemoryDisk::new(), CountsAppends(Arc::clone(appends)))?;
    let builder = kinds(lab, Executor::builder(Arc::new(store)).workers(1));
    Ok(builder.health_check_every(None).start().await?)
}

/// Lets the holder go, and returns the syncs until all have ended.
async fn syncs(
    lab: &Lab,
    appends: &AtomicUsize,
    all: Vec<Handle<Planned>>,
) -> Result<usize, Box<dyn std::error::Error>> {
    let before = appends.load(Ordering::SeqCst);
    lab.open("holder");
    for one in all {
        one.outcome().await?;
    }
    Ok(appends.load(Ordering::SeqCst) - before)
}

#[test]
fn one_lock_takes_one_sync_a_holder() -> Tested {
    let (lab, appends) = (Lab::default(), Arc::new(AtomicUsize::new(0)));
    actix_rt::System::new().block_on(async {
        let executor = engine(&lab, &appends).await?;
        let mut all = vec![executor.submit(Planned(holder("holder", "t"))).await?];
        for number in 0..WAITERS {
            let waiter = plan(&format!("w{number}"), [Act::Done(1)]).exclusive("t");
            all.push(executor.submit(Planned(waiter)).await?);
        }
        let waiting = |lock: &LockView| lock.waiting.len();
        assert_eq!(executor.locks().await?.iter().map(waiting).sum::<usize>(), WAITERS);
        let took = syncs(&lab, &appends, all).await?;
        assert!(took <= 1 + WAITERS + MORE, "{took} syncs");
        assert_eq!(lab.clashes(), Vec::<String>::new());
        executor.drain(PATIENCE).await?;
        Ok(())
    })
}

#[test]
fn two_that_pass_a_lock_to_and_fro_take_one_sync_a_stage() -> Tested {
    let (lab, appends) = (Lab::default(), Arc::new(AtomicUsize::new(0)));
    actix_rt::System::new().block_on(async {
        let executor = engine(&lab, &appends).await?;
        let stages = |first| -> Vec<Act> {
            let next = std::iter::repeat_n(Act::Next, STAGES - 1);
            std::iter::once(first).chain(next).chain([Act::Done(1)]).collect()
        };
        let first = stages(held("holder", Act::Next));
        let all = vec![
            executor.submit(Planned(plan("a", first).exclusive("t"))).await?,
            executor
                .submit(Planned(plan("b", stages(Act::Next)).exclusive("t")))
                .await?,
        ];
        let took = syncs(&lab, &appends, all).await?;
        assert!(took <= 1 + 2 * STAGES + MORE, "{took} syncs");
        assert_eq!(lab.clashes(), Vec::<String>::new());
        executor.drain(PATIENCE).await?;
        Ok(())
    })
}
