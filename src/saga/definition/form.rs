//! The parsed form of a machine: states, links between them, regions. It knows no JSON but the literals of its author,
//! and no way to run.
#![expect(
    dead_code,
    reason = "the parsed form is whole; checks and pictures read a part of it, and what runs machines reads the rest"
)]

use std::collections::HashMap;

use serde_json::Value;

use super::super::expression::{Failed, Steps, Text, Visit};
use super::regions::Regions;
use super::template::Template;

/// Where a state stands in its machine: its place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::saga) struct StateIndex(pub(in crate::saga) usize);

/// A machine whose checks have found no error.
#[derive(Debug)]
pub(in crate::saga) struct Definition {
    pub(in crate::saga) name: String,
    pub(in crate::saga) version: Option<String>,
    pub(in crate::saga) comment: Option<String>,
    pub(in crate::saga) recover: RecoverStrategy,
    pub(in crate::saga) updates: Updates,
    pub(in crate::saga) start: StateIndex,
    pub(in crate::saga) states: Vec<State>,
    pub(in crate::saga) regions: Regions,
    pub(super) places: Places,
}

/// States by their names.
#[derive(Debug)]
pub(super) struct Places(HashMap<String, StateIndex>);

impl Places {
    pub(super) fn of(states: &[State]) -> Self {
        let places = states.iter().enumerate();
        Self(
            places
                .map(|(index, state)| (state.name.clone(), StateIndex(index)))
                .collect(),
        )
    }
}

impl Definition {
    pub(in crate::saga) fn index_of(&self, name: &str) -> Option<StateIndex> {
        self.places.0.get(name).copied()
    }

    pub(in crate::saga) fn state(&self, index: StateIndex) -> Option<&State> {
        self.states.get(index.0)
    }
}

/// What a machine's own time-out does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::saga) enum RecoverStrategy {
    #[default]
    Compensate,
    Forward,
}

/// Whether a list of states shows the latest try alone; absent where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::saga) struct Updates {
    pub(in crate::saga) retry: Option<bool>,
    pub(in crate::saga) compensate: Option<bool>,
}

/// One state.
#[derive(Debug)]
pub(in crate::saga) struct State {
    pub(in crate::saga) name: String,
    /// JSON pointer to the object that holds the state's attributes.
    pub(in crate::saga) at: String,
    pub(in crate::saga) comment: Option<String>,
    pub(in crate::saga) kind: Kind,
    /// Of a task, a Join and a CompensationTrigger. Without one the machine ends there.
    pub(in crate::saga) next: Option<Link>,
    /// Where a designer drew it.
    pub(in crate::saga) drawn: Option<Rectangle>,
}

#[derive(Debug)]
pub(in crate::saga) enum Kind {
    Task(Box<Task>),
    Choice {
        choices: Vec<Choice>,
        default: Option<Link>,
    },
    Trigger,
    Fork(Fork),
    Join,
    Succeed,
    Fail {
        code: Option<String>,
        message: Option<String>,
    },
    /// Its type is an error, so no definition has such a state; it keeps its name and its `Next` while a file is checked.
    Unsupported,
}

/// A link to a state, by the name that the file gives.
#[derive(Debug, PartialEq)]
pub(in crate::saga) struct Link {
    pub(in crate::saga) name: String,
    /// JSON pointer to what makes the link.
    pub(in crate::saga) at: String,
    /// None if no state has the name. In a definition that is so of a `CompensateState` alone.
    pub(in crate::saga) to: Option<StateIndex>,
}

impl Link {
    pub(super) fn new(name: &str, at: String) -> Self {
        Self {
            name: name.to_owned(),
            at,
            to: None,
        }
    }
}

#[derive(Debug)]
pub(in crate::saga) struct Choice {
    pub(in crate::saga) expression: Text,
    pub(in crate::saga) next: Option<Link>,
}

#[derive(Debug, Default)]
pub(in crate::saga) struct Fork {
    pub(in crate::saga) branches: Vec<Link>,
    /// Branches at once; 0 is no limit.
    pub(in crate::saga) parallel: u64,
    /// Milliseconds; 0 is no time-out.
    pub(in crate::saga) timeout_ms: u64,
}

/// What calls something: a service, a script, a machine.
#[derive(Debug)]
pub(in crate::saga) struct Task {
    pub(in crate::saga) call: Call,
    pub(in crate::saga) input: Vec<Template>,
    pub(in crate::saga) output: Vec<(String, Template)>,
    pub(in crate::saga) status: Vec<(Text, Status)>,
    pub(in crate::saga) compensate: Option<Link>,
    pub(in crate::saga) is_for_update: bool,
    pub(in crate::saga) is_for_compensation: bool,
    pub(in crate::saga) retry: Vec<Retry>,
    pub(in crate::saga) catches: Vec<Catch>,
    pub(in crate::saga) repeat: Option<Repeat>,
    pub(in crate::saga) updates: Updates,
}

impl Task {
    /// Returns the list of arguments, for a context. Its expressions share the steps of one evaluation, so that memory is
    /// bounded.
    pub(in crate::saga) fn arguments(
        &self,
        context: &Value,
        visit: &dyn Visit,
        steps: &mut Steps,
    ) -> Result<Vec<Value>, Failed> {
        let steps = steps.again();
        let arguments = self.input.iter();
        arguments
            .map(|argument| argument.evaluate(context, visit, steps))
            .collect()
    }

    /// Returns the variables of `Output`, for what the call returned. Steps are as for `arguments`.
    pub(in crate::saga) fn outputs<'a>(
        &'a self,
        returned: &'a Value,
        visit: &'a dyn Visit,
        steps: &mut Steps,
    ) -> impl Iterator<Item = Result<(&'a str, Value), Failed>> {
        let steps = steps.again();
        self.output.iter().map(move |(variable, template)| {
            let value = template.evaluate(returned, visit, steps)?;
            Ok((variable.as_str(), value))
        })
    }
}

#[derive(Debug)]
pub(in crate::saga) enum Call {
    Service {
        service: String,
        method: String,
        is_async: bool,
        has_types: bool,
    },
    Script {
        language: Option<String>,
        content: Option<String>,
    },
    Machine {
        machine: String,
    },
    CompensateMachine,
}

/// What a state instance came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::saga) enum Status {
    Success,
    Failed,
    Unknown,
    Skipped,
    Running,
}

impl Status {
    pub(super) fn of_word(word: &str) -> Option<Self> {
        match word {
            "SU" => Some(Self::Success),
            "FA" => Some(Self::Failed),
            "UN" => Some(Self::Unknown),
            "SK" => Some(Self::Skipped),
            "RU" => Some(Self::Running),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(in crate::saga) struct Retry {
    /// None: network faults alone.
    pub(in crate::saga) exceptions: Option<Vec<String>>,
    pub(in crate::saga) max_attempts: u64,
    pub(in crate::saga) interval_seconds: f64,
    pub(in crate::saga) backoff_rate: f64,
}

#[derive(Debug)]
pub(in crate::saga) struct Catch {
    pub(in crate::saga) exceptions: Vec<String>,
    pub(in crate::saga) next: Option<Link>,
}

/// A Loop.
#[derive(Debug)]
pub(in crate::saga) struct Repeat {
    pub(in crate::saga) collection: Option<Template>,
    /// Elements at once; 0 is no limit.
    pub(in crate::saga) parallel: u64,
    pub(in crate::saga) element_name: String,
    pub(in crate::saga) index_name: String,
    pub(in crate::saga) completion: Option<Text>,
}

/// A node of a designer: its middle and its size.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(in crate::saga) struct Rectangle {
    pub(in crate::saga) x: f64,
    pub(in crate::saga) y: f64,
    pub(in crate::saga) width: f64,
    pub(in crate::saga) height: f64,
}

impl Rectangle {
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64, sizes: f64| (a - b).abs() * 2.0 < sizes;
        near(self.x, other.x, self.width + other.width) && near(self.y, other.y, self.height + other.height)
    }
}

impl State {
    /// Returns the links that the machine may follow, in the order of the file.
    pub(in crate::saga) fn flow(&self) -> impl Iterator<Item = &Link> {
        let (catches, choices, default, branches) = match &self.kind {
            Kind::Task(task) => (task.catches.as_slice(), [].as_slice(), None, [].as_slice()),
            Kind::Choice { choices, default } => (&[][..], choices.as_slice(), default.as_ref(), &[][..]),
            Kind::Fork(fork) => (&[][..], &[][..], None, fork.branches.as_slice()),
            Kind::Trigger | Kind::Join | Kind::Succeed | Kind::Fail { .. } | Kind::Unsupported => {
                (&[][..], &[][..], None, &[][..])
            }
        };
        let catches = catches.iter().filter_map(|entry| entry.next.as_ref());
        let choices = choices.iter().filter_map(|entry| entry.next.as_ref());
        self.next
            .iter()
            .chain(catches)
            .chain(choices)
            .chain(default)
            .chain(branches)
    }

    /// Visits the same links as `flow`, and the `CompensateState` last.
    pub(super) fn visit_links(&mut self, mut visit: impl FnMut(&mut Link)) {
        self.next.iter_mut().for_each(&mut visit);
        match &mut self.kind {
            Kind::Task(task) => {
                task.catches
                    .iter_mut()
                    .filter_map(|entry| entry.next.as_mut())
                    .for_each(&mut visit);
                task.compensate.iter_mut().for_each(&mut visit);
            }
            Kind::Choice { choices, default } => {
                choices
                    .iter_mut()
                    .filter_map(|entry| entry.next.as_mut())
                    .for_each(&mut visit);
                default.iter_mut().for_each(&mut visit);
            }
            Kind::Fork(fork) => fork.branches.iter_mut().for_each(&mut visit),
            Kind::Trigger | Kind::Join | Kind::Succeed | Kind::Fail { .. } | Kind::Unsupported => {}
        }
    }

    /// Returns the `Type` as files have it.
    #[cfg(feature = "dashboard")]
    pub(in crate::saga) const fn word(&self) -> &'static str {
        match &self.kind {
            Kind::Task(task) => match task.call {
                Call::Service { .. } => "ServiceTask",
                Call::Script { .. } => "ScriptTask",
                Call::Machine { .. } => "SubStateMachine",
                Call::CompensateMachine => "CompensateSubMachine",
            },
            Kind::Choice { .. } => "Choice",
            Kind::Trigger => "CompensationTrigger",
            Kind::Fork(_) => "Fork",
            Kind::Join => "Join",
            Kind::Succeed => "Succeed",
            Kind::Fail { .. } | Kind::Unsupported => "Fail",
        }
    }

    pub(in crate::saga) fn task(&self) -> Option<&Task> {
        match &self.kind {
            Kind::Task(task) => Some(task),
            Kind::Choice { .. }
            | Kind::Trigger
            | Kind::Fork(_)
            | Kind::Join
            | Kind::Succeed
            | Kind::Fail { .. }
            | Kind::Unsupported => None,
        }
    }

    /// Returns whether a machine ends here: by its type, or for lack of a `Next`.
    pub(super) fn is_end(&self) -> bool {
        match self.kind {
            Kind::Succeed | Kind::Fail { .. } | Kind::Unsupported => true,
            Kind::Task(_) | Kind::Join | Kind::Trigger => self.next.is_none(),
            Kind::Choice { .. } | Kind::Fork(_) => false,
        }
    }
}
