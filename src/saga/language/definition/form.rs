//! The parsed form of a machine: states, links between them, regions. It knows no JSON but the literals of its author,
//! and no way to run.

use std::collections::HashMap;

use serde_json::Value;

use super::regions::Regions;
use super::template::Template;
use crate::expression::{Failed, Steps, Text, Visit};

/// Where a state stands in its machine: its place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateIndex(
    /// The place, from 0.
    pub usize,
);

/// A machine whose checks have found no error.
#[derive(Debug)]
pub struct Definition {
    /// Its `Name`.
    pub name: String,
    /// Its `Version`.
    pub version: Option<String>,
    /// Its `Comment`.
    pub comment: Option<String>,
    /// Its `RecoverStrategy`.
    pub recover: RecoverStrategy,
    /// What its lists of states show, where a task does not say otherwise.
    pub updates: Updates,
    /// Its `StartState`.
    pub start: StateIndex,
    /// Its states, in the order of the file.
    pub states: Vec<State>,
    /// The branches of its Forks.
    pub regions: Regions,
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
    /// Returns the state with a name.
    pub fn index_of(&self, name: &str) -> Option<StateIndex> {
        self.places.0.get(name).copied()
    }

    /// Returns the state at a place.
    pub fn state(&self, index: StateIndex) -> Option<&State> {
        self.states.get(index.0)
    }
}

/// What a machine's own time-out does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoverStrategy {
    /// It begins the rollback.
    #[default]
    Compensate,
    /// The saga goes on.
    Forward,
}

/// Whether a list of states shows the latest try alone; absent where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Updates {
    /// `IsRetryPersistModeUpdate`: of the tries of a task.
    pub retry: Option<bool>,
    /// `IsCompensatePersistModeUpdate`: of the tries of a compensator.
    pub compensate: Option<bool>,
}

/// One state.
#[derive(Debug)]
pub struct State {
    /// Its key among the states.
    pub name: String,
    /// JSON pointer to the object that holds the state's attributes.
    pub at: String,
    /// Its `Comment`.
    pub comment: Option<String>,
    /// Its `Type`, with what only this type has.
    pub kind: Kind,
    /// Of a task, a Join and a CompensationTrigger. Without one the machine ends there.
    pub next: Option<Link>,
    /// Where a designer drew it.
    pub drawn: Option<Rectangle>,
}

/// What a state does.
#[derive(Debug)]
pub enum Kind {
    /// `ServiceTask`, `ScriptTask`, `SubStateMachine` or `CompensateSubMachine`.
    Task(Box<Task>),
    /// Leads on by the first condition that holds.
    Choice {
        /// Conditions, in the order of the file.
        choices: Vec<Choice>,
        /// Where it leads if none holds.
        default: Option<Link>,
    },
    /// `CompensationTrigger`: begins the rollback.
    Trigger,
    /// Begins branches.
    Fork(Fork),
    /// Ends the branches of a Fork.
    Join,
    /// The machine ends.
    Succeed,
    /// The machine ends and fails.
    Fail {
        /// Its `ErrorCode`.
        code: Option<String>,
        /// Its `Message`.
        message: Option<String>,
    },
    /// Its type is an error, so no definition has such a state; it keeps its name and its `Next` while a file is checked.
    Unsupported,
}

/// A link to a state, by the name that the file gives.
#[derive(Debug, PartialEq)]
pub struct Link {
    /// The name of the state.
    pub name: String,
    /// JSON pointer to what makes the link.
    pub at: String,
    /// None if no state has the name. In a definition that is so of a `CompensateState` alone.
    pub to: Option<StateIndex>,
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

/// One way on from a Choice.
#[derive(Debug)]
pub struct Choice {
    /// The condition.
    pub expression: Text,
    /// Where it leads if the condition holds.
    pub next: Option<Link>,
}

/// What a Fork begins.
#[derive(Debug, Default)]
pub struct Fork {
    /// The first state of each branch.
    pub branches: Vec<Link>,
    /// Branches at once; 0 is no limit.
    pub parallel: u64,
    /// Milliseconds; 0 is no time-out.
    pub timeout_ms: u64,
}

/// What calls something: a service, a script, a machine.
#[derive(Debug)]
pub struct Task {
    /// What it calls.
    pub call: Call,
    /// Its arguments.
    pub input: Vec<Template>,
    /// Variables of the context, each with what replaces it.
    pub output: Vec<(String, Template)>,
    /// Conditions on what the call returned, each with the status that it means.
    pub status: Vec<(Text, Status)>,
    /// Its `CompensateState`.
    pub compensate: Option<Link>,
    /// Whether it changes something, though no state undoes it.
    pub is_for_update: bool,
    /// Whether it is there to undo another state.
    pub is_for_compensation: bool,
    /// Which faults are tried again. The first entry that fits counts.
    pub retry: Vec<Retry>,
    /// Where faults lead. The first entry that fits counts.
    pub catches: Vec<Catch>,
    /// Its `Loop`.
    pub repeat: Option<Repeat>,
    /// What its lists of tries show.
    pub updates: Updates,
}

impl Task {
    /// Returns the list of arguments, for a context. Its expressions share the steps of one evaluation, so that memory is
    /// bounded.
    ///
    /// # Errors
    ///
    /// If an expression has no value.
    pub fn arguments(&self, context: &Value, visit: &dyn Visit, steps: &mut Steps) -> Result<Vec<Value>, Failed> {
        let steps = steps.again();
        let arguments = self.input.iter();
        arguments
            .map(|argument| argument.evaluate(context, visit, steps))
            .collect()
    }

    /// Returns the variables of `Output`, for what the call returned. Steps are as for `arguments`.
    pub fn outputs<'a>(
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

/// What a task calls.
#[derive(Debug)]
pub enum Call {
    /// A method of a service.
    Service {
        /// Its `ServiceName`.
        service: String,
        /// Its `ServiceMethod`.
        method: String,
        /// Whether the call is not awaited.
        is_async: bool,
        /// Whether the file names Java types of the parameters.
        has_types: bool,
    },
    /// A script, which the host replaces with code of its own.
    Script {
        /// Its `ScriptType`.
        language: Option<String>,
        /// Its `ScriptContent`.
        content: Option<String>,
    },
    /// Another machine.
    Machine {
        /// Its `StateMachineName`.
        machine: String,
    },
    /// What undoes a sub machine as a whole.
    CompensateMachine,
}

/// What a state instance came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// `SU`: it took effect.
    Success,
    /// `FA`: it failed, and took no effect.
    Failed,
    /// `UN`: it failed, and may have taken effect.
    Unknown,
    /// `SK`: it was skipped.
    Skipped,
    /// `RU`: it runs.
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

/// How often faults are tried again.
#[derive(Debug)]
pub struct Retry {
    /// Classes of faults. None: network faults alone.
    pub exceptions: Option<Vec<String>>,
    /// Tries at most, the first call not counted.
    pub max_attempts: u64,
    /// The time before the first of them.
    pub interval_seconds: f64,
    /// What each further interval is multiplied by.
    pub backoff_rate: f64,
}

/// Where faults lead.
#[derive(Debug)]
pub struct Catch {
    /// Classes of faults.
    pub exceptions: Vec<String>,
    /// The state that follows.
    pub next: Option<Link>,
}

/// A Loop.
#[derive(Debug)]
pub struct Repeat {
    /// What its elements are taken from.
    pub collection: Option<Template>,
    /// Elements at once; 0 is no limit.
    pub parallel: u64,
    /// The variable that is the element.
    pub element_name: String,
    /// The variable that is the number of the element.
    pub index_name: String,
    /// The condition with which it ends early.
    pub completion: Option<Text>,
}

/// A node of a designer: its middle and its size.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rectangle {
    /// The middle, from the left.
    pub x: f64,
    /// The middle, from above.
    pub y: f64,
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
}

impl Rectangle {
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64, sizes: f64| (a - b).abs() * 2.0 < sizes;
        near(self.x, other.x, self.width + other.width) && near(self.y, other.y, self.height + other.height)
    }
}

impl State {
    /// Returns the links that the machine may follow, in the order of the file.
    pub(super) fn flow(&self) -> impl Iterator<Item = &Link> {
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
    pub const fn word(&self) -> &'static str {
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

    /// Returns what it calls, if it is a task.
    pub fn task(&self) -> Option<&Task> {
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
