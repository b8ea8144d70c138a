//! Reconstructs the calls of user code that a procedure's row says are out. The shell uses this to reissue a call that
//! it took back before it began.

use crate::effect::{StageCall, StageTask};
use crate::family::{Family, Scope};
use crate::history::HistoryEntry;
use crate::id::Blob;
use crate::id::ProcedureId;
use crate::kernel::Kernel;
use crate::row::{JoinPolicy, Round, Row};
use crate::wait::WaitReason;

impl Kernel {
    /// Returns the outstanding calls of a procedure, exactly as the decisions issued them: its stage or its clean-up,
    /// the undo of one of its stages, its join rule, or the rule of its gate. An ended procedure may be undone while it
    /// cleans up, which makes two calls.
    ///
    /// The state may be ahead of the disk. The caller must check that it already has the receipt for the call.
    #[must_use]
    pub fn calls_of(&self, id: ProcedureId) -> Vec<StageCall> {
        let Some(family) = self.families.get(&id.family) else {
            return Vec::new();
        };
        let Some(row) = family.row(id.member) else {
            return Vec::new();
        };
        if row.in_flight.is_some() {
            return stage_of(row, self.deaths, None).into_iter().collect();
        }
        let clean_up = row.rare().cleaning.then(|| call_of(row, StageTask::CleanUp));
        let other = undo_of(family, row).or_else(|| rule_of(family, row));
        clean_up.into_iter().chain(other).collect()
    }
}

/// Returns a call for the procedure's current stage.
pub(crate) fn call_of(row: &Row, task: StageTask) -> StageCall {
    StageCall {
        id: row.id,
        kind: row.kind.clone(),
        version: row.version,
        stage: row.stage.clone(),
        visit: row.visit,
        attempt: row.attempt + 1,
        ready: row.ready.unwrap_or(row.since),
        payload: None,
        as_submitted: row.as_submitted,
        before: before(row),
        ahead: 0,
        trace: row.rare().trace.clone(),
        task,
    }
}

fn before(row: &Row) -> Vec<ProcedureId> {
    let Some(gate) = row.gate() else {
        return Vec::new();
    };
    gate.after
        .iter()
        .map(|sibling| ProcedureId::new(row.id.family, *sibling))
        .collect()
}

/// Returns the call of the stage that the row says is out, for an engine whose store has seen this many deaths.
pub(crate) fn stage_of(row: &Row, deaths: u32, payload: Option<Blob>) -> Option<StageCall> {
    let task = StageTask::Execute {
        run: row.in_flight?.run,
        wake: row.wake.clone(),
        out_of_time: row.out_of_time && row.deadline.is_none(),
        repeated: row.repeated_at(deaths),
    };
    let mut call = call_of(row, task);
    call.payload = payload;
    Some(call)
}

/// Returns the call that undoes a history entry of this member.
pub(crate) fn undo_call(row: &Row, scope: ProcedureId, entry: &HistoryEntry, attempt: u32) -> StageCall {
    StageCall {
        id: row.id,
        kind: row.kind.clone(),
        version: row.version,
        stage: entry.stage.clone(),
        visit: entry.visit,
        attempt,
        ready: row.ready.unwrap_or(row.since),
        payload: None,
        as_submitted: row.as_submitted,
        before: before(row),
        ahead: 0,
        trace: row.rare().trace.clone(),
        task: StageTask::Undo {
            scope,
            number: entry.number,
            note: entry.note.clone(),
        },
    }
}

fn undo_of(family: &Family, row: &Row) -> Option<StageCall> {
    let (scope, top) = family.scopes.iter().find_map(|(scope, state)| match state {
        Scope::Held { stack, out: true, .. } => {
            let top = stack.last().filter(|top| top.member == row.id.member)?;
            Some((ProcedureId::new(row.id.family, *scope), top))
        }
        Scope::Held { .. } | Scope::Loading => None,
    })?;
    let attempt = family.row(scope.member)?.rare().undo_attempts + 1;
    Some(undo_call(row, scope, top, attempt))
}

fn rule_of(family: &Family, row: &Row) -> Option<StageCall> {
    let custom = |round: &&Round| row.wait == Some(WaitReason::Children) && round.join == JoinPolicy::Custom;
    let task = match row.rounds.last().filter(custom) {
        Some(round) => StageTask::Join(round.clone()),
        None if family.asks_at_gate(row) => StageTask::Gate,
        None => return None,
    };
    let is_stopped = family.scope_of(row.id.member).is_some();
    (!is_stopped).then(|| call_of(row, task))
}
