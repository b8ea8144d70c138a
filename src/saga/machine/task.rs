//! A task: Input, call, retries, Status, Catch, Output.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use procession_actors::StageError;
use procession_saga_language::definition::{self, Call as Calls, Definition, State, StateIndex, Task};
use procession_saga_language::expression::{Steps, Visit};
use serde_json::{Map, Value};

use super::context::{Context, object, size};
use super::element::context_of;
use super::error::{SagaError, code};
use super::instance::Instance;
use super::part::{Element, Part};
use super::rest::{Rest, Woken};
use super::turn::{Turn, Turned};
use crate::saga::service::{Call, CallParts, CallToken, Classes, FaultRecord, Network};
use crate::saga::status::SagaStatus;

/// Longest wait before a retry.
const INTERVAL_MAX: Duration = Duration::from_hours(1);

/// Returns whether a task is called by a stage of its own, and not by children.
pub(super) fn is_direct(task: &Task) -> bool {
    task.repeat.is_none() && matches!(task.call, Calls::Service { .. } | Calls::Script { .. })
}

/// Returns whether a task changes something that its saga must undo.
pub(super) fn is_for_update(task: &Task) -> bool {
    task.is_for_update || task.compensate.is_some() || matches!(task.call, Calls::Machine { .. })
}

/// Returns whether a task has state instances: a script has none.
fn has_status(task: &Task) -> bool {
    !matches!(task.call, Calls::Script { .. })
}

/// What expressions ask of the visit for which they are evaluated.
pub(super) struct Said<'a> {
    fault: Option<&'a FaultRecord>,
    classes: &'a Classes,
    /// The token from which ids are made. Only an Input may ask for ids.
    token: Option<CallToken>,
    /// The element of a Loop for which they are made: all elements have the token of their Loop.
    element: Option<usize>,
    /// The first id that was made.
    first: RefCell<Option<String>>,
}

impl<'a> Said<'a> {
    /// Where there is no fault, and ids cannot be asked for.
    pub(super) fn nothing(classes: &'a Classes) -> Self {
        Self::of(None, classes)
    }

    pub(super) fn of(fault: Option<&'a FaultRecord>, classes: &'a Classes) -> Self {
        Self {
            fault,
            classes,
            token: None,
            element: None,
            first: RefCell::default(),
        }
    }

    pub(super) fn making_ids(classes: &'a Classes, token: CallToken) -> Self {
        Self {
            token: Some(token),
            ..Self::nothing(classes)
        }
    }

    /// Where ids are made for an element of the Loop that has this token.
    pub(super) fn of_element(classes: &'a Classes, token: CallToken, index: usize) -> Self {
        Self {
            element: Some(index),
            ..Self::making_ids(classes, token)
        }
    }

    /// Returns whether an id was made.
    pub(super) fn made_ids(&self) -> bool {
        self.first.borrow().is_some()
    }
}

impl Visit for Said<'_> {
    fn has_fault_of(&self, class: &str) -> bool {
        self.fault.is_some_and(|fault| self.classes.is(&fault.class, class))
    }

    fn sequence(&self, entity: &str, rule: &str) -> String {
        let element = self.element.map(|index| format!(".{index}")).unwrap_or_default();
        let token = self.token.map(|token| format!("{token}{element}-")).unwrap_or_default();
        let id = format!("{token}{entity}-{rule}");
        self.first.borrow_mut().get_or_insert_with(|| id.clone());
        id
    }
}

/// What a state goes by, if no key of its `Status` is true.
#[derive(Clone, Copy)]
pub(super) enum Came<'a> {
    /// A call: its fault, if it failed.
    By(Option<&'a FaultRecord>),
    /// A sub machine.
    Machine(SagaStatus),
}

/// How one try of a task went.
pub(super) enum Tried {
    /// It was called, and gave this.
    Returned(Value),
    Faulted(FaultRecord),
    /// Its Input has no value, so it was not called.
    NotCalled(SagaError),
}

impl Turn<'_, '_> {
    /// Runs a task that is called by this stage.
    pub(super) async fn task(mut self, at: StateIndex) -> Turned {
        let definition = Arc::clone(&self.definition);
        let (state, task) = Self::task_at(&definition, at)?;
        match self.woken() {
            Woken::Freshly => {}
            Woken::Forward(rest, params) => {
                if let Err(error) = self.take_values(state, task, params).await? {
                    return self.rest(at, Rest { error, ..rest });
                }
                if self.goes_behind(&rest) {
                    return self.after(at);
                }
            }
            Woken::Skip(rest, results) => return self.skip(at, state, rest, results),
            Woken::Compensate(rest) => return self.compensate(rest.error),
            Woken::Astray(rest) => return self.rest(at, rest),
        }
        let over = || self.window_over(state).filter(|_| !self.is_cut_off());
        if let Some(error) = self.too_many_visits(state).or_else(over) {
            return self.stop(at, error);
        }
        self.begin_try(at, task);
        let tried = match self.input(state, task) {
            Ok(arguments) if is_async(task) => self.send(state, arguments)?,
            Ok(arguments) => self.call(state, task, arguments).await,
            Err(error) => Tried::NotCalled(error),
        };
        self.tried(at, state, task, tried)
    }

    /// Returns whether a forward goes on behind the last state: it came to its end, and is no cause of the rest. What made
    /// the member end is not its error once it goes on.
    pub(super) fn goes_behind(&mut self, rest: &Rest) -> bool {
        if rest.is_behind {
            return true;
        }
        if !rest.is_at_end {
            return false;
        }
        self.machine.error = None;
        let instance = self.machine.instance.as_ref();
        instance.is_none_or(|instance| matches!(instance.status, SagaStatus::Success | SagaStatus::Skipped))
    }

    pub(super) fn begin_try(&mut self, at: StateIndex, task: &Task) {
        self.begin_try_of(self.visit(), at, task);
    }

    /// Begins a try of the instance in hand, or of a new one that this visit names.
    pub(super) fn begin_try_of(&mut self, visit: u32, at: StateIndex, task: &Task) {
        self.machine.last = at.0;
        if has_status(task) {
            let new = || Instance::new(visit, is_for_update(task));
            let instance = self.machine.instance.get_or_insert_with(new);
            instance.tries = instance.tries.saturating_add(1);
        }
    }

    /// Lays the params of a forward over the context. An element of a Loop has no context of its own to which they could
    /// belong: its Input is evaluated anew with them.
    async fn take_values(
        &mut self,
        state: &State,
        task: &Task,
        params: Map<String, Value>,
    ) -> Result<Result<(), SagaError>, StageError> {
        if self.machine.element().is_none() {
            return Ok(self.take_params(state, params));
        }
        if params.is_empty() {
            return Ok(Ok(()));
        }
        let context = context_of(self.machine, self.cx, task, || params).await?;
        let evaluated = self.arguments_on(state, task, &context, &self.said_of_element());
        Ok(evaluated.map(|evaluated| {
            if let Some(Part::Element { arguments, .. }) = &mut self.machine.part {
                *arguments = evaluated;
            }
        }))
    }

    /// Returns what ids of an element are made of: of what they were made when its Loop began.
    fn said_of_element(&self) -> Said<'_> {
        let mut token = self.token();
        if let Some(Part::Element {
            element,
            parent,
            ids_of: Some(visit),
            ..
        }) = &self.machine.part
        {
            token.procedure.member = *parent;
            token.visit = *visit;
            return Said::of_element(self.shared.classes(), CallToken::new(token, false), element.index);
        }
        Said::making_ids(self.shared.classes(), CallToken::new(token, false))
    }

    /// Returns the arguments of the call. Those of an element were evaluated when its Loop began.
    fn input(&mut self, state: &State, task: &Task) -> Result<Vec<Value>, SagaError> {
        match &self.machine.part {
            Some(Part::Element { arguments, .. }) => Ok(arguments.clone()),
            Some(Part::Sub | Part::Branch { .. } | Part::Call { .. }) | None => self.arguments(state, task),
        }
    }

    /// Evaluates Input. The first id that it makes is the state's business key.
    pub(super) fn arguments(&mut self, state: &State, task: &Task) -> Result<Vec<Value>, SagaError> {
        let token = self.token();
        let said = Said::making_ids(self.shared.classes(), CallToken::new(token, false));
        let arguments = evaluated(task, self.machine.context.root(), &said, &mut self.steps.borrow_mut());
        let arguments = arguments.map_err(|text| SagaError::new(code::ASSIGN, text, &state.name))?;
        if let Some(key) = said.first.into_inner() {
            self.machine
                .put_out(&format!("{}_business_key_", state.name), key.into());
            if !has_status(task) {
                self.machine.script_began = Some(token.visit);
            }
        }
        Ok(arguments)
    }

    /// Evaluates Input on another context than the member's own, for a child that keeps it.
    pub(super) fn arguments_on(
        &self,
        state: &State,
        task: &Task,
        context: &Context,
        said: &Said<'_>,
    ) -> Result<Vec<Value>, SagaError> {
        let arguments = evaluated(task, context.root(), said, &mut self.steps.borrow_mut());
        let arguments = arguments.map_err(|text| SagaError::new(code::ASSIGN, text, &state.name))?;
        self.fits_a_child(state, &arguments)?;
        Ok(arguments)
    }

    /// Checks the Input that a child of this state takes with it.
    pub(super) fn fits_a_child(&self, state: &State, arguments: &[Value]) -> Result<(), SagaError> {
        for argument in arguments {
            Self::fits_in_depth(state, "Its Input", argument)?;
        }
        self.fits(state, "Its Input", arguments.iter().map(size).sum())
    }

    /// Returns the token of the instance: one for all its tries.
    pub(super) fn token(&self) -> procession_actors::Token {
        let mut token = self.cx.token();
        let instance = self.machine.instance.as_ref().map(|instance| instance.began);
        if let Some(began) = instance.or(self.machine.script_began) {
            token.visit = began;
        }
        token
    }

    /// Calls the service or the script once.
    pub(super) async fn call(&mut self, state: &State, task: &Task, arguments: Vec<Value>) -> Tried {
        let services = self.shared.services();
        let begun = self.cx.now();
        let result = match &task.call {
            Calls::Service { service, method, .. } => {
                services
                    .call(self.cx, service, method, arguments, self.described(state))
                    .await
            }
            Calls::Script { .. } => services.run_script(self.machine.name(), &state.name, &variables(task, arguments)),
            Calls::Machine { .. } | Calls::CompensateMachine => Ok(Value::Null),
        };
        self.took = Some(self.cx.now().since(begun));
        match result {
            Ok(value) => Tried::Returned(value),
            Err(fault) => Tried::Faulted(fault),
        }
    }

    fn described(&self, state: &State) -> Call {
        Call::new(CallParts {
            saga: self.machine.saga(self.cx.id()),
            member: self.cx.id(),
            machine: self.machine.name().into(),
            state: state.name.as_str().into(),
            attempt: self.machine.instance.as_ref().map_or(1, |instance| instance.tries),
            element: self.machine.element().map(Element::called),
            compensates: false,
            fence: self.cx.fence(),
            token: self.token(),
            trace: self.cx.trace_parent(),
        })
    }

    /// Counts the call, once it is known what it came to.
    pub(super) fn count_call(&mut self, state: &str, status: SagaStatus) {
        if let Some(took) = self.took.take() {
            self.shared.called(self.machine.name(), state, status, took);
        }
    }

    /// Has the call made by a family of its own. It counts as a success, whatever becomes of it.
    fn send(&mut self, state: &State, arguments: Vec<Value>) -> Result<Tried, StageError> {
        if let Err(error) = self.fits_a_child(state, &arguments) {
            return Ok(Tried::NotCalled(error));
        }
        let part = Part::Call {
            state: state.name.clone(),
            arguments,
        };
        let call = self.machine.of_part(self.cx.id(), part, &state.name);
        self.cx.submit(&call)?;
        Ok(Tried::Returned(Value::Null))
    }

    /// Says what a try came to, and goes on.
    pub(super) fn tried(mut self, at: StateIndex, state: &State, task: &Task, tried: Tried) -> Turned {
        let (value, fault) = match tried {
            Tried::Returned(value) => (value, None),
            Tried::Faulted(fault) => (Value::Null, Some(fault)),
            Tried::NotCalled(error) => {
                self.record(task, SagaStatus::Failed, None);
                return self.stop(at, error);
            }
        };
        let (status, wrong) = self.judge(state, task, &value, Came::By(fault.as_ref()));
        self.count_call(&state.name, status);
        self.record(task, status, fault.as_ref());
        let retry = fault.as_ref().and_then(|fault| self.retry(task, fault));
        if let Some(delay) = retry {
            // A wait ends with the window in which it lies.
            let over = self.machine.windows.iter().map(|window| window.until).min();
            let until = self.cx.now().after(delay);
            return self.sleep(at, over.map_or(until, |over| until.min(over)));
        }
        if let Some(error) = wrong {
            return self.stop(at, error);
        }
        match fault.filter(|_| status != SagaStatus::Success) {
            Some(fault) => self.caught(at, task, &fault),
            None => match self.put_out(state, task, &value) {
                Ok(()) => self.after(at),
                Err(error) if error.is_over_bound() && status == SagaStatus::Success => self.stop_behind(at, error),
                Err(error) => self.stop(at, error),
            },
        }
    }

    /// Returns what a try came to by the rules of Seata, and what is wrong with its `Status`.
    pub(super) fn judge(
        &self,
        state: &State,
        task: &Task,
        value: &Value,
        came: Came<'_>,
    ) -> (SagaStatus, Option<SagaError>) {
        if is_async(task) {
            return (SagaStatus::Success, None);
        }
        let in_doubt = match is_for_update(task) {
            true => SagaStatus::Unknown,
            false => SagaStatus::Failed,
        };
        let (fault, by_itself) = match came {
            Came::Machine(status) => (None, Some(status)),
            Came::By(Some(fault)) if fault.network == Some(Network::Refused) => (Some(fault), Some(SagaStatus::Failed)),
            Came::By(Some(fault)) => (Some(fault), Some(in_doubt)),
            Came::By(None) if task.status.is_empty() => (None, Some(SagaStatus::Success)),
            Came::By(None) => (None, None),
        };
        let said = Said::of(fault, self.shared.classes());
        for (key, status) in &task.status {
            match key.test(value, &said, self.steps.borrow_mut().again()) {
                Ok(true) => return (SagaStatus::answered(*status), None),
                Ok(false) => {}
                Err(failed) => {
                    let text = format!("Status of \"{key}\": {failed}");
                    return (in_doubt, Some(SagaError::new(code::ASSIGN, text, &state.name)));
                }
            }
        }
        let Some(status) = by_itself else {
            let text = format!("no key of Status is true for {}", shown(value));
            return (in_doubt, Some(SagaError::new(code::NO_STATUS, text, &state.name)));
        };
        (status, None)
    }

    /// Counts a try, and notes what the instance has come to.
    pub(super) fn record(&mut self, task: &Task, status: SagaStatus, fault: Option<&FaultRecord>) {
        if let Some(fault) = fault {
            self.note.set_fault(fault);
        }
        let visit = self.visit();
        if let Some(instance) = self.machine.instance.as_mut().filter(|_| has_status(task)) {
            let status = instance.tried(status, is_for_update(task));
            self.note.status = Some(status);
            self.note.began = Some(instance.began).filter(|began| *began != visit);
            self.stands = is_for_update(task) && status.has_effect();
        }
    }

    /// Returns after which time a fault is tried again; none if no entry of `Retry` is for it, or the entry is used up.
    pub(super) fn retry(&mut self, task: &Task, fault: &FaultRecord) -> Option<Duration> {
        let classes = self.shared.classes();
        let is_for = |entry: &definition::Retry| match &entry.exceptions {
            Some(exceptions) => exceptions.iter().any(|class| classes.is(&fault.class, class)),
            None => fault.network.is_some(),
        };
        let number = task.retry.iter().position(is_for)?;
        let entry = task.retry.get(number)?;
        let before = self.machine.retries.of(number);
        if u64::from(before) >= entry.max_attempts {
            return None;
        }
        self.machine.retries.count(number);
        Some(interval(entry, before))
    }

    /// Goes where a fault is caught, or stops.
    fn caught(self, at: StateIndex, task: &Task, fault: &FaultRecord) -> Turned {
        let classes = self.shared.classes();
        let name = &self.state(at)?.name;
        let error = SagaError::of_fault(fault, name);
        let catches = |entry: &&definition::Catch| entry.exceptions.iter().any(|class| classes.is(&fault.class, class));
        match task.catches.iter().find(catches) {
            Some(entry) => {
                self.machine.error = Some(error);
                let next = entry.next.as_ref().and_then(|link| link.to);
                self.goes_to(next)
            }
            None => self.stop(at, error),
        }
    }

    /// Returns the variables of the Output of a result.
    pub(super) fn outputs(&self, state: &State, task: &Task, value: &Value) -> Result<Map<String, Value>, SagaError> {
        if value.is_null() || is_async(task) {
            return Ok(Map::new());
        }
        let said = Said::nothing(self.shared.classes());
        let mut steps = self.steps.borrow_mut();
        let outputs = task.outputs(value, &said, &mut steps);
        let outputs = outputs.map(|output| output.map(|(name, value)| (name.to_owned(), value)));
        let outputs: Result<Map<String, Value>, _> = outputs.collect();
        outputs.map_err(|failed| SagaError::new(code::ASSIGN, format!("Output: {failed}"), &state.name))
    }

    /// Puts values of a result into the context.
    pub(super) fn put_out(&mut self, state: &State, task: &Task, value: &Value) -> Result<(), SagaError> {
        let outputs = self.outputs(state, task, value)?;
        self.set_all(state, outputs)
    }

    /// Sets variables of the context, all or none: a row has a bound, and the context is half of it.
    pub(super) fn set_all(
        &mut self,
        state: &State,
        variables: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<(), SagaError> {
        let variables: Vec<(String, Value)> = variables.into_iter().collect();
        let all = variables.iter().map(|(name, value)| (name, value));
        self.fits_the_context(state, "Its Output", all)?;
        for (name, value) in variables {
            self.machine.put_out(&name, value);
        }
        Ok(())
    }

    /// Goes on behind a task that has come to its end.
    pub(super) fn after(self, at: StateIndex) -> Turned {
        let next = self.state(at)?.next.as_ref().and_then(|link| link.to);
        match self.machine.part {
            Some(Part::Element { .. }) => self.leave_loop(None),
            Some(Part::Sub | Part::Branch { .. } | Part::Call { .. }) | None => {
                self.machine.leave();
                self.route(next)
            }
        }
    }

    /// Goes where a fault leads to.
    fn goes_to(self, next: Option<StateIndex>) -> Turned {
        match self.machine.part {
            Some(Part::Element { .. }) => self.leave_loop(next),
            Some(Part::Sub | Part::Branch { .. } | Part::Call { .. }) | None => {
                self.machine.leave();
                self.route(next)
            }
        }
    }

    /// A person has said that what rested here counts as skipped. The results are what the state's Output would be.
    pub(super) fn skip(mut self, at: StateIndex, state: &State, rest: Rest, results: Map<String, Value>) -> Turned {
        if let Err(error) = self.set_all(state, results) {
            return self.rest(at, Rest { error, ..rest });
        }
        if rest.is_at_end {
            self.machine.skip_doubts();
            return self.end(None);
        }
        let Some(task) = state.task() else {
            return self.rest(at, rest);
        };
        self.begin_try(at, task);
        // Its compensator is called if the saga is undone: what was skipped may have been done by hand.
        let visit = self.visit();
        // A sub machine undoes what it has done by itself, unless a task does.
        let is_undone_here = !matches!(task.call, Calls::Machine { .. }) || self.compensator_is_task(task);
        if let Some(instance) = self.machine.instance.as_mut().filter(|_| has_status(task)) {
            let stands = is_for_update(task);
            instance.stands |= stands;
            instance.status = SagaStatus::Skipped;
            self.note.status = Some(SagaStatus::Skipped);
            self.note.began = Some(instance.began).filter(|began| *began != visit);
            self.stands = stands && is_undone_here;
        }
        self.after(at)
    }
}

pub(super) fn is_async(task: &Task) -> bool {
    matches!(task.call, Calls::Service { is_async: true, .. })
}

/// Evaluates the Input of a task.
pub(super) fn evaluated(task: &Task, root: &Value, said: &Said<'_>, steps: &mut Steps) -> Result<Vec<Value>, String> {
    task.arguments(root, said, steps)
        .map_err(|failed| format!("Input: {failed}"))
}

/// Returns the variables of a script: the keys of the first Input, those without a value included.
pub(super) fn variables(task: &Task, arguments: Vec<Value>) -> Map<String, Value> {
    let mut variables = arguments.into_iter().next().and_then(object).unwrap_or_default();
    if let Some(definition::Template::Object(members)) = task.input.first() {
        for (key, _) in members {
            variables.entry(key.as_str()).or_insert(Value::Null);
        }
    }
    variables
}

fn interval(entry: &definition::Retry, before: u16) -> Duration {
    let seconds = entry.interval_seconds * entry.backoff_rate.powi(before.into());
    Duration::try_from_secs_f64(seconds).map_or(INTERVAL_MAX, |delay| delay.min(INTERVAL_MAX))
}

/// Returns a value for a message, cut if it is long.
pub(super) fn shown(value: &Value) -> String {
    const SHOWN: usize = 128;
    let mut text = value.to_string();
    if text.len() > SHOWN {
        text.truncate(text.floor_char_boundary(SHOWN));
        text.push('…');
    }
    text
}

/// The state of a definition by name, if it is a task.
pub(super) fn named<'d>(definition: &'d Definition, name: &str) -> Option<(&'d State, &'d Task)> {
    let state = definition.state(definition.index_of(name)?)?;
    Some((state, state.task()?))
}
