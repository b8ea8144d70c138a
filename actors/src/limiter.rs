//! `Limiter`: the actor that holds the kernel's admissions, and grants permits and locks in the order of requests. It
//! knows claims, not procedures.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Admissions, Blocker, Claim, ClaimId, Grant, Lacking, Limit, LimitDetail, LimitKey, LockUse, Missing, Needs,
    Request, Timestamp,
};

use crate::clock::Clock;
use crate::queues::{Depth, Outbox};
use crate::telemetry::LimiterMetrics;
use crate::view::NAMED;

/// The capacity of the limiter's mailbox. The supervisor sends more messages if it has to (see `Ordered`). Each request
/// beyond the capacity also costs a parked sender.
const MAILBOX: usize = 1024;

/// Releases what a claim held for the last stage and requests what the next stage needs, in one step.
pub(crate) struct Exchange {
    pub(crate) gives: Needs,
    pub(crate) asks: Request,
}

/// Requests permits and locks. Each request is granted at once or queued.
#[derive(Message, Default)]
#[rtype(result = "Acquired")]
pub(crate) struct Acquire {
    pub(crate) requests: Vec<Request>,
    /// The places of the first requests, if these waited before the start. The others come behind all who wait.
    pub(crate) places: Vec<u32>,
    pub(crate) exchange: Option<Exchange>,
}

/// The answer to one request, with the request's claim and generation.
pub(crate) struct Answer {
    pub(crate) claim: Claim,
    pub(crate) grant: Grant,
}

/// The answer to [`Acquire`].
#[derive(Default, MessageResponse)]
pub(crate) struct Acquired {
    /// The answer's position among all answers of the limiter.
    pub(crate) turn: u64,
    /// The answers, in the order of the requests.
    pub(crate) answers: Vec<Answer>,
    /// The answer to the exchange.
    pub(crate) exchanged: Option<Answer>,
    /// Waiting requests of other claims that were granted by the exchange, in the order of service.
    pub(crate) served: Vec<Claim>,
}

/// Restores the permits and locks of recorded holders, before anything else is granted.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Restore(pub(crate) Vec<Request>);

/// Changes what a claim holds or waits for. Other requests may be granted because of the change.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Change {
    /// Releases everything, and leaves the queue.
    Release(ClaimId),
    /// Does the same for a claim whose procedure never came to be: its grant counts for no rate.
    Withdraw(ClaimId),
    /// Releases these needs.
    GiveBack(ClaimId, Needs),
    /// Leaves the queue, and keeps what the claim holds.
    Cancel(ClaimId),
    /// Leaves the queue, and keeps only these needs, even if the claim was granted a moment ago.
    Keep(ClaimId, Needs),
    /// Changes the claim's place in the queues.
    Priority(ClaimId, i16),
    /// Changes what a limit allows.
    Limit(LimitKey, Limit),
}

/// Applies these changes to a copy. Answered with `None` if there are more claims than may be copied for a simulation.
#[derive(Message)]
#[rtype(result = "Option<Simulated>")]
pub(crate) struct Simulate(pub(crate) Vec<Change>);

/// What some changes would lead to.
pub(crate) struct Simulated {
    /// What the released claims hold.
    pub(crate) released: Vec<(ClaimId, Needs)>,
    /// The requests that would be granted, in order.
    pub(crate) served: Vec<Claim>,
}

/// The maximum number of claims that are copied for a simulation: some milliseconds of the limiter's time.
const SIMULATED_MAX: usize = 20_000;

/// Asks for the state of every limit, with its first holders and waiters. The answer contains its position among all
/// answers.
#[derive(Message)]
#[rtype(result = "(u64, Vec<LimitDetail>)")]
pub(crate) struct Usage;

/// Asks for the holders and waiters of every lock. The answer contains its position among all answers.
#[derive(Message)]
#[rtype(result = "(u64, Vec<LockUse>)")]
pub(crate) struct LocksHeld;

/// A claim that waits.
pub(crate) struct WaitingClaim {
    pub(crate) claim: ClaimId,
    pub(crate) blockers: Vec<Blocker>,
    pub(crate) overtaken: u32,
    /// It holds something meanwhile, so others may wait for it.
    pub(crate) holds: bool,
    /// The claim's position in the order of service: the smaller goes first.
    pub(crate) order: u128,
}

impl WaitingClaim {
    /// Returns all waiting claims, in the order of service.
    pub(crate) fn all(admissions: &Admissions) -> Vec<Self> {
        Self::from(admissions, 0, usize::MAX).0
    }

    /// Returns the waiting claims among this many claims, and where the next page begins.
    fn from(admissions: &Admissions, from: usize, claims: usize) -> (Vec<Self>, Option<usize>) {
        let (page, next) = admissions.waiting_from(from, claims);
        let waiting = |(claim, order)| Self {
            claim,
            blockers: admissions.blockers(claim),
            overtaken: admissions.overtaken(claim),
            holds: admissions.holds_any(claim),
            order,
        };
        (page.into_iter().map(waiting).collect(), next)
    }
}

/// The number of claims in one page. Going through a page takes half a millisecond of the limiter's time, and of the
/// supervisor's when it takes the answer.
const PAGE: usize = 256;

/// Asks for the page of waiting claims that begins at `from`, and what each waits for. For the claim in `of` it also
/// asks for the details of what that claim lacks, preferably of the lock or permit named there.
#[derive(Message)]
#[rtype(result = "Waiters")]
pub(crate) struct Waits {
    pub(crate) from: usize,
    pub(crate) of: Option<(ClaimId, Lacking)>,
}

/// One page of waiting claims.
#[derive(Default, MessageResponse)]
pub(crate) struct Waiters {
    /// The answer's position among all answers; 0 if the limiter is gone.
    pub(crate) turn: u64,
    pub(crate) waiting: Vec<WaitingClaim>,
    pub(crate) missing: Option<Missing>,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<usize>,
}

/// Reports that these waiting requests are now granted.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Served {
    /// The report's position among all answers.
    pub(crate) turn: u64,
    pub(crate) claims: Vec<Claim>,
}

/// The limiter's actor.
pub(crate) struct Limiter {
    admissions: Admissions,
    metrics: LimiterMetrics,
    supervisor: Outbox<Served>,
    depth: Arc<Depth>,
    /// The number of answers so far. They must be taken in this order: an answer may rest on a release whose commit is
    /// yet to come.
    turns: u64,
    clock: Arc<dyn Clock>,
    /// Waits until a rate allows the next begin, and for when.
    timer: Option<(Timestamp, SpawnHandle)>,
}

impl Limiter {
    pub(crate) fn new(
        admissions: Admissions,
        metrics: LimiterMetrics,
        supervisor: Outbox<Served>,
        depth: Arc<Depth>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            admissions,
            metrics,
            supervisor,
            depth,
            turns: 0,
            clock,
            timer: None,
        }
    }

    // Rates. Without one, no message reads the clock but that which sets the first.

    /// Passes the time to the admissions, before a message. Returns the requests that are served because time has
    /// passed.
    fn read_clock(&mut self) -> Vec<Claim> {
        if self.admissions.has_rates() {
            self.move_clock()
        } else {
            Vec::new()
        }
    }

    fn move_clock(&mut self) -> Vec<Claim> {
        let served = self.admissions.move_to(self.clock.now());
        self.show(&[], &served);
        served
    }

    /// Waits for the next begin that a rate allows, after a message. An instant that is already waited for is not waited
    /// for anew.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let wanted = self.admissions.wanted_at();
        if self.timer.as_ref().map(|(at, _)| *at) == wanted {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        if let Some(at) = wanted {
            let sleep = self.clock.sleep_until(at).into_actor(self);
            let timer = ctx.spawn(sleep.map(|(), limiter, ctx| limiter.time_came(ctx)));
            self.timer = Some((at, timer));
        }
    }

    /// Serves the requests whose time has come. The sleep may have ended early, if the clock was set back.
    fn time_came(&mut self, ctx: &mut Context<Self>) {
        self.timer = None;
        let served = self.read_clock();
        self.tell(served, ctx);
        self.arm(ctx);
    }

    const fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Publishes the state of these limits, and of the limits that the served claims use.
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

    fn handle(
        &mut self,
        Acquire {
            requests,
            places,
            exchange,
        }: Acquire,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        self.depth.taken();
        let mut acquired = Acquired {
            turn: self.next_turn(),
            served: self.read_clock(),
            ..Acquired::default()
        };
        if let Some(Exchange { gives, asks }) = exchange {
            let claim = asks.claim;
            let limits = [gives.limits.as_slice(), asks.needs.limits.as_slice()].concat();
            let (grant, served) = self.admissions.exchange(&gives, asks);
            self.show(&limits, &served);
            acquired.exchanged = Some(Answer { claim, grant });
            acquired.served.extend(served);
        }
        let mut places = places.into_iter();
        for request in requests {
            let (claim, limits) = (request.claim, request.needs.limits.clone());
            let (grant, served) = match places.next() {
                Some(place) => self.admissions.request_in_place(request, place),
                None => self.admissions.request(request),
            };
            self.show(&limits, &served);
            acquired.answers.push(Answer { claim, grant });
            acquired.served.extend(served);
        }
        self.arm(ctx);
        acquired
    }
}

impl Handler<Restore> for Limiter {
    type Result = ();

    fn handle(&mut self, Restore(requests): Restore, ctx: &mut Self::Context) {
        self.depth.taken();
        let mut served = self.read_clock();
        for request in requests {
            let limits = request.needs.limits.clone();
            served.extend(self.admissions.restore(request));
            self.show(&limits, &[]);
        }
        self.tell(served, ctx);
        self.arm(ctx);
    }
}

impl Handler<Change> for Limiter {
    type Result = ();

    fn handle(&mut self, change: Change, ctx: &mut Self::Context) {
        self.depth.taken();
        let limits = match &change {
            Change::Release(claim) | Change::Withdraw(claim) | Change::Cancel(claim) | Change::Keep(claim, _) => {
                self.admissions.limits_of(*claim)
            }
            Change::GiveBack(_, needs) => needs.limits.clone(),
            Change::Limit(key, _) => vec![key.clone()],
            Change::Priority(..) => Vec::new(),
        };
        // The first begins of a rate that is set now count from now.
        let mut served = if change.sets_rate() {
            self.move_clock()
        } else {
            self.read_clock()
        };
        served.extend(change.apply(&mut self.admissions));
        self.show(&limits, &served);
        self.tell(served, ctx);
        self.arm(ctx);
    }
}

impl Change {
    fn sets_rate(&self) -> bool {
        matches!(self, Self::Limit(_, limit) if limit.rate().is_some())
    }

    /// Makes the change. Returns the requests that are granted because of it.
    fn apply(self, admissions: &mut Admissions) -> Vec<Claim> {
        match self {
            Self::Release(claim) => admissions.release(claim),
            Self::Withdraw(claim) => admissions.withdraw(claim),
            Self::GiveBack(claim, needs) => admissions.give_back(claim, &needs),
            Self::Cancel(claim) => admissions.cancel(claim),
            Self::Keep(claim, needs) => admissions.keep(claim, &needs),
            Self::Priority(claim, priority) => admissions.set_priority(claim, priority),
            Self::Limit(key, limit) => admissions.set_limit(key, limit),
        }
    }
}

impl Handler<Simulate> for Limiter {
    type Result = MessageResult<Simulate>;

    fn handle(&mut self, Simulate(changes): Simulate, _: &mut Self::Context) -> Self::Result {
        self.depth.taken();
        if self.admissions.claimed() > SIMULATED_MAX {
            return MessageResult(None);
        }
        let mut admissions = self.admissions.clone();
        if admissions.has_rates() || changes.iter().any(Change::sets_rate) {
            // The time serves these, and not the changes.
            drop(admissions.move_to(self.clock.now()));
        }
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

    fn handle(&mut self, _: Usage, ctx: &mut Self::Context) -> Self::Result {
        self.depth.taken();
        // What a rate allows is told as of now.
        let served = self.read_clock();
        self.tell(served, ctx);
        self.arm(ctx);
        MessageResult((self.next_turn(), self.admissions.limit_details(NAMED)))
    }
}

impl Handler<LocksHeld> for Limiter {
    type Result = MessageResult<LocksHeld>;

    fn handle(&mut self, _: LocksHeld, _: &mut Self::Context) -> Self::Result {
        self.depth.taken();
        MessageResult((self.next_turn(), self.admissions.locks()))
    }
}

impl Handler<Waits> for Limiter {
    type Result = Waiters;

    fn handle(&mut self, Waits { from, of }: Waits, _: &mut Self::Context) -> Self::Result {
        self.depth.taken();
        let (waiting, next) = WaitingClaim::from(&self.admissions, from, PAGE);
        let missing = of.and_then(|(claim, lacking)| self.admissions.missing(claim, &lacking));
        Waiters {
            turn: self.next_turn(),
            waiting,
            missing,
            next,
        }
    }
}
