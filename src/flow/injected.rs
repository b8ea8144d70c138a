//! Failures that a test injects into calls of a stream's nodes. The stages of a stream are one procedure's, so a stage that
//! was made to fail would end the stream, and not the node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession_kernel::ProcedureId;

use super::attempt::Failure;

/// A failure of the next call of a node.
#[derive(Clone, Debug)]
pub(crate) struct Injected {
    /// It fails with all done, and not with nothing done.
    pub(crate) after: bool,
    pub(crate) why: String,
}

impl Injected {
    /// Makes a call, which fails as it is told.
    pub(super) async fn make<T>(
        injected: Option<Self>,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(Self { after, why }) = injected else {
            return call.await;
        };
        if after {
            call.await?;
        }
        Err(Failure::Final(why))
    }
}

/// What is to fail next, by stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Injections(Arc<Mutex<BTreeMap<ProcedureId, Injected>>>);

impl Injections {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ProcedureId, Injected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what becomes of the next call of a stream.
    pub(crate) fn put(&self, id: ProcedureId, injected: Option<Injected>) {
        match injected {
            Some(injected) => self.all().insert(id, injected),
            None => self.all().remove(&id),
        };
    }

    pub(super) fn take(&self, id: ProcedureId) -> Option<Injected> {
        self.all().remove(&id)
    }
}
