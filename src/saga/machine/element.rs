//! One element of a Loop: a task, called for one value of the collection.

use std::sync::Arc;

use procession_actors::{StageContext, StageError};
use procession_kernel::ProcedureId;
use serde_json::{Map, Value};

use super::Machine;
use super::context::Context;
use super::family::lay_element;
use super::part::{Element, Part};
use super::rest::Woken;
use super::task;
use super::turn::{Turn, Turned};
use crate::saga::definition::{Kind, StateIndex, Task};

impl Turn<'_, '_> {
    /// Calls the task for its element.
    pub(super) async fn element(
        mut self,
        name: &str,
        element: Element,
        parent: u32,
        mut arguments: Vec<Value>,
    ) -> Turned {
        let definition = Arc::clone(&self.definition);
        let found = definition.index_of(name).zip(task::named(&definition, name));
        let Some((at, (state, task))) = found else {
            return Err(StageError::fail(format!(
                "machine [{}] has no task [{name}]",
                self.machine.name()
            )));
        };
        match self.woken() {
            Woken::Freshly => {}
            Woken::Forward(_, params) if params.is_empty() => {}
            Woken::Forward(_, params) => {
                let context = context_of(self.cx, task, &element, parent, params).await?;
                match self.arguments_on(state, task, &context) {
                    Ok(evaluated) => arguments = evaluated,
                    Err(error) => return self.stop(at, error),
                }
                self.keep_arguments(&arguments);
            }
            Woken::Skip(rest, results) => {
                self.machine.lay(results);
                return self.skip(at, task, &rest);
            }
            Woken::Compensate(rest) => return self.compensate(rest.error),
            Woken::Astray(rest) => return self.rest(at, rest),
        }
        if let Some(error) = self.too_many_visits(state).or_else(|| self.window_over(state)) {
            return self.stop(at, error);
        }
        self.begin_try(at, task);
        let tried = self.call(state, task, arguments, Some(&element)).await;
        self.tried(at, state, task, tried)
    }

    fn keep_arguments(&mut self, evaluated: &[Value]) {
        if let Some(Part::Element { arguments, .. }) = &mut self.machine.part {
            *arguments = evaluated.to_vec();
        }
    }

    /// The element has ended. If its fault was caught by a CompensationTrigger, its machine fails; otherwise the machine
    /// may go on where the fault led.
    pub(super) fn leave_loop(mut self, next: Option<StateIndex>) -> Turned {
        let definition = Arc::clone(&self.definition);
        match next.and_then(|next| Some((next, definition.state(next)?))) {
            Some((at, state)) if matches!(state.kind, Kind::Trigger) => {
                self.note.route(&state.name);
                self.trigger(at)
            }
            Some((at, _)) => {
                let status = self.machine.tally.with(self.machine.instance.as_ref()).status();
                self.leaving(status, Some(at.0))
            }
            None => self.end(None),
        }
    }
}

/// Returns the context that an element's Input and compensator see: the machine's, its element and index, and what is laid
/// over that.
pub(super) async fn context_of(
    cx: &StageContext<'_, Machine>,
    task: &Task,
    element: &Element,
    parent: u32,
    over: Map<String, Value>,
) -> Result<Context, StageError> {
    let id = ProcedureId::new(cx.id().family, parent);
    let machine: Option<Machine> = cx.value_of(id).await?;
    let mut context = machine.map(|machine| machine.context).unwrap_or_default();
    if let Some(repeat) = &task.repeat {
        lay_element(&mut context, repeat, element);
    }
    context.lay(over);
    Ok(context)
}
