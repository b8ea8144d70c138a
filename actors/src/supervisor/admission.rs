//! The admission wing: what procedures hold and want of the limiter. It owns the claims under which the limiter knows
//! procedures, the address of the limiter, and the order in which the limiter's answers are taken.
//!
//! A procedure's needs are requested *before* a decision if they are known by then, so that the grant is part of the
//! same commit. They are given back *with* the decision that says so, before its receipt: the limiter is memory, and
//! whom it serves is decided later, so that the journal never has the next holder without the end of the one before
//! (docs/decisions/0083). The wing builds requests and matches answers; the supervisor waits for the limiter and decides.

pub(crate) mod claims;
mod contention;
mod dry_run;
pub(crate) mod requests;
mod sequencer;

use std::collections::{BTreeMap, BTreeSet};

use actix::MailboxError;
use procession_kernel::{
    Admission as Admitted, AdmissionEffect, Birth, Claim, ClaimId, Grant, Hold, Kernel, Lacking, Limit, LimitKey,
    LockNeed, Needs, Plan, ProcedureId, Request, Row, Seq, StageEffects, StageEnded, StageOutcome, Submission,
};

use crate::limiter::{Acquire, Acquired, Answer, Change, Exchange, Limiter, Restore, Simulate, Simulated};
use crate::queues::Ordered;
use claims::Claims;
use contention::Contention;
use requests::{AdmissionRequests, within, within_above};
use sequencer::Sequencer;

/// Where a procedure is born.
#[derive(Clone, Copy)]
pub(super) enum BirthPlace {
    /// As the root of a family.
    Root,
    /// As a child of this procedure.
    ChildOf(ProcedureId),
    /// As a child of a root that is born with it.
    Newborn,
}

/// What a decision needs of the limiter before it can be made.
#[derive(Default)]
pub(super) struct Demand {
    acquire: Acquire,
    /// The procedure's own limits, whose permits are requested again together with the needs of the next stage.
    own: Vec<LimitKey>,
}

impl Demand {
    /// Returns `true` if the decision can be made at once.
    pub(super) fn is_empty(&self) -> bool {
        self.acquire.requests.is_empty() && self.acquire.exchange.is_none()
    }
}

/// A demand that the limiter has received, to be matched with its answer.
pub(super) struct PendingDemand {
    /// The claims of procedures that the decision is to create.
    births: Vec<ClaimId>,
    exchange: Option<(Claim, ProcedureId)>,
    /// The procedure's own limits, whose permits are requested again together with the needs of the next stage.
    limits: Option<Vec<LimitKey>>,
}

/// The admission wing. `A` is what the supervisor does with an answer of the limiter when its turn arrives.
pub(super) struct Admission<A> {
    claims: Claims,
    limiter: Ordered<Limiter>,
    sequencer: Sequencer<A>,
    contention: Contention,
    /// What quarantined families hold, until it is restored.
    quarantined_holders: Vec<(ProcedureId, Row)>,
    /// Who has a report with the limiter, in exchange for what its next stage needs.
    exchanging: BTreeSet<ProcedureId>,
    /// The places in the queues of rollbacks that waited before the start, until the undo that waits is known and asks,
    /// each with the commit in which the wait began.
    places: BTreeMap<ProcedureId, (Seq, u32)>,
}

impl<A> Admission<A> {
    pub(super) fn new(
        limiter: Ordered<Limiter>,
        limited: Vec<LimitKey>,
        quarantined_holders: Vec<(ProcedureId, Row)>,
    ) -> Self {
        Self {
            claims: Claims::new(limited),
            limiter,
            sequencer: Sequencer::default(),
            contention: Contention::default(),
            quarantined_holders,
            exchanging: BTreeSet::new(),
            places: BTreeMap::new(),
        }
    }

    /// Returns the table of claims and their procedures.
    pub(super) const fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Returns the limiter's address, for questions that change nothing.
    pub(super) const fn limiter(&self) -> &Ordered<Limiter> {
        &self.limiter
    }

    // The order of answers.

    /// Adds an answer that has a turn.
    pub(super) fn enqueue(&mut self, turn: u64, answer: A) {
        self.sequencer.enqueue(turn, answer);
    }

    /// Takes the next answer once all answers before it are taken.
    pub(super) fn next_answer(&mut self) -> Option<A> {
        self.sequencer.next()
    }

    /// Drops the answers that wait for earlier ones, because the earlier ones may never arrive now.
    pub(super) fn forget_answers(&mut self) {
        self.sequencer.clear();
    }

    // What the answers say about waiters.

    /// Notes an answer of the limiter.
    pub(super) fn heard(&mut self, acquired: &Acquired) {
        let mut answers = acquired.answers.iter().chain(&acquired.exchanged);
        if !acquired.served.is_empty() || answers.any(|answer| answer.grant != Grant::Granted) {
            self.contention.noted();
        }
    }

    /// Notes that the limiter has served requests.
    pub(super) const fn heard_served(&mut self) {
        self.contention.served();
    }

    /// Asks the limiter for nothing, behind what it was just told, if somebody probably waits for that: whom it serves is
    /// heard by then. Returns the number of the wait, for [`Self::passed_on`], and the answer.
    pub(super) fn pass_on(&mut self) -> Option<(u64, impl Future<Output = Result<Acquired, MailboxError>> + use<A>)> {
        let number = self.contention.begin()?;
        Some((number, self.limiter.ask(Acquire::default())))
    }

    /// Notes that the limiter has taken everything that it was told before [`Self::pass_on`]. Returns `true` if the open
    /// batch is not held back any more.
    pub(super) fn passed_on(&mut self, number: u64) -> bool {
        self.contention.end(number)
    }

    /// Returns `true` if the limiter can serve others once it is told this.
    pub(super) fn may_serve(&self, effect: &AdmissionEffect) -> bool {
        match effect {
            AdmissionEffect::Release(id)
            | AdmissionEffect::GiveBack(id, _)
            | AdmissionEffect::Cancel(id)
            | AdmissionEffect::Keep(id, _) => self.claims.claim(*id).is_some(),
            AdmissionEffect::ReleaseFamily(_) | AdmissionEffect::SetLimit(..) => true,
            AdmissionEffect::Bind(..) | AdmissionEffect::Ask(_) | AdmissionEffect::SetPriority(..) => false,
        }
    }

    // Requests before a decision.

    /// Collects what a root needs. One with children asks for its own needs when it goes on; those of its children that
    /// begin at once ask now.
    fn demand_of_root(&mut self, kernel: &Kernel, birth: &mut Birth, demand: &mut Demand) {
        let Some(mut brood) = birth.brood.take() else {
            self.demand(kernel, birth, BirthPlace::Root, true, demand);
            return;
        };
        self.demand(kernel, birth, BirthPlace::Root, false, demand);
        let width = if brood.width == 0 {
            usize::MAX
        } else {
            brood.width as usize
        };
        let mut begun = 0;
        for child in &mut brood.children {
            let place = if child.detached {
                BirthPlace::Root
            } else {
                BirthPlace::Newborn
            };
            let is_counted = !child.detached && !child.is_gated();
            let asks = child.detached || (is_counted && begun < width);
            self.demand(kernel, child, place, asks, demand);
            begun += usize::from(is_counted);
        }
        birth.brood = Some(brood);
    }

    /// Writes the limits that a birth needs into it, and adds them to the demand.
    pub(super) fn demand(
        &mut self,
        kernel: &Kernel,
        birth: &mut Birth,
        place: BirthPlace,
        asks: bool,
        demand: &mut Demand,
    ) {
        let limits = self.claims.limits_of(birth, !matches!(place, BirthPlace::Root));
        self.claims.retain_limited(&mut birth.next_needs.limits);
        if limits.is_empty() && birth.next_needs.is_empty() {
            return;
        }
        birth.admission.limits.clone_from(&limits);
        if !asks {
            return;
        }
        let claim = self.claims.new_claim();
        birth.admission.asked = Some(claim);
        let kind = LimitKey::new(birth.kind.as_str());
        let limits = joined(limits, &birth.next_needs.limits);
        demand.acquire.requests.push(Request {
            claim: Claim::first(claim),
            kind: limits.contains(&kind).then_some(kind),
            needs: needs(limits, birth.next_needs.locks.clone()),
            priority: birth.priority,
            within: match place {
                BirthPlace::ChildOf(parent) => within(kernel, &self.claims, parent),
                // A parent that is born with it holds nothing yet.
                BirthPlace::Root | BirthPlace::Newborn => Vec::new(),
            },
        });
    }

    /// Collects what submissions need. Submissions that repeat a key create no procedure, so they need nothing. While
    /// the engine drains no submission needs anything, because all are refused.
    pub(super) fn demand_of_submissions(&mut self, kernel: &Kernel, submissions: &mut [Submission]) -> Demand {
        let mut demand = Demand::default();
        if kernel.is_draining() {
            return demand;
        }
        for submission in submissions {
            if !is_repeat(kernel, submission) {
                self.demand_of_root(kernel, &mut submission.birth, &mut demand);
            }
        }
        demand
    }

    /// Collects what a stage's report needs: for births, and for the locks and permits of the next stage.
    pub(super) fn demand_of_report(&mut self, kernel: &Kernel, report: &mut StageEnded) -> Demand {
        let mut demand = Demand::default();
        let parent = report.id;
        let mut width = usize::MAX;
        if let StageOutcome::Spawn { width: most, .. } = &report.outcome
            && *most > 0
        {
            width = *most as usize;
        }
        let mut children = 0;
        for submission in report.effects.iter_mut().flat_map(|effects| &mut effects.submitted) {
            if !is_repeat(kernel, submission) {
                self.demand_of_root(kernel, detached(&mut submission.birth), &mut demand);
            }
        }
        for birth in listed(report) {
            if birth.detached {
                self.demand(kernel, birth, BirthPlace::Root, true, &mut demand);
            } else {
                // A child held back by the width, or by its gate, asks once it may begin.
                let is_gated = birth.is_gated();
                self.demand(
                    kernel,
                    birth,
                    BirthPlace::ChildOf(parent),
                    !is_gated && children < width,
                    &mut demand,
                );
                children += usize::from(!is_gated);
            }
        }
        self.claims.retain_limited(&mut report.next_needs.limits);
        if let Some((exchange, own)) = self.exchange(kernel, report) {
            demand.acquire.exchange = Some(exchange);
            demand.own = own;
        }
        demand
    }

    /// Returns the exchange of locks and permits of a procedure whose next stage needs some and would run at once, with
    /// those of its own limits that are part of it.
    ///
    /// No decision can make the procedure ask while the exchange is under way: its stage counts as running until the
    /// report is decided. So the answer is part of the report and is never stale. Only a grant that the limiter makes
    /// later can be stale.
    fn exchange(&mut self, kernel: &Kernel, report: &StageEnded) -> Option<(Exchange, Vec<LimitKey>)> {
        let next = matches!(report.outcome, StageOutcome::Next(_)) && report.children().is_empty();
        if !next || report.next_needs.is_empty() || !kernel.goes_on(report.id, report.run) {
            return None;
        }
        let row = kernel.row(report.id)?;
        let (gives, locks) = if row.locks_for_life {
            let more: Vec<LockNeed> = report
                .next_needs
                .locks
                .iter()
                .filter(|need| !row.locked.contains(need))
                .cloned()
                .collect();
            if more.is_empty() && report.next_needs.limits.is_empty() {
                return None;
            }
            (Vec::new(), more)
        } else {
            (row.locked.to_vec(), report.next_needs.locks.clone())
        };
        // Permits that are held while active are given up and requested together with the locks, all or nothing.
        let limits = if row.holds && row.hold == Hold::WhileActive {
            row.limits.to_vec()
        } else {
            Vec::new()
        };
        let kind = LimitKey::new(row.kind.as_str());
        let (id, priority) = (row.id, row.priority);
        // The permits of the stage that has ended go back, even if the next stage needs one of the same limit: others
        // have their turn between two stages.
        let given = if row.stage_permits { &*row.stage_limits } else { &[] };
        let given = joined(limits.clone(), given);
        let asked = joined(limits.clone(), &report.next_needs.limits);
        let exchange = Exchange {
            gives: needs(given, gives),
            asks: Request {
                claim: self.claims.renew(id),
                kind: asked.contains(&kind).then_some(kind),
                needs: needs(asked, locks),
                priority,
                within: within_above(kernel, &self.claims, id),
            },
        };
        Some((exchange, limits))
    }

    /// Asks the limiter. [`admit_births`] or [`admit_report`] takes the answer; [`Self::settle`] handles its
    /// consequences.
    pub(super) fn ask(
        &mut self,
        demand: Demand,
        of: Option<ProcedureId>,
    ) -> (
        PendingDemand,
        impl Future<Output = Result<Acquired, MailboxError>> + use<A>,
    ) {
        let Demand { acquire, own } = demand;
        let exchange = acquire.exchange.as_ref();
        let pending = PendingDemand {
            births: acquire.requests.iter().map(|request| request.claim.id).collect(),
            exchange: exchange.map(|exchange| exchange.asks.claim).zip(of),
            limits: exchange.map(|_| own),
        };
        if let Some((_, id)) = pending.exchange {
            self.exchanging.insert(id);
        }
        (pending, self.limiter.ask(acquire))
    }

    /// Returns `true` if a member's report is with the limiter, with what its stage gives up for the next.
    pub(super) fn is_exchanging(&self, family: u64) -> bool {
        let members = ProcedureId::root(family)..=ProcedureId::new(family, u32::MAX);
        self.exchanging.range(members).next().is_some()
    }

    /// Resolves once the limiter has answered everything that it was asked before.
    pub(super) fn answered(&self) -> impl Future<Output = Result<Acquired, MailboxError>> + use<A> {
        self.limiter.ask(Acquire::default())
    }

    /// Settles a demand after its decision: withdraws the claims of procedures that the decision did not create. Must
    /// run after [`Self::act`] has bound those that it did.
    pub(super) fn settle(&mut self, kernel: &Kernel, quarantined: &BTreeMap<u64, String>, pending: PendingDemand) {
        let refused = pending.births.into_iter();
        for claim in refused.filter(|claim| self.claims.procedure(*claim).is_none()) {
            self.limiter.tell(Change::Withdraw(claim));
        }
        if let Some((claim, id)) = pending.exchange {
            self.exchanging.remove(&id);
            // A procedure whose family has been quarantined in the meantime keeps what it holds.
            let keeps = quarantined.contains_key(&id.family);
            if !keeps && kernel.row(id).is_none_or(Row::is_ended) {
                // It ended while the limiter was being asked. It may have released its claim before the exchange
                // arrived.
                self.limiter.tell(Change::Release(claim.id));
            } else if self.claims.claim(id).is_none() {
                self.claims.bind(claim, id);
            }
        }
    }

    // Requests after a decision.

    /// Returns the procedure that a grant belongs to, or `None` if the grant is stale.
    pub(super) fn accept(&self, grant: Claim) -> Option<ProcedureId> {
        self.claims.accept(grant)
    }

    /// Requests everything that a procedure lacks for its next stage or undo, as its row says that it does.
    pub(super) fn request(
        &mut self,
        kernel: &Kernel,
        id: ProcedureId,
    ) -> Option<impl Future<Output = Result<Acquired, MailboxError>> + use<A>> {
        debug_assert!(kernel.waits_for_admission(id), "{id} asks, and waits for nothing");
        self.claims.renew(id);
        let request = self.request_of(kernel, id)?;
        let place = self.take_place(kernel, id);
        Some(self.limiter.ask(Acquire {
            requests: vec![request],
            places: place.into_iter().collect(),
            exchange: None,
        }))
    }

    /// Takes the place that is kept for the undo of a member, if its rollback has waited for it since before the start.
    fn take_place(&mut self, kernel: &Kernel, id: ProcedureId) -> Option<u32> {
        if self.places.is_empty() || !kernel.is_stopped(id) {
            return None;
        }
        let scope = kernel.waits_as(id);
        let (began, place) = self.places.remove(&scope)?;
        let waits_still = kernel.row(scope).is_some_and(|row| row.waits_after == began);
        waits_still.then_some(place)
    }

    /// Builds the request for everything that a procedure lacks.
    pub(super) fn request_of(&mut self, kernel: &Kernel, id: ProcedureId) -> Option<Request> {
        self.requests(kernel).request_of(id)
    }

    fn requests<'a>(&'a mut self, kernel: &'a Kernel) -> AdmissionRequests<'a> {
        AdmissionRequests {
            kernel,
            claims: &mut self.claims,
        }
    }

    // The start.

    /// Gives recorded holders back what they held, parents first. Returns the waiting procedures, by priority and
    /// then in the order in which their waits began, with the roots of rollbacks that have an undo waiting.
    pub(super) fn restore(&mut self, kernel: &Kernel, claimants: &[ProcedureId]) -> Vec<ProcedureId> {
        let quarantined = std::mem::take(&mut self.quarantined_holders);
        let (held, waiting) = self.requests(kernel).restored(quarantined, claimants);
        self.limiter.tell(Restore(held));
        waiting
    }

    /// Queues all procedures again that waited before the start, each in its place. A rollback whose undo waits asks once
    /// its stack is read; until then its place is kept.
    pub(super) fn rejoin_queues(
        &mut self,
        kernel: &Kernel,
        waiting: Vec<ProcedureId>,
    ) -> impl Future<Output = Result<Acquired, MailboxError>> + use<A> {
        let mut acquire = Acquire::default();
        for (id, place) in waiting.into_iter().zip(1..) {
            if kernel.is_stopped(id) {
                let began = kernel.row(id).map(|row| row.waits_after);
                self.places.extend(began.map(|began| (id, (began, place))));
                continue;
            }
            self.claims.renew(id);
            if let Some(request) = self.request_of(kernel, id) {
                acquire.requests.push(request);
                acquire.places.push(place);
            }
        }
        self.limiter.ask(acquire)
    }

    // Dry runs.

    /// Asks the limiter to apply a plan's changes to a copy. Returns `None` if the plan changes nothing there. The
    /// answer goes to [`Self::complete_plan`].
    pub(super) fn simulate(&self, plan: &Plan) -> Option<impl Future<Output = Option<Simulated>> + use<A>> {
        let changes = self.changes_of(plan);
        let answer = (!changes.is_empty()).then(|| self.limiter.ask(Simulate(changes)))?;
        Some(async move { answer.await.ok().flatten() })
    }

    // What a decision says.

    /// Carries an effect to the limiter, before the next event is decided or an answer is taken. Returns the procedure
    /// if it asks: the supervisor builds its request with [`Self::request`] and waits for the answer.
    pub(super) fn act(&mut self, effect: AdmissionEffect, quarantined: &BTreeMap<u64, String>) -> Option<ProcedureId> {
        match effect {
            AdmissionEffect::Bind(claim, id) => self.claims.bind(Claim::first(claim), id),
            AdmissionEffect::Ask(id) => return Some(id),
            // A quarantined family keeps what it holds.
            AdmissionEffect::Release(id) if quarantined.contains_key(&id.family) => self.change_of(id, Change::Cancel),
            AdmissionEffect::Release(id) => self.release(id),
            AdmissionEffect::ReleaseFamily(family) => self.release_family(family),
            AdmissionEffect::GiveBack(id, needs) => self.change_of(id, |claim| Change::GiveBack(claim, needs)),
            AdmissionEffect::Cancel(id) => self.change_of(id, Change::Cancel),
            AdmissionEffect::Keep(id, needs) => self.change_of(id, |claim| Change::Keep(claim, needs)),
            AdmissionEffect::SetLimit(key, limit) => self.set_limit(key, limit),
            AdmissionEffect::SetPriority(id, priority) => {
                self.change_of(id, |claim| Change::Priority(claim, priority));
            }
        }
        None
    }

    /// Tells the limiter of a change, if the procedure has a claim.
    fn change_of(&self, id: ProcedureId, change: impl FnOnce(ClaimId) -> Change) {
        if let Some(claim) = self.claims.claim(id) {
            self.limiter.tell(change(claim));
        }
    }

    /// Frees everything that a procedure holds.
    pub(super) fn release(&mut self, id: ProcedureId) {
        if let Some(claim) = self.claims.unbind(id) {
            self.limiter.tell(Change::Release(claim));
        }
    }

    /// Forgets a claim as a defect would, without telling the limiter.
    #[cfg(test)]
    pub(super) fn forget_claim(&mut self, id: ProcedureId) {
        self.claims.unbind(id);
    }

    /// Frees everything that a discharged family holds.
    fn release_family(&mut self, family: u64) {
        for (id, _) in self.claims.of_family(family) {
            self.release(id);
        }
    }

    /// Makes a quarantined family keep what its rows hold, and wait for nothing. A grant on its way to the family is
    /// given back, because nothing would ever accept it.
    pub(super) fn withdraw_family(&self, kernel: &Kernel, family: u64) {
        for (id, claim) in self.claims.of_family(family) {
            let held = kernel.row(id).map(Row::held).unwrap_or_default();
            self.limiter.tell(Change::Keep(claim, held));
        }
    }

    /// Sets what a limit allows.
    fn set_limit(&mut self, key: LimitKey, limit: Limit) {
        self.claims.limited(&key);
        self.limiter.tell(Change::Limit(key, limit));
    }
}

/// Writes the limiter's answer into the births, which are in the order of the requests.
pub(super) fn admit_births<'a>(births: impl Iterator<Item = &'a mut Birth>, answers: Vec<Answer>) {
    let asked = births.filter(|birth| birth.admission.asked.is_some());
    for (birth, answer) in asked.zip(answers) {
        birth.admission.lacking = lacking(answer.grant);
    }
}

/// Writes the limiter's answer into a report.
pub(super) fn admit_report(
    report: &mut StageEnded,
    pending: &mut PendingDemand,
    exchanged: Option<Answer>,
    answers: Vec<Answer>,
) {
    if let Some(limits) = pending.limits.take() {
        report.admission = exchanged.map(|Answer { claim, grant }| Admitted {
            limits,
            asked: Some(claim.id),
            lacking: lacking(grant),
        });
    }
    admit_births(births_of(report), answers);
}

/// Returns `true` if the limiter has nothing to do with the report of a stage: nothing is born, and the next stage needs
/// neither locks nor permits. That is so for nearly all.
pub(super) fn needs_nothing(report: &StageEnded) -> bool {
    let is_birth = matches!(report.outcome, StageOutcome::Spawn { .. });
    !is_birth && report.effects.is_none() && report.next_needs.is_empty()
}

/// Returns the births of a report that may have asked, in the order in which they did.
fn births_of(report: &mut StageEnded) -> impl Iterator<Item = &mut Birth> {
    let mut spawned: &mut [Birth] = &mut [];
    if let StageOutcome::Spawn { births, .. } = &mut report.outcome {
        spawned = births;
    }
    let (submitted, added) = births_left_by(&mut report.effects);
    let submitted = submitted.iter_mut().flat_map(|submission| submission.birth.asking());
    submitted.chain(spawned.iter_mut()).chain(added.iter_mut())
}

/// Returns the births of a report that belong to its family, or are detached from it.
fn listed(report: &mut StageEnded) -> impl Iterator<Item = &mut Birth> {
    let mut spawned: &mut [Birth] = &mut [];
    if let StageOutcome::Spawn { births, .. } = &mut report.outcome {
        spawned = births;
    }
    let (_, added) = births_left_by(&mut report.effects);
    spawned.iter_mut().chain(added.iter_mut())
}

/// Returns the submissions of a stage, and the children that it collected one by one.
fn births_left_by(effects: &mut Option<Box<StageEffects>>) -> (&mut [Submission], &mut [Birth]) {
    match effects {
        Some(effects) => (&mut effects.submitted, &mut effects.children),
        None => (&mut [], &mut []),
    }
}

/// Returns `true` if the submission repeats a key, so that it creates no procedure.
fn is_repeat(kernel: &Kernel, submission: &Submission) -> bool {
    let key = submission.key.as_ref();
    submission.known.is_some() || key.is_some_and(|asked| kernel.key(&asked.key).is_some())
}

fn detached(birth: &mut Birth) -> &mut Birth {
    birth.detached = true;
    birth
}

/// Returns these limits and more. A limit may occur twice; the limiter counts a claim once.
fn joined(mut limits: Vec<LimitKey>, more: &[LimitKey]) -> Vec<LimitKey> {
    limits.extend(more.iter().cloned());
    limits
}

const fn needs(limits: Vec<LimitKey>, locks: Vec<LockNeed>) -> Needs {
    Needs { limits, locks }
}

fn lacking(grant: Grant) -> Option<Lacking> {
    match grant {
        Grant::Granted => None,
        Grant::Queued(lacking) => Some(lacking),
    }
}

#[cfg(test)]
mod tests;
