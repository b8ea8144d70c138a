//! `Node`: one node of a set before the set is built, and its two strategies.

use std::fmt;
use std::time::Duration;

use procession_actors::journal::codec;
use procession_actors::{Child, CodecError, Procedure};
use procession_kernel::{Blob, RetryPolicy};
use serde::{Deserialize, Serialize};

use super::processor::Processor;
use super::task::{Task, TaskOptions};

/// When a node may begin, given its parents: its *execution strategy*.
///
/// In the table n is the number of its parents, and s, e and p of them read SUCCESS, ERROR and PENDING.
///
/// | strategy | begins | reads PENDING |
/// |---|---|---|
/// | `AllSucceeded` | s = n | e + p > 0 |
/// | `AllFinished` | s + e = n | p > 0 |
/// | `AtLeast(m)` | s ≥ m, whatever the others do later | n − e − p < m |
/// | `Named(names)` | all of these succeeded | one of these reads ERROR or PENDING |
/// | `Custom` | [`Processor::judge`] says so | all parents are final or PENDING, and it has not said so |
///
/// A node without parents begins at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// When all parents have succeeded.
    #[default]
    AllSucceeded,
    /// When all parents have ended, as SUCCESS or as ERROR.
    AllFinished,
    /// When this many parents have succeeded: 1 to all of them.
    AtLeast(u32),
    /// When the parents with these names have succeeded.
    Named(Vec<String>),
    /// When the processor's [`judge`](Processor::judge) says so; for a [procedure](Node::procedure), its
    /// [`gate`](Procedure::gate).
    Custom,
}

/// What the failure of a node leads to: its *failure strategy*. A failure is final for the node's code: attempts used up,
/// a [`StageError::Fail`](crate::StageError::Fail), data that cannot be decoded, or an output over the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OnError {
    /// The node reads PENDING and waits for a person, who [retries](super::SetHandle::retry) it, gives its
    /// [output](super::SetHandle::succeed), or lets it [fail](super::SetHandle::fail). Other branches go on. A
    /// [procedure](Node::procedure) has ended when it fails, so there it is the same as `Continue`.
    #[default]
    #[serde(rename = "p")]
    Pend,
    /// The node ends as ERROR. Its children go by their [strategies](When).
    #[serde(rename = "c")]
    Continue,
    /// The node ends as ERROR, and the set with it: nodes that have not begun are CANCELLED without a call, those that run
    /// end and keep their results.
    #[serde(rename = "s")]
    Stop,
}

impl OnError {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn is_pend(&self) -> bool {
        matches!(self, Self::Pend)
    }
}

/// A node of a [`SetBuilder`](super::SetBuilder), to name it as a parent of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeRef {
    pub(super) builder: u64,
    pub(super) place: usize,
}

/// A parent: a node that was added before, or the name of any node of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent(pub(super) Named);

/// How a parent is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Added(NodeRef),
    Name(String),
}

impl From<NodeRef> for Parent {
    fn from(node: NodeRef) -> Self {
        Self(Named::Added(node))
    }
}

impl From<&NodeRef> for Parent {
    fn from(node: &NodeRef) -> Self {
        Self(Named::Added(*node))
    }
}

impl From<&str> for Parent {
    fn from(name: &str) -> Self {
        Self(Named::Name(name.to_owned()))
    }
}

impl From<&String> for Parent {
    fn from(name: &String) -> Self {
        Self(Named::Name(name.clone()))
    }
}

impl From<String> for Parent {
    fn from(name: String) -> Self {
        Self(Named::Name(name))
    }
}

/// A processor without its type, until it is known whether the node stands in a set or in a stream.
pub(super) trait AnyWork {
    /// Encodes the node of a set once its options and its place are known. The number is the size of its data in bytes.
    fn child(self: Box<Self>, options: TaskOptions) -> Result<(Child, usize), CodecError>;

    /// Encodes the data of a stream's node.
    fn data(&self) -> Result<Data, CodecError>;
}

/// The data of a node, and whose it is.
pub(super) struct Data {
    pub(super) kind: &'static str,
    pub(super) version: u16,
    pub(super) bytes: Blob,
    pub(super) takes_locks: bool,
}

struct OfProcessor<P>(P);

impl<P: Processor> AnyWork for OfProcessor<P> {
    fn child(self: Box<Self>, options: TaskOptions) -> Result<(Child, usize), CodecError> {
        let task = Task::new(self.0, options)?;
        Ok((Child::new(&task)?, task.size()))
    }

    fn data(&self) -> Result<Data, CodecError> {
        Ok(Data {
            kind: P::NAME,
            version: P::VERSION,
            bytes: codec::encode_user(&self.0)?,
            takes_locks: !self.0.locks().is_empty(),
        })
    }
}

/// What a node runs.
pub(super) enum Work {
    Processor(Box<dyn AnyWork>),
    Procedure(Box<dyn FnOnce() -> Result<Child, CodecError>>),
}

/// A node to [add](super::SetBuilder::add) to a set, or to [append](super::Stream::append) to a stream: what it runs, what
/// comes before it, and what its failure means.
#[must_use = "a node runs only if it is added to a set, or appended to a stream"]
pub struct Node {
    pub(super) name: String,
    pub(super) is_named: bool,
    pub(super) after: Vec<Parent>,
    pub(super) when: When,
    pub(super) on_error: OnError,
    pub(super) retry: Option<RetryPolicy>,
    pub(super) timeout: Option<Duration>,
    pub(super) priority: Option<i16>,
    pub(super) work: Work,
}

impl Node {
    /// Creates a node that runs this processor. The name has 1 to 200 characters, and is unique in the set. In a stream it
    /// is what a repeated append is recognised by.
    pub fn new<P: Processor>(name: impl Into<String>, processor: P) -> Self {
        Self::with(Some(name.into()), Work::Processor(Box::new(OfProcessor(processor))))
    }

    /// Creates a node of a stream that runs this processor and has no name: appended twice it runs twice. Nodes of sets
    /// need names.
    pub fn of<P: Processor>(processor: P) -> Self {
        Self::with(None, Work::Processor(Box::new(OfProcessor(processor))))
    }

    /// Creates a node that runs a procedure: with stages, children and rollback of its own. It reads ERROR when the
    /// procedure has failed, and has rolled back what it could. Retries, time-outs and the end of its attempts are the
    /// procedure's own.
    pub fn procedure<P: Procedure>(name: impl Into<String>, procedure: P) -> Self {
        Self::with(
            Some(name.into()),
            Work::Procedure(Box::new(move || Child::new(&procedure))),
        )
    }

    fn with(name: Option<String>, work: Work) -> Self {
        Self {
            is_named: name.is_some(),
            name: name.unwrap_or_default(),
            after: Vec::new(),
            when: When::default(),
            on_error: OnError::default(),
            retry: None,
            timeout: None,
            priority: None,
            work,
        }
    }

    /// Adds parents: nodes that come before this one. With a [`NodeRef`] neither a stranger nor a cycle can be written;
    /// names are for graphs that come from data.
    pub fn after<P: Into<Parent>>(mut self, parents: impl IntoIterator<Item = P>) -> Self {
        self.after.extend(parents.into_iter().map(Into::into));
        self
    }

    /// Sets when it may begin. Default: when all parents have succeeded.
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Sets what its failure leads to. Default: it waits for a person.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Overrides the [attempts](Processor::retry) of its processor: 1 to 1,000, with delays of at most 24 hours.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Overrides the [time-out](Processor::timeout) of its processor, which limits one attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets its priority: a node with a higher one is served first where it waits for a permit. Default: that of the set.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = Some(priority);
        self
    }
}

impl Node {
    #[cfg(feature = "testkit")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns how problems name it.
    pub(super) fn shown_name(&self) -> String {
        if self.is_named {
            self.name.clone()
        } else {
            "(unnamed)".to_owned()
        }
    }
}

/// Shows the node without its data, which is the user's.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("after", &self.after)
            .field("when", &self.when)
            .field("on_error", &self.on_error)
            .finish_non_exhaustive()
    }
}
