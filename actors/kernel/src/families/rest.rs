//! Which families may be frozen: those of which nothing is but what their bytes tell.

use crate::family::Family;
use crate::lifecycle::ProcedureState;
use crate::row::Row;
use crate::wait::WaitReason;

/// A stage run as often in a row, or more often, keeps its family awake: the
/// audit tells of such, and looks at those awake alone. Default threshold of
/// the health check is 100; a quarter leaves room for a lower one.
pub const SAME_STAGE_FROZEN: u32 = 25;

/// One with as many committed stages, or more, keeps its family awake, for the
/// same reason: the health check's threshold is 10,000.
pub const STAGES_FROZEN: u32 = 2_500;

/// Tells whether a family may be frozen: nothing of it is in its bytes but what is told here.
pub(super) fn is_at_rest(family: &Family) -> bool {
    let Family {
        members,
        history: _,
        live,
        going,
        latches,
        held,
        scopes,
        signals,
        below: _,
    } = family;
    let [row] = members.as_slice() else { return false };
    let counts = *live == 1 && *going == 0;
    let maps = latches.is_empty() && held.is_empty() && scopes.is_empty() && signals.is_empty();
    counts && maps && rests(row)
}

/// Every field is named, so that a new one is thought of.
fn rests(row: &Row) -> bool {
    let Row {
        id,
        revision: _,
        kind: _,
        version: _,
        parent,
        on_failure: _,
        state,
        wait,
        since: _,
        stage: _,
        visit,
        attempt,
        going,
        history: _,
        standing: _,
        attempts_kept,
        wake,
        rounds,
        limits: _,
        holds: _,
        hold: _,
        locks,
        locked,
        locked_at: _,
        locks_for_life: _,
        ready,
        one_way: _,
        past: _,
        same_stage,
        expected: _,
        on_timeout: _,
        out_of_time: _,
        paused,
        mark,
        output,
        cleaning,
        priority: _,
        cause,
        undo_attempts,
        not_undone,
        signals: _,
        trace: _,
        large,
        said,
        waits_after: _,
        key: _,
        deadline: _,
        submitted: _,
        ended,
        due,
    } = row;
    wait.as_ref().is_some_and(WaitReason::is_rest)
        && *state == ProcedureState::WaitingTimeout
        && id.is_root()
        && parent.is_none()
        && *attempt == 0
        && going.is_none()
        && attempts_kept.is_empty()
        && wake.is_none()
        && rounds.is_empty()
        && locks.is_empty()
        && locked.is_empty()
        && ready.is_none()
        && *same_stage < SAME_STAGE_FROZEN
        && *visit < STAGES_FROZEN
        && large.is_none()
        && said.is_none()
        && !paused
        && mark.is_none()
        && output.is_none()
        && !cleaning
        && cause.is_none()
        && *undo_attempts == 0
        && not_undone.is_empty()
        && ended.is_none()
        && due.is_none()
}
