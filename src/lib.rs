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
//! # Features
//!
//! By default there is no feature, and a build takes fewer than 90 packages. Features only add.
//!
//! | feature | adds |
//! |---|---|
//! | `dashboard` | `dashboard`, pages and an API for operators as a scope of your actix-web application; `views`, what is shown of procedures as JSON; `filter`, the language of filters |
//! | `schedule` | `schedule`, procedures that are submitted again and again, at the times of a cron expression in a time zone or of an interval |
//! | `testkit` | `testkit`, a simulated clock, a store with crash points, and checks that crash, repeat and fail every stage of your procedures; for `[dev-dependencies]` |
//!
//! The command line is a package of its own, `procession-cli`, and so are its demo and its benchmark.
//!
//! # Allocator
//!
//! Messages are allocated on one thread and freed on another. The system's allocator of glibc spends up to a third of
//! the engine's processor time on that; a program that sets another one as its global allocator, such as mimalloc, does
//! not. The library sets none.

mod bulk;
#[cfg(feature = "dashboard")]
pub mod dashboard;
mod executor;
#[cfg(feature = "dashboard")]
pub mod filter;
mod handle;
mod history;
mod noop;
pub mod provider;
#[cfg(feature = "schedule")]
pub mod schedule;
mod sequence;
#[cfg(feature = "testkit")]
pub mod testkit;
#[cfg(feature = "dashboard")]
pub mod views;

pub use bulk::{Bulk, BulkEngine, BulkOutcome, BulkReport, BulkStage, BulkVerb};
pub use executor::{Builder, Executor, JournalPlace, OutgoingSignal, Submission};
pub use handle::{Handle, ProcedureError};
pub use history::{DecodeStage, note};
pub use noop::Noop;
pub use procession_actors::journal::SyncMode;
pub use procession_actors::journal::probe::{ProbeError, RawLoad, RawRate, raw_store_rate};
pub use procession_actors::offline::{Imported, Importer, Offline, OfflineState, Verified};
pub use procession_actors::view::{
    ArchivedFamily, BatchUse, BlockedStage, ChainEnd, Change, ChangeFeed, DrainReport, Explanation, FamilyScope,
    HistoryPage, KeyedProcedure, KindUse, LatestFeed, LatestRows, ListFilter, LockView, LockWaiter, Mailbox, Mailboxes,
    MemberPage, Outcome, Page, Particulars, QueuePosition, Recovered, Rule, ShutdownReport, Sizes, Snapshot, StageUse,
    Status, UserCall, Values, Verdict, WorkerStatus,
};
pub use procession_actors::{
    Accepts, AskError, CallContext, Child, ChildOutcome, Children, CodecError, Elapsed, ExportedEntry,
    ExportedProcedure, ExportedStage, FamilyExport, Fence, Finished, GLOBAL_LIMIT, Hooks, ImportError, JoinVerdict,
    KindSettings, KindThresholds, Old, OrStageError, Procedure, ReadError, Signal, SignalOffer, StageContext,
    StageError, StartError, Step, StoreError, SubmitBound, SubmitError, Submitted, Supervisor, Thresholds, Token,
    Transient, UpgradeError,
};
pub use procession_kernel::{
    AbortAnswer, Act, AuditEntry, BypassAs, BypassScope, Cause, CauseKind, Changed, ChildPermits, Deadlock, Ending,
    Epoch, HistoryDetail, HistoryEntry, Hold, JoinPolicy, Key, Kind, LABEL_NAME_MAX, LABEL_VALUE_MAX, LABELS_MAX,
    Label, LabelError, Labels, Limit, LimitKey, LimitUse, Link, LockMode, LockNeed, LockPath, MAX_OVERTAKES, Mark,
    NotNow, NotUndone, OnFailure, OnTimeout, Operated, OperatorRequest, ParseTraceParentError, PauseScope, Plan,
    ProcedureId, ProcedureState, Rate, RateUse, RetryPolicy, RevealScope, Seq, StateSnapshot, Timestamp, TraceParent,
    UnknownVerb, Verb, VerbName, WaitReason, WaitingFor, WakeSource, fingerprint,
};
pub use sequence::{Sequence, SequenceStage, StepContext, Steps, UnknownSteps};

/// Every message that the supervisor takes.
pub mod messages {
    pub use procession_actors::messages::*;
}
