//! The verbs that look into a closed journal. They read a private copy of it, so that
//! nothing in its directory is written, and end what they began when they are done.

mod doctor;
mod export;
mod history;
mod limits;
mod locks;
mod ls;
mod show;
mod tree;
mod why;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use procession_actors::clock::{Clock, SystemClock};
use procession_actors::offline::{Offline, Standing};
use procession_actors::view::Status;
use procession_kernel::ProcedureId;
use serde::Serialize;

use super::exit::{Exit, Failure};
use super::print;
use crate::views::Reply;

/// Rows of a tree or a history that are printed, unless more are asked for: more than anybody reads.
const ROWS: usize = 5_000;

#[derive(Subcommand)]
pub(super) enum Look {
    /// List procedures: those that have not ended, or what a filter says.
    Ls(ls::LsArgs),
    /// Show one procedure: state, reason, since when, and what comes next.
    Show(show::ShowArgs),
    /// Show a procedure and all below it.
    Tree(tree::TreeArgs),
    /// Show the executed stages and undos of a procedure, attempts included.
    History(history::HistoryArgs),
    /// Say why a procedure does not move: who waits for whom. Exit code 4 if in a circle.
    Why(why::WhyArgs),
    /// List the locks that are held or wanted, with holders and waiters in order.
    Locks(locks::LocksArgs),
    /// List the limits: permits that are out, and who waits.
    Limits(limits::LimitsArgs),
    /// Say what is stuck or damaged. Exit code 3 if something needs you.
    Doctor(doctor::DoctorArgs),
    /// Print families as JSON lines: rows, history, signals; payloads only if asked for.
    Export(export::ExportArgs),
}

/// Which journal is looked at, and how it is told.
#[derive(Debug, Clone, Args)]
struct Place {
    /// Directory of the journal. No engine may hold it; it is not changed.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Print JSON, one document a line.
    #[arg(long)]
    json: bool,
}

impl Look {
    pub(super) async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Ls(args) => ls::run(args).await,
            Self::Show(args) => show::run(args).await,
            Self::Tree(args) => tree::run(args).await,
            Self::History(args) => history::run(args).await,
            Self::Why(args) => why::run(args).await,
            Self::Locks(args) => locks::run(args).await,
            Self::Limits(args) => limits::run(args).await,
            Self::Doctor(args) => doctor::run(args).await,
            Self::Export(args) => export::run(args).await,
        }
    }
}

impl Place {
    async fn open(&self) -> Result<Offline, Failure> {
        if let Some(why) = misplaced(&self.data) {
            return Err(Failure::new(why));
        }
        let directory = self.data.clone();
        let opened = actix_rt::task::spawn_blocking(move || Offline::open_copy(&directory)).await;
        Ok(opened.map_err(Failure::new)??)
    }
}

/// Says what is wrong with a directory that holds no journal.
fn misplaced(data: &Path) -> Option<String> {
    let place = data.display();
    if !data.is_dir() {
        return Some(format!(
            "there is no directory {place}; give that of a journal with --data"
        ));
    }
    if data.join("store").is_dir() {
        return None;
    }
    let below = data.join("journal");
    if below.join("store").is_dir() {
        return Some(format!(
            "there is no journal in {place}, but one in {}; give that with --data",
            below.display()
        ));
    }
    Some(format!(
        "there is no journal in {place}; give the directory that an engine was started with"
    ))
}

/// Reads the family of one that must be there.
async fn family_of(journal: &Offline, standing: &Standing, id: ProcedureId) -> Result<Vec<Status>, Failure> {
    let family = journal.family(id).await?;
    if !family.iter().any(|status| status.id == id) {
        return Err(unknown(id));
    }
    Ok(family.into_iter().map(|status| standing.shown(status)).collect())
}

fn unknown(id: ProcedureId) -> Failure {
    Failure::new(format!(
        "the journal knows no procedure {id}; its result may have been evicted; see \"procession ls\" for what is there"
    ))
}

/// Puts a body into its reply.
fn reply<T: Serialize>(journal: &Offline, body: T) -> Reply<T> {
    Reply::new(SystemClock.now(), journal.as_of(), body)
}

/// Cuts a list to its limit, and says so.
fn cut<T>(mut items: Vec<T>, limit: usize) -> Vec<T> {
    if items.len() > limit {
        print::notice(&format!(
            "{} of {} are shown; raise --limit for more",
            limit,
            items.len()
        ));
        items.truncate(limit);
    }
    items
}
