//! The way from a task to what is next: Choices and ends cost no stage of their own.

use std::sync::Arc;

use procession_actors::{Children, Step};
use procession_saga_language::definition::{Choice, Kind, Link, State, StateIndex};

use super::error::{SagaError, code};
use super::part::Part;
use super::rest::Rest;
use super::stage::SagaStage;
use super::task::Said;
use super::turn::{Turn, Turned};

/// States that one stage goes through without a task.
const ROUTED_AT_ONCE: usize = 1_000;

/// Where a member goes on once a state of it was entered.
pub(super) enum Way {
    /// At this state, or it ends where there is none.
    To(Option<StateIndex>),
    /// At what follows these children.
    Behind(Children, SagaStage),
    /// It rests at this state.
    Rests(StateIndex, Rest),
}

impl Turn<'_, '_> {
    /// Goes on at a state, or ends where there is none.
    pub(super) fn route(self, next: Option<StateIndex>) -> Turned {
        self.follow(Way::To(next))
    }

    /// Goes on. States without a stage of their own are gone through here, one after the other: a circle of them is bounded,
    /// and takes no stack.
    pub(super) fn follow(mut self, mut way: Way) -> Turned {
        let definition = Arc::clone(&self.definition);
        let mut last = definition.start;
        for passed in 0.. {
            let next = match way {
                Way::To(next) => next,
                Way::Behind(children, then) => return self.close(Step::Spawn { children, then }),
                Way::Rests(at, rest) => return self.rest(at, rest),
            };
            let Some((at, state)) = next.and_then(|at| Some((at, definition.state(at)?))) else {
                break;
            };
            if passed == ROUTED_AT_ONCE {
                return self.stop_in_a_circle(last);
            }
            last = at;
            way = match &state.kind {
                Kind::Task(task) if super::task::is_direct(task) => return self.next(at),
                Kind::Task(_) => {
                    self.machine.fold();
                    self.open(at)?
                }
                Kind::Fork(fork) => self.fork(at, state, fork)?,
                Kind::Choice { choices, default } => {
                    self.note.route(&state.name);
                    match self.chosen(state, choices, default.as_ref()) {
                        Ok(link) => Way::To(link.to),
                        Err(error) => return self.stop(at, error),
                    }
                }
                Kind::Join => {
                    self.note.route(&state.name);
                    match self.is_own_join(at) {
                        true => break,
                        false => Way::To(state.next.as_ref().and_then(|link| link.to)),
                    }
                }
                Kind::Trigger => {
                    self.note.route(&state.name);
                    return self.trigger(at);
                }
                Kind::Succeed => {
                    self.note.route(&state.name);
                    break;
                }
                Kind::Fail { .. } => {
                    self.note.route(&state.name);
                    return self.end(Some(at));
                }
                // No definition has one.
                Kind::Unsupported => break,
            };
        }
        self.end(None)
    }

    fn stop_in_a_circle(self, last: StateIndex) -> Turned {
        let name = self.state(last)?.name.clone();
        let text = format!("it went through {ROUTED_AT_ONCE} states without a task; a machine may go in a circle");
        self.stop(last, SagaError::new(code::BOUND, text, &name))
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
