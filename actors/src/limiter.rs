//! `Limiter`: the actor that holds the kernel's permits, and gives each to the
//! procedure that came first. It knows tickets, not procedures.

use actix::prelude::*;
use procession_kernel::{Grant, LimitKey, LimitUse, Permits, Ticket};

use crate::journal::deliver;

/// Requests that wait for the limiter.
const MAILBOX: usize = 1024;

/// One request for permits.
pub(crate) struct Demand {
    pub(crate) ticket: Ticket,
    pub(crate) limits: Vec<LimitKey>,
    pub(crate) priority: i16,
}

/// Asks for permits; each demand is granted at once or queued.
#[derive(Message)]
#[rtype(result = "Vec<Grant>")]
pub(crate) struct Acquire(pub(crate) Vec<Demand>);

/// Gives recorded holders their permits back, before anything else is granted.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Restore(pub(crate) Vec<Demand>);

/// Gives permits back, or leaves the queue.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct GiveBack(pub(crate) Ticket);

/// Changes a capacity.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct SetCapacity(pub(crate) LimitKey, pub(crate) Option<u32>);

/// Asks how every limit stands.
#[derive(Message)]
#[rtype(result = "Vec<LimitUse>")]
pub(crate) struct Usage;

/// Says that these tickets, which waited, now hold their permits.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Served(pub(crate) Vec<Ticket>);

/// The limiter's actor.
pub(crate) struct Limiter {
    permits: Permits,
    supervisor: Recipient<Served>,
}

impl Limiter {
    pub(crate) fn new(permits: Permits, supervisor: Recipient<Served>) -> Self {
        Self { permits, supervisor }
    }

    fn tell(&self, served: Vec<Ticket>, ctx: &mut Context<Self>) {
        if served.is_empty() {
            return;
        }
        let supervisor = self.supervisor.clone();
        ctx.wait(async move { deliver(&supervisor, Served(served)).await }.into_actor(self));
    }
}

impl Actor for Limiter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Acquire> for Limiter {
    type Result = MessageResult<Acquire>;

    fn handle(&mut self, Acquire(demands): Acquire, _: &mut Self::Context) -> Self::Result {
        let grant = |demand: Demand| self.permits.request(demand.ticket, demand.limits, demand.priority);
        MessageResult(demands.into_iter().map(grant).collect())
    }
}

impl Handler<Restore> for Limiter {
    type Result = ();

    fn handle(&mut self, Restore(demands): Restore, _: &mut Self::Context) {
        for demand in demands {
            self.permits.restore(demand.ticket, demand.limits, demand.priority);
        }
    }
}

impl Handler<GiveBack> for Limiter {
    type Result = ();

    fn handle(&mut self, GiveBack(ticket): GiveBack, ctx: &mut Self::Context) {
        let served = self.permits.release(ticket);
        self.tell(served, ctx);
    }
}

impl Handler<SetCapacity> for Limiter {
    type Result = ();

    fn handle(&mut self, SetCapacity(key, limit): SetCapacity, ctx: &mut Self::Context) {
        let served = self.permits.set_limit(key, limit);
        self.tell(served, ctx);
    }
}

impl Handler<Usage> for Limiter {
    type Result = MessageResult<Usage>;

    fn handle(&mut self, _: Usage, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.permits.usage())
    }
}
