//! Defines which families may be frozen: those whose entire state fits into their bytes.

use crate::family::Family;
use crate::lifecycle::ProcedureState;
use crate::row::{Rare, Row};
use crate::wait::WaitReason;

/// A stage that ran at least this often in a row keeps its family awake: the health check reports such stages, and
/// visits only awake families. Its default threshold is 100; a quarter of that leaves room for a lower setting.
pub const SAME_STAGE_FROZEN: u32 = 25;

/// A procedure with at least this many committed stages in its history keeps its family awake, for the same reason: the threshold of
/// the health check is 10,000.
pub const STAGES_FROZEN: u32 = 2_500;

/// Returns `true` if a family may be frozen. The bytes carry only what this check lets through, so it must reject
/// everything else.
pub(super) fn is_at_rest(family: &Family) -> bool {
    let Family {
        members,
        history: _,
        live,
        in_flight,
        latches,
        held,
        scopes,
        signals,
        below: _,
        gates,
    } = family;
    let [row] = members.as_slice() else { return false };
    let counts = *live == 1 && *in_flight == 0;
    let maps = latches.is_empty() && held.is_empty() && scopes.is_empty() && signals.is_empty() && gates.is_empty();
    counts && maps && rests(row)
}

/// Returns the state of a family at rest that waits for this.
pub(super) const fn state_at_rest(wait: Option<&WaitReason>) -> ProcedureState {
    match wait {
        Some(WaitReason::Decision(_)) => ProcedureState::Runnable,
        Some(_) | None => ProcedureState::WaitingTimeout,
    }
}

/// Every field is listed, so that adding a field forces a decision here.
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
        visit: _,
        attempt,
        in_flight,
        history: _,
        standing: _,
        as_submitted: _,
        wake,
        rounds,
        limits: _,
        holds: _,
        hold: _,
        stage_limits: _,
        stage_permits,
        locks,
        locked,
        locked_at: _,
        locks_for_life: _,
        ready,
        next_is_no_return: _,
        same_stage,
        expected: _,
        is_pure: _,
        out_of_time: _,
        priority: _,
        signals: _,
        waits_after: _,
        repeated,
        history_from: _,
        labels: _,
        key: _,
        deadline: _,
        submitted: _,
        ended,
        due,
        rare: _,
    } = row;
    let Rare {
        attempts_kept,
        past_no_return: _,
        on_timeout: _,
        paused,
        mark,
        output,
        cleaning,
        cause,
        undo_attempts,
        not_undone,
        closed,
        trace: _,
        graph,
        payload_size,
        failure_streak,
        retry_after,
        end_signal,
    } = row.rare();
    wait.as_ref().is_some_and(WaitReason::is_rest)
        && *state == state_at_rest(wait.as_ref())
        && id.is_root()
        && parent.is_none()
        && *attempt == 0
        && in_flight.is_none()
        && attempts_kept.is_empty()
        && wake.is_none()
        && rounds.is_empty()
        && !stage_permits
        && locks.is_empty()
        && locked.is_empty()
        && ready.is_none()
        && *same_stage < SAME_STAGE_FROZEN
        && row.stages_kept() < STAGES_FROZEN
        && payload_size.is_none()
        && failure_streak.is_none()
        && retry_after.is_none()
        && *repeated == 0
        && !paused
        && mark.is_none()
        && output.is_none()
        && !cleaning
        && cause.is_none()
        && *undo_attempts == 0
        && not_undone.is_empty()
        && closed.is_empty()
        && end_signal.is_none()
        && graph.as_ref().is_none_or(|node| node.is_only_a_name())
        && ended.is_none()
        && due.is_none()
}
