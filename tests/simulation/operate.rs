//! What operators ask for: every verb, some of them as a dry run, some on a
//! revision, some with a key and then once more. Submissions, runs of what
//! failed, and acknowledgements are drawn in `again`.

use std::future::Future;
use std::pin::Pin;

use procession::errors::AskError;
use procession::messages::Operate;
use procession::operate::{BypassAs, BypassScope, Operated, OperatorRequest, PauseScope};
use procession::procedure::Kind;
use procession::status::{Seq, WaitReason};
use procession::testkit::Run;
use procession::{Executor, ProcedureId};

use super::again::{Asked, Submission};
use super::client::{Requests, Told, operated};
use super::settings::LIMITS;
use super::story::Story;

/// One request of an operator.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Abort(ProcedureId),
    Pause(PauseScope),
    Resume(PauseScope),
    RetryNow(ProcedureId),
    Decide(ProcedureId, i64),
    Bypass(ProcedureId, BypassScope, BypassAs),
    BypassWith(ProcedureId, BypassScope, i64),
    Override(ProcedureId, i64),
    Priority(ProcedureId, i16),
    Limit(&'static str, Option<u32>),
    RetryUndo(ProcedureId),
    SkipUndo(ProcedureId),
    Discharge(u64),
    RunAgain(ProcedureId),
    Acknowledge(ProcedureId),
    Submit(Box<Submission>),
}

type Sent = Pin<Box<dyn Future<Output = Result<Operated, AskError>>>>;

impl Ask {
    pub(crate) fn send(self, executor: Executor, by: OperatorRequest) -> Sent {
        Box::pin(async move {
            match self {
                Self::Abort(id) => executor.abort(id, by).await,
                Self::Pause(what) => executor.pause(what, by).await,
                Self::Resume(what) => executor.resume(what, by).await,
                Self::RetryNow(id) => executor.retry_now(id, by).await,
                Self::Decide(id, answer) => executor.decide(id, &answer, by).await,
                Self::Bypass(id, scope, outcome) => executor.bypass(id, scope, outcome, by).await,
                Self::BypassWith(id, scope, output) => executor.bypass_with_output(id, scope, &output, by).await,
                Self::Override(id, output) => executor.override_result(id, &output, by).await,
                Self::Priority(id, priority) => executor.set_priority(id, priority, by).await,
                Self::Limit(key, limit) => executor.set_limit(key, limit, by).await,
                Self::RetryUndo(id) => executor.retry_undo(id, by).await,
                Self::SkipUndo(id) => executor.skip_undo(id, by).await,
                Self::Discharge(family) => executor.discharge(family, by).await,
                Self::RunAgain(id) => executor.run_again(id, by).await,
                Self::Acknowledge(id) => match executor.supervisor().send(Operate::acknowledge(id, by)).await {
                    Ok(answer) => answer,
                    Err(_) => Err(AskError::Stopped),
                },
                Self::Submit(submission) => submission.send(&executor, by).await,
            }
        })
    }
}

pub(crate) fn operator() -> OperatorRequest {
    OperatorRequest::new("sim", "because")
}

impl Story {
    /// Lets an operator ask for something.
    pub(crate) fn operate(&mut self, run: &Run, requests: &mut Requests) {
        let again = if self.draw.percent(12) {
            let again = self.draw.pick(&self.asked);
            again.map(|(ask, by)| (self.borrow_key(ask, &by), by))
        } else {
            None
        };
        let Some((ask, by)) = again.or_else(|| self.new_ask()) else {
            return;
        };
        self.send(run, requests, ask, by);
    }

    pub(crate) fn send(&mut self, run: &Run, requests: &mut Requests, ask: Ask, by: OperatorRequest) {
        if let Ask::Limit(key, limit) = &ask {
            self.may_widen(key, *limit);
        }
        let what = format!("{ask:?}{}", if by.dry_run { ", dry" } else { "" });
        self.log.push(format!("ask {what} {:?}", by.key));
        self.may_take_effect(&ask, &by);
        let sent = ask.clone().send(run.executor.clone(), by.clone());
        requests.add(what, async move {
            let answer = sent.await;
            if ask.is_followed() {
                Told::Asked(Box::new(Asked { ask, by, answer }))
            } else {
                operated(&by, answer)
            }
        });
    }

    fn new_ask(&mut self) -> Option<(Ask, OperatorRequest)> {
        let ask = self.ask()?;
        let mut by = operator();
        by.dry_run = self.draw.percent(15);
        if self.draw.percent(10) {
            by = by.expecting(Seq(self.draw.below(200)));
        }
        if self.draw.percent(40) && !by.dry_run {
            by = by.key(format!("act {}", self.asked.len()));
            self.asked.push((ask.clone(), by.clone()));
        }
        Some((ask, by))
    }

    /// Draws somebody, one that waits for this if there is one.
    fn who(&mut self, waits: impl Fn(&WaitReason) -> bool) -> Option<ProcedureId> {
        let such: Vec<ProcedureId> = self
            .seen
            .iter()
            .filter(|(_, wait)| wait.as_ref().is_some_and(&waits))
            .map(|(id, _)| *id)
            .collect();
        self.draw.pick(&such).or_else(|| self.anybody())
    }

    /// Draws anybody, also one that has ended.
    pub(crate) fn anybody(&mut self) -> Option<ProcedureId> {
        if self.draw.percent(40) {
            return self.draw.pick(&self.known.ids);
        }
        self.draw.pick(&self.seen).map(|(id, _)| id)
    }

    pub(crate) fn ask(&mut self) -> Option<Ask> {
        if let Some(ask) = self.ask_apart() {
            return Some(ask);
        }
        let scopes = [
            BypassScope::Alone,
            BypassScope::Descendants,
            BypassScope::Ancestors,
            BypassScope::Family,
        ];
        let scope = self.draw.pick(&scopes).unwrap_or_default();
        Some(match self.draw.below(40) {
            0..6 => Ask::Abort(self.anybody()?),
            6..11 => Ask::Pause(self.pause()?),
            11..20 => Ask::Resume(self.pause()?),
            22..23 => Ask::Decide(self.who(|wait| wait.question().is_some())?, 5),
            20..22 => Ask::RetryNow(self.who(may_retry)?),
            23..25 if self.is_rash => Ask::Bypass(self.anybody()?, scope, BypassAs::Success),
            25..26 if self.is_rash => Ask::Bypass(self.anybody()?, scope, BypassAs::Failed),
            26..27 if self.is_rash => Ask::BypassWith(self.anybody()?, scope, 77),
            23..28 => Ask::Override(self.anybody()?, 78),
            28..30 => Ask::Priority(self.anybody()?, i16::try_from(self.draw.below(5)).unwrap_or(0)),
            30..35 => {
                let limit = 1 + self.draw.small(5);
                Ask::Limit(self.draw.pick(&LIMITS)?, self.draw.percent(85).then_some(limit))
            }
            35..37 => Ask::RetryUndo(self.who(|wait| *wait == WaitReason::RollbackFailed)?),
            37..39 => Ask::SkipUndo(self.who(|wait| *wait == WaitReason::RollbackFailed)?),
            _ => Ask::Discharge(self.anybody()?.family),
        })
    }

    fn pause(&mut self) -> Option<PauseScope> {
        Some(match self.draw.below(8) {
            0 => PauseScope::All,
            1..3 => PauseScope::Kind(Kind::from(self.draw.pick(&["planned", "limited", "patient"])?)),
            _ => PauseScope::One(self.anybody()?),
        })
    }
}

/// What `retry_now` sets going.
const fn may_retry(wait: &WaitReason) -> bool {
    matches!(
        wait,
        WaitReason::Backoff(..)
            | WaitReason::Poison
            | WaitReason::RollbackFailed
            | WaitReason::Decision(_)
            | WaitReason::Gate
    )
}
