//! Children of a machine: sub machines, elements of Loops, branches of Forks. Opening them, and what they leave.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use procession_actors::{ChildOutcome, Children, CodecError, StageError};
use procession_kernel::JoinPolicy;
use procession_saga_language::definition::{Call as Calls, Definition, Fork, Link, Repeat, State, StateIndex, Task};
use serde_json::{Map, Value};

use super::context::{Context, object, size, size_of};
use super::error::{SagaError, code};
use super::part::{Element, Kept, Part, Results, Window};
use super::route::Way;
use super::stage::{Mode, SagaStage};
use super::task::{self, Came, Said};
use super::turn::{Turn, Turned};
use super::{Machine, SagaOutput};
use crate::saga::service::CallToken;
use crate::saga::status::SagaStatus;

/// Elements of a Loop at most.
const ELEMENTS: usize = 10_000;
/// Bytes that children of one Loop or Fork carry together.
const CARRIED: usize = 16 << 20;

/// The variable that a sub machine's context gets as the state's result.
const SUB_STATUS: &str = "_sub_statemachine_execution_status_";

/// A child that is to be born, or an error that stops the member.
type Opened<T> = Result<T, SagaError>;

impl Turn<'_, '_> {
    /// Runs a task by children.
    pub(super) fn open(&mut self, at: StateIndex) -> Result<Way, StageError> {
        let definition = Arc::clone(&self.definition);
        let (state, task) = Self::task_at(&definition, at)?;
        if let Some(error) = self.bars(state) {
            return Ok(Way::Rests(at, self.stopped(at, error)?));
        }
        // It is told from the task in whose stage it may be opened: children come back in the next one.
        self.begin_try_of(self.visit().saturating_add(1), at, task);
        match self.children(state, task) {
            Ok(children) if children.is_empty() => {
                // No child comes back in the next stage, so this visit identifies the instance.
                if let Some(instance) = &mut self.machine.instance {
                    instance.began = self.cx.token().visit;
                }
                self.back_of_loop(at, state, &[])
            }
            Ok(children) => Ok(Way::Behind(children, SagaStage::new(&state.name, Mode::Back))),
            Err(error) => {
                if let Some(instance) = &mut self.machine.instance {
                    instance.tried(SagaStatus::Failed, false);
                }
                self.note_of(state, SagaStatus::Failed);
                Ok(Way::Rests(at, self.stopped(at, error)?))
            }
        }
    }

    /// Returns why nothing may begin at a state that children do: the member goes in a circle, it seems, or a window is over.
    /// What the end of a process cut off has left no child, so nothing is begun again.
    fn bars(&self, state: &State) -> Option<SagaError> {
        self.too_many_visits(state).or_else(|| self.window_over(state))
    }

    /// Notes what a state has come to that was opened here. If that is the stage of a task, its note stays the task's.
    fn note_of(&mut self, state: &State, status: SagaStatus) {
        if self.note.status.is_none() {
            self.note.task = Some(state.name.clone());
            self.note.status = Some(status);
            self.note.began = self.machine.instance.as_ref().map(|instance| instance.began);
        }
    }

    fn children(&mut self, state: &State, task: &Task) -> Opened<Children> {
        let Some(repeat) = &task.repeat else {
            self.can_spawn(state, 1)?;
            let arguments = self.arguments(state, task)?;
            self.fits_a_child(state, &arguments)?;
            let child = self.sub_machine(task, arguments);
            return Self::listed(state, task, &[child], 1);
        };
        let elements = self.elements(state, repeat)?;
        // Results of an earlier round are of another collection if there are not as many.
        let known = self
            .machine
            .results
            .take()
            .filter(|results| results.len() == elements.len());
        let results = self
            .machine
            .results
            .insert(known.unwrap_or_else(|| vec![None; elements.len()]));
        // A forward runs those again that have no result.
        let missing: Vec<usize> = results
            .iter()
            .enumerate()
            .filter(|(_, result)| result.is_none())
            .map(|(index, _)| index)
            .collect();
        if !missing.is_empty() {
            self.can_spawn(state, missing.len())?;
        }
        let mut children = Vec::with_capacity(missing.len());
        let mut carried = 0_usize;
        let mut context = self.machine.context.clone();
        for index in missing {
            let Some(value) = elements.get(index) else { continue };
            let element = Element {
                index,
                value: value.clone(),
            };
            lay_element(&mut context, repeat, &element);
            let said = Said::of_element(self.shared.classes(), CallToken::new(self.token(), false), index);
            let arguments = self.arguments_on(state, task, &context, &said)?;
            carried += arguments.iter().map(size).sum::<usize>();
            if carried > CARRIED {
                let text = format!("the Inputs of its Loop have more than {CARRIED} bytes together");
                return Err(SagaError::new(code::BOUND, text, &state.name));
            }
            children.push(match &task.call {
                Calls::Machine { .. } => self.sub_machine(task, arguments),
                Calls::Service { .. } | Calls::Script { .. } | Calls::CompensateMachine => {
                    let own = self.cx.id();
                    let part = Part::Element {
                        element,
                        parent: own.member,
                        arguments,
                        ids_of: said.made_ids().then(|| self.token().visit),
                    };
                    self.machine.of_part(own, part, &state.name)
                }
            });
        }
        Self::listed(state, task, &children, repeat.parallel)
    }

    /// Checks that the engine accepts this number of children. A stage that spawns too many, or nests them too deep, fails
    /// for good.
    fn can_spawn(&self, state: &State, children: usize) -> Opened<()> {
        let above = usize::try_from(self.machine.above).unwrap_or(usize::MAX);
        let (level, deepest) = (above.saturating_add(2), self.cx.max_depth());
        let most = self.cx.max_children();
        let text = if level > deepest {
            format!("what it runs would be on level {level} of the family, and {deepest} are the limit")
        } else if children > most {
            format!("it would run {children} children at once, and {most} are the limit")
        } else {
            return Ok(());
        };
        Err(SagaError::new(code::BOUND, text, &state.name))
    }

    fn listed(state: &State, task: &Task, machines: &[Machine], parallel: u64) -> Opened<Children> {
        let width = u32::try_from(parallel).unwrap_or(u32::MAX);
        let join = match &task.call {
            Calls::Machine { .. } => JoinPolicy::AllFinished,
            Calls::Service { .. } | Calls::Script { .. } | Calls::CompensateMachine => JoinPolicy::AllSucceeded,
        };
        let listed = machines.iter().try_fold(Children::new(), Children::and_compensated);
        let children = listed.map_err(|error| unborn(&error, state))?;
        Ok(children.join(join).width(width).keep_places())
    }

    /// Returns whether a task of its own undoes what a sub machine did, in place of the sub machine.
    pub(super) fn compensator_is_task(&self, task: &Task) -> bool {
        let is_machine = matches!(task.call, Calls::Machine { .. });
        let link = task.compensate.as_ref();
        let compensator = link.and_then(|link| task::named(&self.definition, &link.name));
        is_machine
            && compensator.is_some_and(|(_, task)| matches!(task.call, Calls::Service { .. } | Calls::Script { .. }))
    }

    fn sub_machine(&self, task: &Task, arguments: Vec<Value>) -> Machine {
        let name = match &task.call {
            Calls::Machine { machine } => machine.as_str(),
            Calls::Service { .. } | Calls::Script { .. } | Calls::CompensateMachine => self.machine.name(),
        };
        let definition = self.bundle.definition(name).ok();
        let start = definition.and_then(|definition| Some(definition.state(definition.start)?.name.clone()));
        let params = arguments.into_iter().next().and_then(object).unwrap_or_default();
        let mut child = self.machine.sub(self.cx.id(), name, &start.unwrap_or_default(), params);
        let began = self.machine.instance.as_ref().map(|instance| instance.began);
        if let Some(began) = began.filter(|_| self.compensator_is_task(task)) {
            let parent = self.cx.id().member;
            child.kept.push(Kept { parent, began });
        }
        child
    }

    /// Evaluates the collection of a Loop, and returns the elements that it begins. How many these are is known from the
    /// start: `CompletionCondition` sees what a run without a failure would count.
    fn elements(&self, state: &State, repeat: &Repeat) -> Opened<Vec<Value>> {
        let said = Said::nothing(self.shared.classes());
        let wrong = |text: String| SagaError::new(code::ASSIGN, text, &state.name);
        let root = self.machine.context.root();
        let collection = repeat
            .collection
            .as_ref()
            .map(|collection| collection.evaluate(root, &said, self.steps.borrow_mut().again()));
        let collection = match collection {
            Some(value) => value.map_err(|failed| wrong(format!("Collection: {failed}")))?,
            None => Value::Null,
        };
        Self::fits_in_depth(state, "Its Collection", &collection)?;
        let Value::Array(mut elements) = collection else {
            return Err(wrong(format!(
                "Collection is {}, and must be a list",
                task::shown(&collection)
            )));
        };
        if elements.len() > ELEMENTS {
            let text = format!(
                "Collection has {} elements, and {ELEMENTS} are the limit",
                elements.len()
            );
            return Err(SagaError::new(code::BOUND, text, &state.name));
        }
        if let Some(condition) = &repeat.completion {
            let mut context = self.machine.context.clone();
            let all = elements.len();
            for begun in 0..all {
                count(&mut context, all, begun, repeat.parallel);
                let holds = condition.test(context.root(), &said, self.steps.borrow_mut().again());
                if holds.map_err(|failed| wrong(format!("CompletionCondition: {failed}")))? {
                    elements.truncate(begun);
                    break;
                }
            }
        }
        Ok(elements)
    }

    /// The children of a task have ended.
    pub(super) async fn back(mut self, at: StateIndex) -> Turned {
        self.machine.last = at.0;
        let definition = Arc::clone(&self.definition);
        let (state, task) = Self::task_at(&definition, at)?;
        let outcomes = self.cx.children().to_vec();
        let way = match &task.call {
            Calls::Machine { .. } => self.back_of_machines(at, state, task, &outcomes).await?,
            Calls::Service { .. } | Calls::Script { .. } | Calls::CompensateMachine => {
                let left: Result<Vec<SagaOutput>, StageError> = outcomes.iter().map(left_by).collect();
                self.back_of_loop(at, state, &left?)?
            }
        };
        self.follow(way)
    }

    /// The elements of a Loop have ended, all of them well or with a fault that was caught.
    fn back_of_loop(&mut self, at: StateIndex, state: &State, left: &[SagaOutput]) -> Result<Way, StageError> {
        let status = match left.iter().any(|left| left.status == SagaStatus::Failed) {
            true => SagaStatus::Failed,
            false => SagaStatus::Success,
        };
        self.note_of(state, status);
        // The elements count, each for itself.
        self.machine.instance = None;
        let mut caught = None;
        for (index, left) in left.iter().enumerate() {
            self.machine.tally.merge(left.left.tally);
            self.take_windows(&left.left.windows);
            if let Some(next) = left.left.next.filter(|_| caught.is_none()) {
                caught = Some((StateIndex(next), left.left.error.clone()));
            }
            self.set_result(index, left.context.clone());
        }
        let put = self.put_results(state);
        self.machine.leave();
        match (caught, put) {
            (Some((next, error)), Ok(())) => {
                self.machine.error = error;
                Ok(Way::To(Some(next)))
            }
            (None, Ok(())) => Ok(Way::To(next_of(state))),
            // All elements have run, so what follows them is next, without the list.
            (Some((next, caught)), Err(error)) => {
                self.machine.error = caught;
                Ok(Way::Rests(next, self.stopped(next, error)?))
            }
            (None, Err(error)) => Ok(Way::Rests(at, self.stopped(at, error)?.behind())),
        }
    }

    /// Sub machines have ended, in whatever way. All of them are looked at, whatever is wrong with one: a forward needs to know
    /// which of them are done.
    async fn back_of_machines(
        &mut self,
        at: StateIndex,
        state: &State,
        task: &Task,
        outcomes: &[ChildOutcome],
    ) -> Result<Way, StageError> {
        let (mut all, mut some, mut wrong) = (SagaStatus::Success, false, None);
        for (outcome, index) in outcomes.iter().zip(self.running()) {
            let child: Option<Machine> = self.cx.value_of(outcome.id).await?;
            let (value, status) = result_of(outcome, child.as_ref());
            let (status, unclear) = self.judge(state, task, &value, Came::Machine(status));
            let put = match unclear {
                Some(error) => Err(error),
                None => self.put_out_of(state, task, &value, index, status),
            };
            wrong = wrong.or(put.err());
            match status {
                SagaStatus::Success | SagaStatus::Skipped => some = true,
                SagaStatus::Unknown | SagaStatus::Running => all = SagaStatus::Unknown,
                SagaStatus::Failed if all == SagaStatus::Success => all = SagaStatus::Failed,
                SagaStatus::Failed => {}
            }
            if outcomes.len() == 1 && task.repeat.is_none() {
                all = status;
            }
            if let Some(child) = &child {
                let windows = child.windows().to_vec();
                self.take_windows(&windows);
            }
        }
        self.record_machines(task, all, some);
        let is_done = match &task.repeat {
            Some(_) => self.running().is_empty(),
            None => matches!(all, SagaStatus::Success | SagaStatus::Skipped),
        };
        if task.repeat.is_some() {
            wrong = wrong.or(self.put_results(state).err());
        }
        if is_done {
            self.machine.results = None;
        }
        match wrong {
            None => {
                self.machine.forwards = 0;
                Ok(Way::To(next_of(state)))
            }
            Some(error) if is_done => Ok(Way::Rests(at, self.stopped(at, error)?.behind())),
            Some(error) => Ok(Way::Rests(at, self.stopped(at, error)?)),
        }
    }

    /// Returns the places of the sub machines that run: of those of a Loop that have no result.
    fn running(&self) -> Vec<usize> {
        let Some(results) = &self.machine.results else {
            return vec![0];
        };
        let results = results.iter().enumerate();
        let running = results.filter(|(_, result)| result.is_none());
        running.map(|(index, _)| index).collect()
    }

    /// Notes what sub machines came to. What a task of its own undoes stands.
    fn record_machines(&mut self, task: &Task, status: SagaStatus, some: bool) {
        let stands = self.compensator_is_task(task) && status.has_effect();
        let visit = self.visit();
        if let Some(instance) = &mut self.machine.instance {
            // Children undo themselves, or are undone by the engine; the state stands by what it is.
            instance.tried(status, status.has_effect());
            instance.partly |= some;
            if stands {
                self.machine.took_over = Some(instance.began);
            }
            self.note.status = Some(status);
            self.note.began = Some(instance.began).filter(|began| *began != visit);
        }
        self.stands = stands;
    }

    /// Puts the Output of a sub machine into the context, or keeps it as the result of one element.
    fn put_out_of(
        &mut self,
        state: &State,
        task: &Task,
        value: &Value,
        index: usize,
        status: SagaStatus,
    ) -> Opened<()> {
        if task.repeat.is_none() {
            return self.put_out(state, task, value);
        }
        let outputs = self.outputs(state, task, value);
        if status == SagaStatus::Success {
            // It is done, also if its Output has no value.
            self.set_result(index, outputs.as_ref().cloned().unwrap_or_default());
        }
        outputs.map(drop)
    }

    fn set_result(&mut self, index: usize, outputs: Map<String, Value>) {
        let results = self.machine.results.get_or_insert_with(Results::new);
        if results.len() <= index {
            results.resize(index + 1, None);
        }
        if let Some(result) = results.get_mut(index) {
            *result = Some(outputs);
        }
    }

    /// Puts the list of results into the context, by index.
    fn put_results(&mut self, state: &State) -> Opened<()> {
        let results = self.machine.results.iter().flatten();
        let results = results.map(|result| Value::Object(result.clone().unwrap_or_default()));
        let list = Value::Array(results.collect());
        let put = self.set_all(state, vec![("loopResult".to_owned(), list)]);
        if put.is_err() {
            // A row has no place for them beside the context either. Which of them are done stays known.
            let results = self.machine.results.iter_mut().flatten().flatten();
            results.for_each(Map::clear);
        }
        put
    }

    /// Opens the branches of a Fork.
    pub(super) fn fork(&mut self, at: StateIndex, state: &State, fork: &Fork) -> Result<Way, StageError> {
        self.machine.fold();
        self.machine.last = at.0;
        let definition = Arc::clone(&self.definition);
        let Some(join) = definition.regions.join(at) else {
            return Err(StageError::fail(format!("Fork [{}] has no Join", state.name)));
        };
        self.note.route(&state.name);
        let branches: Vec<&Link> = fork
            .branches
            .iter()
            .filter(|link| link.to.is_some_and(|to| to != join))
            .collect();
        if branches.is_empty() {
            return Ok(Way::To(Some(join)));
        }
        if let Some(error) = self.bars(state) {
            return Ok(Way::Rests(at, self.stopped(at, error)?));
        }
        let carried = self.machine.context.size().saturating_mul(branches.len());
        if carried > CARRIED {
            let text = format!("copies of its context have {carried} bytes together, and {CARRIED} are the limit");
            let error = SagaError::new(code::BOUND, text, &state.name);
            return Ok(Way::Rests(at, self.stopped(at, error)?));
        }
        if let Err(error) = self.can_spawn(state, branches.len()) {
            return Ok(Way::Rests(at, self.stopped(at, error)?));
        }
        let windows = self.windows_of(state, fork);
        // They differ in the state at which they begin alone, so their context is copied once.
        let mut branch = self.machine.branch(self.cx.id(), at.0, windows);
        let listed = branches.iter().try_fold(Children::new(), |children, link| {
            branch.begins_at(&link.name);
            children.and_compensated(&branch)
        });
        let width = u32::try_from(fork.parallel).unwrap_or(u32::MAX);
        let children = listed?.join(JoinPolicy::AllSucceeded).width(width).keep_places();
        let then = self.behind(&definition, join)?.joining(at.0);
        Ok(Way::Behind(children, then))
    }

    /// Returns the stage that goes on behind a Join: the task that follows it lays the writes of the branches.
    fn behind(&self, definition: &Definition, join: StateIndex) -> Result<SagaStage, StageError> {
        let next = self.state(join)?.next.as_ref().and_then(|link| link.to);
        Ok(match next.and_then(|next| Some((next, definition.state(next)?))) {
            Some((next, state)) if self.direct(next) => SagaStage::new(&state.name, Mode::Run),
            Some(_) | None => SagaStage::new(&self.state(join)?.name, Mode::Route),
        })
    }

    /// Returns the windows of what lies in a Fork: those of its member, and the Fork's own.
    fn windows_of(&self, state: &State, fork: &Fork) -> Vec<Window> {
        let mut windows = self.machine.windows.clone();
        if fork.timeout_ms > 0 {
            let until = self.cx.now().after(Duration::from_millis(fork.timeout_ms));
            windows.push(Window {
                fork: state.name.clone(),
                length_ms: fork.timeout_ms,
                until,
            });
        }
        windows
    }

    /// Lays the writes of branches over the context, in the order in which the Fork declares them. What does not fit is left
    /// out, and the member rests at the state whose stage this is.
    pub(super) fn join(&mut self, stage: &SagaStage) -> Result<Option<SagaError>, StageError> {
        // Of a value that an earlier release has written.
        let stored = self.machine.joining.take();
        let Some(fork) = stage.joins().or(stored) else {
            return Ok(None);
        };
        self.machine.last = fork;
        let (mut seen, mut left_out) = (BTreeSet::new(), None);
        let (mut total, limit) = (self.machine.context.size(), self.cx.max_payload() / 2);
        for outcome in self.cx.children() {
            let output = left_by(outcome)?;
            self.machine.tally.merge(output.left.tally);
            self.take_windows(&output.left.windows);
            let removed = output.left.removed.into_iter().map(|name| (name, Value::Null));
            for (name, value) in output.context.into_iter().chain(removed) {
                if left_out.is_some() {
                    continue;
                }
                let (added, replaced) = (size_of(&name, &value), self.machine.context.size_of(&name));
                total = total + added - replaced;
                if added > replaced && total > limit {
                    left_out = Some(name);
                    continue;
                }
                if !seen.insert(name.clone()) && !self.note.twice.contains(&name) {
                    self.note.twice.push(name.clone());
                }
                self.machine.put_out(&name, value);
            }
            if self.machine.error.is_none() {
                self.machine.error = output.left.error;
            }
        }
        Ok(left_out.map(|name| {
            let text = format!(
                "what the branches have written would make about {total} bytes, and {limit} are the limit; [{name}] and \
                 what follows it are left out"
            );
            SagaError::new(code::BOUND, text, stage.state())
        }))
    }

    /// A parent takes the latest windows that its children bring, of those that it has itself.
    fn take_windows(&mut self, brought: &[Window]) {
        for (window, brought) in self.machine.windows.iter_mut().zip(brought) {
            window.until = window.until.max(brought.until);
        }
    }

    /// Begins the windows of a member anew, which goes forward.
    pub(super) fn renew_windows(&mut self) {
        // Since the decision: a restart in the stage that it woke does not lengthen them.
        let from = self.cx.ready_since();
        for window in &mut self.machine.windows {
            window.until = from.after(Duration::from_millis(window.length_ms));
        }
    }

    /// Returns the error of a window that is over, the outermost first.
    pub(super) fn window_over(&self, state: &State) -> Option<SagaError> {
        let over = self.over()?;
        let text = format!("the Timeout of Fork [{}] has passed", over.fork);
        Some(SagaError::new(code::TIMEOUT, text, &state.name))
    }

    fn over(&self) -> Option<&Window> {
        let now = self.cx.now();
        self.machine.windows.iter().find(|window| window.until <= now)
    }

    /// Returns whether the end of a process may have cut off the call of this stage, which can have begun in time. It is made
    /// again all the same.
    pub(super) fn is_cut_off(&self) -> bool {
        let began_in_time = |over: &Window| self.cx.ready_since() < over.until;
        self.cx.repeated() > 0 && self.over().is_some_and(began_in_time)
    }
}

/// Puts an element and its index into a context, under the names that the Loop gives them.
pub(super) fn lay_element(context: &mut Context, repeat: &Repeat, element: &Element) {
    context.set(&repeat.element_name, element.value.clone());
    context.set(&repeat.index_name, element.index.into());
}

/// What a run without a failure would count before it begins another element, as Seata counts.
fn count(context: &mut Context, all: usize, begun: usize, parallel: u64) {
    let parallel = usize::try_from(parallel).unwrap_or(usize::MAX);
    let width = if parallel == 0 { all } else { parallel };
    let active = begun.min(width.saturating_sub(1));
    let completed = (begun + 1).saturating_sub(width);
    let float = |number: usize| u32::try_from(number).map(f64::from).unwrap_or(f64::MAX);
    context.set("nrOfInstances", float(all).into());
    context.set("nrOfActiveInstances", float(active).into());
    context.set("nrOfCompletedInstances", float(completed).into());
}

fn next_of(state: &State) -> Option<StateIndex> {
    state.next.as_ref().and_then(|link| link.to)
}

fn left_by(outcome: &ChildOutcome) -> Result<SagaOutput, StageError> {
    let output: Option<SagaOutput> = outcome.output()?;
    output.ok_or_else(|| StageError::fail(format!("member {} left nothing", outcome.id)))
}

/// Returns the result of a sub machine, and what it came to.
fn result_of(outcome: &ChildOutcome, child: Option<&Machine>) -> (Value, SagaStatus) {
    let came_to = child.map_or(SagaStatus::Unknown, Machine::status_so_far);
    let status = match outcome.succeeded() && came_to == SagaStatus::Success {
        true => SagaStatus::Success,
        false => SagaStatus::Failed,
    };
    let mut variables = child.map(Machine::variables).unwrap_or_default();
    variables.insert(SUB_STATUS.to_owned(), came_to.word().into());
    (Value::Object(variables), status)
}

fn unborn(error: &CodecError, state: &State) -> SagaError {
    SagaError::new(code::BOUND, error.to_string(), &state.name)
}
