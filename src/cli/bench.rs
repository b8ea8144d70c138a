//! `procession bench`: how fast the engine is on this machine, and how that
//! compares with its store alone.
//!
//! Measured from outside, through what users see. Each round runs the engine,
//! then the raw store with batches of the same mean size and count of writes;
//! of all rounds the one with the median rate is shown, and the rate of all of
//! them together. Not timed, but where a workload is about it: the start, a
//! short warm-up, and the end.

mod chain;
mod common;
mod fanout;
mod figure;
mod killed;
mod limits;
mod locks;
mod machine;
mod meter;
mod node;
mod parked;
mod queued;
mod recovery;
mod report;
mod restart;
mod rollback;
mod rounds;
mod saga;
mod set;
mod stream;
mod submit;
mod taken;

use std::path::PathBuf;
use std::time::Duration;

use procession::errors::{AskError, CodecError, ProbeError, ProcedureError, StartError, SubmitError};
use procession::flow::{AppendError, BuildError, ResolveError, SetError, StreamNameError};
use procession::saga::{DefinitionErrors, UnknownMachine};

/// How long the engine may take to stop.
const STOP_TIME: Duration = Duration::from_secs(30);

/// Measures the engine and its store on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, clap::Subcommand)]
enum Workload {
    /// Procedures of some stages each, one after another: what a stage costs.
    Chain(chain::ChainArgs),
    /// Parents that wait for many children each: what a child costs.
    Fanout(fanout::FanoutArgs),
    /// Sagas that fail at their last stage, and are undone: what a rollback costs.
    Rollback(rollback::RollbackArgs),
    /// Procedures that wait for a timer or an event, and are woken all at once.
    Parked(parked::ParkedArgs),
    /// A store whose engine was killed: how long until all goes on.
    Recovery(recovery::RecoveryArgs),
    /// Procedures that wait for permits of limits that are full.
    Limits(limits::LimitsArgs),
    /// Procedures that wait for locks that others hold.
    Locks(locks::LocksArgs),
    /// Submissions: how long until one is durable.
    Submit(submit::SubmitArgs),
    /// Sets of nodes that do nothing: what a node costs, in graphs of several shapes.
    Set(set::SetArgs),
    /// Streams of nodes that do nothing: what a node and an append cost, and what a queue takes in memory.
    Stream(stream::StreamArgs),
    /// Sagas whose services do nothing: what a state costs, in machines of several shapes.
    Saga(saga::SagaArgs),
    /// Builds what `recovery` kills, says "ready", and waits for the end of its input.
    #[command(hide = true)]
    RecoveryState(recovery::StateArgs),
    /// Builds what `set --shape recovery` kills.
    #[command(hide = true)]
    SetState(set::StateArgs),
    /// Builds what `stream --shape recovery` kills.
    #[command(hide = true)]
    StreamState(stream::StateArgs),
    /// Builds what `saga --shape rest` and `saga --shape recovery` kill.
    #[command(hide = true)]
    SagaState(saga::StateArgs),
}

/// A benchmark that did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The directory cannot be made or removed.
    #[error("{place} cannot be used: {why}; name another directory with --data")]
    Directory {
        /// Which directory.
        place: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// Options that do not fit each other.
    #[error("{0}")]
    Options(String),
    /// The engine did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A submission was refused.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// A procedure did not succeed.
    #[error(transparent)]
    Procedure(#[from] ProcedureError),
    /// A question was not answered.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// A message cannot be encoded.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A set cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A set cannot be read.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A decision about a node was refused.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// A stream cannot have this name.
    #[error(transparent)]
    StreamName(#[from] StreamNameError),
    /// An append was refused.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The definitions of the sagas are refused.
    #[error(transparent)]
    Definitions(#[from] DefinitionErrors),
    /// No machine has this name.
    #[error(transparent)]
    Machine(#[from] UnknownMachine),
    /// A set did not end well.
    #[error("a set of nodes that do nothing has failed: the engine is wrong")]
    SetFailed,
    /// The raw store cannot be measured.
    #[error(transparent)]
    Raw(#[from] ProbeError),
    /// A saga that was to fail did not.
    #[error("a saga that fails at its last stage ended well: the engine is wrong")]
    NotFailed,
    /// A broadcast did not wake all who wait.
    #[error("a broadcast woke {woken} of {procedures}: the engine is wrong")]
    Asleep {
        /// How many it woke.
        woken: u32,
        /// How many waited.
        procedures: u32,
    },
    /// The journal failed.
    #[error("the journal failed: {0}")]
    Poisoned(String),
    /// The engine does nothing any more.
    #[error("the engine has changed nothing for a minute, and {live} families live: it hangs")]
    Hangs {
        /// Families that have not ended.
        live: usize,
    },
    /// No round was run.
    #[error("no round was run")]
    NoRound,
    /// The process that was to be killed did not do its part.
    #[error("the process that builds the state {0}")]
    Child(String),
    /// A start did not find what was there when the engine was killed.
    #[error("the start found {found} live procedures where {expected} were killed: the engine is wrong")]
    Lost {
        /// How many were there.
        expected: u32,
        /// How many the start found.
        found: usize,
    },
    /// The dashboard that viewers look at, or one of them, failed.
    #[error("the dashboard cannot be looked at: {0}")]
    Server(std::io::Error),
    /// The report cannot be written as JSON.
    #[error("the report cannot be written: {0}")]
    Report(#[from] serde_json::Error),
}

/// Runs the benchmark and prints what it found.
pub(crate) async fn run(args: BenchArgs) -> Result<(), BenchError> {
    match args.workload {
        Workload::Chain(args) => chain::run(args).await,
        Workload::Fanout(args) => fanout::run(args).await,
        Workload::Rollback(args) => rollback::run(args).await,
        Workload::Parked(args) => parked::run(args).await,
        Workload::Recovery(args) => recovery::run(args).await,
        Workload::Limits(args) => limits::run(args).await,
        Workload::Locks(args) => locks::run(args).await,
        Workload::Submit(args) => submit::run(args).await,
        Workload::Set(args) => set::run(args).await,
        Workload::RecoveryState(args) => recovery::build(args).await,
        Workload::SetState(args) => set::build(args).await,
        Workload::Stream(args) => stream::run(args).await,
        Workload::StreamState(args) => stream::build(args).await,
        Workload::Saga(args) => saga::run(args).await,
        Workload::SagaState(args) => saga::build(args).await,
    }
}
