//! Requests of operators.

use actix::prelude::*;
use procession_kernel::{EventName, LimitKey, Operated, ProcedureId, Verb};

use super::Supervisor;
use crate::error::AskError;
use crate::messages::{
    Abort, AcknowledgeBy, AuditReveal, Bypass, OverrideResult, Pause, Resume, RetryNow, RetryUndo, SendSignal,
    SetLimit, SetPriority, SignalBy, SkipUndo,
};

type Asked<T> = ResponseFuture<Result<T, AskError>>;

impl Handler<Abort> for Supervisor {
    type Result = Asked<Operated>;

    fn handle(&mut self, Abort { id, by }: Abort, ctx: &mut Self::Context) -> Self::Result {
        self.operate(Verb::Abort(id), by, ctx)
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
                    supervisor.requests.overtake(id.family);
                    supervisor.operate(Verb::OverrideResult(id, output, row.map(Box::new)), by, ctx)
                }
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
    }
}

impl Handler<AcknowledgeBy> for Supervisor {
    type Result = ResponseActFuture<Self, Result<Operated, AskError>>;

    fn handle(&mut self, AcknowledgeBy { id, by }: AcknowledgeBy, _: &mut Self::Context) -> Self::Result {
        let root = ProcedureId::root(id.family);
        Box::pin(self.finished_row(root).then(move |row, supervisor, ctx| {
            let operated = match row.and_then(|row| supervisor.requests.result_of(&supervisor.kernel, id, row)) {
                Ok(row) => supervisor.operate(Verb::Acknowledge(root, row), by, ctx),
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
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
