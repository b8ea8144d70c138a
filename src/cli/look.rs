//! The verbs that look, into a closed journal or through a dashboard. Of a journal they read a
//! private copy, so that nothing in its directory is written, and end what they began when they
//! are done.

mod audit;
mod doctor;
mod export;
mod failures;
mod flows;
mod graph;
mod history;
mod limits;
mod locks;
mod ls;
mod queue;
mod show;
mod tree;
mod why;

use std::fmt;

use clap::Subcommand;
use serde::Deserialize;

use super::exit::{Exit, Failure};
use super::source::Source;
use super::watch::once;
pub(super) use ls::why;

/// Rows of a tree or a history that are printed, unless more are asked for: more than anybody reads.
pub(super) const ROWS: usize = 5_000;

#[derive(Subcommand)]
pub(super) enum Look {
    /// List procedures: those that have not ended, or what a filter says.
    Ls(ls::LsArgs),
    /// Show one procedure: state, reason, since when, and what comes next.
    Show(show::ShowArgs),
    /// Show a procedure and all below it.
    Tree(tree::TreeArgs),
    /// List the failures that nobody has acknowledged, in groups that say the same.
    Failures(failures::FailuresArgs),
    /// List sets and streams: those that have not ended, or what a filter says, with how their nodes stand.
    Flows(flows::FlowsArgs),
    /// Show the members of a family that run after one another: the nodes of a set, for instance.
    Graph(graph::GraphArgs),
    /// Show what a stream does: the node in hand, those that wait, and the newest records.
    Queue(queue::QueueArgs),
    /// Show the executed stages and undos of a procedure, attempts included.
    History(history::HistoryArgs),
    /// Say why a procedure does not move: who waits for whom. Exit code 4 if in a circle.
    Why(why::WhyArgs),
    /// List the locks that are held or wanted, with holders and waiters in order.
    Locks(locks::LocksArgs),
    /// List the limits: permits that are out, and who waits.
    Limits(limits::LimitsArgs),
    /// List what operators did, newest first, or what a filter says: who:ann verb:abort target:42 night.
    Audit(audit::AuditArgs),
    /// Say what is stuck or damaged. Exit code 3 if something needs you.
    Doctor(doctor::DoctorArgs),
    /// Print families as JSON lines: rows, history, signals; payloads only if asked for. Exit code 3 if some of it is missing
    /// or not of one moment.
    Export(export::ExportArgs),
}

/// A body that is a list.
#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
}

/// One pause that covers a procedure.
#[derive(Deserialize)]
struct PausedBy {
    what: String,
    #[serde(default)]
    who: Option<String>,
    #[serde(default)]
    why: Option<String>,
}

impl fmt::Display for PausedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who.as_deref().unwrap_or("an operator");
        write!(f, "{}, by {who}", self.what)?;
        match &self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

impl Look {
    pub(super) async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Ls(args) => {
                let wanted = args.wanted()?;
                let verb = async |source: &Source| ls::run(source, &wanted, &args.place).await;
                args.watch.run(&args.place, verb).await
            }
            Self::Show(args) => {
                args.watch
                    .run(&args.place, async |from| show::run(from, &args).await)
                    .await
            }
            Self::Tree(args) => {
                args.watch
                    .run(&args.place, async |from| tree::run(from, &args).await)
                    .await
            }
            Self::Flows(args) => {
                let wanted = args.wanted()?;
                let verb = async |source: &Source| flows::run(source, &wanted, &args.place).await;
                args.watch.run(&args.place, verb).await
            }
            Self::Failures(args) => {
                args.watch
                    .run(&args.place, async |from| failures::run(from, &args.place).await)
                    .await
            }
            Self::Graph(args) => {
                args.watch
                    .run(&args.place, async |from| graph::run(from, &args).await)
                    .await
            }
            Self::Queue(args) => {
                args.watch
                    .run(&args.place, async |from| queue::run(from, &args).await)
                    .await
            }
            Self::Locks(args) => {
                args.watch
                    .run(&args.place, async |from| locks::run(from, &args).await)
                    .await
            }
            Self::Limits(args) => {
                args.watch
                    .run(&args.place, async |from| limits::run(from, &args).await)
                    .await
            }
            Self::Doctor(args) => {
                args.watch
                    .run(&args.place, async |from| doctor::run(from, &args).await)
                    .await
            }
            Self::History(args) => once(&args.place, async |from| history::run(from, &args).await).await,
            Self::Why(args) => once(&args.place, async |from| why::run(from, &args).await).await,
            Self::Audit(args) => {
                let filter = args.filter()?;
                once(&args.place, async |from| audit::run(from, &args, &filter).await).await
            }
            Self::Export(args) => export::run(&args.place.open().await?, &args).await,
        }
    }
}
