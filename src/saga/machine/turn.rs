//! One stage of a member: what it works with, and how it closes.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use procession_actors::{StageContext, StageError, Step};
use procession_kernel::Timestamp;
use procession_saga_language::definition::{Definition, Kind, State, StateIndex, Task};
use procession_saga_language::expression::Steps;
use serde_json::{Map, Value};

use super::Machine;
use super::context::size_of;
use super::error::{SagaError, code};
use super::note::Note;
use super::part::Part;
use super::rest::{Rest, Woken, woken};
use super::retries::Retries;
use super::stage::{Mode, SagaStage};
use crate::saga::bundle::Bundle;
use crate::saga::service::{DEPTH_MAX, is_too_deep};
use crate::saga::shared::{OnRest, Shared};
use crate::saga::status::SagaStatus;

pub(super) type Turned = Result<Step<Machine>, StageError>;

/// Visits of a member until it rests: a machine may go in a circle for ever, and nobody would see that.
const VISITS: u32 = 100_000;

/// One stage. It is consumed by what closes it: each stage ends in one step.
pub(super) struct Turn<'t, 'c> {
    pub(super) machine: &'t mut Machine,
    pub(super) shared: &'t Shared,
    pub(super) bundle: Arc<Bundle>,
    pub(super) definition: Arc<Definition>,
    pub(super) cx: &'t mut StageContext<'c, Machine>,
    pub(super) note: Note,
    /// A task was called, and its try is undone if the saga is.
    pub(super) stands: bool,
    /// How long the call took, if one was made.
    pub(super) took: Option<Duration>,
    /// What is left to the expressions of this stage.
    pub(super) steps: RefCell<Steps>,
}

impl<'t, 'c> Turn<'t, 'c> {
    /// Finds the definition by which the member goes. Its first stage fixes that.
    pub(super) fn begin(machine: &'t mut Machine, cx: &'t mut StageContext<'c, Machine>) -> Result<Self, StageError> {
        let shared = cx.env().shared();
        let bundle = shared.bundle_of(machine).map_err(StageError::retry)?;
        let definition = bundle.definition(machine.name()).map_err(StageError::retry)?;
        if machine.pinned.is_none() {
            machine.pinned = Some(bundle.digest());
            bundle.store(cx)?;
        }
        Ok(Self {
            machine,
            shared,
            bundle,
            definition,
            cx,
            note: Note::default(),
            stands: false,
            took: None,
            steps: RefCell::new(Steps::new()),
        })
    }

    /// Does what a stage is for.
    pub(super) async fn run(mut self, stage: &SagaStage) -> Turned {
        match &self.machine.part {
            Some(Part::Call { state, arguments }) => {
                let (state, arguments) = (state.clone(), arguments.clone());
                return self.detached(&state, arguments).await;
            }
            Some(Part::Element { .. }) => {
                let at = self.index(stage.state())?;
                return self.task(at).await;
            }
            Some(Part::Sub | Part::Branch { .. }) | None => {}
        }
        if let Some(error) = self.join(stage)? {
            let at = self.index(stage.state())?;
            return self.stop(at, error);
        }
        match stage.mode() {
            Mode::Start => {
                self.count_levels().await?;
                let start = self.start(stage)?;
                match self.direct(start) {
                    true => self.task(start).await,
                    false => self.route(Some(start)),
                }
            }
            Mode::Run => {
                let at = self.index(stage.state())?;
                self.task(at).await
            }
            Mode::Route => {
                let at = self.index(stage.state())?;
                self.go_on(at)
            }
            Mode::Back => {
                let at = self.index(stage.state())?;
                self.back(at).await
            }
            Mode::Keep => self.done(SagaStatus::Success),
        }
    }

    /// Counts the levels above a saga that another procedure runs. Its parts get the number at birth.
    async fn count_levels(&mut self) -> Result<(), StageError> {
        let mut id = self.cx.id();
        if !self.machine.is_whole_saga() || id.member == 0 {
            return Ok(());
        }
        self.machine.above = 0;
        while let Some(parent) = self.cx.status(id).await?.and_then(|row| row.parent) {
            self.machine.above += 1;
            id = parent;
        }
        Ok(())
    }

    /// Returns the state at which the member begins.
    fn start(&self, stage: &SagaStage) -> Result<StateIndex, StageError> {
        match self.machine.part {
            Some(Part::Branch { .. }) => self.index(stage.state()),
            Some(Part::Sub | Part::Element { .. } | Part::Call { .. }) | None => Ok(self.definition.start),
        }
    }

    /// Goes on at a state that is no task of one call, and where the member may have rested.
    fn go_on(mut self, at: StateIndex) -> Turned {
        let definition = Arc::clone(&self.definition);
        let Some(state) = definition.state(at) else {
            return self.route(None);
        };
        match self.woken() {
            Woken::Freshly => self.route(Some(at)),
            Woken::Forward(rest, params) => {
                if let Err(error) = self.take_params(state, params) {
                    return self.rest(at, Rest { error, ..rest });
                }
                let goes_behind = self.goes_behind(&rest);
                match &state.kind {
                    Kind::Fork(_) if rest.is_at_end => self.route(definition.regions.join(at)),
                    Kind::Task(_) if goes_behind => self.after(at),
                    Kind::Task(_) => {
                        let way = self.open(at)?;
                        self.follow(way)
                    }
                    Kind::Choice { .. }
                    | Kind::Trigger
                    | Kind::Fork(_)
                    | Kind::Join
                    | Kind::Succeed
                    | Kind::Fail { .. }
                    | Kind::Unsupported => self.route(Some(at)),
                }
            }
            Woken::Skip(rest, results) => self.skip(at, state, rest, results),
            Woken::Compensate(rest) => self.compensate(rest.error),
            Woken::Astray(rest) => self.rest(at, rest),
        }
    }

    /// Lays the params of a forward over the context, if they fit.
    pub(super) fn take_params(&mut self, state: &State, params: Map<String, Value>) -> Result<(), SagaError> {
        self.fits_the_context(state, "The params", params.iter())?;
        self.machine.context.lay(params);
        Ok(())
    }

    /// Checks what the context would have with these variables, which replace those of the same names. What is too large may
    /// become smaller.
    pub(super) fn fits_the_context<'v>(
        &self,
        state: &State,
        what: &str,
        variables: impl Iterator<Item = (&'v String, &'v Value)>,
    ) -> Result<(), SagaError> {
        let context = &self.machine.context;
        let (mut added, mut replaced) = (0, 0);
        for (name, value) in variables {
            Self::fits_in_depth(state, what, value)?;
            added += size_of(name, value);
            replaced += context.size_of(name);
        }
        // Most results are small, and the whole context is measured below.
        if added <= replaced {
            return Ok(());
        }
        self.fits(state, what, context.size() + added - replaced)
    }

    /// Checks what the context, or a child's value, would have. A row has a bound, and this is half of it.
    pub(super) fn fits(&self, state: &State, what: &str, size: usize) -> Result<(), SagaError> {
        let limit = self.cx.max_payload() / 2;
        if size <= limit {
            return Ok(());
        }
        let text = format!("{what} would make about {size} bytes, and {limit} are the limit");
        Err(SagaError::new(code::BOUND, text, &state.name))
    }

    /// Checks that a value can be read again.
    pub(super) fn fits_in_depth(state: &State, what: &str, value: &Value) -> Result<(), SagaError> {
        if !is_too_deep(value) {
            return Ok(());
        }
        let text = format!("{what} would be nested deeper than {DEPTH_MAX} lists and objects, which are the limit");
        Err(SagaError::new(code::BOUND, text, &state.name))
    }

    /// Returns what woke the member, if it rested.
    pub(super) fn woken(&mut self) -> Woken {
        let rest = self.machine.rest.take();
        let woken = woken(rest, self.cx);
        if let Woken::Forward(rest, _) = &woken {
            self.machine.forwards = rest.forwards;
            self.machine.retries = Retries::default();
            self.machine.visits_from = self.visit();
            self.renew_windows();
        }
        woken
    }

    pub(super) fn visit(&self) -> u32 {
        self.cx.token().visit
    }

    fn index(&self, name: &str) -> Result<StateIndex, StageError> {
        let index = self.definition.index_of(name);
        index.ok_or_else(|| StageError::fail(format!("machine [{}] has no state [{name}]", self.machine.name())))
    }

    pub(super) fn state(&self, at: StateIndex) -> Result<&State, StageError> {
        let state = self.definition.state(at);
        state.ok_or_else(|| StageError::fail(format!("machine [{}] has no state {}", self.machine.name(), at.0)))
    }

    /// Returns whether a state is a task that its own stage calls.
    pub(super) fn direct(&self, at: StateIndex) -> bool {
        let task = self.definition.state(at).and_then(State::task);
        task.is_some_and(super::task::is_direct)
    }

    /// Goes to a task that its own stage calls. The instance before it will not be tried again.
    pub(super) fn next(self, at: StateIndex) -> Turned {
        let stage = SagaStage::new(&self.state(at)?.name, Mode::Run);
        self.machine.fold();
        self.close(Step::Next(stage))
    }

    /// The member has come to an end, at a Fail or not.
    pub(super) fn end(mut self, fail: Option<StateIndex>) -> Turned {
        let tally = self.machine.tally.with(self.machine.instance.as_ref());
        let status = match fail {
            Some(at) => {
                self.name_error(at)?;
                tally.status_of_failure()
            }
            None => tally.status(),
        };
        match (status, &self.machine.part) {
            (SagaStatus::Success, _) => self.succeed(),
            (SagaStatus::Failed, Some(Part::Branch { .. })) if fail.is_some() => self.fail(SagaStatus::Failed),
            (SagaStatus::Failed, None) => self.fail(SagaStatus::Failed),
            (SagaStatus::Failed, Some(_)) => self.done(SagaStatus::Failed),
            (SagaStatus::Unknown | SagaStatus::Running | SagaStatus::Skipped, _) => self.rest_at_end(),
        }
    }

    /// Takes code and message of a Fail over into the error, and into the context.
    fn name_error(&mut self, at: StateIndex) -> Result<(), StageError> {
        let definition = Arc::clone(&self.definition);
        let Some(state) = definition.state(at) else {
            return Ok(());
        };
        if let Kind::Fail { code, message } = &state.kind {
            let error = self.machine.error.get_or_insert_default();
            error.end_at(code.as_deref(), message.as_deref(), &state.name);
            let variables = [
                ("_statemachine_error_code_", code),
                ("_statemachine_error_message_", message),
            ];
            for (name, value) in variables {
                self.machine.put_out(name, value.clone().into());
            }
        }
        Ok(())
    }

    fn succeed(self) -> Turned {
        let time = self.shared.settings(self.machine.name()).compensable;
        if self.machine.is_whole_saga() && !time.is_zero() {
            self.machine.status = Some(SagaStatus::Success);
            // It has succeeded in time. What it waits for now is a person.
            self.cx.lift_timeout();
            let until = self.cx.now().after(time);
            let state = self.last_state()?;
            return self.close(Step::Sleep {
                until,
                then: SagaStage::new(&state, Mode::Keep),
            });
        }
        self.done(SagaStatus::Success)
    }

    pub(super) fn done(self, status: SagaStatus) -> Turned {
        self.leaving(status, None)
    }

    /// The member has ended; it may say at which state the machine goes on that it is a part of.
    pub(super) fn leaving(self, status: SagaStatus, next: Option<usize>) -> Turned {
        let output = self.machine.output(status, next);
        // Whether a whole saga has succeeded, its row says: one that fails by now is undone in spite of this step.
        let is_told_by_row = self.cx.id().member == 0 || self.machine.is_told_by_history();
        if !is_told_by_row || status != SagaStatus::Success {
            self.machine.status = Some(status);
        }
        self.machine.forget_counts();
        self.close(Step::Done(output))
    }

    /// Fails the saga, which undoes all that stands.
    pub(super) fn fail(self, status: SagaStatus) -> Turned {
        self.machine.status = Some(status);
        let error = self.machine.error.clone().unwrap_or_default();
        self.close(Step::Fail(error.to_string()))
    }

    /// A CompensationTrigger was reached. What it leads to gives the outcome its code alone.
    pub(super) fn trigger(mut self, at: StateIndex) -> Turned {
        let next = self.state(at)?.next.as_ref().and_then(|link| link.to);
        if let Some(end) = next {
            self.name_error(end)?;
        }
        self.undo_all()
    }

    /// The time is up in which a person could decide.
    pub(super) fn compensate(self, error: SagaError) -> Turned {
        self.machine.error = Some(error);
        self.undo_all()
    }

    fn undo_all(self) -> Turned {
        let tally = self.machine.tally.with(self.machine.instance.as_ref());
        self.fail(match tally.stands() {
            0 => SagaStatus::Failed,
            _ => SagaStatus::Unknown,
        })
    }

    /// The member stops at a state, and rests there.
    pub(super) fn stop(self, at: StateIndex, error: SagaError) -> Turned {
        let rest = self.stopped(at, error)?;
        self.rest(at, rest)
    }

    /// The task at a state is done, and its Output is left out: it is not done again.
    pub(super) fn stop_behind(self, at: StateIndex, error: SagaError) -> Turned {
        let rest = self.stopped(at, error)?.behind();
        self.rest(at, rest)
    }

    /// Returns what a member rests for that stops at a state.
    pub(super) fn stopped(&self, at: StateIndex, error: SagaError) -> Result<Rest, StageError> {
        Ok(Rest {
            error,
            is_at_end: false,
            is_behind: false,
            can_skip: self.state(at)?.task().is_some(),
            forwards: self.machine.forwards,
            is_overdue: false,
        })
    }

    fn rest_at_end(self) -> Turned {
        let error = self.machine.error.clone().unwrap_or_default();
        let forwards = self.machine.forwards;
        let at = StateIndex(self.machine.last);
        self.rest(
            at,
            Rest {
                error,
                is_at_end: true,
                is_behind: false,
                can_skip: true,
                forwards,
                is_overdue: false,
            },
        )
    }

    /// Rests at a state, until a person decides or as the machine's settings say.
    pub(super) fn rest(self, at: StateIndex, mut rest: Rest) -> Turned {
        let mode = match self.direct(at) || self.machine.element().is_some() {
            true => Mode::Run,
            false => Mode::Route,
        };
        let then = SagaStage::new(&self.state(at)?.name, mode);
        let question = self.question(&rest);
        rest.is_overdue = self.cx.out_of_time();
        let step = match self.shared.settings(self.machine.name()).on_rest {
            OnRest::Forward(policy) if policy.allows_another(rest.forwards.saturating_add(1)) => {
                rest.forwards += 1;
                let until = self.cx.now().after(policy.delay(rest.forwards));
                Step::Sleep { until, then }
            }
            OnRest::Compensate { after } => Step::Ask {
                question,
                timeout: Some(after),
                then,
            },
            OnRest::Stay | OnRest::Forward(_) => Step::Ask {
                question,
                timeout: None,
                then,
            },
        };
        self.machine.rest = Some(rest);
        self.close(step)
    }

    /// Says to a person what has happened, and what may be done.
    fn question(&self, rest: &Rest) -> String {
        let took_effect = self.took_effect();
        let may = match rest.can_skip {
            true => "forward, skip or compensate",
            false => "forward or compensate",
        };
        let error = match rest.is_at_end && rest.error == SagaError::default() {
            true => "it ended, and a step is in doubt".to_owned(),
            false => rest.error.to_string(),
        };
        format!("{error}; {took_effect}: {may}")
    }

    /// Says how much of this member is undone if the saga is.
    fn took_effect(&self) -> String {
        let tally = self.machine.tally.with(self.machine.instance.as_ref());
        let steps = match tally.stands() {
            0 => "nothing took effect".to_owned(),
            1 => "1 step took effect".to_owned(),
            steps => format!("{steps} steps took effect"),
        };
        let doubt = match tally.stands() > 0 && tally.status() == SagaStatus::Unknown {
            true => ", or may have",
            false => "",
        };
        let place = match self.machine.part {
            Some(Part::Branch { .. }) => " in this branch",
            Some(Part::Element { .. }) => " for this element",
            Some(Part::Sub) => " in this sub machine",
            Some(Part::Call { .. }) | None => "",
        };
        format!("{steps}{place}{doubt}")
    }

    /// Waits for a retry of a task.
    pub(super) fn sleep(self, at: StateIndex, until: Timestamp) -> Turned {
        let then = SagaStage::new(&self.state(at)?.name, Mode::Run);
        self.close(Step::Sleep { until, then })
    }

    /// Notes what the stage did, and whether it is undone if the saga is.
    pub(super) fn close(mut self, step: Step<Machine>) -> Turned {
        if !self.stands {
            self.cx.nothing_to_undo();
        }
        if !matches!(step, Step::Sleep { .. } | Step::Ask { .. }) {
            self.machine.last = 0;
        }
        self.note.again = self.stands && matches!(step, Step::Sleep { .. } | Step::Ask { .. });
        if self.note != Note::default() {
            self.cx.note(&self.note)?;
        }
        Ok(step)
    }

    /// Returns the name of the state at which something was done last.
    fn last_state(&self) -> Result<String, StageError> {
        Ok(self.state(StateIndex(self.machine.last))?.name.clone())
    }

    /// Returns an error if the member goes on for ever, it seems.
    pub(super) fn too_many_visits(&self, state: &State) -> Option<SagaError> {
        let visits = self.visit().saturating_sub(self.machine.visits_from);
        (visits >= VISITS).then(|| {
            let text =
                format!("it has run for {VISITS} stages since it began or was forwarded; a machine may go in a circle");
            SagaError::new(code::BOUND, text, &state.name)
        })
    }

    pub(super) fn task_at(definition: &Definition, at: StateIndex) -> Result<(&State, &Task), StageError> {
        let state = definition.state(at);
        let task = state.and_then(|state| Some((state, state.task()?)));
        task.ok_or_else(|| StageError::fail(format!("state {} is no task", at.0)))
    }
}
