//! Durable procedures inside an actix system.
//!
//! A procedure is a long piece of control-plane work, cut into short stages.
//! Every stage's result is on disk before anyone is told of it: after a crash
//! at any instant each procedure goes on from its last committed stage, or is
//! rolled back in the exact reverse order.
//!
//! It is a library in your process, not a server: one node, one directory, one
//! engine. It runs user code at least once per stage, and stores what a stage
//! writes through its context exactly once.
//!
//! ```
//! use procession::{Executor, Procedure, StageContext, StageError, Step};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Transfer { from: String, to: String, amount: u32 }
//!
//! #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
//! enum Stage { Withdraw, Deposit }
//!
//! impl Procedure for Transfer {
//!     const KIND: &'static str = "transfer";
//!     type Stage = Stage;
//!     type Env = ();
//!     type Output = u32;
//!
//!     fn first(&self) -> Stage { Stage::Withdraw }
//!
//!     async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
//!         match stage {
//!             Stage::Withdraw => {
//!                 let left = cx.get::<u32>("accounts", &self.from).await?.unwrap_or(100);
//!                 let left = left.checked_sub(self.amount).ok_or(StageError::fail("too little money"))?;
//!                 cx.put("accounts", &self.from, &left)?;
//!                 Ok(Step::Next(Stage::Deposit))
//!             }
//!             Stage::Deposit => {
//!                 let before = cx.get::<u32>("accounts", &self.to).await?.unwrap_or(0);
//!                 cx.put("accounts", &self.to, &(before + self.amount))?;
//!                 Ok(Step::Done(before + self.amount))
//!             }
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("journal");
//! actix_rt::System::new().block_on(async {
//!     let executor = Executor::builder(path).register::<Transfer>(()).start().await?;
//!     let transfer = Transfer { from: "a".into(), to: "b".into(), amount: 30 };
//!     let handle = executor.submit(transfer).key("request-1").await?; // durable from here on
//!     assert_eq!(handle.await?, 30);
//!     assert_eq!(executor.get::<u32>("accounts", "a").await?, Some(70));
//!     Ok(())
//! })
//! # }
//! ```
//!
//! # What is where
//!
//! At the top level stands what every program names:
//!
//! | type | is |
//! |---|---|
//! | [`Procedure`] | the trait of a kind: its stages, their undos, what it needs |
//! | [`StageContext`], [`Step`] | what a stage is given, and what it returns |
//! | [`StageError`], [`OrStageError`] | how it fails: for good, or to be tried again |
//! | [`Children`] | procedures that it waits for |
//! | [`Executor`], [`Builder`] | the running engine, and how it is set up |
//! | [`Handle`], [`ProcedureId`] | one procedure, to await and to ask for |
//!
//! The rest is in modules:
//!
//! | module | holds |
//! |---|---|
//! | [`procedure`] | what a kind declares: retries, joins, hooks, signals that it takes |
//! | [`sequence`] | named steps as a procedure, from closures |
//! | [`submit`] | submissions and signals before they are sent |
//! | [`limits`] | locks and limits |
//! | [`errors`] | every error, one type for each moment |
//! | [`status`] | how procedures and the engine stand; changes as they are committed |
//! | [`health`] | why something does not move, and from where on it is told |
//! | [`operate`] | verbs of operators: pause, abort, bypass and more, with an audit |
//! | [`offline`] | a journal without its engine: verify, export, import |
//! | [`store`], [`provider`] | where the journal is; stores and clocks of your own |
//! | [`messages`] | every actix message of the supervisor |
//! | `dashboard`, `views`, `filter` | pages and an API for operators (feature `dashboard`) |
//! | `schedule` | nightly batches and the like, by a cron expression or an interval (feature `schedule`) |
//! | `flow` | sets, graphs of tasks whose failures wait for a person, and streams, queues of tasks that stay in order (feature `flow`) |
//! | `saga` | sagas from files in the state language of Seata (feature `saga`) |
//! | `testkit` | checks of your own procedures (feature `testkit`) |
//!
//! # Features
//!
//! By default there is no feature, and a build takes fewer than 90 packages. Features only add.
//!
//! | feature | adds |
//! |---|---|
//! | `dashboard` | `dashboard`, pages and an API for operators as a scope of your actix-web application; feature `flow`; `views`, what is shown of procedures as JSON; `filter`, the language of filters |
//! | `flow` | `flow`, sets and streams: graphs and ordered queues of tasks whose failures wait for a person, who retries them, gives their output, or lets them fail |
//! | `saga` | `saga`, sagas from files in the state language of Seata: definitions, services, machines |
//! | `schedule` | `schedule`, procedures that are submitted again and again, by a cron expression or an interval |
//! | `testkit` | `testkit`, a simulated clock, a store with crash points, and checks that crash, repeat and fail every stage of your procedures; for `[dev-dependencies]` |
//!
//! The command line is a package of its own, `procession-cli`, and so are its demo and its benchmark.
//!
//! # Where next
//!
//! The package brings along, in `docs/` and `examples/`:
//!
//! - `docs/tutorial/` builds an order service in five chapters; `docs/how-to/` has a page for each common task.
//! - `examples/hello.rs` is the smallest program; `examples/book_trip.rs` a saga, `examples/approval.rs` a question to
//!   a person, `examples/embed.rs` a service with actix-web and its dashboard.
//! - `examples/testkit.rs` crashes a procedure at every commit; `docs/how-to/test-your-procedures.md` lists all properties.
//!
//! The repository has more:
//!
//! - `docs/flows.md` is the guide to sets and streams, `docs/sagas.md` that to sagas; `docs/reference/saga-definitions.md`
//!   says what a saga's file may have.
//! - `docs/reference/semantics.md` says what the engine promises, `docs/reference/lifecycle.md` which states there are.
//! - `docs/reference/operations.md` says what to watch, `docs/reference/metrics.md` what is measured.
//! - `docs/reference/policy.md` says what a version number promises.
//!
//! How to mount the pages of the dashboard is in `docs/dashboard.md` of the package `procession-page`.
//!
//! # Allocator
//!
//! Messages are allocated on one thread and freed on another. The system's allocator of glibc spends up to a third of
//! the engine's processor time on that; a program that sets another one as its global allocator, such as mimalloc, does
//! not. The library sets none.

mod bulk;
#[cfg(feature = "dashboard")]
pub mod dashboard;
pub mod errors;
mod executor;
#[cfg(feature = "dashboard")]
pub mod filter;
#[cfg(feature = "flow")]
pub mod flow;
mod handle;
pub mod health;
mod history;
pub mod limits;
mod noop;
pub mod offline;
pub mod operate;
pub mod procedure;
pub mod provider;
#[cfg(feature = "saga")]
pub mod saga;
#[cfg(feature = "schedule")]
pub mod schedule;
pub mod sequence;
pub mod status;
pub mod store;
pub mod submit;
#[cfg(feature = "testkit")]
pub mod testkit;
#[cfg(feature = "dashboard")]
pub mod views;

pub use executor::{Builder, Executor};
pub use handle::Handle;
pub use procession_actors::{Children, OrStageError, Procedure, StageContext, StageError, Step};
pub use procession_kernel::ProcedureId;

/// Every message that the supervisor takes.
pub mod messages {
    pub use procession_actors::Supervisor;
    pub use procession_actors::messages::*;
}
