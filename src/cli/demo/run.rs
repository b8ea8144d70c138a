//! Runs a workload: starts the engine, submits each operation under its own key,
//! waits for all of them, and verifies. Run again on the same directory it
//! submits the same operations under the same keys, and so goes on.

mod drive;
mod watch;

pub use drive::Tally;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::console;
use super::error::DemoError;
use super::input::Input;
use super::master::Master;
use super::pace::Stopwatch;
use super::report::Report;
use super::site::{Door, Figures, Site};
use super::verify;
use super::workload::{self, Plan, Sizes};
use procession::Executor;
use procession::errors::AskError;
use procession::operate::{OperatorRequest, PauseScope};
use procession::status::{ListFilter, Snapshot, WaitReason};

/// How long results are kept: a restart asks for those of all earlier operations,
/// and may come after a long pause.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// How long an interrupted run waits for the stages that are running.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How many statuses are read at once.
const PAGE: usize = 1_000;

/// Whether and where a run can be watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// On a page of this machine; without a port, on the usual one or any that is free.
    Served {
        /// The port; 0 for any.
        port: Option<u16>,
    },
    /// Not at all.
    None,
}

/// Returns the place of the engine's journal.
#[must_use]
pub fn journal_of(root: &Path) -> PathBuf {
    root.join("journal")
}

/// A run that has come to its end and was verified; its engine is still there to be looked at.
pub struct Ended {
    /// What it did.
    pub report: Report,
    executor: Executor,
    site: Option<Site>,
}

impl Ended {
    /// Goes on inspecting tables, for whoever watches, until it is interrupted.
    ///
    /// # Errors
    ///
    /// [`DemoError`] if the engine ends before.
    pub async fn stay(&self) -> Result<(), DemoError> {
        tokio::select! {
            never = watch::inspect(&self.executor) => match never? {},
            () = interrupted() => Ok(()),
        }
    }

    /// Lets the stages that run come to their end, and closes everything.
    ///
    /// # Errors
    ///
    /// [`DemoError::Ask`] if the engine does not answer.
    pub async fn end(self) -> Result<Report, DemoError> {
        close(&self.executor, self.site).await?;
        Ok(self.report)
    }
}

/// Runs the workload in this directory to its end, and verifies what it left.
///
/// # Errors
///
/// [`DemoError`] if it could not run to its end; what the verification found is
/// in the report.
pub async fn run(root: &Path, sizes: &Sizes, input: Input, view: View) -> Result<Ended, DemoError> {
    let watch = Stopwatch::start();
    let door = match view {
        View::Served { port } => Some(Door::open(port)?),
        View::None => None,
    };
    let figures = Figures::install();
    let plan = workload::generate(sizes, &input);
    let master = Master::open(root, sizes.servers, input)?;
    let builder = Executor::builder(journal_of(root)).retention(KEPT, KEPT);
    let executor = master.register(builder).start().await?;
    let site = match door {
        Some(door) => Some(Site::open(&executor, door, figures).await?),
        None => None,
    };
    let resumed = begin(root, &executor).await?;
    let ended = tokio::select! {
        report = to_the_end(&executor, &master, &plan, resumed, watch) => Some(report?),
        () = interrupted() => None,
    };
    if let Some(report) = ended {
        return Ok(Ended { report, executor, site });
    }
    console::notice("interrupted: letting the stages that run come to their end");
    close(&executor, site).await?;
    Err(DemoError::Interrupted(root.to_owned()))
}

async fn close(executor: &Executor, site: Option<Site>) -> Result<(), DemoError> {
    if let Some(site) = site {
        site.close().await;
    }
    executor.drain(DRAIN_MAX).await?;
    Ok(())
}

/// Says how many procedures go on, and sees to it that they do.
async fn begin(root: &Path, executor: &Executor) -> Result<usize, DemoError> {
    let Snapshot { recovered, .. } = executor.snapshot().await?;
    console::notice(&format!("resumed {} procedures", recovered.procedures));
    if let Some((family, why)) = recovered.quarantined.first() {
        return Err(DemoError::Quarantined {
            count: recovered.quarantined.len(),
            first: format!("family {family}: {why}"),
            path: root.to_owned(),
        });
    }
    resume_poisoned(executor).await?;
    Ok(recovered.procedures)
}

/// Lets those procedures go on that a run of kills made look like its cause.
///
/// # Errors
///
/// [`DemoError::Ask`] if the engine does not answer.
pub async fn resume_poisoned(executor: &Executor) -> Result<(), DemoError> {
    let mut cursor = None;
    loop {
        let live = ListFilter {
            live_only: true,
            ..ListFilter::default()
        };
        let page = executor.list(live, cursor, PAGE).await?;
        let poisoned = page
            .items
            .iter()
            .filter(|status| status.wait == Some(WaitReason::Poison));
        for status in poisoned {
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
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

async fn to_the_end(
    executor: &Executor,
    master: &Master,
    plan: &Plan,
    resumed: usize,
    watch: Stopwatch,
) -> Result<Report, DemoError> {
    let tally = drive::drive(executor, plan).await?;
    verify::settle(executor).await?;
    let verdict = verify::verify(executor, master.files(), master.input(), &plan.expected).await?;
    let snapshot = executor.snapshot().await?;
    let (mut procedures, mut rolled_back) = (0, 0);
    let mut cursor = None;
    loop {
        let page = executor.list(ListFilter::default(), cursor, PAGE).await?;
        procedures += page.items.len();
        rolled_back += page
            .items
            .iter()
            .filter(|status| status.state == procession::status::ProcedureState::RolledBack)
            .count();
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(Report {
        tally,
        verdict,
        procedures,
        rolled_back,
        resumed,
        commits: snapshot.commits,
        elapsed: watch.elapsed(),
    })
}

/// Waits for Ctrl-C or a request to end.
async fn interrupted() {
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
