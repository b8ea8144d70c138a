//! Sets: graphs of tasks that belong together, whose failures wait for a person.
//!
//! A *set* is a finite graph without cycles. Each *node* is one task: data, and a [`Processor`] that works on it. A node
//! begins when its parents have ended as its [strategy](When) wants. When it fails it waits, and with it what is behind
//! it, until somebody retries it, gives its output, or lets it fail; everything else goes on. Use a set for imports,
//! builds, provisioning, nightly jobs: work without an undo, whose failures a person settles. Work with an undo is a
//! [procedure](crate::Procedure), and a procedure may be a [node](Node::procedure).
//!
//! ```
//! use procession::flow::{Node, NodeContext, OnError, Processed, Processor, Set, When};
//! use procession::{Executor, StageError};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Fetch {
//!     url: String,
//! }
//!
//! impl Processor for Fetch {
//!     const NAME: &'static str = "fetch";
//!     type Env = ();
//!     type Output = String;
//!
//!     async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<String>, StageError> {
//!         Ok(Processed::Done(format!("the picture of {}", self.url)))
//!     }
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Resize {
//!     width: u32,
//! }
//!
//! impl Processor for Resize {
//!     const NAME: &'static str = "resize";
//!     type Env = ();
//!     type Output = String;
//!
//!     async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<String>, StageError> {
//!         let original: String = cx.parent("fetch").await?.output().await?;
//!         Ok(Processed::Done(format!("{original}, {} wide", self.width)))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("journal");
//! # actix_rt::System::new().block_on(async {
//! let executor = Executor::builder(path)
//!     .processor::<Fetch>(())
//!     .processor::<Resize>(())
//!     .limit("resize", 8)
//!     .start()
//!     .await?;
//!
//! let mut set = Set::builder("album 7");
//! let fetch = set.add(Node::new("fetch", Fetch { url: "album/7".into() }));
//! let small = set.add(Node::new("small", Resize { width: 100 }).after([fetch]));
//! let large = Node::new("large", Resize { width: 2_000 }).after([fetch]).on_error(OnError::Continue);
//! let large = set.add(large);
//! set.add(Node::new("tiny", Resize { width: 9 }).after([fetch, small, large]).when(When::AllFinished));
//!
//! let album = executor.start_set(set.build()?).key("album 7").await?;
//! assert_eq!(album.output::<Resize>("small").await?, "the picture of album/7, 100 wide");
//! assert_eq!(album.outcome().await?.success, 4);
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # What a set is
//!
//! A set is one family of the engine. Its root, of the kind `procession.set`, is born with all nodes in one commit, and
//! ends with the last of them, without a call of its own. Each node is a child, of the kind that is its processor's name,
//! so everything that takes a [`ProcedureId`](crate::ProcedureId) works on nodes: explain, pause, priority, history,
//! export. A set of n nodes that succeed costs n + 1 commits. The end of a node and what that sets going are one commit,
//! so a crash never lies between them.
//!
//! # States
//!
//! [`NodeState`] lists the states of a node, and [`SetState`] those of a set. Both are read off the rows of the nodes, and
//! never stored: a failure that holds up a thousand nodes writes one row.
//!
//! # In doubt
//!
//! A node whose process ends while it runs is called again, and [`repeated`](NodeContext::repeated) says so. If its
//! processor is not [`REPEATABLE`](Processor::REPEATABLE), or if that has happened twice, it is not called: it reads
//! PENDING, and asks whether to run again. A call that was queued and had not begun counts as well.

mod attempt;
mod check;
mod context;
mod error;
mod handle;
mod node;
mod processor;
mod reading;
mod retry;
mod root;
mod set;
mod start;
mod state;
mod stream;
mod task;

pub use check::Problem;
pub use context::{NodeContext, ParentNode};
pub use error::{BuildError, ParentError, ResolveError, SetError};
pub use handle::SetHandle;
pub use node::{Node, NodeRef, OnError, Parent, When};
pub use processor::{Processed, Processor};
pub use reading::{Counts, NodePage, NodeStatus, SetState, SetStatus};
#[cfg(feature = "dashboard")]
pub(crate) use reading::{NodeFacts, NodeRead, Reading, reason};
pub use root::SetRoot;
pub use set::{Set, SetBuilder};
pub use start::StartSet;
pub use state::NodeState;
pub(crate) use stream::SetUp;
pub use stream::{
    AppendError, RecordPage, Stream, StreamEnv, StreamName, StreamNameError, StreamReader, StreamRecord, StreamRoot,
    StreamStage, StreamState, StreamStatus,
};
pub use task::NOTIFY;
