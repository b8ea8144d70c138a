//! One element of a Loop: where it goes when it ends, and what its expressions see.

use std::borrow::Cow;
use std::sync::Arc;

use procession_actors::{StageContext, StageError};
use procession_kernel::ProcedureId;
use procession_saga_language::definition::{Kind, StateIndex, Task};
use serde_json::{Map, Value};

use super::Machine;
use super::context::Context;
use super::family::lay_element;
use super::part::Part;
use super::turn::{Turn, Turned};

impl Turn<'_, '_> {
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

/// Returns the context that Input and compensator of a member see: its own. For an element of a Loop that is its machine's,
/// with the element and its index, and the values that `over` returns laid over it.
pub(super) async fn context_of<'m>(
    machine: &'m Machine,
    cx: &StageContext<'_, Machine>,
    task: &Task,
    over: impl FnOnce() -> Map<String, Value>,
) -> Result<Cow<'m, Context>, StageError> {
    let Some(Part::Element { element, parent, .. }) = &machine.part else {
        return Ok(Cow::Borrowed(&machine.context));
    };
    let id = ProcedureId::new(cx.id().family, *parent);
    let parent: Option<Machine> = cx.value_of(id).await?;
    let mut context = parent.map(|machine| machine.context).unwrap_or_default();
    if let Some(repeat) = &task.repeat {
        lay_element(&mut context, repeat, element);
    }
    context.lay(over());
    Ok(Cow::Owned(context))
}
