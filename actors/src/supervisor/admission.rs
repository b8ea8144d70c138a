//! Permits of roots: asked of the limiter before the decision, so that a grant
//! rides in the commit that gives birth; given back after the commit that ends.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

use actix::prelude::*;
use procession_kernel::{
    Admission, Birth, Event, Grant, Key, LimitKey, ProcedureId, Record, StageEnded, StageOutcome, Ticket, WaitReason,
};

use super::Supervisor;
use crate::limiter::{Acquire, Demand, GiveBack, Restore, Served};

/// Which procedure holds or waits with which ticket.
pub(super) struct Permits {
    limited: BTreeSet<LimitKey>,
    of: HashMap<ProcedureId, Ticket>,
    by: HashMap<Ticket, ProcedureId>,
    /// Tickets served before their procedure was born.
    early: HashSet<Ticket>,
}

impl Permits {
    pub(super) fn new(limited: Vec<LimitKey>) -> Self {
        Self {
            limited: limited.into_iter().collect(),
            of: HashMap::new(),
            by: HashMap::new(),
            early: HashSet::new(),
        }
    }

    /// Remembers that a limit of this name is set.
    pub(super) fn limited(&mut self, key: &LimitKey) {
        self.limited.insert(key.clone());
    }

    pub(super) fn is_limited(&self, birth: &Birth) -> bool {
        !self.limits_of(birth).is_empty()
    }

    fn limits_of(&self, birth: &Birth) -> Vec<LimitKey> {
        let own = LimitKey::new(birth.kind.as_str());
        std::iter::once(own)
            .chain(birth.limit.clone())
            .filter(|key| self.limited.contains(key))
            .collect()
    }
}

/// What was asked for one birth.
pub(super) struct Asked {
    pub(super) ticket: Ticket,
    pub(super) limits: Vec<LimitKey>,
    pub(super) priority: i16,
}

impl Supervisor {
    /// Says what each birth needs; nothing for one without a limit.
    pub(super) fn demands(&mut self, births: &[&Birth]) -> Vec<Asked> {
        births
            .iter()
            .map(|birth| Asked {
                ticket: self.new_ticket(),
                limits: self.permits.limits_of(birth),
                priority: birth.priority,
            })
            .collect()
    }

    /// Asks the limiter, and gives the admissions in the order of the demands.
    pub(super) fn ask_limiter(&self, asked: &[Asked]) -> impl Future<Output = Vec<Admission>> + 'static {
        let wanted: Vec<usize> = (0..asked.len())
            .filter(|index| asked.get(*index).is_some_and(|asked| !asked.limits.is_empty()))
            .collect();
        let demands = asked
            .iter()
            .filter(|asked| !asked.limits.is_empty())
            .map(|asked| Demand {
                ticket: asked.ticket,
                limits: asked.limits.clone(),
                priority: asked.priority,
            });
        let request = self.limiter.send(Acquire(demands.collect()));
        let mut admissions: Vec<Admission> = asked
            .iter()
            .map(|asked| Admission {
                limits: asked.limits.clone(),
                granted: false,
            })
            .collect();
        async move {
            let grants = request.await.unwrap_or_default();
            for (index, grant) in wanted.into_iter().zip(grants) {
                if let Some(admission) = admissions.get_mut(index) {
                    admission.granted = grant == Grant::Granted;
                }
            }
            admissions
        }
    }

    /// A stage that gives birth to limited roots: the report waits for the limiter's word.
    pub(super) fn admit_births(
        &mut self,
        asked: Vec<Asked>,
        report: StageEnded,
        submitted: Vec<Birth>,
        ctx: &mut Context<Self>,
    ) {
        let work = self.ask_limiter(&asked);
        ctx.spawn(work.into_actor(self).map(move |admissions, supervisor, ctx| {
            supervisor.births_admitted(&asked, admissions, report, submitted, ctx);
        }));
    }

    fn births_admitted(
        &mut self,
        asked: &[Asked],
        admissions: Vec<Admission>,
        mut report: StageEnded,
        submitted: Vec<Birth>,
        ctx: &mut Context<Self>,
    ) {
        let mut admissions = admissions.into_iter();
        report.submitted = submitted.into_iter().zip(admissions.by_ref()).collect();
        if let StageOutcome::Spawn {
            admissions: of_detached,
            ..
        } = &mut report.outcome
        {
            *of_detached = admissions.collect();
        }
        if self.poisoned.is_some() {
            return;
        }
        let decision = self
            .kernel
            .decide(self.clock.now(), Event::StageEnded(Box::new(report)));
        let mut born = Vec::new();
        for record in decision.records() {
            if let Record::Row(row) = record
                && row.id.is_root()
                && !row.limits.is_empty()
                && self.kernel.row(row.id).is_none()
            {
                born.push(row.id);
            }
        }
        self.commit(decision, ctx);
        let mut born = born.into_iter();
        for asked in asked.iter().filter(|asked| !asked.limits.is_empty()) {
            self.bind(asked.ticket, born.next(), ctx);
        }
    }

    /// A ticket now stands for a procedure; without one it is given back.
    pub(super) fn bind(&mut self, ticket: Ticket, id: Option<ProcedureId>, ctx: &mut Context<Self>) {
        match id {
            Some(id) => {
                self.permits.of.insert(id, ticket);
                self.permits.by.insert(ticket, id);
                if self.permits.early.remove(&ticket) {
                    self.decide(Event::Granted(id), ctx);
                }
            }
            None => {
                self.permits.early.remove(&ticket);
                self.tell_limiter(GiveBack(ticket), ctx);
            }
        }
    }

    pub(super) fn give_back(&mut self, id: ProcedureId, ctx: &mut Context<Self>) {
        if let Some(ticket) = self.permits.of.remove(&id) {
            self.permits.by.remove(&ticket);
            self.tell_limiter(GiveBack(ticket), ctx);
        }
    }

    pub(super) fn tell_limiter<M>(&self, message: M, ctx: &mut Context<Self>)
    where
        M: Message<Result = ()> + Send + 'static,
        crate::limiter::Limiter: Handler<M>,
    {
        match self.limiter.try_send(message) {
            Ok(()) | Err(SendError::Closed(_)) => {}
            Err(SendError::Full(message)) => {
                let send = self.limiter.send(message);
                ctx.spawn(
                    async move {
                        send.await.ok();
                    }
                    .into_actor(self),
                );
            }
        }
    }

    /// Recorded holders get theirs back, then those who wait queue up again, by priority and id.
    pub(super) fn restore_permits(&mut self, ctx: &mut Context<Self>) {
        let (mut held, mut waiting) = (Vec::new(), Vec::new());
        let rows: Vec<(ProcedureId, Vec<LimitKey>, i16, bool)> = self
            .kernel
            .families()
            .values()
            .flat_map(|family| &family.members)
            .filter(|row| !row.is_ended() && (row.holds || matches!(row.wait, Some(WaitReason::Permit(_)))))
            .map(|row| (row.id, row.limits.clone(), row.priority, row.holds))
            .collect();
        for (id, limits, priority, holds) in rows {
            let ticket = self.new_ticket();
            self.permits.of.insert(id, ticket);
            self.permits.by.insert(ticket, id);
            let demand = Demand {
                ticket,
                limits,
                priority,
            };
            if holds { held.push(demand) } else { waiting.push(demand) }
        }
        // Asked one after the other: who goes first must ask first.
        waiting.sort_by_key(|demand| Reverse(demand.priority));
        let tickets: Vec<Ticket> = waiting.iter().map(|demand| demand.ticket).collect();
        self.tell_limiter(Restore(held), ctx);
        let queue = self.limiter.send(Acquire(waiting));
        ctx.spawn(queue.into_actor(self).map(move |grants, supervisor, ctx| {
            let granted = tickets
                .into_iter()
                .zip(grants.unwrap_or_default())
                .filter(|(_, grant)| *grant == Grant::Granted);
            let served = granted.map(|(ticket, _)| ticket).collect();
            supervisor.served(served, ctx);
        }));
    }

    fn served(&mut self, tickets: Vec<Ticket>, ctx: &mut Context<Self>) {
        for ticket in tickets {
            match self.permits.by.get(&ticket).copied() {
                Some(id) => self.decide(Event::Granted(id), ctx),
                None => {
                    self.permits.early.insert(ticket);
                }
            }
        }
    }

    /// Gives what the store knows of keys that this run has not seen.
    pub(super) fn unseen(&self, key: Option<&Key>) -> Option<Key> {
        key.filter(|key| self.kernel.key(key).is_none()).cloned()
    }
}

impl Handler<Served> for Supervisor {
    type Result = ();

    fn handle(&mut self, Served(tickets): Served, ctx: &mut Self::Context) {
        self.served(tickets, ctx);
    }
}
