//! What a receipt sets free: calls of user code, answers, permits, the timer.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Advance, Effect, Event, HistoryEntry, Ticket, Undo};

use super::blocked::{Active, Issued};
use super::loads::{Load, Purpose};
use super::{Answered, Supervisor};
use crate::context::{CallFacts, Fence, OfRow, Token, Woken};
use crate::limiter::Change;
use crate::procedure_actor::{Call, ProcedureActor, Stored};
use crate::view::Outcome;
use crate::worker::Post;

impl Supervisor {
    pub(super) fn act(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Reply(ticket, answer) => self.answer(ticket, Ok(answer)),
            Effect::Advance(advance) => self.advance(advance, ctx),
            Effect::Undo(undo) => self.undo(*undo, ctx),
            Effect::Judge(id, kind, version, round, stage) => {
                let load = Load {
                    id,
                    kind,
                    version,
                    payload: None,
                    wake: None,
                    purpose: Purpose::Join(round, stage),
                };
                self.judge(load, ctx);
            }
            Effect::LoadStack(scope) => match self.recovered_stack(scope.family) {
                Some(entries) => self.decide(Event::StackLoaded(scope, entries), ctx),
                None => self.load_stack(scope, ctx),
            },
            Effect::Stop(id) => {
                self.judging.remove(&id);
                self.actors.remove(&id);
            }
            Effect::ArmTimer => self.arm(),
            // A quarantined family keeps what it holds.
            Effect::Release(id) if self.quarantine.contains(id.family) => self.admission.change_of(id, Change::Cancel),
            Effect::Release(id) => self.admission.release(id),
            Effect::GiveBack(id, needs) => self.admission.change_of(id, |claim| Change::GiveBack(claim, needs)),
            Effect::Cancel(id) => self.admission.change_of(id, Change::Cancel),
            Effect::Keep(id, needs) => self.admission.change_of(id, |claim| Change::Keep(claim, needs)),
            Effect::SetPriority(id, priority) => {
                self.admission.change_of(id, |claim| Change::Priority(claim, priority));
            }
            Effect::Ask(id) => self.request_admission(id, ctx),
            Effect::SetLimit(key, limit) => {
                self.admission.set_limit(key, limit);
            }
            // It was bound when the decision was made.
            Effect::Bound(..) => {}
            Effect::CleanUp(id, kind, version) => {
                let purpose = Purpose::CleanUp;
                self.load(
                    Load {
                        id,
                        kind,
                        version,
                        payload: None,
                        wake: None,
                        purpose,
                    },
                    ctx,
                );
            }
            Effect::Discharged(family) => self.discharged(family),
            Effect::Ended(ended) => {
                // One that held something earlier, and nothing at its end, has its claim still.
                self.admission.release(ended.id);
                self.unstarted.take(ended.id);
                if let Some(watchers) = self.watchers.remove(&ended.id) {
                    let outcome = Outcome::of(*ended);
                    for watcher in watchers {
                        watcher.send(outcome.clone()).ok();
                    }
                }
            }
            Effect::Operated(entry) => {
                tracing::info!(who = entry.who, why = entry.why, what = entry.verb, "an operator acted");
            }
        }
    }

    /// Asks a join rule. One call is out at a time: what ends meanwhile is one
    /// question more when it has ruled, however many they are.
    pub(super) fn judge(&mut self, load: Load, ctx: &mut Context<Self>) {
        match self.judging.get_mut(&load.id) {
            Some(next) => *next = Some(load),
            None => {
                self.judging.insert(load.id, None);
                self.load(load, ctx);
            }
        }
    }

    /// Takes the stack that the start read, unless the family has gone on since:
    /// stages that were in doubt run to their commit before anything is undone.
    fn recovered_stack(&mut self, family: u64) -> Option<Vec<HistoryEntry>> {
        let entries = self.stacks.remove(&family)?;
        let newest = entries.last().map_or(0, |entry| entry.number);
        let current = self.kernel.families().get(&family).map(|family| family.history);
        (current == Some(newest)).then_some(entries)
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answered) {
        if let Some(sender) = self.tickets.remove(&ticket) {
            // Whoever asked may have gone.
            sender.send(answer).ok();
        }
    }

    fn advance(&mut self, mut advance: Advance, ctx: &mut Context<Self>) {
        advance.payload = advance.payload.or_else(|| self.unstarted.take(advance.id));
        let at_hand = self.actors.contains_key(&advance.id);
        if advance.wake.is_none() && (at_hand || advance.payload.is_some()) {
            let Advance {
                id,
                kind,
                version,
                stage,
                visit,
                attempt,
                run,
                payload,
                out_of_time,
                ..
            } = advance;
            let stored = payload.map(|payload| Stored {
                id,
                kind,
                version,
                payload,
            });
            let mut facts = self.facts(id, visit, attempt, Woken::Plainly);
            facts.out_of_time = out_of_time;
            self.call(id, stored, Call::Execute(facts, run, stage), ctx);
            return;
        }
        self.load(Load::of(advance), ctx);
    }

    fn undo(&mut self, undo: Undo, ctx: &mut Context<Self>) {
        let purpose = Purpose::Undo {
            scope: undo.scope,
            number: undo.number,
            stage: undo.stage,
            visit: undo.visit,
            attempt: undo.attempt,
        };
        let load = Load {
            id: undo.id,
            kind: undo.kind,
            version: undo.version,
            payload: None,
            wake: None,
            purpose,
        };
        if self.actors.contains_key(&load.id) {
            self.loaded(load, Woken::Plainly, ctx);
        } else {
            self.load(load, ctx);
        }
    }

    pub(super) fn facts(
        &mut self,
        id: procession_kernel::ProcedureId,
        visit: u32,
        attempt: u32,
        woken: Woken,
    ) -> CallFacts {
        self.calls += 1;
        let row = tracing::level_enabled!(tracing::Level::INFO).then(|| self.of_row(id));
        CallFacts {
            token: Token {
                store: self.pipeline.store_number(),
                procedure: id,
                visit,
            },
            fence: Fence {
                epoch: self.kernel.epoch(),
                call: self.calls,
            },
            attempt,
            woken,
            out_of_time: false,
            row: row.flatten().map(Box::new),
        }
    }

    /// What a span says of a row. A child was submitted by its parent's stage, so it links to where the family came from.
    fn of_row(&self, id: procession_kernel::ProcedureId) -> Option<OfRow> {
        let row = self.kernel.row(id)?;
        let root = self.kernel.row(procession_kernel::ProcedureId::root(id.family));
        Some(OfRow {
            state: row.state,
            revision: row.revision,
            trace: root.and_then(|root| root.trace.as_deref().copied()),
        })
    }

    /// Calls a procedure's actor, and starts it first where there is none.
    pub(super) fn call(
        &mut self,
        id: procession_kernel::ProcedureId,
        stored: Option<Stored>,
        call: Call,
        ctx: &mut Context<Self>,
    ) {
        let issued = Issued::of(&call);
        if let Some(stored) = stored
            && !self.actors.contains_key(&id)
        {
            match self.start(stored) {
                Some(active) => drop(self.actors.insert(id, active)),
                None => return self.call_elsewhere(id, issued, ctx),
            }
        }
        let dispatch = &mut self.dispatch;
        let sent = self
            .actors
            .get_mut(&id)
            .is_some_and(|actor| actor.issue(call, dispatch));
        if !sent {
            self.actors.remove(&id);
            self.call_again(id, issued, ctx);
        }
    }

    /// Starts an actor on the worker whose turn it is; none if that worker's thread is gone.
    fn start(&mut self, stored: Stored) -> Option<Active> {
        let (worker, pulse, way) = self.workers.next()?;
        let (registry, host) = (Arc::clone(&self.registry), Arc::clone(&self.host));
        let reports = Arc::clone(&self.reports);
        let post = Post::new(Arc::clone(pulse));
        let seat = Post::seat(&post);
        let way = Arc::clone(way);
        let start = move |_: &mut Context<ProcedureActor>| ProcedureActor::new(stored, registry, host, reports, seat);
        let addr = ProcedureActor::start_in_arbiter(worker, start);
        addr.connected().then(|| Active::new(addr, way, post))
    }

    /// The call has not begun. Without another worker it waits for the next audit.
    fn call_elsewhere(&mut self, id: procession_kernel::ProcedureId, issued: Issued, ctx: &mut Context<Self>) {
        if self.workers.replace_ended() {
            self.call_again(id, issued, ctx);
        } else {
            self.strand(id, issued);
        }
    }
}
