//! Requests that are under way, and what their answers must agree with.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use procession::testkit::Run;
use procession::{AskError, By, Handle, Operated, Procedure, ProcedureId, SubmitError};

use super::draw::Draw;
use super::support::{Active, Circling, Final, Holding, Jittery, Limited, Once, Patient, Plan, Planned, Tidy};

/// What somebody is told.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// The id of the submission with this key, or without one.
    Submitted(Option<String>, ProcedureId),
    /// Key and number of what an operator did.
    Operated(Option<String>, Option<u64>, String),
    /// Something that is only looked at in the log.
    Said(String),
    /// The engine takes no more commits, or has stopped.
    Stopped(String),
    /// It should never be told that.
    Wrong(String),
}

impl Told {
    /// Says it in the log.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Submitted(_, id) => id.to_string(),
            Self::Operated(_, _, text) | Self::Said(text) => text.clone(),
            Self::Stopped(why) => format!("stopped: {why}"),
            Self::Wrong(why) => format!("wrong: {why}"),
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Told>>>;

/// A request that is not answered yet.
struct Open {
    what: String,
    answer: Answer,
}

/// The requests under way in one life.
#[derive(Default)]
pub(crate) struct Requests {
    open: Vec<Open>,
}

impl Requests {
    pub(crate) fn add(&mut self, what: String, answer: impl Future<Output = Told> + 'static) {
        let answer = Box::pin(answer);
        self.open.push(Open { what, answer });
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

    /// Names those that nobody has answered.
    pub(crate) fn unanswered(&self) -> Vec<&str> {
        self.open.iter().map(|open| open.what.as_str()).collect()
    }
}

/// Reads the answer to a question or to an operator.
pub(crate) fn told<T: Debug>(answer: Result<T, AskError>) -> Told {
    match answer {
        Ok(said) => Told::Said(short(format!("{said:?}"))),
        Err(AskError::JournalFailed(why)) => Told::Stopped(why),
        Err(AskError::Stopped) => Told::Stopped("stopped".to_owned()),
        Err(error @ AskError::Read(_)) => Told::Wrong(error.to_string()),
        Err(error) => Told::Said(error.to_string()),
    }
}

/// Reads the answer to an operator's request.
pub(crate) fn operated(by: &By, answer: Result<Operated, AskError>) -> Told {
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

/// Submits a plan as a kind that the number chooses.
pub(crate) fn submit(run: &Run, plan: Plan, kind: u64, key: Option<String>) -> Pin<Box<dyn Future<Output = Told>>> {
    match kind {
        0 => submit_as(run, Patient(plan), key),
        1 => submit_as(run, Final(plan), key),
        2 => submit_as(run, Limited(plan), key),
        3 => submit_as(run, Once(plan), key),
        4 => submit_as(run, Holding(plan), key),
        5 => submit_as(run, Active(plan), key),
        6 => submit_as(run, Circling(plan), key),
        7 => submit_as(run, Jittery(plan), key),
        8 => submit_as(run, Tidy(plan), key),
        _ => submit_as(run, Planned(plan), key),
    }
}

fn submit_as<P: Procedure>(run: &Run, procedure: P, key: Option<String>) -> Pin<Box<dyn Future<Output = Told>>> {
    let mut submission = run.executor.submit(procedure);
    if let Some(key) = &key {
        submission = submission.key(key.clone());
    }
    let sent = submission.into_future();
    Box::pin(async move {
        let answer: Result<Handle<P>, SubmitError> = sent.await;
        match answer {
            Ok(handle) => Told::Submitted(key, handle.id()),
            Err(SubmitError::JournalFailed(why)) => Told::Stopped(why),
            Err(SubmitError::Stopped | SubmitError::Draining) => Told::Stopped("stopped".to_owned()),
            Err(error) => Told::Wrong(error.to_string()),
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
    /// Takes note of an answer; results that are kept make one key one id.
    pub(crate) fn note(&mut self, key: Option<String>, id: ProcedureId, keeps: bool) -> Result<(), String> {
        if let Some(key) = key {
            let before = self.keys.insert(key.clone(), id);
            if keeps && before.is_some_and(|before| before != id) {
                return Err(format!("the key {key} was answered with {before:?}, and now with {id}"));
            }
            if before == Some(id) {
                return Ok(());
            }
        }
        if keeps && self.ids.contains(&id) {
            return Err(format!("{id} was given to two submissions"));
        }
        self.ids.push(id);
        Ok(())
    }
}
