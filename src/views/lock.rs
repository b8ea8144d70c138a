//! One lock: who holds it, and who waits for it in which order.

use procession_actors::view::{LockView, LockWaiter};
use procession_kernel::{LockMode, ProcedureId};
use serde::{Deserialize, Serialize};

use super::time;

/// One lock that is held or wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockUseView {
    /// Its path.
    pub path: String,
    /// Who holds it.
    pub holders: Vec<HolderView>,
    /// Who waits for it, in the order of service.
    pub waiting: Vec<String>,
    /// The first 100 of those who wait, with how and since when.
    #[serde(default)]
    pub waiters: Vec<WaiterView>,
}

/// Who waits for a lock, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaiterView {
    /// Who.
    pub id: String,
    /// `shared` or `exclusive`.
    pub mode: String,
    /// Since when it waits for all that it lacks, as far as that is known.
    pub since: Option<String>,
}

/// Who holds a lock, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HolderView {
    /// Who.
    pub id: String,
    /// `shared` or `exclusive`.
    pub mode: String,
    /// Since when, without a break; none of one whose family is set aside, and of one who took it
    /// before that was recorded.
    #[serde(default)]
    pub since: Option<String>,
}

impl From<&LockView> for LockUseView {
    fn from(lock: &LockView) -> Self {
        let mut since = lock.since.iter().copied();
        let holder = |(id, mode): &(ProcedureId, LockMode)| HolderView {
            id: id.to_string(),
            mode: mode.to_string(),
            since: since.next().flatten().map(time),
        };
        Self {
            path: lock.path.to_string(),
            holders: lock.holders.iter().map(holder).collect(),
            waiting: lock.waiting.iter().map(ToString::to_string).collect(),
            waiters: lock.waiters.iter().map(WaiterView::from).collect(),
        }
    }
}

impl From<&LockWaiter> for WaiterView {
    fn from(waiter: &LockWaiter) -> Self {
        Self {
            id: waiter.id.to_string(),
            mode: waiter.mode.to_string(),
            since: waiter.since.map(time),
        }
    }
}
