//! What all stories share: an engine in a directory, with its dashboard and metrics, that goes on after kills and closes
//! in order.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::DemoError;
use super::site::{Door, Figures, Site};
use super::watch::View;
use procession::dashboard::Right;
use procession::errors::AskError;
use procession::operate::{OperatorRequest, PauseScope};
use procession::status::{ListFilter, ProcedureState, Snapshot, Status, WaitReason};
use procession::{Builder, Executor};

/// How long results are kept: a restart asks for those of all earlier operations,
/// and may come after a long pause.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How long an interrupted run waits for the stages that are running.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How many statuses are read at once.
const PAGE: usize = 1_000;

/// Returns the place of the engine's journal.
#[must_use]
pub fn journal_of(root: &Path) -> PathBuf {
    root.join("journal")
}

/// What must be there before the engine: a port that is taken, and a recorder that comes late, would be seen too late.
pub(super) struct Entrance {
    door: Option<Door>,
    figures: Figures,
}

impl Entrance {
    /// Listens where the run can be watched.
    pub(super) fn open(view: View) -> Result<Self, DemoError> {
        let door = match view {
            View::Served { port } => Some(Door::open(port)?),
            View::None => None,
        };
        Ok(Self {
            door,
            figures: Figures::install(),
        })
    }

    /// Starts the engine of a directory, with a dashboard on which whoever is on this machine has these rights.
    pub(super) async fn start(
        self,
        root: &Path,
        register: impl FnOnce(Builder) -> Builder,
        rights: &'static [Right],
    ) -> Result<Engine, DemoError> {
        let builder = register(Executor::builder(journal_of(root)).retention(KEPT, KEPT));
        let executor = builder.start().await?;
        let site = match self.door {
            Some(door) => Some(Site::open(&executor, door, self.figures, rights).await?),
            None => None,
        };
        Ok(Engine { executor, site })
    }
}

/// An engine that runs, and what shows it.
pub(super) struct Engine {
    /// The engine.
    pub(super) executor: Executor,
    site: Option<Site>,
}

impl Engine {
    /// Returns how many procedures go on from an earlier run, and sees to it that they do.
    pub(super) async fn resume(&self, root: &Path) -> Result<usize, DemoError> {
        let Snapshot { recovered, .. } = self.executor.snapshot().await?;
        if let Some((family, why)) = recovered.quarantined.first() {
            return Err(DemoError::Quarantined {
                count: recovered.quarantined.len(),
                first: format!("family {family}: {why}"),
                path: root.to_owned(),
            });
        }
        resume_poisoned(&self.executor).await?;
        Ok(recovered.procedures)
    }

    /// Lets the stages that run come to their end, and closes everything.
    pub(super) async fn close(self) -> Result<(), DemoError> {
        self.close_within(DRAIN_MAX).await
    }

    /// Closes everything as [`close`](Self::close) does. Running stages have this long to finish.
    pub(super) async fn close_within(self, longest: Duration) -> Result<(), DemoError> {
        if let Some(site) = self.site {
            site.close().await;
        }
        self.executor.drain(longest).await?;
        Ok(())
    }
}

/// Returns `true` if a procedure in this state has ended.
pub(super) const fn has_ended(state: ProcedureState) -> bool {
    matches!(
        state,
        ProcedureState::Success | ProcedureState::RolledBack | ProcedureState::Failed
    )
}

/// Lists all procedures that the filter admits.
pub(super) async fn list(executor: &Executor, filter: ListFilter) -> Result<Vec<Status>, DemoError> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = executor.list(filter.clone(), cursor, PAGE).await?;
        all.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// Lets those procedures go on that a run of kills made look like its cause.
///
/// # Errors
///
/// [`DemoError::Ask`] if the engine does not answer.
pub async fn resume_poisoned(executor: &Executor) -> Result<(), DemoError> {
    let live = ListFilter {
        live_only: true,
        ..ListFilter::default()
    };
    let live = list(executor, live).await?;
    for status in live.iter().filter(|status| status.wait == Some(WaitReason::Poison)) {
        let why = "kills are part of the demonstration";
        match executor
            .resume(PauseScope::One(status.id), OperatorRequest::new("demo", why))
            .await
        {
            // It has gone on, or its family rolls back: since it was listed, or because of another's resumption.
            Ok(_) | Err(AskError::NotNow { .. } | AskError::Finished { .. } | AskError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits for Ctrl-C or a request to end.
pub(super) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut requests) => requests.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated => {}
    }
}
