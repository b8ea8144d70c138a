//! What happens next for a procedure, in words: true for every state and wait reason.

use procession_kernel::{OnFailure, ProcedureState, Row, WaitReason};

use crate::journal::codec;

/// What happens next for a member of a quarantined family.
pub(super) const QUARANTINED: &str = "nothing, until a start can load its family, or an operator discharges it";

/// Describes what happens next, and when, as far as the row says.
pub(crate) fn next(row: &Row) -> String {
    if row.is_ended() {
        return after_end(row).to_owned();
    }
    let next = match row.state {
        ProcedureState::Failed => rolls_back(row),
        ProcedureState::Initializing
        | ProcedureState::Runnable
        | ProcedureState::Waiting
        | ProcedureState::WaitingTimeout
        | ProcedureState::RolledBack
        | ProcedureState::Success => goes_on(row),
    };
    if row.rare().paused && row.wait != Some(WaitReason::Paused) && row.in_flight.is_none() {
        return held_back(&next);
    }
    next
}

/// Describes what happens next for a procedure that a pause holds back beyond its own wait.
pub(crate) fn held_back(next: &str) -> String {
    format!("{next}, but not before an operator resumes it")
}

fn after_end(row: &Row) -> &'static str {
    if row.rare().cleaning {
        "it has ended; its cleanup runs"
    } else if row.state == ProcedureState::Success && row.parent.is_some() && row.on_failure == OnFailure::Compensate {
        "nothing, unless its family rolls back: then it is undone"
    } else {
        "nothing: it has ended"
    }
}

fn rolls_back(row: &Row) -> String {
    match &row.wait {
        _ if row.in_flight.is_some() => "its stage reports; then it is rolled back".to_owned(),
        Some(WaitReason::Backoff(_, at)) => format!("its undo is retried at {at}"),
        Some(WaitReason::RollbackFailed) => "nothing, until an operator retries or skips its undo".to_owned(),
        Some(WaitReason::Lock(path)) => format!("its rollback continues once the lock {path} is free"),
        Some(WaitReason::Permit(limit)) => format!("its rollback continues once a permit of {limit} is free"),
        Some(WaitReason::Paused) => "its rollback continues once an operator resumes it".to_owned(),
        Some(WaitReason::Suspect) => "its stage, which is in doubt, runs alone; then it is rolled back".to_owned(),
        Some(WaitReason::Quarantined) => {
            "nothing, until an operator bypasses or discharges it: its history has a hole".to_owned()
        }
        // A procedure that rolls back no longer waits for any of these.
        None
        | Some(
            WaitReason::Width
            | WaitReason::Children
            | WaitReason::Timer(_)
            | WaitReason::Event(..)
            | WaitReason::Queue
            | WaitReason::Poison
            | WaitReason::RepeatLimit
            | WaitReason::Gate
            | WaitReason::Decision(_),
        ) => "it is rolled back once no stage of its family runs".to_owned(),
    }
}

fn goes_on(row: &Row) -> String {
    let stage = stage_of(row);
    let Some(wait) = &row.wait else {
        return format!("{stage} runs, or is queued at its worker");
    };
    match wait {
        WaitReason::Timer(at) | WaitReason::Backoff(_, at) => format!("{stage} runs at {at}"),
        WaitReason::Event(name, Some(at)) => format!("{stage} runs once {name} arrives, at the latest at {at}"),
        WaitReason::Event(name, None) => format!("{stage} runs once {name} arrives"),
        WaitReason::Decision(question) => match question.until {
            Some(at) => format!("{stage} runs once somebody decides, at the latest at {at}"),
            None => format!("{stage} runs once somebody decides"),
        },
        // The procedure has returned `Done`, and added children with it.
        WaitReason::Children if row.rare().output.is_some() => "it succeeds once its children have ended".to_owned(),
        WaitReason::Children => format!("{stage} runs once its children finish"),
        WaitReason::Width => format!("{stage} runs once one of its siblings has ended"),
        WaitReason::Permit(limit) => format!("{stage} runs once a permit of {limit} is free and its turn has come"),
        WaitReason::Lock(path) => format!("{stage} runs once the lock {path} is free and its turn has come"),
        WaitReason::Queue => format!("{stage} runs at the next start"),
        WaitReason::Suspect => format!("{stage} runs alone, once the suspect before it has reported"),
        WaitReason::Paused | WaitReason::Poison | WaitReason::RepeatLimit => {
            format!("{stage} runs once an operator resumes it")
        }
        WaitReason::Gate => format!("{stage} runs once its gate opens"),
        WaitReason::RollbackFailed | WaitReason::Quarantined => QUARANTINED.to_owned(),
    }
}

fn stage_of(row: &Row) -> String {
    if row.stage.is_empty() {
        "its stage".to_owned()
    } else {
        format!("stage {}", codec::describe(row.stage.as_slice()))
    }
}

#[cfg(test)]
mod tests;
