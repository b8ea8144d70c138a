//! The way from a task to what is next: Choices and ends cost no stage of their own.

use std::sync::Arc;

use procession_saga_language::definition::{Choice, Kind, Link, State, StateIndex};

use super::error::{SagaError, code};
use super::part::Part;
use super::task::Said;
use super::turn::{Turn, Turned};

/// States that one stage goes through without a task.
const ROUTED_AT_ONCE: usize = 1_000;

impl Turn<'_, '_> {
    /// Goes on at a state, or ends where there is none.
    pub(super) fn route(mut self, next: Option<StateIndex>) -> Turned {
        let definition = Arc::clone(&self.definition);
        let mut next = next;
        let mut last = definition.start;
        for _ in 0..ROUTED_AT_ONCE {
            let Some((at, state)) = next.and_then(|at| Some((at, definition.state(at)?))) else {
                return self.end(None);
            };
            last = at;
            match &state.kind {
                Kind::Task(task) if super::task::is_direct(task) => return self.next(at),
                Kind::Task(_) => {
                    self.machine.fold();
                    return self.open(at);
                }
                Kind::Fork(fork) => return self.fork(at, state, fork),
                Kind::Choice { choices, default } => {
                    self.note.route(&state.name);
                    match self.chosen(state, choices, default.as_ref()) {
                        Ok(link) => next = link.to,
                        Err(error) => return self.stop(at, error),
                    }
                }
                Kind::Join if self.is_own_join(at) => {
                    self.note.route(&state.name);
                    return self.end(None);
                }
                Kind::Join => {
                    self.note.route(&state.name);
                    next = state.next.as_ref().and_then(|link| link.to);
                }
                Kind::Trigger => {
                    self.note.route(&state.name);
                    return self.trigger(at);
                }
                Kind::Succeed => {
                    self.note.route(&state.name);
                    return self.end(None);
                }
                Kind::Fail { .. } => {
                    self.note.route(&state.name);
                    return self.end(Some(at));
                }
                // No definition has one.
                Kind::Unsupported => return self.end(None),
            }
        }
        let name = definition.state(last).map_or("", |state| state.name.as_str());
        let text = format!("it went through {ROUTED_AT_ONCE} states without a task");
        self.stop(last, SagaError::new(code::BOUND, text, name))
    }

    /// Returns whether a branch ends at this Join.
    fn is_own_join(&self, at: StateIndex) -> bool {
        match self.machine.part {
            Some(Part::Branch { fork, .. }) => self.definition.regions.join(StateIndex(fork)) == Some(at),
            Some(Part::Sub | Part::Element { .. } | Part::Call { .. }) | None => false,
        }
    }

    /// Returns the link of the first true entry, or the default.
    fn chosen<'d>(
        &self,
        state: &State,
        choices: &'d [Choice],
        default: Option<&'d Link>,
    ) -> Result<&'d Link, SagaError> {
        let said = Said::nothing(self.shared.classes());
        for (number, choice) in choices.iter().enumerate() {
            let holds = choice
                .expression
                .test(self.machine.context.root(), &said, self.steps.borrow_mut().again())
                .map_err(|failed| SagaError::new(code::ASSIGN, format!("Choices[{number}]: {failed}"), &state.name))?;
            if holds && let Some(next) = &choice.next {
                return Ok(next);
            }
        }
        default.ok_or_else(|| {
            let text = "no entry of Choices is true, and it has no Default";
            SagaError::new(code::NO_CHOICE, text, &state.name)
        })
    }
}
