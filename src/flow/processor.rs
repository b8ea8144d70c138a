//! `Processor`: the code of a node. One method, and what its kind declares.

use std::future::Future;
use std::time::Duration;

use procession_actors::{ChildOutcome, JoinVerdict, Old, StageError, UpgradeError};
use procession_kernel::{LimitKey, LockNeed, RetryPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::NodeContext;

/// The code of a node. The value is the node's data: it is written once, when the set starts.
///
/// Each processor is a kind of the engine, so it has limits, pauses, metrics and filters of its own, under its
/// [`NAME`](Self::NAME). Register it with [`Builder::processor`](crate::Builder::processor).
///
/// **A node runs at least once.** A crash between its last effect outside and its commit runs it again, with the same
/// [token](NodeContext::token). What it writes through its context is part of its commit, and happens exactly once; of an
/// attempt that fails it leaves nothing but its note.
///
/// ```
/// use procession::StageError;
/// use procession::flow::{NodeContext, Processed, Processor};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Count {
///     text: String,
/// }
///
/// impl Processor for Count {
///     const NAME: &'static str = "count";
///     type Env = ();
///     type Output = usize;
///
///     async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<usize>, StageError> {
///         Ok(Processed::Done(self.text.split_whitespace().count()))
///     }
/// }
/// ```
pub trait Processor: Serialize + DeserializeOwned + Sized + 'static {
    /// Name of its kind: on disk, in limits, metrics, filters and pauses. Never change it, and never reuse the name of
    /// another kind.
    const NAME: &'static str;
    /// Schema version of the data. Raise it when older data can no longer be decoded unchanged.
    const VERSION: u16 = 1;
    /// Oldest version that [`upgrade`](Self::upgrade) reads. A node with older data fails.
    const OLDEST: u16 = Self::VERSION;
    /// `false` if a call must not be repeated unless a person says so: a node whose process ended while it ran is then
    /// not called again, and asks. See [in doubt](super#in-doubt).
    const REPEATABLE: bool = true;
    /// What it needs from the host. It is given at registration and cloned for each worker.
    type Env: Clone + Send + Sync + 'static;
    /// What it leaves for the nodes behind it, and for [`SetHandle::output`](super::SetHandle::output).
    type Output: Serialize + DeserializeOwned + 'static;

    /// Does the node's work.
    ///
    /// # Errors
    ///
    /// [`StageError::Retry`], [`RetryAfter`](StageError::RetryAfter) and [`TimedOut`](StageError::TimedOut) are failed
    /// attempts, and so is a panic. When the attempts are used up, or at once with [`StageError::Fail`], the node fails
    /// as its [strategy](super::OnError) says.
    fn process(
        &self,
        cx: &mut NodeContext<'_>,
        env: &Self::Env,
    ) -> impl Future<Output = Result<Processed<Self::Output>, StageError>>;

    /// Decides whether a node may begin whose strategy is [`When::Custom`](super::When::Custom). It is asked each time
    /// one of its parents ends, and again at each start, with all of them in the order in which they were given. It must
    /// decide by them and by the node's data alone.
    ///
    /// [`Met`](JoinVerdict::Met) is final. With anything else, or a panic, the node waits: it reads PENDING once no parent
    /// can move by itself. Default: all have succeeded.
    fn judge(&self, parents: &[ChildOutcome]) -> JoinVerdict {
        if parents.iter().all(ChildOutcome::succeeded) {
            JoinVerdict::Met
        } else if parents.iter().any(ChildOutcome::failed) {
            JoinVerdict::Unmeetable
        } else {
            JoinVerdict::Pending
        }
    }

    /// Returns the locks that the node needs while it is called.
    fn locks(&self) -> Vec<LockNeed> {
        Vec::new()
    }

    /// Returns a limit from which the node takes one permit, in addition to that of its kind. Permits go back while the
    /// node waits for anything.
    fn limit(&self) -> Option<LimitKey> {
        None
    }

    /// Returns the number of attempts, and the delays between them. [`Node::retry`](super::Node::retry) overrides it.
    fn retry() -> RetryPolicy {
        RetryPolicy::default()
    }

    /// Returns how long one attempt may take; `None` is unbounded. [`Node::timeout`](super::Node::timeout) overrides it.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Converts data that was stored as `version` to the current version. `version` is at least
    /// [`OLDEST`](Self::OLDEST) and below [`VERSION`](Self::VERSION).
    ///
    /// # Errors
    ///
    /// The node fails with this error, as its [strategy](super::OnError) says.
    fn upgrade(version: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        let _ = (version, old);
        Err(UpgradeError::new("its processor does not implement `upgrade`"))
    }
}

/// What a [processor](Processor) returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processed<T> {
    /// The node has succeeded, with this output.
    Done(T),
    /// What was done until now is committed. The node waits, without a worker, a permit or a lock, until it is
    /// [notified](super::SetHandle::notify) or its time is up, and is called again then. A notification that came first
    /// is kept.
    Park {
        /// Longest wait; `None` waits for ever.
        timeout: Option<Duration>,
    },
}
