//! How a host sets up processors, and starts a set.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use procession_actors::SubmitError;
use procession_kernel::{ProcedureId, TraceParent};

use super::handle::SetHandle;
use super::processor::Processor;
use super::root::SetRoot;
use super::set::{Set, WIDTH};
use super::stream::{SetUp, Stream, StreamName, StreamNameError};
use super::task::{Task, TaskEnv};
use crate::executor::{Builder, Executor};

/// Most nodes of one set that may be set going at once.
const WIDTH_MAX: u32 = 10_000;

impl Builder {
    /// Registers a processor, with the environment that its nodes get. Its [`NAME`](Processor::NAME) is a kind like any
    /// other: [`limit`](Self::limit) limits how many of its nodes run at once, in all sets.
    ///
    /// ```
    /// # use procession::flow::{NodeContext, Processed, Processor};
    /// # use procession::{Executor, StageError};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Resize { width: u32 }
    /// # impl Processor for Resize {
    /// #     const NAME: &'static str = "resize";
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
    /// #         Ok(Processed::Done(()))
    /// #     }
    /// # }
    /// # fn set_up(builder: procession::Builder) -> procession::Builder {
    /// builder.processor::<Resize>(()).limit("resize", 8)
    /// # }
    /// ```
    #[must_use]
    pub fn processor<P: Processor>(self, env: P::Env) -> Self {
        let mut builder = self.sets();
        builder.at_start(|set_up: &mut SetUp| set_up.add::<P>(env.clone()));
        let engine = builder.link();
        builder.register::<Task<P>>(TaskEnv { env, engine })
    }

    /// Registers the kind of the roots of sets, `procession.set`. [`processor`](Self::processor) does it as well, so this
    /// is for engines whose sets have [procedures](crate::flow::Node::procedure) alone.
    #[must_use]
    pub fn sets(mut self) -> Self {
        let mut took_sets = false;
        self.at_start(|set_up: &mut SetUp| took_sets = std::mem::replace(&mut set_up.takes_sets, true));
        if took_sets { self } else { self.register::<SetRoot>(()) }
    }

    /// Lets the engine take [streams](crate::flow::Stream): registers the kind of their roots, `procession.stream`.
    ///
    /// An engine whose journal has streams needs it. Without it they are quarantined, or with
    /// [`strict`](Self::strict) the start is refused.
    #[must_use]
    pub fn streams(mut self) -> Self {
        self.at_start(|set_up: &mut SetUp| set_up.takes_streams = true);
        self
    }
}

impl Executor {
    /// Starts a set. Await the result: it is there once the set with all its nodes is durable, in one commit.
    ///
    /// See the [module](crate::flow) for an example.
    #[must_use = "a set is not started until this is awaited"]
    pub fn start_set(&self, set: Set) -> StartSet {
        StartSet {
            executor: self.clone(),
            set,
            key: None,
            key_for: None,
            priority: None,
            trace: None,
            width: WIDTH,
        }
    }

    /// Returns a stream by its scene and its group: all that must stay in order, such as the `invoices` of `customer-17`.
    /// It checks the two, and creates nothing.
    ///
    /// # Errors
    ///
    /// [`StreamNameError`] says what is wrong with them.
    pub fn stream(&self, scene: impl Into<String>, group: impl Into<String>) -> Result<Stream, StreamNameError> {
        Ok(Stream::new(self.clone(), StreamName::new(scene, group)?))
    }

    /// Returns a handle of a set that was started before. Its methods answer [`AskError::Unknown`](crate::errors::AskError)
    /// if there is no set with this id.
    #[must_use]
    pub fn set_handle(&self, id: ProcedureId) -> SetHandle {
        SetHandle::new(self.clone(), id)
    }
}

/// A set on its way: what [`Executor::start_set`] returns. Await it for the [`SetHandle`].
#[must_use = "a set is not started until this is awaited"]
pub struct StartSet {
    executor: Executor,
    set: Set,
    key: Option<String>,
    key_for: Option<Duration>,
    priority: Option<i16>,
    trace: Option<TraceParent>,
    width: u32,
}

impl StartSet {
    /// Sets the idempotency key: starting an equal set with it again returns the same id, and runs once. It stands for the
    /// nodes, their data, edges and strategies, and the width.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the idempotency key, and how long it is kept after the start, if that is longer than the result is kept.
    pub fn key_for(mut self, key: impl Into<String>, time: Duration) -> Self {
        self.key_for = Some(time);
        self.key(key)
    }

    /// Sets the priority of all nodes for which [`Node::priority`](crate::flow::Node::priority) says nothing, procedures
    /// included: a higher one is served first where they wait for a permit.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the trace that the set belongs to.
    pub fn trace_parent(mut self, parent: TraceParent) -> Self {
        self.trace = Some(parent);
        self
    }

    /// Sets how many of its nodes are set going at once: 1 to 10,000, 256 unless said. Nodes that wait for their parents,
    /// or for a person, are not counted.
    pub fn width(mut self, width: u32) -> Self {
        self.width = width;
        self
    }
}

impl IntoFuture for StartSet {
    type Output = Result<SetHandle, SubmitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let width = self.width;
        if width == 0 || width > WIDTH_MAX {
            let why = format!("a width of {width}, and a set has one of 1 to {WIDTH_MAX}");
            return Box::pin(async move { Err(SubmitError::BadChildren { why }) });
        }
        let title = self.set.title().to_owned();
        let children = self.set.into_list(self.priority).width(width);
        let mut submission = self
            .executor
            .submit(SetRoot)
            .named(title)
            .children(children)
            .ends_with(());
        if let Some(key) = self.key {
            submission = match self.key_for {
                Some(time) => submission.key_for(key, time),
                None => submission.key(key),
            };
        }
        if let Some(priority) = self.priority {
            submission = submission.priority(priority);
        }
        if let Some(parent) = self.trace {
            submission = submission.trace_parent(parent);
        }
        let (executor, submitted) = (self.executor, submission.into_future());
        Box::pin(async move { Ok(executor.set_handle(submitted.await?.id())) })
    }
}

impl fmt::Debug for StartSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartSet")
            .field("set", &self.set)
            .field("key", &self.key)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}
