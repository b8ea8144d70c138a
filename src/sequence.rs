//! `Sequence`: a procedure without a type of its own. Its stages are a list of
//! names; what they do, and how they are undone, is registered as closures.

use std::collections::BTreeMap;
use std::ops::{AsyncFn, Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use procession_actors::journal::codec;
use procession_actors::{CodecError, Procedure, StageContext, StageError, Step, within};
use procession_kernel::{Blob, Kind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Runs named steps one after the other, and undoes them in reverse when one fails
/// (HBase's `SequentialProcedure`).
///
/// What is stored is the list of names and the input; the steps themselves are the
/// environment that it is registered with. Like every stage, a step runs at least
/// once, and its writes through the context happen exactly once.
///
/// ```
/// use procession::sequence::{Sequence, Steps};
/// use procession::Executor;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("journal");
/// let steps = Steps::new()
///     .step("copy", async |cx| {
///         let table: String = cx.input()?;
///         cx.put("copies", &table, &1)?;
///         Ok(())
///     })
///     .undo("copy", async |cx| {
///         let table: String = cx.input()?;
///         cx.delete("copies", &table);
///         Ok(())
///     })
///     .step("switch", async |_| Ok(()));
///
/// actix_rt::System::new().block_on(async {
///     let executor = Executor::builder(path).register::<Sequence>(steps).start().await?;
///     let move_table = Sequence::new(["copy", "switch"]).with_input(&"t1")?;
///     executor.submit(move_table).await?.await?;
///     assert_eq!(executor.get::<u32>("copies", "t1").await?, Some(1));
///
///     // A name that nothing is registered for is refused.
///     assert!(executor.submit(Sequence::new(["copy", "swich"])).await.is_err());
///     Ok(())
/// })
/// # }
/// ```
///
/// A step that this process does not know:
/// - [`Executor::submit`](crate::Executor::submit) refuses such a sequence with
///   [`SubmitError::Unsupported`](crate::errors::SubmitError::Unsupported); where one is submitted by
///   message, or as a child, [`Steps::sequence`] refuses to make it;
/// - one that is stored, and whose step is gone since, is set aside with the names that
///   are missing, alone, and goes on where it was when a start knows them again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    #[serde(rename = "s")]
    steps: Vec<String>,
    #[serde(rename = "i", default, skip_serializing_if = "Blob::is_empty")]
    input: Blob,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
}

impl Sequence {
    /// Lists the steps in their order; a name may stand in it more than once.
    pub fn new<N: Into<String>>(steps: impl IntoIterator<Item = N>) -> Self {
        Self {
            steps: steps.into_iter().map(Into::into).collect(),
            input: Blob::default(),
            kind: None,
        }
    }

    /// Makes it run as this kind, which must be registered with
    /// [`Builder::register_as`](crate::Builder::register_as): for jobs that have a limit, a pause or metrics of their
    /// own.
    ///
    /// ```
    /// use procession::procedure::KindSettings;
    /// use procession::sequence::{Sequence, Steps};
    /// use procession::Executor;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("journal");
    /// # actix_rt::System::new().block_on(async {
    /// let steps = Steps::new().step("copy", async |_| Ok(()));
    /// let executor = Executor::builder(path)
    ///     .register::<Sequence>(steps.clone())
    ///     .register_as::<Sequence>("nightly copy", KindSettings::default(), steps)
    ///     .limit("nightly copy", 1)
    ///     .start()
    ///     .await?;
    /// executor.submit(Sequence::new(["copy"]).with_kind("nightly copy")).await?.await?;
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    #[must_use]
    pub fn with_kind(mut self, kind: impl Into<Kind>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Gives the steps something to work on; see [`StepContext::input`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it cannot be encoded.
    pub fn with_input<T: Serialize + ?Sized>(mut self, input: &T) -> Result<Self, CodecError> {
        self.input = codec::encode_user(input)?;
        Ok(self)
    }

    /// Returns the names of its steps.
    #[must_use]
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    fn stage(&self, place: usize) -> SequenceStage {
        let name = self.steps.get(place).cloned().unwrap_or_default();
        SequenceStage(BTreeMap::from([(name, place)]))
    }

    fn name(&self, stage: &SequenceStage) -> Option<&str> {
        self.steps.get(stage.place()).map(String::as_str)
    }
}

/// A stage of a [`Sequence`]: the place of a step in the list, stored with its name
/// so that who looks at the procedure reads the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SequenceStage(BTreeMap<String, usize>);

impl SequenceStage {
    /// Returns the place of the step in the list, from 0.
    #[must_use]
    pub fn place(&self) -> usize {
        self.0.values().next().copied().unwrap_or_default()
    }

    /// Returns the name of the step.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.keys().next().map(String::as_str).unwrap_or_default()
    }
}

/// What a step is given: the input, and all that a stage's context gives.
pub struct StepContext<'a, 'b> {
    stage: &'a mut StageContext<'b, Sequence>,
    input: &'a mut Blob,
}

impl StepContext<'_, '_> {
    /// Returns what the sequence was submitted with, or what a step has put in its place.
    ///
    /// # Errors
    ///
    /// [`StageError::Fail`] if it is not of this type, or there is none.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, StageError> {
        codec::decode_user(self.input.as_slice()).map_err(StageError::fail)
    }

    /// Puts something in place of the input: for the steps after this one, and for undos.
    /// It is stored if the step succeeds.
    ///
    /// # Errors
    ///
    /// [`StageError::Fail`] if it cannot be encoded.
    pub fn set_input<T: Serialize + ?Sized>(&mut self, input: &T) -> Result<(), StageError> {
        *self.input = codec::encode_user(input).map_err(StageError::fail)?;
        Ok(())
    }
}

impl<'b> Deref for StepContext<'_, 'b> {
    type Target = StageContext<'b, Sequence>;

    fn deref(&self) -> &Self::Target {
        self.stage
    }
}

impl DerefMut for StepContext<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.stage
    }
}

/// One half of a step, its type erased.
trait Body: Send + Sync {
    fn run<'a>(&'a self, cx: &'a mut StepContext<'_, '_>) -> LocalBoxFuture<'a, Result<(), StageError>>;
}

impl<F> Body for F
where
    F: AsyncFn(&mut StepContext<'_, '_>) -> Result<(), StageError> + Send + Sync,
{
    fn run<'a>(&'a self, cx: &'a mut StepContext<'_, '_>) -> LocalBoxFuture<'a, Result<(), StageError>> {
        Box::pin(self(cx))
    }
}

type Bodies = BTreeMap<String, Arc<dyn Body>>;

/// How long one call may take, by name of the step.
type Limits = BTreeMap<String, Duration>;

/// The steps that a process knows: the environment of a [`Sequence`]. Cheap to clone.
#[derive(Clone, Default)]
pub struct Steps {
    execute: Arc<Bodies>,
    rollback: Arc<Bodies>,
    timeouts: Arc<Limits>,
    undo_timeouts: Arc<Limits>,
}

impl Steps {
    /// Starts with no step.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step; of two with one name the later counts. A name is on disk as long as
    /// a sequence with it lives.
    #[must_use]
    pub fn step<F>(mut self, name: &str, execute: F) -> Self
    where
        F: AsyncFn(&mut StepContext<'_, '_>) -> Result<(), StageError> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.execute).insert(name.to_owned(), Arc::new(execute));
        self
    }

    /// Adds how a step is undone; without it there is nothing to undo. The step that
    /// failed is undone, too, so it must bear that there is little or nothing to do.
    #[must_use]
    pub fn undo<F>(mut self, name: &str, rollback: F) -> Self
    where
        F: AsyncFn(&mut StepContext<'_, '_>) -> Result<(), StageError> + Send + Sync + 'static,
    {
        Arc::make_mut(&mut self.rollback).insert(name.to_owned(), Arc::new(rollback));
        self
    }

    /// Limits how long one call of a step may take. When the time is up by the engine's clock, the call is dropped, and
    /// the step is tried again with a cause that begins with `timed out after 3 s`; see
    /// [`Procedure::stage_timeout`].
    #[must_use]
    pub fn timeout(mut self, name: &str, time: Duration) -> Self {
        Arc::make_mut(&mut self.timeouts).insert(name.to_owned(), time);
        self
    }

    /// Limits how long one call of a step's undo may take, as [`timeout`](Self::timeout) does for the step.
    #[must_use]
    pub fn undo_timeout(mut self, name: &str, time: Duration) -> Self {
        Arc::make_mut(&mut self.undo_timeouts).insert(name.to_owned(), time);
        self
    }

    /// Makes a sequence of steps that are here.
    ///
    /// # Errors
    ///
    /// [`UnknownSteps`] lists those that are not.
    pub fn sequence<N: Into<String>>(&self, steps: impl IntoIterator<Item = N>) -> Result<Sequence, UnknownSteps> {
        let sequence = Sequence::new(steps);
        self.check(&sequence)?;
        Ok(sequence)
    }

    fn check(&self, sequence: &Sequence) -> Result<(), UnknownSteps> {
        let mut names: Vec<String> = Vec::new();
        for name in &sequence.steps {
            if !self.execute.contains_key(name) && !names.contains(name) {
                names.push(name.clone());
            }
        }
        if names.is_empty() {
            Ok(())
        } else {
            Err(UnknownSteps { names })
        }
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Steps").field(&self.execute.keys()).finish()
    }
}

/// Steps of a [`Sequence`] that nothing is registered for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no step is registered with the name \"{}\"", .names.join("\", \""))]
#[non_exhaustive]
pub struct UnknownSteps {
    /// Their names, in the order of the list.
    pub names: Vec<String>,
}

impl Procedure for Sequence {
    const KIND: &'static str = "sequence";
    type Stage = SequenceStage;
    type Env = Steps;
    type Output = ();

    fn kind(&self) -> Kind {
        self.kind.clone().unwrap_or_else(|| Kind::from(Self::KIND))
    }

    fn first(&self) -> SequenceStage {
        self.stage(0)
    }

    async fn execute(
        &mut self,
        stage: SequenceStage,
        cx: &mut StageContext<'_, Self>,
    ) -> Result<Step<Self>, StageError> {
        let steps = cx.env();
        // A sequence of no steps has nothing to do in its only stage.
        if let Some(name) = self.name(&stage) {
            let body = steps.execute.get(name);
            let body = body.ok_or_else(|| StageError::fail(unknown(name)))?;
            let limit = steps.timeouts.get(name);
            let input = &mut self.input;
            run(&**body, limit, "timeout", StepContext { stage: cx, input }).await?;
        }
        let next = stage.place() + 1;
        Ok(if next < self.steps.len() {
            Step::Next(self.stage(next))
        } else {
            Step::Done(())
        })
    }

    async fn rollback(&mut self, stage: SequenceStage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        let steps = cx.env();
        let undo = self
            .name(&stage)
            .and_then(|name| Some((steps.rollback.get(name)?, steps.undo_timeouts.get(name))));
        match undo {
            Some((body, limit)) => {
                let input = &mut self.input;
                run(&**body, limit, "undo_timeout", StepContext { stage: cx, input }).await
            }
            None => Ok(()),
        }
    }

    /// Refuses a sequence with a step that is not among [`Steps`].
    fn check(&self, steps: &Steps) -> Result<(), String> {
        steps.check(self).map_err(|unknown| unknown.to_string())
    }
}

/// Runs one half of a step, at most as long as its limit.
async fn run(
    body: &dyn Body,
    limit: Option<&Duration>,
    method: &'static str,
    mut cx: StepContext<'_, '_>,
) -> Result<(), StageError> {
    let clock = cx.clock();
    let call = body.run(&mut cx);
    match limit {
        Some(time) => within(clock, *time, call).await.unwrap_or_else(|elapsed| {
            let text =
                format!("{elapsed}, the limit of the step (`Steps::{method}`); raise it if the step needs longer");
            Err(StageError::TimedOut(text))
        }),
        None => call.await,
    }
}

fn unknown(name: &str) -> UnknownSteps {
    UnknownSteps {
        names: vec![name.to_owned()],
    }
}
