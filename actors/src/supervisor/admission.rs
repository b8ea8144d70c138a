//! The admission wing: what procedures hold and want of the limiter. It owns the tickets under which the limiter knows
//! them, the way to the limiter, and the order in which the limiter's answers are taken.
//!
//! What a procedure needs is asked for *before* the decision where that is known, so that a grant rides in the same
//! commit. It is given back *after* the commit that says so. The wing builds requests and matches answers; the
//! supervisor waits for the limiter and decides.

mod dry_run;
pub(crate) mod requests;
mod sequencer;
pub(crate) mod tickets;

use std::collections::{BTreeMap, BTreeSet};

use actix::MailboxError;
use procession_kernel::{
    Admission as Admitted, Birth, Decision, Effect, Grant, Hold, Kernel, Lacking, LimitKey, LockNeed, Needs, Plan,
    ProcedureId, Request, Row, StageEnded, StageOutcome, Ticket,
};

use crate::limiter::{Acquire, Acquired, Change, Exchange, Foreseen, Limiter, Restore, Would};
use crate::mail::Ordered;
use requests::{AdmissionRequests, within, within_above};
use sequencer::Sequencer;
use tickets::Heard;
use tickets::Tickets;

/// What is asked of the limiter before a decision.
#[derive(Default)]
pub(super) struct Asking {
    acquire: Acquire,
}

impl Asking {
    pub(super) fn is_empty(&self) -> bool {
        self.acquire.requests.is_empty() && self.acquire.exchange.is_none()
    }
}

/// What was asked, to be matched with the answer.
pub(super) struct Asked {
    /// Of procedures to be born.
    tickets: Vec<Ticket>,
    exchange: Option<(Ticket, ProcedureId)>,
    /// Permits that are asked for anew with the locks of the next stage.
    limits: Option<Vec<LimitKey>>,
}

/// The admission wing. `A` is what the supervisor does with an answer of the limiter when its turn comes.
pub(super) struct Admission<A> {
    tickets: Tickets,
    newest: u64,
    limiter: Ordered<Limiter>,
    sequencer: Sequencer<A>,
    /// What quarantined families hold, until it is restored.
    quarantined_holders: Vec<(ProcedureId, Row)>,
}

impl<A> Admission<A> {
    pub(super) fn new(
        limiter: Ordered<Limiter>,
        limited: Vec<LimitKey>,
        quarantined_holders: Vec<(ProcedureId, Row)>,
    ) -> Self {
        Self {
            tickets: Tickets::new(limited),
            newest: 0,
            limiter,
            sequencer: Sequencer::default(),
            quarantined_holders,
        }
    }

    /// Returns who holds or waits with which ticket.
    pub(super) const fn tickets(&self) -> &Tickets {
        &self.tickets
    }

    /// Returns the way to the limiter, for questions that change nothing.
    pub(super) const fn limiter(&self) -> &Ordered<Limiter> {
        &self.limiter
    }

    // The order of answers.

    /// Adds an answer that has a turn.
    pub(super) fn enqueue(&mut self, turn: u64, answer: A) {
        self.sequencer.enqueue(turn, answer);
    }

    /// Takes the next answer, once all before it are taken.
    pub(super) fn next_answer(&mut self) -> Option<A> {
        self.sequencer.next()
    }

    /// Drops the answers that wait for earlier ones, which may never come now.
    pub(super) fn forget_answers(&mut self) {
        self.sequencer.clear();
    }

    // Questions before a decision.

    /// Writes into a birth which limits it needs, and adds that to what is asked. A child's parent is given.
    pub(super) fn demand(
        &mut self,
        kernel: &Kernel,
        birth: &mut Birth,
        parent: Option<ProcedureId>,
        asks: bool,
        asking: &mut Asking,
    ) {
        let limits = self.tickets.limits_of(birth, parent.is_some());
        if limits.is_empty() && birth.ahead.locks.is_empty() {
            return;
        }
        birth.admission.limits.clone_from(&limits);
        if !asks {
            return;
        }
        self.newest += 1;
        let ticket = Ticket(self.newest);
        birth.admission.asked = Some(ticket);
        let kind = LimitKey::new(birth.kind.as_str());
        asking.acquire.requests.push(Request {
            ticket,
            kind: limits.contains(&kind).then_some(kind),
            needs: needs(limits, birth.ahead.locks.clone()),
            priority: birth.priority,
            within: parent
                .map(|parent| within(kernel, &self.tickets, parent))
                .unwrap_or_default(),
        });
    }

    /// Collects what a stage's report needs: for births, and for the locks of the next stage.
    pub(super) fn demand_of_report(&mut self, kernel: &Kernel, report: &mut StageEnded) -> Asking {
        let mut asking = Asking::default();
        let parent = report.id;
        let mut width = usize::MAX;
        if let StageOutcome::Spawn { width: most, .. } = &report.outcome
            && *most > 0
        {
            width = *most as usize;
        }
        let mut children = 0;
        for birth in births_of(report) {
            if birth.detached {
                self.demand(kernel, birth, None, true, &mut asking);
            } else {
                // A child that the width holds back asks when it is let go on.
                self.demand(kernel, birth, Some(parent), children < width, &mut asking);
                children += 1;
            }
        }
        asking.acquire.exchange = self.exchange(kernel, report);
        asking
    }

    /// Returns the exchange of locks of a procedure whose next stage needs some, and would run at once.
    fn exchange(&mut self, kernel: &Kernel, report: &StageEnded) -> Option<Exchange> {
        let next = matches!(report.outcome, StageOutcome::Next(_)) && report.children.is_empty();
        if !next || report.ahead.locks.is_empty() || !kernel.goes_on(report.id, report.run) {
            return None;
        }
        let row = kernel.row(report.id)?;
        let (gives, locks) = if row.locks_for_life {
            let more: Vec<LockNeed> = report
                .ahead
                .locks
                .iter()
                .filter(|need| !row.locked.contains(need))
                .cloned()
                .collect();
            if more.is_empty() {
                return None;
            }
            (Vec::new(), more)
        } else {
            (row.locked.clone(), report.ahead.locks.clone())
        };
        // Permits held while it is active are given up and asked for with the locks, all or nothing.
        let limits = if row.holds && row.hold == Hold::WhileActive {
            row.limits.clone()
        } else {
            Vec::new()
        };
        let kind = LimitKey::new(row.kind.as_str());
        let (id, priority) = (row.id, row.priority);
        Some(Exchange {
            gives: needs(limits.clone(), gives),
            asks: Request {
                ticket: self.requests(kernel).ticket_of(id),
                kind: limits.contains(&kind).then_some(kind),
                needs: needs(limits, locks),
                priority,
                within: within_above(kernel, &self.tickets, id),
            },
        })
    }

    /// Asks the limiter. The answer is matched with [`admit_births`] or [`admit_report`], and settled with
    /// [`Self::settle`].
    pub(super) fn ask(
        &self,
        asking: Asking,
        of: Option<ProcedureId>,
    ) -> (Asked, impl Future<Output = Result<Acquired, MailboxError>> + use<A>) {
        let exchange = asking.acquire.exchange.as_ref();
        let asked = Asked {
            tickets: asking.acquire.requests.iter().map(|request| request.ticket).collect(),
            exchange: exchange.map(|exchange| exchange.asks.ticket).zip(of),
            limits: exchange.map(|exchange| exchange.asks.needs.limits.clone()),
        };
        (asked, self.limiter.ask(asking.acquire))
    }

    /// Settles what was asked before a decision that is being committed: tickets now stand for the procedures that
    /// were born, and tickets of nobody are given back.
    pub(super) fn settle(
        &mut self,
        kernel: &Kernel,
        quarantined: &BTreeMap<u64, String>,
        asked: Asked,
        bound: Vec<(Ticket, ProcedureId)>,
    ) {
        let mut unbound: BTreeSet<Ticket> = asked.tickets.into_iter().collect();
        for (ticket, id) in bound {
            unbound.remove(&ticket);
            self.tickets.bind(ticket, id);
        }
        if let Some((ticket, id)) = asked.exchange {
            // A procedure whose family was quarantined meanwhile keeps what it holds.
            let keeps = quarantined.contains_key(&id.family);
            if keeps || kernel.row(id).is_some_and(|row| !row.is_ended()) {
                self.tickets.bind(ticket, id);
            } else {
                // It has ended while the limiter was asked.
                unbound.insert(ticket);
            }
        }
        for ticket in unbound {
            self.limiter.tell(Change::Release(ticket));
        }
    }

    // Questions after a decision.

    /// Notes that it was decided that this procedure asks. The question itself leaves with the receipt.
    pub(super) fn asks(&mut self, id: ProcedureId) {
        self.tickets.asks(id);
    }

    /// Takes the answer to a procedure's request. Returns `true` if a grant is now decided.
    pub(super) fn answered(&mut self, id: ProcedureId, grant: &Grant) -> bool {
        self.tickets.hears(id, Heard::Answer(*grant == Grant::Granted))
    }

    /// Notes that a procedure did not ask after all. Returns `true` if a grant of an earlier request is now decided.
    pub(super) fn not_asked(&mut self, id: ProcedureId) -> bool {
        self.tickets.hears(id, Heard::NotAsked)
    }

    /// Returns the procedure whose grant is now decided, because the limiter served its ticket.
    pub(super) fn served(&mut self, ticket: Ticket) -> Option<ProcedureId> {
        self.tickets.served(ticket)
    }

    /// Asks for all that a procedure lacks for its next stage; for an undo, for its locks alone. None if it no longer
    /// waits: it would be granted what it does not wait for.
    pub(super) fn request(
        &mut self,
        kernel: &Kernel,
        id: ProcedureId,
    ) -> Option<impl Future<Output = Result<Acquired, MailboxError>> + use<A>> {
        // Before the request is built: that gives a ticket to one that has none.
        let waits = kernel.waits_for_admission(id);
        let request = waits.then(|| self.request_of(kernel, id)).flatten()?;
        Some(self.limiter.ask(Acquire {
            requests: vec![request],
            exchange: None,
        }))
    }

    /// Builds the request for all that a procedure lacks.
    pub(super) fn request_of(&mut self, kernel: &Kernel, id: ProcedureId) -> Option<Request> {
        self.requests(kernel).request_of(id)
    }

    fn requests<'a>(&'a mut self, kernel: &'a Kernel) -> AdmissionRequests<'a> {
        AdmissionRequests {
            kernel,
            tickets: &mut self.tickets,
            newest: &mut self.newest,
        }
    }

    // The start.

    /// Gives back to recorded holders what they held, parents first. Returns those who wait, by priority and in the
    /// order in which they began to.
    pub(super) fn restore(&mut self, kernel: &Kernel, claimants: &[ProcedureId]) -> Vec<ProcedureId> {
        let quarantined = std::mem::take(&mut self.quarantined_holders);
        let (held, waiting) = self.requests(kernel).restored(quarantined, claimants);
        self.limiter.tell(Restore(held));
        waiting
    }

    /// Queues again for all procedures that waited before the start. All requests go in one message, because the order
    /// of the requests is the order of service. Returns the procedures in the order of the grants.
    pub(super) fn rejoin_queues(
        &mut self,
        kernel: &Kernel,
        waiting: Vec<ProcedureId>,
    ) -> (
        Vec<ProcedureId>,
        impl Future<Output = Result<Acquired, MailboxError>> + use<A>,
    ) {
        let mut ids = Vec::with_capacity(waiting.len());
        let mut acquire = Acquire::default();
        for id in waiting {
            if let Some(request) = self.request_of(kernel, id) {
                self.tickets.asks(id);
                ids.push(id);
                acquire.requests.push(request);
            }
        }
        (ids, self.limiter.ask(acquire))
    }

    // Dry runs.

    /// Asks the limiter to make a plan's changes on a copy. None if the plan changes nothing there. The answer goes to
    /// [`Self::complete_plan`].
    pub(super) fn simulate(&self, plan: &Plan) -> Option<impl Future<Output = Option<Foreseen>> + use<A>> {
        let changes = self.changes_of(plan);
        let answer = (!changes.is_empty()).then(|| self.limiter.ask(Would(changes)))?;
        Some(async move { answer.await.ok().flatten() })
    }

    // What is given back.

    /// Carries a change to the limiter, if the procedure has a ticket.
    pub(super) fn change_of(&self, id: ProcedureId, change: impl FnOnce(Ticket) -> Change) {
        if let Some(ticket) = self.tickets.ticket(id) {
            self.limiter.tell(change(ticket));
        }
    }

    /// Frees all that a procedure holds.
    pub(super) fn release(&mut self, id: ProcedureId) {
        if let Some(ticket) = self.tickets.unbind(id) {
            self.limiter.tell(Change::Release(ticket));
        }
    }

    /// Forgets a ticket as a defect would, and tells the limiter nothing.
    #[cfg(test)]
    pub(super) fn forget_ticket(&mut self, id: ProcedureId) {
        self.tickets.unbind(id);
    }

    /// Frees all that a discharged family holds.
    pub(super) fn release_family(&mut self, family: u64) {
        for (id, _) in self.tickets.of_family(family) {
            self.release(id);
        }
    }

    /// Has a quarantined family keep what its rows say that it holds, and wait for nothing more. What the limiter
    /// gives it in this moment nobody would ever take.
    pub(super) fn withdraw_family(&self, kernel: &Kernel, family: u64) {
        for (id, ticket) in self.tickets.of_family(family) {
            let held = kernel.row(id).map(Row::held).unwrap_or_default();
            self.limiter.tell(Change::Keep(ticket, held));
        }
    }

    /// Sets the capacity of a limit.
    pub(super) fn set_limit(&mut self, key: LimitKey, limit: Option<u32>) {
        self.tickets.limited(&key);
        self.limiter.tell(Change::Capacity(key, limit));
    }
}

/// Returns the tickets that a decision binds to procedures. They are read before the receipt: an answer of the limiter
/// that comes before it must find its procedure.
pub(super) fn bound_by(decision: &Decision) -> Vec<(Ticket, ProcedureId)> {
    let bound = decision.planned().iter().filter_map(|effect| {
        let Effect::Bound(ticket, id) = effect else { return None };
        Some((*ticket, *id))
    });
    bound.collect()
}

/// Writes the limiter's answer into the births, which are in the order of the requests.
pub(super) fn admit_births<'a>(births: impl Iterator<Item = &'a mut Birth>, grants: Vec<Grant>) {
    let asked = births.filter(|birth| birth.admission.asked.is_some());
    for (birth, grant) in asked.zip(grants) {
        birth.admission.lacking = lacking(grant);
    }
}

/// Writes the limiter's answer into a report.
pub(super) fn admit_report(report: &mut StageEnded, asked: &mut Asked, exchanged: Option<Grant>, grants: Vec<Grant>) {
    if let Some(limits) = asked.limits.take() {
        report.admission = exchanged.map(|grant| Admitted {
            limits,
            asked: asked.exchange.map(|(ticket, _)| ticket),
            lacking: lacking(grant),
        });
    }
    admit_births(births_of(report), grants);
}

fn births_of(report: &mut StageEnded) -> impl Iterator<Item = &mut Birth> {
    let mut spawned: &mut [Birth] = &mut [];
    if let StageOutcome::Spawn { births, .. } = &mut report.outcome {
        spawned = births;
    }
    report
        .submitted
        .iter_mut()
        .map(detached)
        .chain(spawned.iter_mut())
        .chain(report.children.iter_mut())
}

fn detached(birth: &mut Birth) -> &mut Birth {
    birth.detached = true;
    birth
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
