//! Renews ownership with a lease in time, however busy or idle the engine is.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use procession_kernel::Epoch;

use super::store::{AppendError, JournalStore};
use crate::clock::{machine_now, machine_sleep};

/// Renewals within one lease: two may fail before it lapses.
const RENEWALS: u32 = 3;

/// Renews ownership until that is refused for good or the lease is over, and returns why.
///
/// It counts in the machine's time, as the store does. A renewal that fails without being fenced is retried, since
/// the store may be briefly unreachable. This is safe because the store itself fences every batch.
pub(super) async fn keep(store: Arc<dyn JournalStore>, epoch: Epoch, lasts: Duration) -> AppendError {
    // Counted from before the call, since the store may have begun to count before its answer arrived.
    let mut renewed = machine_now();
    loop {
        machine_sleep(lasts / RENEWALS).await;
        let asked = machine_now();
        let left = lasts.saturating_sub(renewed.elapsed());
        let lapse = std::pin::pin!(machine_sleep(left));
        let failed = match select(store.renew(epoch), lapse).await {
            Either::Left((Ok(()), _)) => {
                renewed = asked;
                continue;
            }
            Either::Left((Err(fenced @ AppendError::Fenced { .. }), _)) => return fenced,
            Either::Left((Err(failed), _)) => failed.to_string(),
            Either::Right(_) => "the store did not answer".to_owned(),
        };
        if renewed.elapsed() >= lasts {
            return AppendError::Unknown(format!(
                "this engine's ownership was not renewed for {} ms and has lapsed: {failed}; see whether the store can \
                 be reached, then start again",
                lasts.as_millis()
            ));
        }
        tracing::warn!(%failed, "renewing the ownership of the journal failed and is tried again");
    }
}
