//! Sets, graphs of tasks that belong together, and [streams](#streams), queues of tasks that must stay in order. Their
//! failures wait for a person.
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
//! # Streams
//!
//! A *stream* is an endless queue under a name. Anyone may append a node to it, and its nodes run one at a time, in order:
//! all that must stay in order per customer, account, device or document.
//!
//! ```
//! # use procession::flow::{Node, NodeContext, Processed, Processor};
//! # use procession::{Executor, StageError};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize)]
//! # struct Invoice { cents: u32 }
//! # impl Processor for Invoice {
//! #     const NAME: &'static str = "invoice";
//! #     type Env = ();
//! #     type Output = u32;
//! #     async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<u32>, StageError> {
//! #         Ok(Processed::Done(self.cents))
//! #     }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("journal");
//! # actix_rt::System::new().block_on(async {
//! let executor = Executor::builder(path).processor::<Invoice>(()).streams().start().await?;
//!
//! let invoices = executor.stream("invoices", "customer-17")?;
//! let place = invoices.append(Node::new("inv-1", Invoice { cents: 250 })).await?; // durable
//! // A caller that has not heard of it appends it again. It runs once.
//! assert_eq!(invoices.append(Node::new("inv-1", Invoice { cents: 250 })).await?, place);
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! A stream is one procedure, of the kind `procession.stream`, and a node is a signal to it. Each node is one stage, whose
//! commit notes its [record](StreamRecord), consumes its signal, and takes the next one. So a backlog costs one commit a
//! node, and nothing is lost or run twice in order, whatever crashes.
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
#[cfg(feature = "testkit")]
mod injected;
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
#[cfg(feature = "testkit")]
pub(crate) use injected::{Injected, Injections};
pub use node::{Node, NodeRef, OnError, Parent, When};
pub use processor::{Processed, Processor};
pub use reading::{Counts, NodePage, NodeStatus, SetState, SetStatus};
#[cfg(feature = "dashboard")]
pub(crate) use reading::{NodeFacts, NodeRead, Reading, reason};
pub use root::SetRoot;
pub use set::{Set, SetBuilder};
pub use start::StartSet;
pub use state::NodeState;
#[cfg(feature = "testkit")]
pub(crate) use stream::SetUp;
pub use stream::{
    AppendError, RecordPage, Stream, StreamEnv, StreamName, StreamNameError, StreamReader, StreamRecord, StreamRoot,
    StreamStage, StreamState, StreamStatus,
};
pub use task::NOTIFY;
