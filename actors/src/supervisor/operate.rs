//! Requests that change something about a procedure or the engine.

use actix::prelude::*;
use procession_kernel::{AbortAnswer, Answer, Event, EventName, LimitKey, Operator, ProcedureId, Refusal, Ticket};
use tokio::sync::oneshot;

use super::submits::RETRY_AFTER;
use super::{Answered, Supervisor};
use crate::error::AskError;
use crate::journal::Reader;
use crate::messages::{Abort, Acknowledge, Resume, RetryUndo, SendSignal, SetLimit, SkipUndo};

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
        if let Some(refusal) = self.refusal() {
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
async fn answered(answer: Result<oneshot::Receiver<Answered>, AskError>, reader: Reader) -> Result<Answer, AskError> {
    match answer?.await {
        Ok(Ok(Answer::Refused(refusal))) => Err(refused(refusal, &reader).await),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(why)) => Err(AskError::JournalFailed(why)),
        Err(_) => Err(AskError::Stopped),
    }
}

async fn refused(refusal: Refusal, reader: &Reader) -> AskError {
    match refusal {
        Refusal::NotLive(id) => match reader.row(id).await {
            Ok(Some(row)) if row.is_ended() => AskError::Finished(id),
            Ok(Some(_)) => AskError::NotNow(format!("the family of {id} is quarantined; see why with a snapshot")),
            Ok(None) => AskError::Unknown(id),
            Err(error) => AskError::Read(error),
        },
        Refusal::TooLarge(size, limit) | Refusal::BatchTooLarge(size, limit) => AskError::TooLarge { size, limit },
        Refusal::NotNow(why) => AskError::NotNow(why),
        Refusal::Draining => AskError::Stopped,
        Refusal::UnknownKind(kind) => AskError::NotNow(format!("no procedure of kind \"{kind}\" is registered")),
        Refusal::KeyConflict(_, id) => AskError::NotNow(format!("the key was used for {id}")),
    }
}

fn operator(who: String, why: String) -> Operator {
    Operator { who, why }
}

impl Handler<Abort> for Supervisor {
    type Result = Asked<AbortAnswer>;

    fn handle(&mut self, Abort { id, who, why }: Abort, ctx: &mut Self::Context) -> Self::Result {
        let answer = self.request(|ticket| Event::AbortRequested(ticket, id, operator(who, why)), ctx);
        let reader = self.reader.clone();
        Box::pin(async move {
            match answered(answer, reader).await? {
                Answer::Aborted(answer) => Ok(answer),
                Answer::Submitted(_) | Answer::Signalled(_) | Answer::Done | Answer::Refused(_) => {
                    Err(AskError::Stopped)
                }
            }
        })
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
        let reader = self.reader.clone();
        Box::pin(async move {
            match answered(answer, reader).await? {
                Answer::Signalled(number) => Ok(number),
                Answer::Submitted(_) | Answer::Aborted(_) | Answer::Done | Answer::Refused(_) => Err(AskError::Stopped),
            }
        })
    }
}

impl Handler<SetLimit> for Supervisor {
    type Result = Asked<()>;

    fn handle(&mut self, SetLimit { key, limit }: SetLimit, ctx: &mut Self::Context) -> Self::Result {
        let answer = self.request(|ticket| Event::LimitSet(ticket, LimitKey::from(key), limit), ctx);
        done(answer, self.reader.clone())
    }
}

impl Handler<RetryUndo> for Supervisor {
    type Result = Asked<()>;

    fn handle(&mut self, RetryUndo { id, who, why }: RetryUndo, ctx: &mut Self::Context) -> Self::Result {
        let answer = self.request(|ticket| Event::UndoRetryRequested(ticket, id, operator(who, why)), ctx);
        done(answer, self.reader.clone())
    }
}

impl Handler<SkipUndo> for Supervisor {
    type Result = Asked<()>;

    fn handle(&mut self, SkipUndo { id, who, why }: SkipUndo, ctx: &mut Self::Context) -> Self::Result {
        let answer = self.request(|ticket| Event::UndoSkipRequested(ticket, id, operator(who, why)), ctx);
        done(answer, self.reader.clone())
    }
}

impl Handler<Resume> for Supervisor {
    type Result = Asked<()>;

    fn handle(&mut self, Resume { id, who, why }: Resume, ctx: &mut Self::Context) -> Self::Result {
        let answer = self.request(|ticket| Event::ResumeRequested(ticket, id, operator(who, why)), ctx);
        done(answer, self.reader.clone())
    }
}

fn done(answer: Result<oneshot::Receiver<Answered>, AskError>, reader: Reader) -> Asked<()> {
    Box::pin(async move { answered(answer, reader).await.map(|_| ()) })
}

impl Handler<Acknowledge> for Supervisor {
    type Result = ResponseActFuture<Self, Result<(), AskError>>;

    fn handle(&mut self, Acknowledge(id): Acknowledge, _: &mut Self::Context) -> Self::Result {
        let root = ProcedureId::root(id.family);
        let live = self.kernel.row(root).is_some();
        let (settled, reader) = (self.settled(), self.reader.clone());
        let read = async move {
            settled.await?;
            if live {
                return Err(AskError::NotNow(format!(
                    "{root} has not ended; there is no result to acknowledge"
                )));
            }
            reader.row(root).await?.ok_or(AskError::Unknown(id))
        };
        Box::pin(read.into_actor(self).then(|row, supervisor, ctx| {
            let answer =
                row.and_then(|row| supervisor.request(|ticket| Event::Acknowledged(ticket, Box::new(row)), ctx));
            done(answer, supervisor.reader.clone()).into_actor(supervisor)
        }))
    }
}
