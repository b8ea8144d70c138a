//! `EngineLink`: the way from code that runs inside the engine to that engine.

use std::sync::Arc;

use actix::{Addr, WeakAddr};
use procession_actors::{AskError, Supervisor};
use tokio::sync::watch;

/// The way to the engine: known once that has started. Kinds are registered before.
#[derive(Clone, Debug)]
pub(crate) struct EngineLink(Arc<watch::Sender<Option<WeakAddr<Supervisor>>>>);

impl Default for EngineLink {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl EngineLink {
    pub(crate) fn open(&self, supervisor: &Addr<Supervisor>) {
        self.0.send_replace(Some(supervisor.downgrade()));
    }

    /// Waits until the engine is open: a start may call code before.
    pub(crate) async fn supervisor(&self) -> Result<Addr<Supervisor>, AskError> {
        let mut opened = self.0.subscribe();
        let opened = opened.wait_for(Option::is_some).await.map_err(|_| AskError::Stopped)?;
        let supervisor = opened.as_ref().and_then(WeakAddr::upgrade);
        supervisor.ok_or(AskError::Stopped)
    }
}
