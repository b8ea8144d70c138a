//! Runs a workload: starts the engine, submits each operation under its own key,
//! waits for all of them, and verifies. Run again on the same directory it
//! submits the same operations under the same keys, and so goes on.

mod drive;
mod watch;

pub use drive::Tally;

use std::path::Path;

use super::console;
use super::engine::{Engine, Entrance, interrupted, list};
use super::error::DemoError;
use super::input::Input;
use super::master::Master;
use super::pace::Stopwatch;
use super::report::Report;
use super::story::Story;
use super::verify;
use super::watch::View;
use super::workload::{self, Plan, Sizes};
use procession::Executor;
use procession::dashboard::Right;
use procession::status::{ListFilter, ProcedureState};

/// Callers on this machine may look, pause, retry and set limits. Nobody may abort or repair: the verification at the
/// end expects that each operation ended as it was drawn.
const RIGHTS: [Right; 4] = [Right::View, Right::Payload, Right::Operate, Right::Configure];

/// A run that has come to its end and was verified; its engine is still there to be looked at.
pub struct Ended {
    /// What it did.
    pub report: Report,
    engine: Engine,
}

impl Ended {
    /// Goes on inspecting tables, for whoever watches, until it is interrupted.
    ///
    /// # Errors
    ///
    /// [`DemoError`] if the engine ends before.
    pub async fn stay(&self) -> Result<(), DemoError> {
        tokio::select! {
            never = watch::inspect(&self.engine.executor) => match never? {},
            () = interrupted() => Ok(()),
        }
    }

    /// Lets the stages that run come to their end, and closes everything.
    ///
    /// # Errors
    ///
    /// [`DemoError::Ask`] if the engine does not answer.
    pub async fn end(self) -> Result<Report, DemoError> {
        self.engine.close().await?;
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
    let entrance = Entrance::open(view)?;
    let plan = workload::generate(sizes, &input);
    let master = Master::open(root, sizes.servers, input)?;
    let engine = entrance
        .start(root, |builder| master.register(builder), &RIGHTS)
        .await?;
    let resumed = engine.resume(root).await?;
    console::notice(&format!("resumed {resumed} procedures"));
    let ended = tokio::select! {
        report = to_the_end(&engine.executor, &master, &plan, resumed, watch) => Some(report?),
        () = interrupted() => None,
    };
    if let Some(report) = ended {
        return Ok(Ended { report, engine });
    }
    console::notice("interrupted: letting the stages that run come to their end");
    engine.close().await?;
    Err(DemoError::Interrupted(Story::Tablets.command_in(root)))
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
    let procedures = list(executor, ListFilter::default()).await?;
    let is_rolled_back = |state: ProcedureState| state == ProcedureState::RolledBack;
    Ok(Report {
        tally,
        verdict,
        procedures: procedures.len(),
        rolled_back: procedures.iter().filter(|status| is_rolled_back(status.state)).count(),
        resumed,
        commits: snapshot.commits,
        elapsed: watch.elapsed(),
    })
}
