//! Requests that are under way, and what their answers must agree with.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use procession::errors::{AskError, SubmitError};
use procession::health::Verdict;
use procession::messages::{Submit, SubmitBatch};
use procession::operate::{Operated, OperatorRequest};
use procession::status::Outcome;
use procession::testkit::Run;
use procession::{Handle, Procedure, ProcedureId};

use super::again::Asked;
use super::draw::Draw;
use super::support::{Active, Circling, Final, Holding, Jittery, Kept, Limited, Once, Patient, Plan, Planned, Tidy};

/// The number of the kind that bounds how often a stage runs in a row.
pub(crate) const CIRCLING: u64 = 6;

/// The number of the kind that keeps values behind stages.
pub(crate) const KEPT: u64 = 24;

/// What somebody is told.
#[derive(Debug)]
pub(crate) enum Told {
    /// The id of the submission with this key, or without one.
    Submitted(Option<String>, ProcedureId),
    /// Key and number of what an operator did.
    Operated(Option<String>, Option<u64>, String),
    /// The roots of a batch.
    Batch(Vec<ProcedureId>),
    /// What an operator asked for who submits, runs again or acknowledges, and the answer.
    Asked(Box<Asked>),
    /// The result of this family is acknowledged.
    Acknowledged(u64),
    /// How one ended.
    Ended(Outcome),
    /// Something that is only looked at in the log.
    Said(String),
    /// The engine takes no more commits, or has stopped.
    Stopped(String),
    /// What was to be read is damaged.
    Unreadable(String),
    /// It should never be told that.
    Wrong(String),
}

impl Told {
    /// Says it in the log.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Submitted(_, id) => id.to_string(),
            Self::Batch(ids) => format!("{ids:?}"),
            Self::Ended(outcome) => format!("{:?}", outcome.state),
            Self::Operated(_, _, text) | Self::Said(text) => text.clone(),
            Self::Asked(asked) => short(format!("{:?}", asked.answer)),
            Self::Acknowledged(family) => format!("{family} is acknowledged"),
            Self::Stopped(why) => format!("stopped: {why}"),
            Self::Unreadable(why) => format!("unreadable: {why}"),
            Self::Wrong(why) => format!("wrong: {why}"),
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Told>>>;

/// A request that is not answered yet.
struct Open {
    what: String,
    answer: Answer,
    /// Whose end it waits for.
    until: Option<ProcedureId>,
}

/// The requests under way in one life.
#[derive(Default)]
pub(crate) struct Requests {
    open: Vec<Open>,
}

impl Requests {
    pub(crate) fn add(&mut self, what: String, answer: impl Future<Output = Told> + 'static) {
        let (answer, until) = (Box::pin(answer), None);
        self.open.push(Open { what, answer, until });
    }

    /// Adds one that is answered when a procedure ends.
    pub(crate) fn watch(&mut self, id: ProcedureId, answer: impl Future<Output = Told> + 'static) {
        let (what, answer, until) = (format!("outcome of {id}"), Box::pin(answer), Some(id));
        self.open.push(Open { what, answer, until });
    }

    /// Polls all of them once, in an order that the seed draws; gives what was said.
    pub(crate) fn poll(&mut self, draw: &mut Draw) -> Vec<(String, Told)> {
        let mut said = Vec::new();
        let mut left = Vec::new();
        let mut waker = std::task::Context::from_waker(std::task::Waker::noop());
        while !self.open.is_empty() {
            let mut open = self.open.swap_remove(draw.place(self.open.len()));
            match open.answer.as_mut().poll(&mut waker) {
                std::task::Poll::Ready(told) => said.push((open.what, told)),
                std::task::Poll::Pending => left.push(open),
            }
        }
        self.open = left;
        said
    }

    /// Names those that nobody has answered, and that do not wait for an end.
    pub(crate) fn unanswered(&self) -> Vec<&str> {
        let open = self.open.iter().filter(|open| open.until.is_none());
        open.map(|open| open.what.as_str()).collect()
    }

    /// Returns those whose end somebody waits for.
    pub(crate) fn watched(&self) -> impl Iterator<Item = ProcedureId> {
        self.open.iter().filter_map(|open| open.until)
    }
}

/// Reads the answer to a question or to an operator.
pub(crate) fn told<T: Debug>(answer: Result<T, AskError>) -> Told {
    match answer {
        Ok(said) => Told::Said(short(format!("{said:?}"))),
        Err(AskError::JournalFailed(why)) => Told::Stopped(why),
        Err(error @ AskError::Moved { .. }) => Told::Stopped(error.to_string()),
        Err(AskError::Stopped) => Told::Stopped("stopped".to_owned()),
        Err(error @ AskError::Read(_)) => Told::Unreadable(error.to_string()),
        Err(error) => Told::Said(error.to_string()),
    }
}

/// Reads the verdicts: none may say that the limiter leaves somebody waiting for what is free.
pub(crate) fn verdicts(answer: Result<Vec<Verdict>, AskError>) -> Told {
    let verdicts = answer.as_deref().unwrap_or_default();
    match verdicts.iter().find(|verdict| verdict.fact("free").is_some()) {
        Some(unserved) => Told::Wrong(unserved.text.clone()),
        None => told(answer),
    }
}

/// Reads the answer to an operator's request.
pub(crate) fn operated(by: &OperatorRequest, answer: Result<Operated, AskError>) -> Told {
    match answer {
        Ok(operated) => {
            let key = by.key.as_ref().map(ToString::to_string);
            let number = operated.number;
            Told::Operated(key, number, short(format!("{operated:?}")))
        }
        Err(error) => told(Err::<(), _>(error)),
    }
}

/// Cuts a long answer: the log shows its beginning.
fn short(text: String) -> String {
    text.chars().take(160).collect()
}

/// Reads how one ended.
pub(crate) fn ended(answer: Result<Outcome, AskError>) -> Told {
    match answer {
        Ok(outcome) => Told::Ended(outcome),
        Err(error) => told(Err::<(), _>(error)),
    }
}

/// Reads what became of a submission.
fn refused(error: SubmitError) -> Told {
    match error {
        SubmitError::JournalFailed(why) => Told::Stopped(why),
        error @ SubmitError::Moved { .. } => Told::Stopped(error.to_string()),
        SubmitError::Stopped | SubmitError::Draining => Told::Stopped("stopped".to_owned()),
        error => Told::Wrong(error.to_string()),
    }
}

/// Submits plans together: all of them or none.
pub(crate) fn submit_batch(run: &Run, plans: Vec<Plan>) -> Pin<Box<dyn Future<Output = Told>>> {
    let supervisor = run.executor.supervisor().clone();
    Box::pin(async move {
        let submits: Result<Vec<Submit>, _> = plans.into_iter().map(|plan| Submit::new(&Planned(plan))).collect();
        let submits = match submits {
            Ok(submits) => submits,
            Err(error) => return Told::Wrong(error.to_string()),
        };
        match supervisor.send(SubmitBatch(submits)).await {
            Ok(Ok(ids)) => Told::Batch(ids),
            Ok(Err(error)) => refused(error),
            Err(_) => Told::Stopped("stopped".to_owned()),
        }
    })
}

/// Submits another value with a key that was given away: it must be refused.
pub(crate) fn conflict(run: &Run, plan: Plan, key: String) -> Pin<Box<dyn Future<Output = Told>>> {
    let sent = run.executor.submit(Planned(plan)).key(key).into_future();
    Box::pin(async move {
        match sent.await {
            Ok(handle) => Told::Wrong(format!("{} has the key of another", handle.id())),
            Err(error @ SubmitError::KeyConflict { .. }) => Told::Said(error.to_string()),
            Err(error) => refused(error),
        }
    })
}

/// Submits a plan as a kind that the number chooses.
pub(crate) fn submit(run: &Run, plan: Plan, kind: u64, key: Option<String>) -> Pin<Box<dyn Future<Output = Told>>> {
    match kind {
        0 => submit_as(run, Patient(plan), key),
        1 => submit_as(run, Final(plan), key),
        2 => submit_as(run, Limited(plan), key),
        3 => submit_as(run, Once(plan), key),
        4 => submit_as(run, Holding(plan), key),
        5 => submit_as(run, Active(plan), key),
        CIRCLING => submit_as(run, Circling(plan), key),
        7 => submit_as(run, Jittery(plan), key),
        8 => submit_as(run, Tidy(plan), key),
        KEPT => submit_as(run, Kept(plan), key),
        _ => submit_as(run, Planned(plan), key),
    }
}

/// Returns the name of the kind that the number chooses.
pub(crate) const fn kind_of(number: u64) -> &'static str {
    match number {
        0 => Patient::KIND,
        1 => Final::KIND,
        2 => Limited::KIND,
        3 => Once::KIND,
        4 => Holding::KIND,
        5 => Active::KIND,
        CIRCLING => Circling::KIND,
        7 => Jittery::KIND,
        8 => Tidy::KIND,
        KEPT => Kept::KIND,
        _ => Planned::KIND,
    }
}

fn submit_as<P: Procedure>(run: &Run, procedure: P, key: Option<String>) -> Pin<Box<dyn Future<Output = Told>>> {
    let mut submission = run.executor.submit(procedure);
    if let Some(key) = &key {
        submission = submission
            .key(key.clone())
            .label("key", key.as_str())
            .label("client", "story");
    }
    let sent = submission.into_future();
    Box::pin(async move {
        let answer: Result<Handle<P>, SubmitError> = sent.await;
        match answer {
            Ok(handle) => Told::Submitted(key, handle.id()),
            Err(error) => refused(error),
        }
    })
}

/// What clients know, and no crash takes from them.
#[derive(Default)]
pub(crate) struct Known {
    /// What each key was answered with.
    pub(crate) keys: BTreeMap<String, ProcedureId>,
    /// Every submission that was answered.
    pub(crate) ids: Vec<ProcedureId>,
}

impl Known {
    /// Takes note of an answer; a result that is kept makes one key one id.
    pub(crate) fn note(
        &mut self,
        key: Option<String>,
        id: ProcedureId,
        keeps: impl Fn(&ProcedureId) -> bool,
    ) -> Result<(), String> {
        if let Some(key) = key {
            let before = self.keys.insert(key.clone(), id);
            if before.is_some_and(|before| before != id && keeps(&before)) {
                return Err(format!("the key {key} was answered with {before:?}, and now with {id}"));
            }
            if before == Some(id) {
                return Ok(());
            }
        }
        if keeps(&id) && self.ids.contains(&id) {
            return Err(format!("{id} was given to two submissions"));
        }
        self.ids.push(id);
        Ok(())
    }
}
