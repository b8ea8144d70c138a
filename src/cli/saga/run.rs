//! `procession saga run`: one saga without a line of Rust, on a journal of its own. It can be killed at any time, and goes
//! on when it is run again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use procession::errors::SubmitError;
use procession::operate::OperatorRequest;
use procession::provider::{Clock, SystemClock};
use procession::saga::{DecideError, Definitions, Problem, SagaStatus, Sagas, Settled, SkippedUndo};
use procession::status::{KeyedProcedure, ListFilter};
use procession::{Executor, ProcedureId};
use serde_json::{Map, Value};

use super::super::exit::{Exit, Failure};
use super::super::{account, print, signals};
use super::follow::Follower;
use super::{object, services, tell};

/// How long results are kept: whoever runs a saga again is told what it came to.
const KEPT: Duration = Duration::from_hours(24 * 366);
/// How long the engine may take to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long asynchronous calls may take once their saga has ended. After that they wait for the next run.
const ASYNCHRONOUS: Duration = Duration::from_secs(10);
/// Procedures of the journal that are looked at for such calls.
const LIVE: usize = 1_000;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The place of problems that are in no file of definitions.
const REGISTERED: &str = "Sagas::builder()";

#[derive(Args)]
pub(super) struct RunArgs {
    /// Definition files, checked together. The first one has the machine that is run, unless --machine names another.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The services that the definitions call.
    #[arg(long, value_name = "FILE")]
    services: Option<PathBuf>,
    /// The directory of the journal. It is created. Run again with it, a saga goes on.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The machine that is run.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// The params with which the saga starts, a JSON object. Without them the saga that there is goes on, or one starts
    /// with none.
    #[arg(long, value_name = "JSON", value_parser = object)]
    params: Option<Map<String, Value>>,
    /// The business key: one saga of a journal has it [default: the name of the machine].
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    decision: Decision,
    /// Print JSON, one document a line.
    #[arg(long)]
    json: bool,
}

/// What a person decides about a saga that rests, or about any other one.
#[derive(Args, Clone)]
#[group(multiple = false)]
struct Decision {
    /// Once it rests, let it go on with these params, a JSON object.
    #[arg(long, value_name = "JSON", value_parser = object)]
    forward: Option<Map<String, Value>>,
    /// Once it rests, count the states at which it does as skipped, and go on with these results, a JSON object.
    #[arg(long, value_name = "JSON", value_parser = object)]
    skip: Option<Map<String, Value>>,
    /// Undo everything that took effect. If a compensator has failed, try it again.
    #[arg(long)]
    compensate: bool,
    /// Leave the compensator out that has failed.
    #[arg(long)]
    skip_compensation: bool,
}

pub(super) async fn run(args: RunArgs) -> Result<Exit, Failure> {
    // A signal to this program does not reach the groups of its commands.
    signals::before_the_end(services::kill_all).map_err(Failure::new)?;
    let sagas = sagas(&args)?;
    let machine = match &args.machine {
        Some(machine) => machine.clone(),
        None => first_machine(&args)?,
    };
    let executor = Executor::builder(&args.data)
        .sagas(sagas.clone())
        .retention(KEPT, KEPT)
        .start()
        .await?;
    let ran = Run {
        args,
        machine,
        sagas,
        executor: executor.clone(),
    }
    .until_it_stops()
    .await;
    let drained = executor.drain(DRAIN).await.map(drop);
    let exit = ran?;
    drained.map_err(|error| Failure::new(format!("the engine did not stop in order: {error}; run the saga again")))?;
    Ok(exit)
}

fn sagas(args: &RunArgs) -> Result<Sagas, Failure> {
    let mut builder = Sagas::builder();
    if let Some(file) = &args.services {
        builder = services::register(builder, file)?;
    }
    let builder = args.files.iter().fold(builder, |builder, file| builder.file(file));
    builder.build().map_err(|errors| {
        errors
            .problems()
            .iter()
            .for_each(|problem| tell_of(problem, args.services.as_deref()));
        refused("the saga cannot be run: mend its definitions or its services")
    })
}

/// Prints a problem. What the services file says wrongly is found in what was registered from it.
fn tell_of(problem: &Problem, services: Option<&Path>) {
    match services.filter(|_| problem.file() == REGISTERED) {
        Some(file) => print::line(&print::plain(&format!(
            "{}: {}; {}",
            file.display(),
            problem.text(),
            problem.hint()
        ))),
        None => tell(problem),
    }
}

/// Says that no file has a machine, and which there are.
fn no_machine(args: &RunArgs, machine: &str) -> Failure {
    let files = args.files.iter();
    let checked = files.fold(Definitions::new(), |definitions, file| definitions.file(file));
    let machines: Vec<String> = checked.check().map_or_else(
        |_| Vec::new(),
        |checked| {
            checked
                .machines()
                .map(|machine| format!("[{}]", machine.name()))
                .collect()
        },
    );
    Failure::usage(print::plain(&format!(
        "no file has a machine [{machine}]; name one with --machine: {}",
        print::named(machines)
    )))
}

fn first_machine(args: &RunArgs) -> Result<String, Failure> {
    let files = args.files.iter().take(1);
    let checked = files
        .fold(Definitions::new(), |definitions, file| definitions.file(file))
        .check();
    let checked = checked.map_err(|errors| Failure::new(errors.to_string()))?;
    let machine = checked.machines().next().map(|machine| machine.name().to_owned());
    machine.ok_or_else(|| Failure::new("the first file has no machine"))
}

fn refused(text: impl ToString) -> Failure {
    Failure {
        exit: Exit::Refused,
        text: text.to_string(),
    }
}

/// A saga on its engine.
struct Run {
    args: RunArgs,
    machine: String,
    sagas: Sagas,
    executor: Executor,
}

impl Run {
    async fn until_it_stops(&self) -> Result<Exit, Failure> {
        let id = self.begin().await?;
        let mut follower = Follower::new(&self.executor, id, self.args.json);
        follower.release().await?;
        if self.args.decision.compensate {
            self.compensate(&follower).await?;
        }
        let mut settled = follower.until_settled().await?;
        if self.decide(&follower, &settled).await? {
            settled = follower.until_settled().await?;
        }
        let instance = follower.conclude().await?;
        if matches!(settled, Settled::Ended(_)) {
            self.asynchronous_calls().await?;
        }
        Ok(match settled {
            Settled::Ended(outcome) => {
                outcome.skipped.iter().for_each(skipped);
                match (instance.status, instance.compensation) {
                    (SagaStatus::Success, None) => Exit::Done,
                    _ => Exit::Failed,
                }
            }
            Settled::CompensationRests { state, why } => {
                print::notice(&format!(
                    "the compensator of [{state}] has failed: {why}; run this again with --compensate to try it again, \
                     or with --skip-compensation to leave it out"
                ));
                Exit::NeedsYou
            }
            Settled::Rests(_) | _ => {
                print::notice("decide: run this again with --forward '{..}', --skip '{..}' or --compensate");
                Exit::NeedsYou
            }
        })
    }

    /// Starts the saga, or finds the one that has its key.
    async fn begin(&self) -> Result<ProcedureId, Failure> {
        let key = self.args.key.as_ref().unwrap_or(&self.machine);
        let known = match self.executor.find(key).await? {
            Some(KeyedProcedure::Live(status) | KeyedProcedure::Ended(status)) => Some(status),
            Some(_) | None => None,
        };
        if let (Some(status), None) = (&known, &self.args.params) {
            let kind = format!("saga.{}", self.machine);
            if status.kind.as_str() != kind {
                return Err(refused(format!(
                    "the key \"{key}\" is that of {}, a {}; give another one with --key",
                    status.id, status.kind
                )));
            }
            print::notice(&format!("saga {} goes on", status.id));
            return Ok(status.id);
        }
        let params = self.args.params.clone().unwrap_or_default();
        let machine = self
            .sagas
            .machine(&self.machine)
            .map_err(|_| no_machine(&self.args, &self.machine))?;
        let machine = machine.params(&params).map_err(Failure::usage)?;
        match self.executor.submit(machine).key(key).await {
            Ok(handle) => Ok(handle.id()),
            Err(SubmitError::KeyConflict { id, .. }) => Err(refused(format!(
                "{id} has the key \"{key}\" and was started with other params; leave --params out to go on with it, or \
                 start another saga with --key"
            ))),
            Err(error) => Err(refused(error)),
        }
    }

    /// Takes the decision that was given, if the saga rests. Returns whether it has.
    async fn decide(&self, follower: &Follower<'_>, settled: &Settled) -> Result<bool, Failure> {
        let (saga, decision) = (&follower.saga, &self.args.decision);
        let decided = match (settled, decision) {
            (
                Settled::Rests(_),
                Decision {
                    forward: Some(params), ..
                },
            ) => saga.forward(params, by("forward")).await,
            (
                Settled::Rests(_),
                Decision {
                    skip: Some(results), ..
                },
            ) => saga.skip(results, by("skip")).await,
            (
                Settled::CompensationRests { .. },
                Decision {
                    skip_compensation: true,
                    ..
                },
            ) => {
                saga.skip_compensation(by("skip the compensation")).await?;
                return Ok(true);
            }
            (
                _,
                Decision {
                    forward: None,
                    skip: None,
                    skip_compensation: false,
                    ..
                },
            ) => return Ok(false),
            _ => {
                print::notice("nothing of the saga rests, so there was nothing to decide");
                return Ok(false);
            }
        };
        match decided {
            Ok(_) => Ok(true),
            Err(DecideError::Ask(error)) => Err(error.into()),
            Err(error) => Err(refused(error)),
        }
    }

    async fn compensate(&self, follower: &Follower<'_>) -> Result<(), Failure> {
        let status = self.executor.status(follower.saga.id()).await?;
        if status.ended.is_some() {
            print::notice("the saga has ended, so there is nothing to undo");
            return Ok(());
        }
        follower.saga.compensate(by("compensate")).await?;
        Ok(())
    }

    /// Waits for calls that were begun asynchronously.
    async fn asynchronous_calls(&self) -> Result<(), Failure> {
        let until = SystemClock.now().after(ASYNCHRONOUS);
        loop {
            let live = ListFilter {
                live_only: true,
                ..ListFilter::default()
            };
            let live = self.executor.list(live, None, LIVE).await?;
            // Sagas have keys, and may rest for long.
            if live.items.iter().all(|status| status.key.is_some()) {
                return Ok(());
            }
            if SystemClock.now() > until {
                print::notice("asynchronous calls are not done; they go on when this is run again");
                return Ok(());
            }
            SystemClock.sleep_until(SystemClock.now().after(LOOK_AGAIN)).await;
        }
    }
}

/// Returns who decides: whoever runs the program.
fn by(verb: &str) -> OperatorRequest {
    let who = account::user().unwrap_or_else(|| "procession saga run".to_owned());
    OperatorRequest::new(who, format!("{verb}, as the command line asked"))
}

fn skipped(skipped: &SkippedUndo) {
    print::notice(&format!("the undo of [{}] was skipped: {}", skipped.state, skipped.by));
}
