//! `Limiter`: the actor that holds the kernel's admissions, and grants permits and locks in the order of requests. It
//! knows claims, not procedures.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Admissions, Blocker, Claim, ClaimId, Grant, Lack, Lacking, LimitCrowd, LimitKey, LockUse, Needs, Request,
};

use crate::mail::{Depth, Outbox};
use crate::telemetry::LimiterMetrics;
use crate::view::NAMED;

/// Messages that wait for the limiter in its mailbox proper. The supervisor sends more if it has to (see `Ordered`);
/// each question beyond this costs a parked sender besides.
const MAILBOX: usize = 1024;

/// Gives up what a claim held for the last stage and requests what the next one needs, in one step.
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

/// The answer to one request, under the claim and generation of the request.
pub(crate) struct Answer {
    pub(crate) claim: Claim,
    pub(crate) grant: Grant,
}

/// The answer to [`Acquire`].
#[derive(Default, MessageResponse)]
pub(crate) struct Acquired {
    /// Its place among all answers.
    pub(crate) turn: u64,
    /// In the order of the requests.
    pub(crate) answers: Vec<Answer>,
    /// The answer to the exchange.
    pub(crate) exchanged: Option<Answer>,
    /// Requests of other claims, which waited until now, in the order of service.
    pub(crate) served: Vec<Claim>,
}

/// Gives recorded holders what they held, before anything else is granted.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Restore(pub(crate) Vec<Request>);

/// Changes what a claim holds or waits for. Others may be served by that.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Change {
    /// Gives everything back, and leaves the queue.
    Release(ClaimId),
    /// Gives these back.
    GiveBack(ClaimId, Needs),
    /// Leaves the queue, and keeps what it holds.
    Cancel(ClaimId),
    /// Leaves the queue, and keeps these alone, though it was served a moment ago.
    Keep(ClaimId, Needs),
    /// Gets another place in the queues.
    Priority(ClaimId, i16),
    /// Another capacity.
    Capacity(LimitKey, Option<u32>),
}

/// Makes these changes on a copy. Returns none if there are more claims than may be copied for that.
#[derive(Message)]
#[rtype(result = "Option<Simulated>")]
pub(crate) struct Simulate(pub(crate) Vec<Change>);

/// What some changes would lead to.
pub(crate) struct Simulated {
    /// What the released claims hold.
    pub(crate) released: Vec<(ClaimId, Needs)>,
    /// Requests that would be served, in order.
    pub(crate) served: Vec<Claim>,
}

/// The most claims that are copied for a simulation: some milliseconds of the limiter's time.
const SIMULATED_MAX: usize = 20_000;

/// Asks how every limit stands, with the first who hold and wait; answered with its place among all answers.
#[derive(Message)]
#[rtype(result = "(u64, Vec<LimitCrowd>)")]
pub(crate) struct Usage;

/// Asks who holds and who waits for every lock; answered with its place among all answers.
#[derive(Message)]
#[rtype(result = "(u64, Vec<LockUse>)")]
pub(crate) struct LocksHeld;

/// One claim that waits.
pub(crate) struct Waiting {
    pub(crate) claim: ClaimId,
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
        let waiting = |(claim, order)| Self {
            claim,
            blockers: admissions.blockers(claim),
            passed: admissions.passed(claim),
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
    pub(crate) of: Option<(ClaimId, Lacking)>,
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

/// Says that these requests, which waited, are now granted.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Served {
    /// Its place among all answers.
    pub(crate) turn: u64,
    pub(crate) claims: Vec<Claim>,
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

    /// Shows how these limits stand, and the limits of the served claims.
    fn show(&mut self, limits: &[LimitKey], served: &[Claim]) {
        let of_served = served.iter().flat_map(|claim| self.admissions.limits_of(claim.id));
        let keys: Vec<LimitKey> = limits.iter().cloned().chain(of_served).collect();
        for usage in keys.iter().filter_map(|key| self.admissions.usage_of(key)) {
            self.metrics.set(&usage);
        }
    }

    fn tell(&mut self, claims: Vec<Claim>, ctx: &mut Context<Self>) {
        if claims.is_empty() {
            return;
        }
        let turn = self.next_turn();
        ctx.wait(self.supervisor.send(Served { turn, claims }).into_actor(self));
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
            let claim = asks.claim;
            let (grant, served) = self.admissions.exchange(&gives, asks);
            acquired.exchanged = Some(Answer { claim, grant });
            acquired.served = served;
        }
        for request in requests {
            let (claim, limits) = (request.claim, request.needs.limits.clone());
            let (grant, served) = self.admissions.request(request);
            self.show(&limits, &served);
            acquired.answers.push(Answer { claim, grant });
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
            Change::Release(claim) | Change::Cancel(claim) | Change::Keep(claim, _) => {
                self.admissions.limits_of(*claim)
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
    /// Makes the change. Returns the requests that are served by it.
    fn apply(self, admissions: &mut Admissions) -> Vec<Claim> {
        match self {
            Self::Release(claim) => admissions.release(claim),
            Self::GiveBack(claim, needs) => admissions.give_back(claim, &needs),
            Self::Cancel(claim) => admissions.cancel(claim),
            Self::Keep(claim, needs) => admissions.keep(claim, &needs),
            Self::Priority(claim, priority) => admissions.set_priority(claim, priority),
            Self::Capacity(key, limit) => admissions.set_limit(key, limit),
        }
    }
}

impl Handler<Simulate> for Limiter {
    type Result = MessageResult<Simulate>;

    fn handle(&mut self, Simulate(changes): Simulate, _: &mut Self::Context) -> Self::Result {
        self.mail.taken();
        if self.admissions.claimed() > SIMULATED_MAX {
            return MessageResult(None);
        }
        let mut admissions = self.admissions.clone();
        let (mut released, mut served) = (Vec::new(), Vec::new());
        for change in changes {
            if let Change::Release(claim) = &change {
                released.push((*claim, admissions.held(*claim)));
            }
            served.extend(change.apply(&mut admissions));
        }
        MessageResult(Some(Simulated { released, served }))
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
        let lack = of.and_then(|(claim, lacking)| self.admissions.lack(claim, &lacking));
        Waiters {
            turn: self.next_turn(),
            waiting,
            lack,
            next,
        }
    }
}
