//! Callers that wait for the outcome of a procedure.

use procession_kernel::{Blob, Ended, ProcedureId};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::error::AskError;
use crate::journal::Reader;
use crate::journal::keys::OUTPUT;
use crate::supervisor::failure::Failure;
use crate::view::Outcome;

/// The callers, by procedure.
#[derive(Default)]
pub(super) struct OutcomeWatchers(FxHashMap<ProcedureId, Vec<oneshot::Sender<Outcome>>>);

impl OutcomeWatchers {
    /// Adds a caller. Callers that have gone are dropped here, so callers that ask again and again leave nothing.
    pub(super) fn watch(&mut self, id: ProcedureId) -> oneshot::Receiver<Outcome> {
        let (sender, receiver) = oneshot::channel();
        let watchers = self.0.entry(id).or_default();
        watchers.retain(|watcher| !watcher.is_closed());
        watchers.push(sender);
        receiver
    }

    pub(super) fn ended(&mut self, ended: Ended) {
        let Some(watchers) = self.0.remove(&ended.id) else {
            return;
        };
        let outcome = Outcome::of(ended);
        for watcher in watchers {
            // The caller may have gone.
            watcher.send(outcome.clone()).ok();
        }
    }

    /// Drops the callers that wait for a member of a discharged family: they learn that there will be no outcome.
    pub(super) fn discharged(&mut self, family: u64) {
        self.0.retain(|id, _| id.family != family);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Waits for the outcome of a procedure that has not ended.
pub(in crate::supervisor) async fn awaited(
    id: ProcedureId,
    outcome: oneshot::Receiver<Outcome>,
    failure: Failure,
    reader: Reader,
) -> Result<Outcome, AskError> {
    match outcome.await {
        Ok(outcome) => Ok(outcome),
        Err(_) => Err(without_outcome(id, &failure, &reader).await),
    }
}

/// Returns why there will be no outcome: the journal has failed, the engine has stopped, or the family was discharged.
async fn without_outcome(id: ProcedureId, failure: &Failure, reader: &Reader) -> AskError {
    match (failure.why(), reader.row(id).await) {
        (None, Ok(None)) => AskError::Unknown(id),
        _ => failure.unanswered(),
    }
}

/// Reads the outcome of a procedure that has ended.
pub(in crate::supervisor) async fn stored(reader: Reader, id: ProcedureId) -> Result<Outcome, AskError> {
    let (row, output) = reader
        .row_with(id, OUTPUT)
        .await?
        .filter(|(row, _)| row.is_ended())
        .ok_or(AskError::Unknown(id))?;
    Ok(Outcome::stored(row, output.map(Blob::from)))
}
