//! The start: everything has been read, and work that was under way goes on.
//!
//! Order: first families that roll back, then procedures that had executed a stage, then the others, each by id.

use super::draft::Draft;
use crate::effect::{DispatchEffect, LifecycleEffect, StageTask};
use crate::id::ProcedureId;
use crate::latch::Join;
use crate::lifecycle::ProcedureState;
use crate::outstanding::call_of;
use crate::outstanding::stage_of;
use crate::record::Record;
use crate::row::{InFlight, JoinPolicy, Row};
use crate::wait::WaitReason;

/// A stage that was out at this many deaths runs as a suspect, with no other suspect beside it.
const SUSPECT_AFTER: u32 = 2;

/// What the start does with one procedure.
enum Resumption {
    /// Run its stage again; the row does not change.
    Again,
    /// Start its stage anew.
    Anew,
    /// Run it as a suspect: it may be what kills the process.
    Suspect,
    /// Park it as poison: it killed the process while it ran alone.
    Poison,
    /// Ask its own join rule.
    Ask,
    /// Ask the own rule of its gate.
    AskGate,
    /// Settle its join: its children have all reported, but an earlier engine could not tell.
    Joined,
    /// Leave it alone: a timer, a signal, a child, a grant or an operator will move it.
    Stay,
}

impl Draft<'_> {
    pub(super) fn recovered(&mut self) {
        self.record(Record::Started(self.kernel.epoch, self.kernel.deaths));
        // The clock may have been set back while no engine ran.
        self.clock_set_back();
        let mut executed = Vec::new();
        let mut fresh = Vec::new();
        let mut scopes = Vec::new();
        // Frozen families are skipped: a timer or a signal will move them.
        let kernel = self.kernel;
        for row in kernel.families.awake().flat_map(|family| &family.members) {
            if row.rare().cleaning {
                self.effect(DispatchEffect::call(call_of(row, StageTask::CleanUp)));
            }
            if row.is_ended() {
                continue;
            }
            if row.is_failing() && self.scope_of(row.id) == Some(row.id) {
                scopes.push(row.id);
            }
            if row.visit > 0 || row.history > 0 {
                executed.push(&**row);
            } else {
                fresh.push(&**row);
            }
        }
        for scope in scopes {
            if self.waits_for_operator(scope) || self.undo_waits(scope) {
                self.ask_stack(scope);
            } else if self.pause_was_lifted(scope) {
                self.try_undo_again(scope);
            } else {
                self.begin_rollback_if_quiet(scope);
            }
        }
        let mut suspects = Vec::new();
        self.expect_effects(executed.len() + fresh.len());
        for row in executed.into_iter().chain(fresh) {
            self.resume(row, &mut suspects);
        }
        self.hold_suspects(&suspects);
        self.effect(LifecycleEffect::ArmTimer);
    }

    /// Returns `true` if an undo of the scope waits for a lock or a permit. It asks again once its stack is read, and nothing of
    /// that is new on disk.
    fn undo_waits(&self, scope: ProcedureId) -> bool {
        self.row(scope)
            .is_some_and(|row| row.wait.as_ref().is_some_and(WaitReason::is_admission))
    }

    /// Returns `true` if the rollback of the scope waits for a pause that was lifted while its family was quarantined.
    fn pause_was_lifted(&self, scope: ProcedureId) -> bool {
        let waits = self.row(scope).is_some_and(|row| row.wait == Some(WaitReason::Paused));
        let family = self.family(scope.family).filter(|_| waits);
        family.is_some_and(|family| !family.members.iter().any(|row| self.is_paused(row)))
    }

    /// Resumes one procedure, given its row from before. Nearly all rows are unchanged; looking each up again would
    /// take as long as everything else.
    fn resume(&mut self, before: &Row, suspects: &mut Vec<ProcedureId>) {
        let id = before.id;
        let row = self.row_after(id).unwrap_or(before);
        match self.resumption(row) {
            Resumption::Again => {
                // A child that this start has ended may have let it go on. Then its call is issued already.
                let call = stage_of(row, self.kernel.deaths, None).filter(|call| call.run() != Some(self.seq));
                if let Some(call) = call {
                    self.effect(DispatchEffect::call(call));
                }
            }
            Resumption::Anew => {
                if let Some(mut row) = self.take(id) {
                    self.set_going(&mut row, None);
                    self.put(row);
                }
            }
            Resumption::Suspect => suspects.push(id),
            Resumption::Poison => {
                if let Some(mut row) = self.take(id) {
                    let state = match self.is_stopping(&row) {
                        true => row.state,
                        false => ProcedureState::Runnable,
                    };
                    self.park(&mut row, state, WaitReason::Poison);
                    self.put(row);
                    // In a failing family it counts as executed, and is undone.
                    self.begin_rollback_if_quiet(id);
                }
            }
            Resumption::Ask => {
                if let Some(round) = row.rounds.last().cloned() {
                    self.ask(id, &round);
                }
            }
            Resumption::AskGate => self.ask_gates(vec![id]),
            Resumption::Joined => {
                if let Some(round) = row.rounds.last().cloned() {
                    self.joined_late(id, &round);
                }
            }
            Resumption::Stay => {}
        }
    }

    fn resumption(&self, row: &Row) -> Resumption {
        let stopping = self.is_stopping(row);
        if let Some(in_flight) = row.in_flight {
            let deaths = in_flight.deaths_since(self.kernel.deaths);
            return match (in_flight.alone && deaths > 0, deaths >= SUSPECT_AFTER) {
                (true, _) => Resumption::Poison,
                (false, true) => Resumption::Suspect,
                // In a failing family as well: the stage is in doubt, and must run to its commit to be undone.
                (false, false) => Resumption::Again,
            };
        }
        match (&row.wait, stopping) {
            (Some(WaitReason::Suspect), _) | (Some(WaitReason::Queue), false) => Resumption::Anew,
            // The pause was lifted while its family was quarantined.
            (Some(WaitReason::Paused), false) if !self.is_paused(row) => Resumption::Anew,
            (Some(WaitReason::Children), false)
                if row.rounds.last().is_some_and(|round| round.join == JoinPolicy::Custom) =>
            {
                Resumption::Ask
            }
            (Some(WaitReason::Gate), false)
                if self
                    .family(row.id.family)
                    .is_some_and(|family| family.asks_at_gate(row)) =>
            {
                Resumption::AskGate
            }
            (Some(WaitReason::Children), false) if self.is_joined(row) => Resumption::Joined,
            _ => Resumption::Stay,
        }
    }

    /// Returns `true` if a named set is settled. Engines that did not check places could leave a parent waiting
    /// although all its children had ended.
    fn is_joined(&self, row: &Row) -> bool {
        let round = row.rounds.last();
        let named = round.filter(|round| matches!(round.join, JoinPolicy::Named(_)));
        let latches = self.family(row.id.family).map(|family| &family.latches);
        let latch = named.and_then(|round| latches?.get(&round.first).map(|latch| latch.join(&round.join)));
        matches!(latch, Some(Join::Met | Join::Unmeetable))
    }

    /// Starts the first suspect beside healthy work, and parks the others without their marks. Suspects run one at a
    /// time, so that a death identifies the culprit.
    fn hold_suspects(&mut self, suspects: &[ProcedureId]) {
        let Some((first, rest)) = suspects.split_first() else {
            return;
        };
        for id in rest {
            if let Some(mut row) = self.take(*id) {
                // Its stage may have run in part, so it keeps its locks and permits and nobody else enters them.
                row.repeated = row.repeated_at(self.kernel.deaths);
                row.in_flight = None;
                // What it may have done was not begun before that.
                row.ready = Some(row.ready.unwrap_or(row.since));
                row.wait = Some(WaitReason::Suspect);
                row.since = self.now;
                self.effect(DispatchEffect::Stop(row.id));
                self.put(row);
            }
        }
        // The suspect keeps its death count: one more death makes it poison.
        self.change(*first, |row| {
            if let Some(in_flight) = row.in_flight {
                row.in_flight = Some(InFlight {
                    alone: true,
                    ..in_flight
                });
            }
        });
        if let Some(row) = self.row(*first).cloned() {
            self.advance(&row, None);
        }
    }
}
