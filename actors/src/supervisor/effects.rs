//! What a receipt sets free: calls of user code, answers, permits, the timer.

use actix::prelude::*;
use procession_kernel::{Advance, Effect, Event, HistoryEntry, Ticket, Undo};

use super::loads::{Load, Purpose};
use super::{Answered, Supervisor};
use crate::context::{CallFacts, Fence, Token, Woken};
use crate::limiter::SetCapacity;
use crate::procedure_actor::{Call, ProcedureActor, Stored};
use crate::view::Outcome;

impl Supervisor {
    pub(super) fn act(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Reply(ticket, answer) => self.answer(ticket, Ok(answer)),
            Effect::Advance(advance) => self.advance(*advance, ctx),
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
                self.load(load, ctx);
            }
            Effect::LoadStack(scope) => match self.recovered_stack(scope.family) {
                Some(entries) => self.decide(Event::StackLoaded(scope, entries), ctx),
                None => self.load_stack(scope, ctx),
            },
            Effect::Stop(id) => {
                self.actors.remove(&id);
            }
            Effect::ArmTimer => self.arm(),
            Effect::Release(id) => self.give_back(id, ctx),
            Effect::SetLimit(key, limit) => {
                self.permits.limited(&key);
                self.tell_limiter(SetCapacity(key, limit), ctx);
            }
            Effect::Ended(ended) => {
                if let Some(watchers) = self.watchers.remove(&ended.id) {
                    let outcome = Outcome::of(*ended);
                    for watcher in watchers {
                        watcher.send(outcome.clone()).ok();
                    }
                }
            }
            Effect::Operated(id, operator) => {
                tracing::info!(procedure = %id, who = operator.who, why = operator.why, "an operator acted");
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

    fn advance(&mut self, advance: Advance, ctx: &mut Context<Self>) {
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
                ..
            } = advance;
            let stored = payload.map(|payload| Stored {
                id,
                kind,
                version,
                payload,
            });
            let facts = self.facts(id, visit, attempt, Woken::Plainly);
            self.call(id, stored, Call::Execute(Box::new(facts), run, stage), ctx);
            return;
        }
        self.load(
            Load {
                id: advance.id,
                kind: advance.kind,
                version: advance.version,
                payload: advance.payload,
                wake: advance.wake,
                purpose: Purpose::Execute {
                    stage: advance.stage,
                    visit: advance.visit,
                    attempt: advance.attempt,
                    run: advance.run,
                },
            },
            ctx,
        );
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
        CallFacts {
            id,
            token: Token {
                store: self.store.0,
                procedure: id,
                visit,
            },
            fence: Fence {
                epoch: self.kernel.epoch(),
                call: self.calls,
            },
            attempt,
            woken: std::sync::Arc::new(woken),
        }
    }

    /// Calls a procedure's actor, and starts it first where there is none.
    pub(super) fn call(
        &mut self,
        id: procession_kernel::ProcedureId,
        stored: Option<Stored>,
        call: Call,
        ctx: &mut Context<Self>,
    ) {
        if let Some(stored) = stored
            && !self.actors.contains_key(&id)
        {
            let Some(worker) = self.workers.next() else { return };
            let (registry, host, me) = (self.registry.clone(), self.host.clone(), ctx.address().recipient());
            let start = move |_: &mut Context<ProcedureActor>| ProcedureActor::new(stored, registry, host, me);
            self.actors.insert(id, ProcedureActor::start_in_arbiter(worker, start));
        }
        // One call at a time is out to each actor, so its mailbox has room.
        let sent = self.actors.get(&id).map(|actor| actor.try_send(call));
        if !matches!(sent, Some(Ok(()))) {
            tracing::error!(procedure = %id, "its actor is gone; its stage runs again at the next start");
            self.actors.remove(&id);
        }
    }
}
