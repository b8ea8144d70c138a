//! `Limiter`: the actor that holds the kernel's admissions, and gives permits
//! and locks to whoever came first. It knows tickets, not procedures.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Admissions, Blocker, Grant, Lack, Lacking, LimitCrowd, LimitKey, LockUse, Needs, Request, Ticket,
};

use crate::mail::{Depth, Outbox};
use crate::telemetry::LimiterMetrics;
use crate::view::NAMED;

/// Messages that wait for the limiter in its mailbox proper. The supervisor sends more if it has to (see `Ordered`);
/// each question beyond this costs a parked sender besides.
const MAILBOX: usize = 1024;

/// One that gives up what it held for its last stage and asks for the next, in one step.
pub(crate) struct Exchange {
    pub(crate) gives: Needs,
    pub(crate) asks: Request,
}

/// Asks for permits and locks; each request is granted at once or queued.
#[derive(Message, Default)]
#[rtype(result = "Acquired")]
pub(crate) struct Acquire {
    pub(crate) requests: Vec<Request>,
    pub(crate) exchange: Option<Exchange>,
}

/// What the limiter says to that.
#[derive(Default, MessageResponse)]
pub(crate) struct Acquired {
    /// Its place among all answers.
    pub(crate) turn: u64,
    /// In the order of the requests.
    pub(crate) grants: Vec<Grant>,
    /// The one that exchanged.
    pub(crate) exchanged: Option<Grant>,
    /// Others that are served by what it gave.
    pub(crate) served: Vec<Ticket>,
}

/// Gives recorded holders what they held, before anything else is granted.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Restore(pub(crate) Vec<Request>);

/// Changes what a ticket holds or waits for; others may be served thereby.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Change {
    /// Gives everything back, and leaves the queue.
    Release(Ticket),
    /// Gives these back.
    GiveBack(Ticket, Needs),
    /// Leaves the queue, and keeps what it holds.
    Cancel(Ticket),
    /// Leaves the queue, and keeps these alone, though it was served a moment ago.
    Keep(Ticket, Needs),
    /// Gets another place in the queues.
    Priority(Ticket, i16),
    /// Another capacity.
    Capacity(LimitKey, Option<u32>),
}

/// Asks whom these changes would let in, one after the other; nothing is changed. Answered
/// with what those held who would give back all, and who would be served, in order. None if
/// more claims are known than may be copied for that.
#[derive(Message)]
#[rtype(result = "Option<Foreseen>")]
pub(crate) struct Would(pub(crate) Vec<Change>);

/// What some changes would lead to.
pub(crate) struct Foreseen {
    pub(crate) released: Vec<(Ticket, Needs)>,
    pub(crate) served: Vec<Ticket>,
}

/// Claims that are copied to look ahead, at most: some milliseconds of the limiter's time.
const FORESEEN_MAX: usize = 20_000;

/// Asks how every limit stands, with the first who hold and wait; answered with its place among all answers.
#[derive(Message)]
#[rtype(result = "(u64, Vec<LimitCrowd>)")]
pub(crate) struct Usage;

/// Asks who holds and who waits for every lock; answered with its place among all answers.
#[derive(Message)]
#[rtype(result = "(u64, Vec<LockUse>)")]
pub(crate) struct LocksHeld;

/// One ticket that waits.
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    pub(crate) blockers: Vec<Blocker>,
    pub(crate) passed: u32,
    /// Its place in the order of service: who has a smaller one goes first.
    pub(crate) order: u128,
}

impl Waiting {
    /// All who wait, in the order of service.
    pub(crate) fn all(admissions: &Admissions) -> Vec<Self> {
        Self::from(admissions, 0, usize::MAX).0
    }

    /// Those who wait among so many claims, and where the next begin.
    fn from(admissions: &Admissions, from: usize, claims: usize) -> (Vec<Self>, Option<usize>) {
        let (page, next) = admissions.waiting_from(from, claims);
        let waiting = |(ticket, order)| Self {
            ticket,
            blockers: admissions.blockers(ticket),
            passed: admissions.passed(ticket),
            order,
        };
        (page.into_iter().map(waiting).collect(), next)
    }
}

/// Claims of one page: to look at them takes the limiter, and the supervisor that takes the answer, a millisecond.
const PAGE: usize = 2_048;

/// Asks who waits among the claims from this one on, and for whom; and of one of those who wait for all of what it
/// lacks, best of what it was told.
#[derive(Message)]
#[rtype(result = "Waiters")]
pub(crate) struct Waits {
    pub(crate) from: usize,
    pub(crate) of: Option<(Ticket, Lacking)>,
}

/// One page of those who wait.
#[derive(Default, MessageResponse)]
pub(crate) struct Waiters {
    /// Its place among all answers; 0 if there is no limiter any more.
    pub(crate) turn: u64,
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) lack: Option<Lack>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<usize>,
}

/// Says that these tickets, which waited, now hold all that they asked for.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Served {
    /// Its place among all answers.
    pub(crate) turn: u64,
    pub(crate) tickets: Vec<Ticket>,
}

/// The limiter's actor.
pub(crate) struct Limiter {
    admissions: Admissions,
    metrics: LimiterMetrics,
    supervisor: Outbox<Served>,
    mail: Arc<Depth>,
    /// How many answers were given. They must be taken in this order: one may
    /// rest on what another, whose commit is yet to come, has given back.
    turns: u64,
}

impl Limiter {
    pub(crate) fn new(
        admissions: Admissions,
        metrics: LimiterMetrics,
        supervisor: Outbox<Served>,
        mail: Arc<Depth>,
    ) -> Self {
        Self {
            admissions,
            metrics,
            supervisor,
            mail,
            turns: 0,
        }
    }

    const fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Shows how these limits stand, and those of whoever was served.
    fn show(&mut self, limits: &[LimitKey], served: &[Ticket]) {
        let of_served = served.iter().flat_map(|ticket| self.admissions.limits_of(*ticket));
        let keys: Vec<LimitKey> = limits.iter().cloned().chain(of_served).collect();
        for usage in keys.iter().filter_map(|key| self.admissions.usage_of(key)) {
            self.metrics.set(&usage);
        }
    }

    fn tell(&mut self, tickets: Vec<Ticket>, ctx: &mut Context<Self>) {
        if tickets.is_empty() {
            return;
        }
        let turn = self.next_turn();
        ctx.wait(self.supervisor.send(Served { turn, tickets }).into_actor(self));
    }
}

impl Actor for Limiter {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Acquire> for Limiter {
    type Result = Acquired;

    fn handle(&mut self, Acquire { requests, exchange }: Acquire, _: &mut Self::Context) -> Self::Result {
        self.mail.taken();
        let mut acquired = Acquired {
            turn: self.next_turn(),
            ..Acquired::default()
        };
        if let Some(Exchange { gives, asks }) = exchange {
            let (grant, served) = self.admissions.exchange(asks.ticket, &gives, asks);
            acquired.exchanged = Some(grant);
            acquired.served = served;
        }
        for request in requests {
            let limits = request.needs.limits.clone();
            let (grant, served) = self.admissions.request(request);
            self.show(&limits, &served);
            acquired.grants.push(grant);
            acquired.served.extend(served);
        }
        acquired
    }
}

impl Handler<Restore> for Limiter {
    type Result = ();

    fn handle(&mut self, Restore(requests): Restore, ctx: &mut Self::Context) {
        self.mail.taken();
        let mut served = Vec::new();
        for request in requests {
            let limits = request.needs.limits.clone();
            served.extend(self.admissions.restore(request));
            self.show(&limits, &[]);
        }
        self.tell(served, ctx);
    }
}

impl Handler<Change> for Limiter {
    type Result = ();

    fn handle(&mut self, change: Change, ctx: &mut Self::Context) {
        self.mail.taken();
        let limits = match &change {
            Change::Release(ticket) | Change::Cancel(ticket) | Change::Keep(ticket, _) => {
                self.admissions.limits_of(*ticket)
            }
            Change::GiveBack(_, needs) => needs.limits.clone(),
            Change::Capacity(key, _) => vec![key.clone()],
            Change::Priority(..) => Vec::new(),
        };
        let served = change.apply(&mut self.admissions);
        self.show(&limits, &served);
        self.tell(served, ctx);
    }
}

impl Change {
    /// Makes the change; gives who is served by it.
    fn apply(self, admissions: &mut Admissions) -> Vec<Ticket> {
        match self {
            Self::Release(ticket) => admissions.release(ticket),
            Self::GiveBack(ticket, needs) => admissions.give_back(ticket, &needs),
            Self::Cancel(ticket) => admissions.cancel(ticket),
            Self::Keep(ticket, needs) => admissions.keep(ticket, &needs),
            Self::Priority(ticket, priority) => admissions.set_priority(ticket, priority),
            Self::Capacity(key, limit) => admissions.set_limit(key, limit),
        }
    }
}

impl Handler<Would> for Limiter {
    type Result = MessageResult<Would>;

    fn handle(&mut self, Would(changes): Would, _: &mut Self::Context) -> Self::Result {
        self.mail.taken();
        if self.admissions.claimed() > FORESEEN_MAX {
            return MessageResult(None);
        }
        let mut admissions = self.admissions.clone();
        let (mut released, mut served) = (Vec::new(), Vec::new());
        for change in changes {
            if let Change::Release(ticket) = &change {
                released.push((*ticket, admissions.held(*ticket)));
            }
            served.extend(change.apply(&mut admissions));
        }
        MessageResult(Some(Foreseen { released, served }))
    }
}

impl Handler<Usage> for Limiter {
    type Result = MessageResult<Usage>;

    fn handle(&mut self, _: Usage, _: &mut Self::Context) -> Self::Result {
        self.mail.taken();
        MessageResult((self.next_turn(), self.admissions.crowds(NAMED)))
    }
}

impl Handler<LocksHeld> for Limiter {
    type Result = MessageResult<LocksHeld>;

    fn handle(&mut self, _: LocksHeld, _: &mut Self::Context) -> Self::Result {
        self.mail.taken();
        MessageResult((self.next_turn(), self.admissions.locks()))
    }
}

impl Handler<Waits> for Limiter {
    type Result = Waiters;

    fn handle(&mut self, Waits { from, of }: Waits, _: &mut Self::Context) -> Self::Result {
        self.mail.taken();
        let (waiting, next) = Waiting::from(&self.admissions, from, PAGE);
        let lack = of.and_then(|(ticket, lacking)| self.admissions.lack(ticket, &lacking));
        Waiters {
            turn: self.next_turn(),
            waiting,
            lack,
            next,
        }
    }
}
