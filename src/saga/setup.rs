//! How an engine is given its sagas.

use futures::FutureExt;
use futures::future::BoxFuture;
use procession_actors::journal::store::JournalStore;
use procession_actors::{KindSettings, Registry, StoreError};
#[cfg(feature = "dashboard")]
use procession_actors::{SubmitError, messages::Submit};
#[cfg(feature = "dashboard")]
use procession_kernel::Kind;
use procession_kernel::{ProcedureId, RetryPolicy};
use std::sync::Arc;

use super::handle::Saga;
use super::machine::{Machine, kind_of};
use super::sagas::Sagas;
#[cfg(feature = "dashboard")]
use super::shared::MachineVersion;
use super::shared::{SagaEnv, Shared};
use super::store;
use crate::executor::{AtStart, Builder, EngineLink, Executor};

impl Builder {
    /// Lets the engine run these sagas. The kind of each machine is `saga.<Name>`.
    ///
    /// Machines that the engine's journal has from earlier starts go on by the definitions with which they began, also if
    /// `sagas` has another definition by now, or none. A later call replaces what an earlier one gave.
    #[must_use]
    pub fn sagas(mut self, sagas: Sagas) -> Self {
        let registered = sagas.registered();
        for (machine, settings) in &registered.settings {
            if let Some(limit) = settings.limit {
                self = self.limit(kind_of(machine).as_str(), limit);
            }
        }
        self.at_start(|set_up: &mut SetUp| set_up.sagas = Some(sagas));
        self
    }
}

impl Executor {
    /// Returns a handle of a saga that was submitted before. It checks nothing: a procedure that is no saga is answered by
    /// its methods.
    #[must_use]
    pub fn saga(&self, id: ProcedureId) -> Saga {
        Saga::new(self.clone(), id)
    }
}

/// Returns the versions of the machine of a kind; none if it is the kind of no machine.
#[cfg(feature = "dashboard")]
pub(crate) fn versions(executor: &Executor, kind: &Kind) -> Option<Vec<MachineVersion>> {
    let env = executor.engine().env::<Machine>(kind)?;
    let name = kind.as_str().strip_prefix("saga.")?;
    Some(env.shared().versions(name))
}

/// Returns a saga to submit, of the machine of a kind and with these params. Returns `None` if it is the kind of no
/// machine.
#[cfg(feature = "dashboard")]
pub(crate) async fn submission(
    executor: &Executor,
    kind: &Kind,
    params: &serde_json::Value,
) -> Option<Result<Submit, SubmitError>> {
    let env = executor.engine().env::<Machine>(kind)?;
    let name = kind.as_str().strip_prefix("saga.")?;
    let Some(machine) = env.shared().machine(name) else {
        let why = format!("machine [{name}] is not registered: its sagas go on, and no new ones begin");
        return Some(Err(SubmitError::Unsupported { why }));
    };
    Some(match machine.params(params) {
        Ok(machine) => executor.submit(machine).into_message().await,
        Err(error) => Err(SubmitError::Codec(error)),
    })
}

/// What a builder knows of sagas.
#[derive(Default)]
struct SetUp {
    sagas: Option<Sagas>,
    opened: Option<Arc<Shared>>,
}

impl AtStart for SetUp {
    fn open<'a>(&'a mut self, store: &'a dyn JournalStore) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            let Some(sagas) = &self.sagas else { return Ok(()) };
            let mut shared = Shared::new(sagas.registered()).map_err(|error| StoreError::Io {
                place: "the definitions of sagas".to_owned(),
                why: error.to_string(),
            })?;
            store::read(store, &mut shared).await?;
            self.opened = Some(Arc::new(shared));
            Ok(())
        }
        .boxed()
    }

    fn register(&mut self, registry: &mut Registry, _: EngineLink, _: usize) {
        let Some(shared) = &self.opened else { return };
        for machine in shared.machines() {
            let tries = shared.settings(&machine).compensation_tries;
            let tries = tries.unwrap_or_else(RetryPolicy::default);
            let settings = KindSettings::default().retry_undo(tries);
            registry.register_as::<Machine>(kind_of(&machine), settings, SagaEnv::new(shared));
        }
    }

    fn started<'a>(&'a self, executor: &'a Executor) -> BoxFuture<'a, ()> {
        async move {
            let Some(shared) = &self.opened else { return };
            if let Err(error) = store::write(executor, shared).await {
                tracing::warn!(%error, "definitions of sagas could not be stored yet; each saga that begins stores its own");
            }
        }
        .boxed()
    }
}
