//! Renews ownership with a lease in time, however long a start takes, and however busy or idle the engine is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use procession_kernel::Epoch;

use super::store::{AppendError, JournalStore};
use crate::clock::{machine_now, machine_sleep};

/// Renewals within one lease: two may fail before it lapses.
const RENEWALS: u32 = 3;

/// Ownership that lapses unless it is renewed. The start renews it first, and then the journal: whoever takes over must
/// know when it was renewed last.
///
/// It counts in the machine's time, as the store does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    lasts: Duration,
    renewed: Instant,
}

impl Lease {
    /// Begins to count, as soon as `acquire` has answered. The call itself does not count, because it may have waited
    /// for the owner before. Returns `None` for a store whose ownership never lapses.
    pub(crate) fn begin(store: &dyn JournalStore) -> Option<Self> {
        store.lease().map(|lasts| Self {
            lasts,
            renewed: machine_now(),
        })
    }

    fn age(&self) -> Duration {
        self.renewed.elapsed()
    }
}

/// Renews ownership until that is refused for good or the lease is over, and returns why. A caller that drops this
/// passes the lease on.
///
/// A renewal that fails without being fenced is retried, since the store may be briefly unreachable. This is safe because
/// the store itself fences every batch.
pub(crate) async fn keep(store: Arc<dyn JournalStore>, epoch: Epoch, lease: &mut Lease) -> AppendError {
    let (lasts, every) = (lease.lasts, lease.lasts / RENEWALS);
    let mut rest = every.saturating_sub(lease.age());
    loop {
        machine_sleep(rest).await;
        rest = every;
        // Counted from before the call, since the store may have begun to count before its answer arrived.
        let asked = machine_now();
        let lapse = std::pin::pin!(machine_sleep(lasts.saturating_sub(lease.age())));
        let failed = match select(store.renew(epoch), lapse).await {
            Either::Left((Ok(()), _)) => {
                lease.renewed = asked;
                continue;
            }
            Either::Left((Err(fenced @ AppendError::Fenced { .. }), _)) => return fenced,
            Either::Left((Err(failed), _)) => failed.to_string(),
            Either::Right(_) => "the store did not answer".to_owned(),
        };
        if lease.age() >= lasts {
            return AppendError::Unknown(format!(
                "this engine's ownership was not renewed for {} ms and has lapsed: {failed}; see whether the store can \
                 be reached, then start again",
                lasts.as_millis()
            ));
        }
        tracing::warn!(%failed, "renewing the ownership of the journal failed and is tried again");
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::journal::Batch;
    use crate::journal::memory::{Fault, FaultPlan, MemoryDisk, MemoryStore};

    /// Whoever goes on with the renewals of a start does not count anew.
    #[test]
    fn a_lease_lapses_so_long_after_its_last_renewal_whoever_renews_it_now() {
        let lasts = Duration::from_mins(1);
        let store = MemoryStore::open(&MemoryDisk::new(), FaultPlan::at(0, Fault::FailWrite).lease(lasts));
        let store: Arc<dyn JournalStore> = Arc::new(store.expect("the disk is new"));
        let epoch = block_on(store.acquire()).expect("nobody has it");
        // From here on its renewals fail.
        assert!(block_on(store.append(Batch::new(epoch))).is_err());
        let mut lease = Lease::begin(&*store).expect("it has one");
        lease.renewed = lease
            .renewed
            .checked_sub(lasts)
            .expect("the machine has run for a minute");
        let lapsed = actix_rt::System::new().block_on(keep(store, epoch, &mut lease));
        assert!(
            matches!(&lapsed, AppendError::Unknown(why) if why.contains("60000 ms and has lapsed")),
            "{lapsed}"
        );
    }
}
