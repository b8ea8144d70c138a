//! The plan of a request, taken from the decision that would be made and from the state behind it.

use std::collections::BTreeSet;

use super::draft::Draft;
use crate::audit::Reach;
use crate::family::Family;
use crate::id::ProcedureId;
use crate::lifecycle::ProcedureState;
use crate::plan::{Executed, Freed, PLAN_NAMED, Plan};
use crate::row::{Mark, Row};
use crate::verb::{AbortAnswer, BypassScope, Verb};
use crate::wait::{PauseScope, WaitReason};

impl Draft<'_> {
    /// Describes the consequences of this decision, before it is discarded.
    pub(super) fn plan(&self, verb: &Verb, abort: Option<&AbortAnswer>) -> Plan {
        let mut plan = Plan {
            told: self.told_to_limiter().to_vec(),
            ..Plan::default()
        };
        self.freed_now(&mut plan);
        plan.moves_next = self.released_members(verb);
        plan.skipped = self.skipped_by(verb);
        self.executed(verb, &mut plan);
        self.warn(verb, abort, &mut plan);
        for named in [&mut plan.undone, &mut plan.stays] {
            plan.truncated |= named.len() > PLAN_NAMED;
            named.truncate(PLAN_NAMED);
        }
        plan.truncated |= plan.freed.len() > PLAN_NAMED;
        plan.freed.truncate(PLAN_NAMED);
        plan.cut_moves_next();
        plan
    }

    /// Counts the executed stages that an abort or a bypass concerns, before the decision is discarded or recorded.
    pub(super) fn reach(&self, verb: &Verb) -> Reach {
        let mut plan = Plan::default();
        self.executed(verb, &mut plan);
        plan.reach()
    }

    /// Adds the executed stages that are undone or stay, and what their members release.
    fn executed(&self, verb: &Verb, plan: &mut Plan) {
        let Some(target) = verb.target() else { return };
        if let Verb::Bypass(..) = verb {
            self.stays_bypassed(plan);
        }
        // A failing part rolls back whatever the request is. The plan mentions it only for requests that concern
        // rollbacks.
        let is_rolled_back = matches!(
            verb,
            Verb::Abort(_) | Verb::RetryUndo(_) | Verb::SkipUndo(_) | Verb::Bypass(..) | Verb::RetryNow(_)
        );
        let scope = self.scope_of(target).or_else(|| self.failing_above(target));
        if let Some(scope) = scope.filter(|_| is_rolled_back) {
            self.rolls_back(scope, plan);
        }
    }

    /// Returns the members that move because of this decision: first those whose gates open, then those that waited
    /// for children or for a place in the width. The target is listed only if its own gate opens.
    fn released_members(&self, verb: &Verb) -> Vec<ProcedureId> {
        let mut opened = Vec::new();
        let mut others = Vec::new();
        for (before, after) in self.changes() {
            let wait = before.and_then(|before| before.wait.as_ref());
            if after.wait.as_ref() == wait || after.is_ended() || self.is_stopping(after) {
                continue;
            }
            let waited_for_others = matches!(wait, Some(WaitReason::Children | WaitReason::Width));
            if wait == Some(&WaitReason::Gate) {
                opened.push(after.id);
            } else if waited_for_others && verb.target() != Some(after.id) && after.wait != Some(WaitReason::Paused) {
                others.push(after.id);
            }
        }
        opened.append(&mut others);
        opened
    }

    fn freed_now(&self, plan: &mut Plan) {
        for (before, after) in self.changes() {
            let Some(before) = before else { continue };
            let kept = after.held_limits();
            let limits = before.held_limits().into_iter().filter(|limit| !kept.contains(limit));
            let locks = before.locked.iter().filter(|lock| !after.locked.contains(lock));
            let freed = Freed {
                id: after.id,
                limits: limits.collect(),
                locks: locks.cloned().collect(),
                later: false,
            };
            if !freed.limits.is_empty() || !freed.locks.is_empty() {
                plan.freed.push(freed);
            }
        }
    }

    /// Returns the number of the entry whose undo a request skips. The stack is still that of before the decision.
    fn skipped_by(&self, verb: &Verb) -> Option<u32> {
        let Verb::SkipUndo(id) = verb else { return None };
        let top = self.top_of(self.scope_of(*id)?)?;
        Some(top.number)
    }

    fn stays_bypassed(&self, plan: &mut Plan) {
        let ended = self
            .changes()
            .filter(|(before, after)| after.is_ended() && before.is_some_and(|before| !before.is_ended()));
        for (_, row) in ended.filter(|(_, row)| row.standing > 0) {
            plan.stays.push(Executed {
                id: row.id,
                stages: row.standing,
                why: Some("a bypass undoes nothing".to_owned()),
            });
        }
    }

    /// Returns the scope that fails above the target, since the target's end may have failed an ancestor.
    fn failing_above(&self, target: ProcedureId) -> Option<ProcedureId> {
        let parent = self.row(target).and_then(|row| self.parent(row))?;
        self.scope_of(parent)
    }

    fn rolls_back(&self, scope: ProcedureId, plan: &mut Plan) {
        let Some(family) = self.family(scope.family) else {
            return;
        };
        // Those that a bypass ends. A family may have very many of them.
        let bypassed: BTreeSet<ProcedureId> = plan.stays.iter().map(|executed| executed.id).collect();
        for row in self.within(family, scope) {
            let executed = |why| Executed {
                id: row.id,
                stages: row.standing,
                why,
            };
            if row.standing > 0 && !bypassed.contains(&row.id) {
                match self.why_not_undone(scope, row) {
                    None => plan.undone.push(executed(None)),
                    Some(why) => plan.stays.push(executed(Some(why))),
                }
            }
            let limits = row.held_limits();
            if !limits.is_empty() || !row.locked.is_empty() {
                plan.freed.push(Freed {
                    id: row.id,
                    limits,
                    locks: row.locked.to_vec(),
                    later: true,
                });
            }
        }
    }

    /// Returns the rows of a member and its descendants, as this decision would leave them.
    fn within<'b>(&'b self, family: &'b Family, top: ProcedureId) -> impl Iterator<Item = &'b Row> {
        family.within(top.member).filter_map(|row| self.row(row.id))
    }

    fn why_not_undone(&self, scope: ProcedureId, row: &Row) -> Option<String> {
        if let Some(stage) = &row.rare().past_no_return {
            return Some(format!("it passed its point of no return with stage {stage}"));
        }
        if row.rare().mark == Some(Mark::Bypassed) {
            return Some("an operator has bypassed it".to_owned());
        }
        if !self.kernel.can_undo(row) {
            return Some(format!("the kind \"{}\" has no rollback", row.kind));
        }
        self.is_kept(scope, row)
            .then(|| "it has succeeded, and its result is kept".to_owned())
    }

    fn warn(&self, verb: &Verb, abort: Option<&AbortAnswer>, plan: &mut Plan) {
        let mut warnings = Vec::new();
        match abort {
            Some(AbortAnswer::TooLate(why)) => warnings.push(format!("it is past its point of no return: {why}")),
            Some(AbortAnswer::AlreadyRollingBack) => warnings.push("it is already rolling back".to_owned()),
            Some(AbortAnswer::WillRollBack) | None => {}
        }
        match verb {
            Verb::Drain(_) => match self.kernel.in_flight {
                0 => {}
                1 => warnings.push("a stage is running".to_owned()),
                several => warnings.push(format!("{several} stages are running")),
            },
            Verb::Pause(PauseScope::All) => warnings.push("nothing is started until everything is resumed".to_owned()),
            Verb::Pause(PauseScope::Kind(kind)) => {
                warnings.push(format!("no \"{kind}\" is started until the kind is resumed"))
            }
            Verb::Discharge(..) => warnings.push("nothing of it is undone, and no caller gets its outcome".to_owned()),
            Verb::Abort(id)
            | Verb::Pause(PauseScope::One(id))
            | Verb::Bypass(id, ..)
            | Verb::RetryNow(id)
            | Verb::RetryUndo(id)
            | Verb::SkipUndo(id)
            | Verb::Resume(PauseScope::One(id)) => self.warn_of(*id, verb, plan, &mut warnings),
            Verb::Resume(PauseScope::All | PauseScope::Kind(_))
            | Verb::OverrideResult(..)
            | Verb::SetPriority(..)
            | Verb::SetLimit(..)
            | Verb::AuditReveal(..)
            | Verb::Signal(..)
            | Verb::Decide(..)
            | Verb::Acknowledge(..)
            | Verb::Submit(_) => {}
            Verb::RunAgain(_) => {
                warnings.push("a new procedure runs, with the value that this one was submitted with".to_owned());
            }
        }
        plan.warnings = warnings;
    }

    fn warn_of(&self, id: ProcedureId, verb: &Verb, plan: &Plan, warnings: &mut Vec<String>) {
        let (Some(family), Some(before)) = (self.family(id.family), self.row_before(id)) else {
            return;
        };
        let ends = matches!(verb, Verb::Abort(_) | Verb::Bypass(..));
        let live = |row: &&Row| !row.is_ended() && row.id != id;
        let below = family.within(id.member).filter(live).count();
        let takes = matches!(verb, Verb::Abort(_) | Verb::Pause(_))
            || matches!(verb, Verb::Bypass(_, scope, _) if *scope != BypassScope::Alone);
        if takes && below > 0 {
            warnings.push(format!("it includes {below} descendants"));
        }
        if let Verb::Bypass(_, BypassScope::Ancestors | BypassScope::Family, _) = verb {
            warnings.push("it also ends all its ancestors".to_owned());
        }
        let parent = self.parent(before).and_then(|parent| self.row_before(parent));
        if let Some(parent) = parent.filter(|parent| ends && parent.wait == Some(WaitReason::Children)) {
            warnings.push(format!("its parent {} waits for its result", parent.id));
        }
        let scope = self.scope_of(id).or_else(|| self.failing_above(id));
        if let Some(scope) = scope.filter(|scope| ends && *scope != id) {
            warnings.push(format!("{scope} fails too, and is rolled back"));
        }
        self.warn_of_stages(id, scope, verb, warnings);
        let stays: u32 = plan.stays.iter().map(|executed| executed.stages).sum();
        if stays > 0 {
            warnings.push(format!("{stays} executed stages are not undone"));
        }
        let moves = matches!(verb, Verb::Abort(_) | Verb::RetryNow(_) | Verb::RetryUndo(_));
        if moves && self.is_paused(before) {
            warnings.push("it is paused: nothing of it runs until it is resumed".to_owned());
        }
        if self.kernel.draining {
            warnings.push("the engine drains: nothing is started until its next start".to_owned());
        }
        if let Verb::SkipUndo(_) = verb {
            warnings.push("the effects of the skipped stage remain".to_owned());
        }
    }

    fn warn_of_stages(&self, id: ProcedureId, scope: Option<ProcedureId>, verb: &Verb, warnings: &mut Vec<String>) {
        let Some(family) = self.family(id.family) else { return };
        let out = |top: ProcedureId| family.within(top.member).filter(|row| row.in_flight.is_some()).count();
        let words = if let Verb::Abort(_) = verb {
            "finishes first, and is undone as well"
        } else if let Verb::Pause(_) = verb {
            "finishes first"
        } else if let Verb::Bypass(..) = verb {
            "finishes, but its report is ignored"
        } else {
            return;
        };
        let is_failing = self.row(id).is_some_and(|row| row.state == ProcedureState::Failed);
        let top = scope.filter(|_| is_failing).unwrap_or(id);
        match out(top) {
            0 => {}
            1 => warnings.push(format!("a stage runs; it {words}")),
            several => warnings.push(format!("{several} stages run; each {words}")),
        }
    }
}
