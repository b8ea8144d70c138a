//! One lock: who holds it, and who waits for it in which order.

use procession_actors::view::LockView;
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
        }
    }
}
