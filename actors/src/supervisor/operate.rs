//! Requests that change something about a procedure or the engine.

use actix::prelude::*;
use procession_kernel::{
    Answer, Event, EventName, LimitKey, Operated, OperatorRequest, ProcedureId, Refusal, Row, Ticket, Verb,
};
use tokio::sync::oneshot;

use super::submits::RETRY_AFTER;
use super::{Answered, Supervisor};
use crate::error::{AskError, SubmitError};
use crate::messages::{
    Abort, Acknowledge, AcknowledgeBy, AuditReveal, Broadcast, Bypass, OverrideResult, Pause, Resume, RetryNow,
    RetryUndo, SendSignal, SetLimit, SetPriority, SignalBy, SkipUndo,
};
use crate::read::CommittedReader;

type Asked<T> = ResponseFuture<Result<T, AskError>>;

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

/// Waits for the answer. A procedure that is not live has ended or is unknown: the store says which.
async fn answered(
    answer: Result<oneshot::Receiver<Answered>, AskError>,
    committed: CommittedReader,
) -> Result<Answer, AskError> {
    match answer?.await {
        Ok(Ok(Answer::Refused(refusal))) => Err(refused(refusal, &committed).await),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(cause)) => Err(cause.unanswered()),
        Err(_) => Err(AskError::Stopped),
    }
}

async fn refused(refusal: Refusal, committed: &CommittedReader) -> AskError {
    match refusal {
        Refusal::NotLive(id) => committed.why_not_live(id).await,
        Refusal::TooLarge(size, limit) | Refusal::BatchTooLarge(size, limit) => AskError::TooLarge { size, limit },
        Refusal::NotNow(why) => AskError::NotNow(why),
        Refusal::Revised(expected, found, state) => AskError::Revised { expected, found, state },
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
    pub(super) fn operate(&mut self, verb: Verb, by: OperatorRequest, ctx: &mut Context<Self>) -> Asked<Operated> {
        let is_dry = by.dry_run;
        let event = |ticket| Event::Requested(ticket, Box::new(verb), Box::new(by));
        let answer = self.request(event, ctx);
        let committed = self.committed();
        let operated = async move {
            let Answer::Operated(operated) = answered(answer, committed).await? else {
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
}

impl Handler<Abort> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, Abort { id, by }: Abort, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::Abort(id), by, ctx)
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
        let committed = self.committed();
        Box::pin(async move {
            let Answer::Signalled(number) = answered(answer, committed).await? else {
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
        let committed = self.committed();
        Box::pin(async move {
            let Answer::Broadcast(woken) = answered(answer, committed).await? else {
                return Err(AskError::Stopped);
            };
            Ok(woken)
        })
    }
}

impl Handler<SetLimit> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, SetLimit { key, limit, by }: SetLimit, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::SetLimit(LimitKey::from(key), limit), by, ctx)
    }
}

impl Handler<SetPriority> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, SetPriority { id, priority, by }: SetPriority, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::SetPriority(id, priority), by, ctx)
    }
}

impl Handler<Pause> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, Pause { what, by }: Pause, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::Pause(what), by, ctx)
    }
}

impl Handler<Resume> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, Resume { what, by }: Resume, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::Resume(what), by, ctx)
    }
}

impl Handler<RetryNow> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, RetryNow { id, by }: RetryNow, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::RetryNow(id), by, ctx)
    }
}

impl Handler<Bypass> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, Bypass { id, scope, outcome, by }: Bypass, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::Bypass(id, scope, outcome), by, ctx)
    }
}

impl Handler<RetryUndo> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, RetryUndo { id, by }: RetryUndo, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::RetryUndo(id), by, ctx)
    }
}

impl Handler<SkipUndo> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, SkipUndo { id, by }: SkipUndo, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::SkipUndo(id), by, ctx)
    }
}

impl Handler<OverrideResult> for Supervisor {
    type Result = ResponseActFuture<Self, Result<Operated, AskError>>;

    fn handle(&mut self, OverrideResult { id, output, by }: OverrideResult, _: &mut Self::Context) -> Self::Result {
        Box::pin(self.finished_row(id).then(move |row, supervisor, ctx| {
            let operated = match row {
                Ok(row) => {
                    supervisor.finished.overtake(id.family);
                    supervisor.operate(Verb::OverrideResult(id, output, row.map(Box::new)), by, ctx)
                }
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
    }
}

fn done(answer: Result<oneshot::Receiver<Answered>, AskError>, committed: CommittedReader) -> Asked<()> {
    Box::pin(async move { answered(answer, committed).await.map(|_| ()) })
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
            done(answer, supervisor.committed()).into_actor(supervisor)
        }))
    }
}

impl Handler<AcknowledgeBy> for Supervisor {
    type Result = ResponseActFuture<Self, Result<Operated, AskError>>;

    fn handle(&mut self, AcknowledgeBy { id, by }: AcknowledgeBy, _: &mut Self::Context) -> Self::Result {
        let root = ProcedureId::root(id.family);
        Box::pin(self.finished_row(root).then(move |row, supervisor, ctx| {
            let operated = match row.and_then(|row| supervisor.result_of(id, row)) {
                Ok(row) => supervisor.operate(Verb::Acknowledge(root, row), by, ctx),
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
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

impl Handler<AuditReveal> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, AuditReveal { id, what, by }: AuditReveal, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::AuditReveal(id, what), by, ctx)
    }
}

impl Handler<SignalBy> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, SignalBy { signal, by }: SignalBy, ctx: &mut Self::Context) -> Self::Result {
        let SendSignal { id, name, payload, .. } = signal;
        self.operate(Verb::Signal(id, EventName::from(name), payload), by, ctx)
    }
}
