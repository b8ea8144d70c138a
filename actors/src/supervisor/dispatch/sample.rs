//! A call for the tests of this wing.

use procession_kernel::{Blob, Kind, ProcedureId, StageCall, StageTask, Timestamp};

/// Returns a call of a family's root, for nothing in particular.
pub(super) fn call(family: u64) -> StageCall {
    StageCall {
        id: ProcedureId::root(family),
        kind: Kind::from("k"),
        version: 1,
        stage: Blob::default(),
        visit: 0,
        attempt: 1,
        ready: Timestamp::default(),
        payload: None,
        as_submitted: false,
        before: Vec::new(),
        ahead: 0,
        trace: None,
        task: StageTask::CleanUp,
    }
}
