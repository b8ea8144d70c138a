//! Admission: what a procedure needs of the limiter is asked for before the
//! decision where that is known, so that a grant rides in the same commit; it
//! is given back after the commit that says so.

use std::collections::BTreeSet;

use actix::prelude::*;
use procession_kernel::{
    Admission, Birth, Decision, Effect, Event, Grant, Hold, LimitKey, LockNeed, Needs, ProcedureId, Request, Row,
    StageEnded, StageOutcome, Ticket,
};

use super::Supervisor;
use super::claimants::{Claimants, within, within_above};
use super::tickets::Heard;
use crate::limiter::{Acquire, Acquired, Change, Exchange, Served};

/// Why an engine stops to which its limiter gives no answer; a panic of the limiter is told before, and at more length.
const LIMITER_GONE: &str = "the limiter has ended, which is a defect of the engine";

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

/// What it asked, to be matched with the answer.
pub(super) struct Asked {
    /// Of those to be born.
    tickets: Vec<Ticket>,
    exchange: Option<(Ticket, ProcedureId)>,
}

impl Supervisor {
    /// Says what a birth needs, and adds it to what is asked. A child's parent is given.
    pub(super) fn demand(&mut self, birth: &mut Birth, parent: Option<ProcedureId>, asks: bool, asking: &mut Asking) {
        let limits = self.tickets_of.limits_of(birth, parent.is_some());
        if limits.is_empty() && birth.ahead.locks.is_empty() {
            return;
        }
        birth.admission.limits.clone_from(&limits);
        if !asks {
            return;
        }
        let ticket = self.new_ticket();
        birth.admission.asked = Some(ticket);
        let kind = LimitKey::new(birth.kind.as_str());
        asking.acquire.requests.push(Request {
            ticket,
            kind: limits.contains(&kind).then_some(kind),
            needs: Needs {
                limits,
                locks: birth.ahead.locks.clone(),
            },
            priority: birth.priority,
            within: parent
                .map(|parent| within(&self.kernel, &self.tickets_of, parent))
                .unwrap_or_default(),
        });
    }

    /// Asks the limiter; the answer is matched with `admitted`, and decided with `commit_admitted`.
    pub(super) fn ask_limiter(
        &self,
        asking: Asking,
        of: Option<ProcedureId>,
    ) -> (Asked, impl Future<Output = Result<Acquired, MailboxError>> + use<>) {
        let asked = Asked {
            tickets: asking.acquire.requests.iter().map(|request| request.ticket).collect(),
            exchange: asking
                .acquire
                .exchange
                .as_ref()
                .map(|exchange| exchange.asks.ticket)
                .zip(of),
        };
        (asked, self.limiter.ask(asking.acquire))
    }

    /// Writes the limiter's word into the births, which are in the order of the requests.
    pub(super) fn admitted<'a>(births: impl Iterator<Item = &'a mut Birth>, grants: Vec<Grant>) {
        let asked = births.filter(|birth| birth.admission.asked.is_some());
        for (birth, grant) in asked.zip(grants) {
            birth.admission.lacking = lacking(grant);
        }
    }

    /// Applies a decision that was made on the limiter's word: tickets now stand
    /// for those that were born, and those of nobody are given back.
    pub(super) fn commit_admitted(
        &mut self,
        decision: Decision,
        asked: Asked,
        served: Vec<Ticket>,
        ctx: &mut Context<Self>,
    ) {
        let mut unbound: BTreeSet<Ticket> = asked.tickets.into_iter().collect();
        let mut bound = Vec::new();
        for effect in decision.planned() {
            if let Effect::Bound(ticket, id) = effect {
                unbound.remove(ticket);
                bound.push((*ticket, *id));
            }
        }
        self.commit(decision, ctx);
        if let Some((ticket, id)) = asked.exchange {
            // One whose family was set aside meanwhile keeps what it holds.
            let set_aside = self.quarantined.contains_key(&id.family);
            if set_aside || self.kernel.row(id).is_some_and(|row| !row.is_ended()) {
                bound.push((ticket, id));
            } else {
                // It has ended while the limiter was asked.
                unbound.insert(ticket);
            }
        }
        for (ticket, id) in bound {
            self.tickets_of.bind(ticket, id);
        }
        for ticket in unbound {
            self.limiter.tell(Change::Release(ticket));
        }
        self.served(served, ctx);
    }

    /// A report that gives birth to limited or locking ones, or whose next stage
    /// needs locks, waits for the limiter's word. Gives it back if it need not.
    pub(super) fn admit_report(
        &mut self,
        mut report: Box<StageEnded>,
        ctx: &mut Context<Self>,
    ) -> Option<Box<StageEnded>> {
        let mut asking = Asking::default();
        let id = report.id;
        self.demand_births(&mut report, &mut asking);
        asking.acquire.exchange = self.exchange(&report);
        if asking.is_empty() {
            return Some(report);
        }
        let exchanges = asking
            .acquire
            .exchange
            .as_ref()
            .map(|exchange| exchange.asks.needs.limits.clone());
        let (asked, work) = self.ask_limiter(asking, Some(id));
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            if let Some(limits) = exchanges {
                report.admission = acquired.exchanged.map(|grant| Admission {
                    limits,
                    asked: asked.exchange.map(|(ticket, _)| ticket),
                    lacking: lacking(grant),
                });
            }
            Self::admitted(births_of(&mut report), acquired.grants);
            let decision = supervisor
                .kernel
                .decide(supervisor.clock.now(), Event::StageEnded(report));
            supervisor.commit_admitted(decision, asked, acquired.served, ctx);
            supervisor.look_at_drain(ctx);
        });
        None
    }

    fn demand_births(&mut self, report: &mut StageEnded, asking: &mut Asking) {
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
                self.demand(birth, None, true, asking);
            } else {
                // One that the width holds back asks when it is let go on.
                self.demand(birth, Some(parent), children < width, asking);
                children += 1;
            }
        }
    }

    /// The next stage of a procedure needs locks, and would run at once.
    fn exchange(&mut self, report: &StageEnded) -> Option<Exchange> {
        let next = matches!(report.outcome, StageOutcome::Next(_)) && report.children.is_empty();
        if !next || report.ahead.locks.is_empty() || !self.kernel.goes_on(report.id, report.run) {
            return None;
        }
        let row = self.kernel.row(report.id)?;
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
                ticket: self.ticket_of(id),
                kind: limits.contains(&kind).then_some(kind),
                needs: needs(limits, locks),
                priority,
                within: within_above(&self.kernel, &self.tickets_of, id),
            },
        })
    }

    pub(super) fn claimants(&mut self) -> Claimants<'_> {
        Claimants {
            kernel: &self.kernel,
            tickets: &mut self.tickets_of,
            newest: &mut self.next_ticket,
        }
    }

    pub(super) fn ticket_of(&mut self, id: ProcedureId) -> Ticket {
        self.claimants().ticket_of(id)
    }

    pub(super) fn request_of(&mut self, id: ProcedureId) -> Option<Request> {
        self.claimants().request_of(id)
    }

    /// Asks for all that a procedure lacks for its next stage; for an undo, for its locks alone.
    pub(super) fn ask_for(&mut self, id: ProcedureId, ctx: &mut Context<Self>) {
        // Who has got on meanwhile would be granted what it no longer waits for.
        let waits = self.kernel.waits_for_admission(id);
        let Some(request) = waits.then(|| self.request_of(id)).flatten() else {
            if self.tickets_of.hears(id, Heard::NotAsked) {
                self.decide(Event::Granted(id), ctx);
            }
            return;
        };
        let acquire = Acquire {
            requests: vec![request],
            exchange: None,
        };
        let work = self.limiter.ask(acquire);
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            let granted = acquired.grants.contains(&Grant::Granted);
            if supervisor.tickets_of.hears(id, Heard::Answer(granted)) {
                supervisor.decide(Event::Granted(id), ctx);
            }
            supervisor.served(acquired.served, ctx);
        });
    }

    /// Carries a change to the limiter, if the procedure has anything of it.
    pub(super) fn change_of(&self, id: ProcedureId, change: impl FnOnce(Ticket) -> Change) {
        if let Some(ticket) = self.tickets_of.of.get(&id).copied() {
            self.limiter.tell(change(ticket));
        }
    }

    pub(super) fn release_of(&mut self, id: ProcedureId) {
        if let Some(ticket) = self.tickets_of.unbind(id) {
            self.limiter.tell(Change::Release(ticket));
        }
    }

    /// Frees all that a family holds: it is discharged.
    pub(super) fn release_family(&mut self, family: u64) {
        let ids: Vec<ProcedureId> = self
            .tickets_of
            .of
            .keys()
            .filter(|id| id.family == family)
            .copied()
            .collect();
        for id in ids {
            self.release_of(id);
        }
    }

    /// A family that is put aside keeps what its rows say that it holds, and waits
    /// for nothing more. What the limiter gives it in this moment nobody would ever take.
    pub(super) fn withdraw_family(&mut self, family: u64) {
        let of_family = self.tickets_of.of.iter().filter(|(id, _)| id.family == family);
        let tickets: Vec<(ProcedureId, Ticket)> = of_family.map(|(id, ticket)| (*id, *ticket)).collect();
        for (id, ticket) in tickets {
            let held = self.kernel.row(id).map(Row::held).unwrap_or_default();
            self.limiter.tell(Change::Keep(ticket, held));
        }
    }

    /// Waits for the limiter's answer, and has it taken when it is its turn.
    pub(super) fn await_limiter(
        &self,
        work: impl Future<Output = Result<Acquired, MailboxError>> + 'static,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, Acquired, &mut Context<Self>) + 'static,
    ) {
        ctx.spawn(work.into_actor(self).map(move |acquired, supervisor, ctx| {
            let Ok(acquired) = acquired else {
                // Without the limiter's word anything decided here could give away what another holds.
                if !supervisor.stopped {
                    supervisor.fail(LIMITER_GONE.to_owned());
                }
                return;
            };
            let turn = acquired.turn;
            supervisor.turn(|supervisor| {
                supervisor.in_turn(turn, ctx, move |supervisor, ctx| {
                    if supervisor.poisoned.is_none() {
                        take(supervisor, acquired, ctx);
                    }
                });
            });
        }));
    }

    pub(super) fn served(&mut self, tickets: Vec<Ticket>, ctx: &mut Context<Self>) {
        for ticket in tickets {
            // One that asked is bound when its own answer is taken, and was answered before it was served.
            if let Some(id) = self.tickets_of.served(ticket) {
                self.decide(Event::Granted(id), ctx);
            }
        }
    }
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

pub(super) fn needs(limits: Vec<LimitKey>, locks: Vec<LockNeed>) -> Needs {
    Needs { limits, locks }
}

fn lacking(grant: Grant) -> Option<procession_kernel::Lacking> {
    match grant {
        Grant::Granted => None,
        Grant::Queued(lacking) => Some(lacking),
    }
}

impl Handler<Served> for Supervisor {
    type Result = ();

    fn handle(&mut self, Served { turn, tickets }: Served, ctx: &mut Self::Context) {
        self.metrics.taken();
        self.turn(|supervisor| {
            supervisor.in_turn(turn, ctx, move |supervisor, ctx| supervisor.served(tickets, ctx));
        });
    }
}
