//! What a journey tells the world behind the page: `POST /control` with one of these as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use procession::errors::SubmitError;
use procession::schedule::Schedule;
use procession::testkit::{Run, Trouble};
use procession::{Handle, Procedure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::audit;
use crate::kinds::{self, Act, Job, Limited};
use crate::sagas;
use crate::truth;

/// What is to be done.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Order {
    /// Begin with an empty journal.
    Fresh,
    /// Stop the engine, and start it again on what is on disk.
    Restart,
    /// Submit one procedure; gives its id.
    Submit {
        kind: String,
        act: Act,
        key: Option<String>,
        trace: Option<String>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    },
    /// Submit so many of the kind `job`; gives how many.
    Many { act: Act, count: u32 },
    /// Start a set, with so many nodes more than four; gives its id.
    Album { more: u32 },
    /// Append to a stream a node that ends, one that fails, and so many more; gives its id.
    Stream { more: u32 },
    /// Tell how each set stands, and its first nodes, as the engine has it.
    Sets,
    /// Set up a schedule whose runs wait for the event `go`; gives its id.
    Schedule,
    /// Audit a small root on which a package was changed; gives the id of the set.
    Audit,
    /// Put a package of that root there as it should be.
    Reinstall { package: String },
    /// Tell the lines of the audit's report.
    Report,
    /// Start a saga; gives its id once it rests or has ended.
    Saga { machine: String, params: Value },
    /// Send an event to a procedure.
    Signal { id: String, event: String },
    /// Repair what stuck undos trip over.
    Repair,
    /// Let time pass.
    Pass { ms: u64 },
    /// Tell how the engine itself sees it all.
    Truth,
    /// Tell of one procedure what the engine has of its stages.
    History { id: String },
}

/// An order, and where its answer goes.
pub(crate) struct Ordered {
    pub(crate) order: Order,
    pub(crate) answer: oneshot::Sender<Result<Value, String>>,
}

/// Carries out what concerns the engine that runs.
pub(crate) async fn carry_out(run: &Run, order: Order) -> Result<Value, Trouble> {
    match order {
        Order::Submit {
            kind,
            act,
            key,
            trace,
            labels,
        } => {
            let said = Said { key, trace, labels };
            let id = match kind.as_str() {
                "limited" => submit(run, Limited(act), said).await?,
                _ => submit(run, Job(act), said).await?,
            };
            run.settle().await;
            Ok(json!(id))
        }
        Order::Many { act, count } => {
            for _ in 0..count {
                submit(run, Job(act.clone()), Said::default()).await?;
            }
            run.settle().await;
            Ok(json!(count))
        }
        Order::Album { more } => {
            let set = run.executor.start_set(kinds::album(more)?).await?;
            run.settle().await;
            Ok(json!(set.id().to_string()))
        }
        Order::Stream { more } => {
            let stream = run.executor.stream("invoices", "customer-17")?;
            stream.extend(kinds::invoices(more)).await?;
            run.settle().await;
            Ok(json!(stream.open().await?.to_string()))
        }
        Order::Sets => truth::sets(run).await,
        Order::Schedule => {
            let schedule = Schedule::every(kinds::NIGHTLY, Duration::from_secs(3_600))?;
            let id = run.executor.schedule(schedule).await?.id();
            run.settle().await;
            Ok(json!(id.to_string()))
        }
        Order::Audit => {
            let set = audit::start(run).await?;
            run.settle().await;
            Ok(json!(set.id().to_string()))
        }
        Order::Reinstall { package } => {
            audit::reinstall(&package)?;
            Ok(Value::Null)
        }
        Order::Report => Ok(json!(audit::lines()?)),
        Order::Saga { machine, params } => sagas::start(run, &machine, &params).await,
        Order::Signal { id, event } => {
            run.executor.signal(id.parse()?, &event, &"now").await?;
            run.settle().await;
            Ok(Value::Null)
        }
        Order::Pass { ms } => {
            run.pass(Duration::from_millis(ms)).await;
            Ok(Value::Null)
        }
        Order::Repair => {
            kinds::repair(true);
            Ok(Value::Null)
        }
        Order::Truth => truth::truth(run).await,
        Order::History { id } => truth::history(run, id.parse()?).await,
        Order::Fresh | Order::Restart => Err("this concerns no engine".into()),
    }
}

/// What is said of a submission.
#[derive(Default)]
struct Said {
    key: Option<String>,
    trace: Option<String>,
    labels: BTreeMap<String, String>,
}

async fn submit<P: Procedure>(run: &Run, procedure: P, said: Said) -> Result<String, Trouble> {
    let Said { key, trace, labels } = said;
    let mut submission = run.executor.submit(procedure);
    if let Some(key) = key {
        submission = submission.key(key);
    }
    if let Some(trace) = trace {
        submission = submission.trace_parent(trace.parse()?);
    }
    for (name, value) in labels {
        submission = submission.label(name, value);
    }
    // No time has to pass for it. What looks at this engine has threads of its own, so that nothing
    // moves here for a moment does not mean that nothing ever will.
    let handle: Result<Handle<P>, SubmitError> = submission.await;
    Ok(handle?.id().to_string())
}
