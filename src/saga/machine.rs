//! A machine on its way: the procedure that goes through the states of a definition.

mod context;
mod detached;
mod element;
mod error;
mod family;
mod instance;
mod note;
mod part;
mod rest;
mod retries;
mod route;
mod settled;
mod stage;
mod tally;
mod task;
mod turn;
mod undo;

use std::sync::OnceLock;
use std::time::Duration;

use procession_actors::{CodecError, Procedure, StageContext, StageError, Step};
use procession_kernel::{Hold, Kind, OnTimeout, ProcedureId};
use procession_saga_language::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::service::value_of;
use super::shared::SagaEnv;
use super::status::SagaStatus;
use context::Context;
use instance::{Instance, is_first, is_zero};
use part::{Element, Kept, Left, Part, Results, Window};
use rest::Rest;
use retries::Retries;
use stage::Mode;
use tally::Tally;
use turn::Turn;

pub use error::SagaError;
pub(super) use note::{Note, UndoNote};
pub use rest::Decision;
pub use stage::SagaStage;

/// A saga that is to run: a machine with its params. [`Sagas::machine`](super::Sagas::machine) makes it, and
/// [`Executor::submit`](crate::Executor::submit) starts it like any procedure.
///
/// It is a procedure of the kind `saga.<Name>`, so limits, pauses, metrics and lists go by the machine. The idempotency key
/// is the business key: the same machine and params again are the same saga, also after the definition has changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    #[serde(rename = "m")]
    name: String,
    /// The `Version` that was asked for.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The bundle of definitions by which it goes, from its first commit on.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pinned: Option<Digest>,
    #[serde(rename = "c", default, skip_serializing_if = "Context::is_empty")]
    context: Context,
    /// The saga that it is a part of, if it is one.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    saga: Option<ProcedureId>,
    /// What it is of a machine, if it is a part of one.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    part: Option<Part>,
    /// The task in hand, or the last one.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    instance: Option<Instance>,
    /// The visit that began the script in hand, if its Input has ids. A script has no instance that could say so.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    script_began: Option<u32>,
    /// What the tasks before it have come to.
    #[serde(rename = "t", default, skip_serializing_if = "Tally::is_default")]
    tally: Tally,
    /// The state at which something was done last, by its place in the definition. It is stored where the machine rests or
    /// sleeps: elsewhere the next stage says it.
    #[serde(rename = "l", default, skip_serializing_if = "is_first")]
    last: usize,
    #[serde(rename = "n", default, skip_serializing_if = "Retries::is_empty")]
    retries: Retries,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    rest: Option<Rest>,
    /// The time limits of the Forks in which it lies.
    #[serde(rename = "o", default, skip_serializing_if = "Vec::is_empty")]
    windows: Vec<Window>,
    /// The Fork whose branches it waits for, by its place in the definition. The stage says it now: only values of earlier
    /// releases have it.
    #[serde(rename = "j", default, skip_serializing_if = "Option::is_none")]
    joining: Option<usize>,
    /// The sub machines in which it lies that a task of the machine above them undoes, once they have come back.
    #[serde(rename = "k", default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<Kept>,
    /// The newest instance of a state whose sub machines a task undoes in their place, by the visit that began it.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    took_over: Option<u32>,
    /// Results of the Loop that it is at.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    results: Option<Results>,
    /// How often it has gone on by itself at the state where it is.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    forwards: u32,
    /// The visit from which visits are counted that may be too many.
    #[serde(rename = "w", default, skip_serializing_if = "is_zero")]
    visits_from: u32,
    /// What went wrong: a fault that was caught, a Fail.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    error: Option<SagaError>,
    /// What it has come to. A saga, a branch or an element that succeeded does not say so: its row and its history do.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    status: Option<SagaStatus>,
    /// The state instance that was undone last, by the visit that began it, if the undo of another try may come after it.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    undone: Option<u32>,
    /// Levels of its family above it.
    #[serde(rename = "h", default, skip_serializing_if = "is_zero")]
    above: u32,
    /// What its birth needs, and its row does not.
    #[serde(skip)]
    birth: OnceLock<Birth>,
    /// The last call has left it as it was.
    #[serde(skip)]
    is_as_before: bool,
}

/// What a definition says about the birth of a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Birth {
    /// The state at which it begins, for its name alone: the definition may be another one by then.
    pub(super) start: String,
    pub(super) timeout: Option<Duration>,
    pub(super) goes_on: bool,
}

/// What a saga leaves that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SagaOutput {
    /// What it came to.
    #[serde(rename = "s")]
    pub status: SagaStatus,
    /// Its context at the end: start params, and what states have put out.
    #[serde(rename = "c")]
    pub context: Map<String, Value>,
    /// For the machine that it is a part of.
    #[serde(rename = "l", default, skip_serializing_if = "Left::is_default")]
    left: Left,
}

impl Machine {
    pub(super) fn new(name: &str, birth: Birth) -> Self {
        Self {
            name: name.to_owned(),
            version: None,
            pinned: None,
            context: Context::default(),
            saga: None,
            part: None,
            instance: None,
            script_began: None,
            tally: Tally::default(),
            last: 0,
            retries: Retries::default(),
            rest: None,
            windows: Vec::new(),
            joining: None,
            kept: Vec::new(),
            took_over: None,
            results: None,
            forwards: 0,
            visits_from: 0,
            error: None,
            status: None,
            undone: None,
            above: 0,
            birth: OnceLock::from(birth),
            is_as_before: false,
        }
    }

    /// Returns the birth of one that has begun: nobody asks for it.
    fn birth(&self) -> &Birth {
        const BEGUN: &Birth = &Birth {
            start: String::new(),
            timeout: None,
            goes_on: false,
        };
        self.birth.get().unwrap_or(BEGUN)
    }

    /// Makes a part of a machine, which goes by the same definitions and begins at this state.
    fn of_part(&self, own: ProcedureId, part: Part, start: &str) -> Self {
        let birth = Birth {
            start: start.to_owned(),
            ..Birth::default()
        };
        Self {
            version: self.version.clone(),
            pinned: self.pinned,
            saga: Some(self.saga(own)),
            windows: self.windows.clone(),
            kept: self.kept.clone(),
            above: match part {
                Part::Call { .. } => 0,
                Part::Sub | Part::Branch { .. } | Part::Element { .. } => self.above.saturating_add(1),
            },
            part: Some(part),
            ..Self::new(&self.name, birth)
        }
    }

    /// Makes a machine that this one runs.
    fn sub(&self, own: ProcedureId, name: &str, start: &str, params: Map<String, Value>) -> Self {
        Self {
            name: name.to_owned(),
            version: None,
            context: params.into(),
            ..self.of_part(own, Part::Sub, start)
        }
    }

    /// Makes a branch of a Fork. Where it begins is left open.
    fn branch(&self, own: ProcedureId, fork: usize, windows: Vec<Window>) -> Self {
        let written = Vec::new();
        Self {
            context: self.context.clone(),
            windows,
            ..self.of_part(own, Part::Branch { fork, written }, "")
        }
    }

    /// Sets the state at which a part begins.
    fn begins_at(&mut self, start: &str) {
        self.birth = OnceLock::from(Birth {
            start: start.to_owned(),
            ..Birth::default()
        });
    }

    /// Returns the id of the saga: this procedure may be a part of it.
    fn saga(&self, own: ProcedureId) -> ProcedureId {
        self.saga.unwrap_or(own)
    }

    /// Returns the element of a Loop that it is.
    fn element(&self) -> Option<&Element> {
        match &self.part {
            Some(Part::Element { element, .. }) => Some(element),
            Some(Part::Sub | Part::Branch { .. } | Part::Call { .. }) | None => None,
        }
    }

    /// Sets the start params: variables of its context. Null values are dropped.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if they cannot be encoded as JSON, or are no object.
    pub fn params<T: Serialize + ?Sized>(mut self, params: &T) -> Result<Self, CodecError> {
        let wrong = |why: String| CodecError::new("the params of the saga cannot be taken", why);
        let value = value_of(params).map_err(wrong)?;
        let Value::Object(variables) = value else {
            return Err(wrong("they are no object".to_owned()));
        };
        self.context = variables.into();
        Ok(self)
    }

    /// Returns the `Name` of the machine.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn of_version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    pub(super) fn version_asked(&self) -> Option<&str> {
        self.version.as_deref()
    }

    pub(super) const fn pinned(&self) -> Option<Digest> {
        self.pinned
    }

    pub(super) fn variables(&self) -> Map<String, Value> {
        self.context.clone().into()
    }

    /// Returns what it rests for, and whether it can be skipped.
    pub(super) fn rests_for(&self) -> Option<(&SagaError, bool)> {
        self.rest.as_ref().map(|rest| (&rest.error, rest.can_skip))
    }

    pub(super) fn error(&self) -> Option<&SagaError> {
        let rest = self.rest.as_ref().map(|rest| &rest.error);
        rest.or(self.error.as_ref())
    }

    /// Returns what it has come to, or would come to if it stopped where it is.
    pub(super) fn status_so_far(&self) -> SagaStatus {
        let tally = self.tally.with(self.instance.as_ref());
        match (self.status, &self.rest) {
            (Some(status), _) => status,
            (None, Some(rest)) if rest.is_at_end => SagaStatus::Unknown,
            (None, Some(_)) => tally.status_of_failure(),
            (None, None) if tally.stands() > 0 => SagaStatus::Unknown,
            (None, None) => SagaStatus::Failed,
        }
    }

    /// It has not come to an end by itself that it could tell.
    pub(super) const fn has_no_status(&self) -> bool {
        self.status.is_none()
    }

    /// Returns whether it has noted that it succeeded.
    pub(super) fn has_succeeded(&self) -> bool {
        self.status == Some(SagaStatus::Success)
    }

    /// Takes back that it succeeded.
    pub(super) const fn forget_success(&mut self) {
        self.status = None;
    }

    /// It is a branch or an element, which does not tell itself that it has succeeded: its last stage does.
    pub(super) const fn is_told_by_history(&self) -> bool {
        self.status.is_none() && matches!(self.part, Some(Part::Branch { .. } | Part::Element { .. }))
    }

    /// It has ended, and nobody asks its value what it has counted. A machine whose value is as it was writes none.
    fn forget_counts(&mut self) {
        self.fold();
        if self.part.is_some() || self.status.is_some() || self.tally.stands() == 0 {
            self.tally = Tally::default();
        }
    }

    /// It is a saga, and no part of one.
    const fn is_whole_saga(&self) -> bool {
        self.part.is_none()
    }

    /// It leaves a state for good: what has been counted there begins anew.
    fn leave(&mut self) {
        self.results = None;
        self.script_began = None;
        self.retries = Retries::default();
        self.forwards = 0;
    }

    /// The last task will not be tried again, and another one is next.
    fn fold(&mut self) {
        self.results = None;
        self.script_began = None;
        if let Some(instance) = self.instance.take() {
            self.tally.add(&instance);
        }
    }

    /// A person says that what is in doubt counts as skipped.
    fn skip_doubts(&mut self) {
        self.fold();
        self.tally.skip_doubts();
    }

    /// Sets a variable of its context. A branch remembers which it has set.
    fn put_out(&mut self, name: &str, value: Value) {
        self.context.set(name, value);
        if let Some(Part::Branch { written, .. }) = &mut self.part
            && !written.iter().any(|known| known == name)
        {
            written.push(name.to_owned());
        }
    }

    fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Returns what it leaves to whoever waits for it.
    fn output(&self, status: SagaStatus, next: Option<usize>) -> SagaOutput {
        let left = Left {
            tally: self.tally.with(self.instance.as_ref()),
            next,
            error: self.error.clone(),
            windows: self.windows.clone(),
            removed: Vec::new(),
        };
        let (context, left) = match &self.part {
            None => (self.variables(), Left::default()),
            Some(Part::Branch { written, .. }) => self.written(written, left),
            Some(Part::Sub | Part::Call { .. }) => (Map::new(), left),
            Some(Part::Element { .. }) => (self.variables(), left),
        };
        SagaOutput { status, context, left }
    }

    fn written(&self, written: &[String], mut left: Left) -> (Map<String, Value>, Left) {
        let mut variables = Map::new();
        for name in written {
            match self.context.get(name) {
                Some(value) => drop(variables.insert(name.clone(), value.clone())),
                None => left.removed.push(name.clone()),
            }
        }
        (variables, left)
    }
}

impl Procedure for Machine {
    const KIND: &'static str = "saga";
    const HOLD: Hold = Hold::WhileActive;
    type Stage = SagaStage;
    type Env = SagaEnv;
    type Output = SagaOutput;

    fn kind(&self) -> Kind {
        kind_of(&self.name)
    }

    fn first(&self) -> SagaStage {
        SagaStage::new(&self.birth().start, Mode::Start)
    }

    async fn execute(&mut self, stage: SagaStage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let before = self.settled();
        let turned = Turn::begin(self, cx)?.run(&stage).await;
        self.compare(before);
        turned
    }

    async fn rollback(&mut self, stage: SagaStage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        // An undo sets variables and says which instance it has undone: nothing else of a machine changes.
        let before = (self.undone, self.context.sets());
        let undone = undo::undo(self, &stage, cx).await;
        self.is_as_before = (self.undone, self.context.sets()) == before;
        undone
    }

    fn is_as_before(&self) -> bool {
        self.is_as_before
    }

    fn timeout(&self) -> Option<Duration> {
        self.birth().timeout
    }

    fn on_timeout(&self) -> OnTimeout {
        match self.birth().goes_on {
            true => OnTimeout::Execute,
            false => OnTimeout::Fail,
        }
    }

    /// A call that outlasts the time limit of a Fork around it is told. The limit interrupts nothing.
    fn expected(&self, stage: &SagaStage) -> Option<Duration> {
        let windows = self.windows.iter().map(|window| window.length_ms);
        let shortest = windows
            .min()
            .filter(|_| matches!(stage.mode(), Mode::Start | Mode::Run));
        shortest.map(Duration::from_millis)
    }

    /// A definition that is not there, or a service that its states call, quarantines the saga until a start has it.
    fn check(&self, env: &SagaEnv) -> Result<(), String> {
        // A value that was read back has lost its birth, which it needs if it is submitted: to run a saga that failed
        // again. One that has begun is not asked for it any more.
        if self.pinned.is_none() {
            self.birth.get_or_init(|| env.shared().birth(self).unwrap_or_default());
        }
        env.shared().check(self)
    }
}

/// Returns the kind of a machine's procedures.
pub(super) fn kind_of(name: &str) -> Kind {
    Kind::from(format!("saga.{name}"))
}

#[cfg(test)]
mod tests;
