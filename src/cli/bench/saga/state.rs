//! What is killed: an engine with sagas at rest or half done, or with plain procedures that ask.

use std::path::{Path, PathBuf};

use procession::Executor;

use super::host::Host;
use super::{Shape, Sizes, machines};
use crate::bench::BenchError;
use crate::bench::common::{SUBMITTERS, builder, payload, submit_all, until};
use crate::bench::killed::{self, wait_to_be_killed};
use crate::bench::parked::Sleeper;
use crate::bench::recovery::{self, Life};

/// What an engine has when it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Sagas whose task has failed.
    Resting,
    /// Sagas that are held in the second of two tasks.
    HalfDone,
    /// Procedures that ask.
    Asking,
}

impl State {
    /// The option that says how many there are, and the directory's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Resting => "resting",
            Self::HalfDone => "half-done",
            Self::Asking => "asking",
        }
    }
}

/// Options of the process that is killed.
#[derive(Debug, clap::Args)]
pub(in crate::bench) struct StateArgs {
    #[arg(long, default_value_t = 0)]
    resting: u32,
    #[arg(long, default_value_t = 0)]
    half_done: u32,
    #[arg(long, default_value_t = 0)]
    asking: u32,
    #[arg(long)]
    payload: u32,
    /// Directory of the engine.
    #[arg(long)]
    engine: PathBuf,
    /// Seed of the payloads' bytes.
    #[arg(long)]
    seed: u64,
}

/// Has a process build a state, and kills it. Returns the memory that it had; none where the system does not tell.
pub(super) async fn build_and_kill(
    state: State,
    seed: u64,
    sizes: &Sizes,
    engine: &Path,
) -> Result<Option<u64>, BenchError> {
    let number = format!("--{}", state.name());
    let payload = u64::try_from(sizes.payload.len()).unwrap_or(u64::MAX);
    let numbers = [
        (number.as_str(), u64::from(sizes.sagas)),
        ("--payload", payload),
        ("--seed", seed),
    ];
    killed::build("saga-state", engine, &numbers).await
}

/// Builds the state, says "ready", and waits to be killed.
pub(in crate::bench) async fn build(args: StateArgs) -> Result<(), BenchError> {
    let payload = payload(args.seed, args.payload);
    let sizes = |shape, sagas| Sizes {
        sagas,
        ..Sizes::usual(shape, payload.clone())
    };
    // The engine lives until the process is killed.
    let _engine = match (args.resting, args.half_done) {
        (0, 0) => asking(&args.engine, args.asking, &payload).await?,
        (0, held) => half_done(&args.engine, &sizes(Shape::Recovery, held)).await?,
        (resting, _) => at_rest(&args.engine, &sizes(Shape::Rest, resting)).await?,
    };
    wait_to_be_killed().await;
    Ok(())
}

async fn at_rest(engine: &Path, sizes: &Sizes) -> Result<Executor, BenchError> {
    let host = Host::start(engine, sizes, Life::Before).await?;
    let saga = host.machine(machines::REST, 0)?;
    submit_all(&host.executor, sizes.sagas, &saga).await?;
    until_parked(&host.executor).await?;
    Ok(host.executor)
}

async fn half_done(engine: &Path, sizes: &Sizes) -> Result<Executor, BenchError> {
    let host = Host::start(engine, sizes, Life::Before).await?;
    let before = host.executor.snapshot().await?.commits;
    let saga = host.machine(machines::HALF_DONE, 0)?;
    submit_all(&host.executor, sizes.sagas, &saga).await?;
    let held = recovery::Sizes::of_live(sizes.sagas, 0);
    held.until_held(&host.executor, before).await?;
    Ok(host.executor)
}

async fn asking(engine: &Path, number: u32, payload: &str) -> Result<Executor, BenchError> {
    let executor = start_asking(engine).await?;
    submit_all(&executor, number, &Sleeper::asking(payload.to_owned())).await?;
    until_parked(&executor).await?;
    Ok(executor)
}

async fn until_parked(executor: &Executor) -> Result<(), BenchError> {
    until(executor, |snapshot| snapshot.going == 0 && snapshot.actors == 0).await
}

/// Starts an engine for procedures that ask.
pub(super) async fn start_asking(engine: &Path) -> Result<Executor, BenchError> {
    let builder = builder(engine, SUBMITTERS);
    Ok(builder.register::<Sleeper>(()).start().await?)
}
