//! Requests that change something about a procedure or the engine.

use actix::prelude::*;
use procession_kernel::{
    Answer, Blob, Event, EventName, Operated, OperatorRequest, ProcedureId, Refusal, Row, StoredTarget, Ticket, Verb,
};
use tokio::sync::oneshot;

use super::kept::Kept;
use super::submits::RETRY_AFTER;
use super::{Answered, Supervisor};
use crate::error::{AskError, SubmitError};
use crate::messages::{Acknowledge, Broadcast, Operate, SendSignal};

type Asked<T> = ResponseFuture<Result<T, AskError>>;

/// The answer to an operator, which may wait for a read of the store.
pub(super) type Operating = ResponseActFuture<Supervisor, Result<Operated, AskError>>;

impl Supervisor {
    /// Decides an event that carries a ticket, and gives the answer's future.
    pub(super) fn request(
        &mut self,
        event: impl FnOnce(Ticket) -> Event,
        ctx: &mut Context<Self>,
    ) -> Result<oneshot::Receiver<Answered>, AskError> {
        self.check_request()?;
        let (ticket, answer) = self.ticket();
        self.decide(event(ticket), ctx);
        Ok(answer)
    }

    fn check_request(&self) -> Result<(), AskError> {
        if let Some(refusal) = self.status.refusal() {
            return Err(refusal);
        }
        if self.tickets.len() >= self.queued {
            return Err(AskError::Busy {
                retry_after: RETRY_AFTER,
            });
        }
        Ok(())
    }
}

/// Waits for the answer. One who is not live either has ended, or is unknown: the store tells.
async fn answered(answer: Result<oneshot::Receiver<Answered>, AskError>, kept: Kept) -> Result<Answer, AskError> {
    match answer?.await {
        Ok(Ok(Answer::Refused(refusal))) => Err(refused(refusal, &kept).await),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(cause)) => Err(cause.unanswered()),
        Err(_) => Err(AskError::Stopped),
    }
}

async fn refused(refusal: Refusal, kept: &Kept) -> AskError {
    match refusal {
        Refusal::NotLive(id) => kept.not_live(id).await,
        Refusal::TooLarge(size, limit) | Refusal::BatchTooLarge(size, limit) => AskError::TooLarge { size, limit },
        Refusal::NotNow(why) => AskError::NotNow(why),
        Refusal::Revised(expected, found) => AskError::Revised { expected, found },
        Refusal::Draining => AskError::Stopped,
        Refusal::NumbersExhausted => AskError::NotNow(SubmitError::NumbersExhausted.to_string()),
        Refusal::UnknownKind(kind) => AskError::NotNow(format!("no procedure of kind \"{kind}\" is registered")),
        Refusal::SignalConflict(key, id, number) => AskError::SignalConflict {
            key: key.to_string(),
            id,
            number,
        },
        Refusal::BadKey(size, limit) => AskError::BadKey { size, limit },
        Refusal::BatchConflict(key, first, second) => {
            let conflict = SubmitError::BatchConflict {
                key: key.to_string(),
                first,
                second,
            };
            AskError::NotNow(conflict.to_string())
        }
        Refusal::KeyConflict(_, id) => AskError::NotNow(format!("the key was used for {id}")),
    }
}

impl Supervisor {
    /// Decides a request of an operator, with what the store holds of its target.
    pub(super) fn operate(
        &mut self,
        verb: Verb,
        by: OperatorRequest,
        stored: StoredTarget,
        ctx: &mut Context<Self>,
    ) -> Asked<Operated> {
        let is_dry = by.dry_run;
        let event = |ticket| Event::Requested(ticket, Box::new(verb), Box::new(by), stored);
        let answer = self.request(event, ctx);
        let kept = self.kept();
        let operated = async move {
            let Answer::Operated(operated) = answered(answer, kept).await? else {
                return Err(AskError::Stopped);
            };
            Ok(*operated)
        };
        if is_dry {
            self.foresee(operated, ctx)
        } else {
            Box::pin(operated)
        }
    }

    /// Replaces the result of a procedure that may have finished: its row is read first, and nothing is decided
    /// between that answer and this decision.
    fn override_result(&mut self, id: ProcedureId, output: Blob, by: OperatorRequest) -> Operating {
        Box::pin(self.finished_row(id).then(move |row, supervisor, ctx| {
            let operated = match row {
                Ok(row) => {
                    supervisor.finished.overtake(id.family);
                    let stored = row.map_or(StoredTarget::None, |row| StoredTarget::Row(Box::new(row)));
                    supervisor.operate(Verb::OverrideResult(id, output), by, stored, ctx)
                }
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
    }

    /// Takes note of the result of a finished root, whose row is read first.
    fn acknowledge(&mut self, id: ProcedureId, by: OperatorRequest) -> Operating {
        let root = ProcedureId::root(id.family);
        Box::pin(self.finished_row(root).then(move |row, supervisor, ctx| {
            let operated = match row.and_then(|row| supervisor.result_of(id, row)) {
                Ok(row) => supervisor.operate(Verb::Acknowledge(root), by, StoredTarget::Row(row), ctx),
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
    }
}

impl Handler<Operate> for Supervisor {
    type Result = Operating;

    /// Requests whose target may be in the store alone read it first. All others are decided before this returns:
    /// their order is the order of the messages.
    fn handle(&mut self, Operate { verb, by }: Operate, ctx: &mut Self::Context) -> Self::Result {
        let operated = match verb {
            Verb::OverrideResult(id, output) => return self.override_result(id, output, by),
            Verb::Acknowledge(id) => return self.acknowledge(id, by),
            Verb::Discharge(family) => return self.discharge(family, by),
            Verb::Drain(deadline) => self.drain_by(deadline, by, ctx),
            verb @ (Verb::Abort(_)
            | Verb::Pause(_)
            | Verb::Resume(_)
            | Verb::RetryNow(_)
            | Verb::Bypass(..)
            | Verb::RetryUndo(_)
            | Verb::SkipUndo(_)
            | Verb::SetPriority(..)
            | Verb::SetLimit(..)
            | Verb::AuditReveal(..)
            | Verb::Signal(..)) => self.operate(verb, by, StoredTarget::None, ctx),
        };
        Box::pin(operated.into_actor(self))
    }
}

impl Handler<SendSignal> for Supervisor {
    type Result = Asked<u32>;

    fn handle(&mut self, signal: SendSignal, ctx: &mut Self::Context) -> Self::Result {
        let SendSignal { id, name, payload, key } = signal;
        let event = |ticket| Event::Signalled {
            ticket,
            id,
            name: EventName::from(name),
            payload,
            key,
        };
        let answer = self.request(event, ctx);
        let kept = self.kept();
        Box::pin(async move {
            let Answer::Signalled(number) = answered(answer, kept).await? else {
                return Err(AskError::Stopped);
            };
            Ok(number)
        })
    }
}

impl Handler<Broadcast> for Supervisor {
    type Result = Asked<u32>;

    fn handle(&mut self, Broadcast { name, payload, key }: Broadcast, ctx: &mut Self::Context) -> Self::Result {
        let event = |ticket| Event::Broadcast {
            ticket,
            name: EventName::from(name),
            payload,
            key,
        };
        let answer = self.request(event, ctx);
        let kept = self.kept();
        Box::pin(async move {
            let Answer::Broadcast(woken) = answered(answer, kept).await? else {
                return Err(AskError::Stopped);
            };
            Ok(woken)
        })
    }
}

fn done(answer: Result<oneshot::Receiver<Answered>, AskError>, kept: Kept) -> Asked<()> {
    Box::pin(async move { answered(answer, kept).await.map(|_| ()) })
}

impl Handler<Acknowledge> for Supervisor {
    type Result = ResponseActFuture<Self, Result<(), AskError>>;

    fn handle(&mut self, Acknowledge(id): Acknowledge, _: &mut Self::Context) -> Self::Result {
        let row = self.finished_row(ProcedureId::root(id.family));
        Box::pin(row.then(move |row, supervisor, ctx| {
            let answer = row.and_then(|row| {
                let row = supervisor.result_of(id, row)?;
                supervisor.request(|ticket| Event::Acknowledged(ticket, row), ctx)
            });
            done(answer, supervisor.kept()).into_actor(supervisor)
        }))
    }
}

impl Supervisor {
    /// Gives the row of a finished root, of which something is decided at once.
    fn result_of(&mut self, id: ProcedureId, row: Option<Row>) -> Result<Box<Row>, AskError> {
        let root = ProcedureId::root(id.family);
        if self.kernel.row(root).is_some() {
            return Err(AskError::NotNow(format!(
                "{root} has not ended; there is no result to acknowledge"
            )));
        }
        let row = row.ok_or(AskError::Unknown(id))?;
        self.finished.overtake(root.family);
        Ok(Box::new(row))
    }
}
