//! `Submission`: what is said of a procedure before it is sent.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use procession_actors::journal::Space;
use procession_actors::messages::Submit;
use procession_actors::{Children, Engine, Procedure, SubmitError};
use procession_kernel::{Label, Labels, TraceParent};

use super::Executor;
use crate::handle::Handle;

/// A submission that is not sent yet; await it.
///
/// Its future is `Send`, whatever the type of the procedure: the value is encoded where `await` is written, and what
/// waits for the answer holds bytes.
///
/// ```
/// # use procession::procedure::Noop;
/// # use procession::Executor;
/// # #[actix_rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
/// let submitter = executor.clone();
/// let handle = tokio::spawn(async move { submitter.submit(Noop).await }).await??;
/// tokio::spawn(handle.into_future()).await??;
/// # Ok(())
/// # }
/// ```
pub struct Submission<P: Procedure> {
    pub(super) executor: Executor,
    pub(super) procedure: P,
    pub(super) key: Option<String>,
    pub(super) key_for: Option<Duration>,
    pub(super) priority: Option<i16>,
    pub(super) trace: Option<TraceParent>,
    pub(super) name: Option<String>,
    pub(super) labels: Labels,
    pub(super) children: Option<Children>,
    pub(super) output: Option<P::Output>,
}

impl<P: Procedure> Submission<P> {
    /// Sets the idempotency key: the same key and value give the same id, and one run. Another value
    /// under a key that is taken is refused as a [`KeyConflict`](crate::errors::SubmitError::KeyConflict),
    /// which names who has the key.
    ///
    /// Values are compared by their bytes. Those of a `HashMap` depend on chance: a `BTreeMap` has one
    /// order.
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the idempotency key, and how long it is kept, from the submission on,
    /// if that is longer than the result.
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn key_for(mut self, key: impl Into<String>, time: Duration) -> Self {
        self.key_for = Some(time);
        self.key(key)
    }

    /// Overrides the procedure's own priority.
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Says in which trace it is submitted: the W3C header `traceparent` of the request that led here, or
    /// of the span that you are in. It is kept with the procedure; each span of its family has it as `link`.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::procedure::Noop;
    /// # use procession::Executor;
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// let handle = executor.submit(Noop).trace_parent(header.parse()?).await?;
    /// assert_eq!(executor.status(handle.id()).await?.trace, Some(header.parse()?));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn trace_parent(mut self, parent: TraceParent) -> Self {
        self.trace = Some(parent);
        self
    }

    /// Sets the name that people see in lists, in trees and on the dashboard, at most 200 characters. Names need not be
    /// unique, and the idempotency key does not stand for them: a repeat keeps the first one's name.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::procedure::Noop;
    /// # use procession::Executor;
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// let handle = executor.submit(Noop).named("nightly import").await?;
    /// assert_eq!(handle.status().await?.name.as_deref(), Some("nightly import"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets a label by which people find it: in lists, on the dashboard, on the command line. A second one of the same
    /// name replaces the first. Labels stay as they are submitted; children have them if their list
    /// [says so](Children::inherit_labels). The idempotency key does not stand for them: a repeat keeps the first
    /// one's labels.
    ///
    /// A procedure has at most 16. A name is 1 to 64 letters, digits, `_`, `-`, `.` and `/` of ASCII, a value at most
    /// 256 bytes. They stand in the row, which each stage writes again, and each of them in an index: what nobody looks
    /// for belongs into the procedure's own value.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::errors::SubmitError;
    /// # use procession::procedure::Noop;
    /// # use procession::status::ListFilter;
    /// # use procession::submit::Label;
    /// # use procession::Executor;
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// let handle = executor.submit(Noop).label("customer", "4711").label("region", "eu").await?;
    /// let of_customer = ListFilter {
    ///     labels: vec![Label::new("customer", "4711")],
    ///     ..ListFilter::default()
    /// };
    /// let page = executor.list(of_customer, None, 10).await?;
    /// assert_eq!(page.items.first().map(|status| status.id), Some(handle.id()));
    /// let refused = executor.submit(Noop).label("the customer", "4711").await;
    /// assert!(matches!(refused, Err(SubmitError::BadLabels(_))));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn label(mut self, name: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        self.labels.set(Label::new(name, value));
        self
    }

    /// Sets children that are born with the procedure: all in one commit, or nothing. The first stage runs when their
    /// join policy is met, and sees their outcomes with [`children`](procession_actors::CallContext::children). Permits
    /// of the procedure are asked for then. The idempotency key stands for the children, too.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::procedure::{Child, Noop};
    /// # use procession::{Children, Executor};
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// let steps = Children::new()
    ///     .child(Child::new(&Noop)?.named("unpack"))
    ///     .child(Child::new(&Noop)?.named("install").after([0]));
    /// // It ends when both have succeeded, without a call of its own.
    /// executor.submit(Noop).key("package-1").children(steps).ends_with(()).await?.await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn children(mut self, children: Children) -> Self {
        self.children = Some(children);
        self
    }

    /// Sets the output with which the procedure ends when its children let it, without a call. Without children the
    /// submission is refused.
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn ends_with(mut self, output: P::Output) -> Self {
        self.output = Some(output);
        self
    }

    /// Checks that the procedure can run in this process, and returns the message that submits it: for senders that
    /// talk to the [supervisor](Executor::supervisor) themselves, or build a
    /// [`SubmitBatch`](crate::messages::SubmitBatch) of several kinds. [`Submit::new`] makes the same message and does
    /// not check.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::procedure::Noop;
    /// # use procession::Executor;
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// let message = executor.submit(Noop).key("a").into_message().await?;
    /// let id = executor.supervisor().send(message).await??;
    /// # assert_eq!(executor.submit(Noop).key("a").await?.id(), id);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SubmitError::Unsupported`] with what [`check`](Procedure::check) says, unless the key was used before;
    /// [`SubmitError::KeyUnread`] if that could not be read; [`SubmitError::Codec`] if the value cannot be encoded.
    pub fn into_message(self) -> impl Future<Output = Result<Submit, SubmitError>> + Send {
        self.encode().checked()
    }

    /// Asks and encodes the value. What is left needs neither the type nor its threads.
    pub(super) fn encode(self) -> Encoded {
        Encoded {
            unfit: self.executor.engine.check(&self.procedure).err(),
            key: self.key.clone(),
            engine: Arc::clone(&self.executor.engine),
            message: self.message(),
        }
    }

    fn message(self) -> Result<Submit, SubmitError> {
        let mut submit = Submit::new(&self.procedure)?;
        if let Some(key) = self.key {
            submit = match self.key_for {
                Some(time) => submit.key_for(key, time),
                None => submit.key(key),
            };
        }
        if let Some(priority) = self.priority {
            submit = submit.priority(priority);
        }
        if let Some(parent) = self.trace {
            submit = submit.trace_parent(parent);
        }
        if let Some(name) = self.name {
            submit = submit.named(name);
        }
        submit = submit.labels(&self.labels);
        if let Some(children) = self.children {
            submit = submit.children(children);
        }
        if let Some(output) = &self.output {
            submit = submit.ends_with(output)?;
        }
        Ok(submit)
    }
}

/// A submission without its type: the message, and what the check said of the value.
pub(super) struct Encoded {
    engine: Arc<Engine>,
    key: Option<String>,
    unfit: Option<SubmitError>,
    message: Result<Submit, SubmitError>,
}

impl Encoded {
    /// Returns the message, unless the value cannot run here and its key is new.
    pub(super) async fn checked(self) -> Result<Submit, SubmitError> {
        if let Some(unfit) = &self.unfit
            && !self.is_repeat().await?
        {
            return Err(unfit.clone());
        }
        self.message
    }

    /// Returns `true` if the key was used before. Such a submission is answered with the id of the first one, even if
    /// its procedure cannot run here any more. A failed read tells neither, so it is an error of its own.
    async fn is_repeat(&self) -> Result<bool, SubmitError> {
        let Some(key) = &self.key else { return Ok(false) };
        let known = self.engine.reader().get(Space::Keys, key.as_bytes().to_vec());
        match known.await {
            Ok(entry) => Ok(entry.is_some()),
            Err(why) => Err(SubmitError::KeyUnread {
                key: key.clone(),
                why: why.into(),
            }),
        }
    }
}

impl<P: Procedure> IntoFuture for Submission<P> {
    type Output = Result<Handle<P>, SubmitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let executor = self.executor.clone();
        let encoded = self.encode();
        Box::pin(async move {
            let submit = encoded.checked().await?;
            let sent = executor.engine.ask(submit).await;
            let id = sent.map_err(|_| executor.engine.unsubmitted())??;
            Ok(executor.handle(id))
        })
    }
}

/// Shows what is said of the procedure. Its value is user data, and is not shown.
impl<P: Procedure> fmt::Debug for Submission<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission")
            .field("kind", &P::KIND)
            .field("key", &self.key)
            .field("name", &self.name)
            .field("labels", &self.labels)
            .field("priority", &self.priority)
            .field("children", &self.children.as_ref().map(Children::len))
            .finish_non_exhaustive()
    }
}
