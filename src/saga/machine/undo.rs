//! Undos: the engine calls them, newest first, and each calls the compensator of one state.

use std::collections::BTreeSet;

use procession_actors::journal::codec;
use procession_actors::{StageContext, StageError};
use procession_kernel::{Ending, ProcedureId};
use procession_saga_language::definition::{Call as Calls, Definition, State, Task};
use procession_saga_language::expression::Steps;
use serde_json::Value;

use super::Machine;
use super::context::size_of;
use super::element::context_of;
use super::error::code;
use super::note::{Note, UndoNote};
use super::part::{Element, Part};
use super::stage::{Mode, SagaStage};
use super::task::{self, Said};
use crate::saga::service::{Call, CallParts, CallToken, DEPTH_MAX, is_too_deep};
use crate::saga::shared::Shared;
use crate::saga::status::SagaStatus;

/// Entries of the history that are read at once.
const ENTRIES: usize = 100;

/// Undoes one stage.
pub(super) async fn undo(
    machine: &mut Machine,
    stage: &SagaStage,
    cx: &mut StageContext<'_, Machine>,
) -> Result<(), StageError> {
    // Nobody waits for a call of its own family, and nothing undoes it. A member whose first stage failed in the engine has not
    // fixed its definition yet: its call is in doubt all the same, and the newest definition says what undoes it.
    if matches!(machine.part, Some(Part::Call { .. })) {
        return Ok(());
    }
    match taken_over(machine, cx).await? {
        Some(Instead::Undone) => return Ok(()),
        Some(Instead::Skipped) => return pass_over(cx),
        None => {}
    }
    let note: Note = cx.noted()?.unwrap_or_default();
    // These call nothing themselves. A person may have skipped what rested there.
    if matches!(stage.mode(), Mode::Route | Mode::Keep) && note.status.is_none() {
        return Ok(());
    }
    let shared = cx.env().shared();
    let bundle = shared.bundle_of(machine).map_err(StageError::retry)?;
    let definition = bundle.definition(machine.name()).map_err(StageError::retry)?;
    let name = note.task.as_deref().unwrap_or(stage.state());
    let Some((state, task)) = task::named(&definition, name) else {
        return Ok(());
    };
    let began = note.began.unwrap_or(cx.token().visit);
    // A later try of the same instance has been undone, and with it all of them.
    if machine.undone == Some(began) {
        return Ok(());
    }
    if note.again && is_passed_over(cx.id(), began, cx).await? {
        return pass_over(cx);
    }
    if let Some(compensator) = compensator_of(&definition, state, task)? {
        compensate(machine, shared, task, compensator, began, cx).await?;
    }
    // The first try of an instance is undone last, so nothing asks for it again. Members below ask for a sub machine's.
    let is_first = note.began.is_none() && task::is_direct(task);
    if !is_first {
        machine.undone = Some(began);
    }
    Ok(())
}

/// Returns whether a person skipped the undo of a try of this instance, and so said that the instance is undone. No code ran
/// for that, so the value does not remember it.
async fn is_passed_over(of: ProcedureId, began: u32, cx: &StageContext<'_, Machine>) -> Result<bool, StageError> {
    let (mut skipped, mut before) = (BTreeSet::new(), None);
    loop {
        let entries = cx.history_of(of, before, ENTRIES).await?;
        for entry in &entries {
            if entry.ending == Ending::UndoSkipped {
                skipped.insert(entry.visit);
            }
            if !entry.ending.is_stage() {
                continue;
            }
            if entry.visit < began {
                return Ok(false);
            }
            // The newest attempt of a visit comes first, and its note is the one that counts.
            if skipped.remove(&entry.visit) {
                let note = entry.note.as_ref();
                let note = note
                    .map(|note| codec::decode_user::<Note>(note.as_slice()))
                    .transpose()?;
                if note.and_then(|note| note.began).unwrap_or(entry.visit) == began {
                    return Ok(true);
                }
            }
        }
        let Some(last) = entries.last() else { return Ok(false) };
        before = Some(last.number);
    }
}

/// Notes that an undo calls nothing because a person has skipped what it is a part of. Lists would show the state as undone.
fn pass_over(cx: &mut StageContext<'_, Machine>) -> Result<(), StageError> {
    Ok(cx.note(&UndoNote::passed_over())?)
}

/// What became of the undo that stands for the undos of a sub machine.
enum Instead {
    /// A task has undone the sub machine, or will.
    Undone,
    /// A person has skipped that task.
    Skipped,
}

/// Returns what becomes of this member if a task undoes it in its place: that of a sub machine around it which has come back.
/// Until then a sub machine undoes itself, because that task is not called for it. The undo of the task comes before those of
/// the sub machine, with nothing of the member above it in between.
async fn taken_over(machine: &Machine, cx: &StageContext<'_, Machine>) -> Result<Option<Instead>, StageError> {
    for kept in &machine.kept {
        let id = ProcedureId::new(cx.id().family, kept.parent);
        let parent: Option<Machine> = cx.value_of(id).await?;
        let began = Some(kept.began);
        if parent.as_ref().is_some_and(|parent| parent.undone == began) {
            return Ok(Some(Instead::Undone));
        }
        if is_passed_over(id, kept.began, cx).await? {
            return Ok(Some(Instead::Skipped));
        }
        if parent.is_some_and(|parent| parent.took_over == began) {
            return Ok(Some(Instead::Undone));
        }
    }
    Ok(None)
}

/// Returns the task that undoes a state. A sub machine undoes itself unless a task does it in its place. Definitions of
/// earlier releases may name what undoes nothing.
fn compensator_of<'d>(
    definition: &'d Definition,
    state: &State,
    task: &Task,
) -> Result<Option<(&'d State, &'d Task)>, StageError> {
    let is_machine = matches!(task.call, Calls::Machine { .. });
    let is_direct = |(_, task): &(&State, &Task)| matches!(task.call, Calls::Service { .. } | Calls::Script { .. });
    let link = task.compensate.as_ref();
    match link.and_then(|link| task::named(definition, &link.name).filter(is_direct)) {
        Some(compensator) => Ok(Some(compensator)),
        None if is_machine || !task::is_for_update(task) => Ok(None),
        None => Err(lacking(state)),
    }
}

fn lacking(state: &State) -> StageError {
    let text = format!(
        "{}: state [{}] took effect, and no compensator undoes it; undo it by hand, then skip it",
        code::NO_COMPENSATOR,
        state.name
    );
    StageError::retry(text)
}

/// Calls a compensator of a task.
async fn compensate(
    machine: &mut Machine,
    shared: &Shared,
    undone: &Task,
    (state, task): (&State, &Task),
    began: u32,
    cx: &mut StageContext<'_, Machine>,
) -> Result<(), StageError> {
    let wrong = |text: String| StageError::retry(format!("{}: state [{}]: {text}", code::ASSIGN, state.name));
    let context = context_of(machine, cx, undone, || machine.variables()).await?;
    let mut token = cx.token();
    token.visit = began;
    let said = Said::making_ids(shared.classes(), CallToken::new(token, true));
    let mut steps = Steps::new();
    let arguments = task::evaluated(task, context.root(), &said, &mut steps).map_err(wrong)?;
    let call = Call::new(CallParts {
        saga: machine.saga(cx.id()),
        member: cx.id(),
        machine: machine.name().into(),
        state: state.name.as_str().into(),
        attempt: cx.attempt(),
        element: machine.element().map(Element::called),
        compensates: true,
        fence: cx.fence(),
        token,
        trace: cx.trace_parent(),
    });
    let begun = cx.now();
    let result = match &task.call {
        Calls::Service { service, method, .. } => shared.services().call(cx, service, method, arguments, call).await,
        Calls::Script { .. } => {
            let variables = task::variables(task, arguments);
            shared.services().run_script(machine.name(), &state.name, &variables)
        }
        Calls::Machine { .. } | Calls::CompensateMachine => Ok(Value::Null),
    };
    let (value, fault) = match result {
        Ok(value) => (value, None),
        Err(fault) => (Value::Null, Some(fault)),
    };
    let took = cx.now().since(begun);
    let note = UndoNote::new(&state.name, fault.as_ref());
    cx.note(&note)?;
    let said = Said::of(fault.as_ref(), shared.classes());
    let status = status(task, &value, &said, &mut steps).map_err(wrong)?;
    let came_to = status.unwrap_or(match &fault {
        Some(_) => SagaStatus::Unknown,
        None => SagaStatus::Success,
    });
    shared.called(machine.name(), &state.name, came_to, took);
    match (status, &fault) {
        (Some(SagaStatus::Success), _) | (None, None) => {
            let outputs = outputs(task, &value, &said, &mut steps).map_err(wrong)?;
            match fits(machine, &outputs, cx.max_payload() / 2) {
                Ok(()) => outputs
                    .into_iter()
                    .for_each(|(name, output)| machine.context.set(&name, output)),
                // The state is undone, and a compensator after it finds what was there before.
                Err(why) => cx.note(&note.left_out(why))?,
            }
            Ok(())
        }
        (_, Some(fault)) => {
            let text = format!("state [{}] failed with {}: {}", state.name, fault.class, fault.message);
            Err(StageError::retry(text))
        }
        (Some(status), None) => Err(StageError::retry(format!(
            "state [{}] came to {status}, and undoes only by SU",
            state.name
        ))),
    }
}

/// Returns what the `Status` of a compensator says; none if it has none. No true key is a failure.
fn status(task: &Task, value: &Value, said: &Said<'_>, steps: &mut Steps) -> Result<Option<SagaStatus>, String> {
    for (key, status) in &task.status {
        let holds = key
            .test(value, said, steps.again())
            .map_err(|failed| format!("Status of \"{key}\": {failed}"))?;
        if holds {
            return Ok(Some(SagaStatus::answered(*status)));
        }
    }
    Ok((!task.status.is_empty()).then_some(SagaStatus::Unknown))
}

/// Returns the values of the result that belong in the context, for the compensators after this one.
fn outputs(task: &Task, value: &Value, said: &Said<'_>, steps: &mut Steps) -> Result<Vec<(String, Value)>, String> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let outputs = task.outputs(value, said, steps);
    let outputs = outputs.map(|output| output.map(|(name, output)| (name.to_owned(), output)));
    let outputs: Result<Vec<_>, _> = outputs.collect();
    outputs.map_err(|failed| format!("Output: {failed}"))
}

/// Checks what the context would have. A row has a bound, and the context has half of it.
fn fits(machine: &Machine, outputs: &[(String, Value)], limit: usize) -> Result<(), String> {
    // Most compensators have no Output, and the whole context is measured below.
    if outputs.is_empty() {
        return Ok(());
    }
    if let Some((name, _)) = outputs.iter().find(|(_, output)| is_too_deep(output)) {
        return Err(format!("its Output [{name}] would be nested deeper than {DEPTH_MAX}"));
    }
    let context = &machine.context;
    let replaced: usize = outputs.iter().map(|(name, _)| context.size_of(name)).sum();
    let added: usize = outputs.iter().map(|(name, output)| size_of(name, output)).sum();
    let size = context.size().saturating_sub(replaced).saturating_add(added);
    match size > limit {
        true => Err(format!(
            "its Output would make about {size} bytes, and {limit} are the limit"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
