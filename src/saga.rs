//! Sagas from files: the state language of Apache Seata, with Fork and Join.
//!
//! A *definition* is a JSON file: states, what each calls, which state undoes it, and where it leads. A saga that fails
//! undoes what took effect, newest first, or waits for a person who decides. Seata's own files run unchanged, without its
//! server and its database.
//!
//! [`Sagas`] has the definitions of a host and the services that they call. An engine that is given it
//! ([`Builder::sagas`](crate::Builder::sagas)) runs each saga as one durable procedure:
//!
//! ```
//! use procession::Executor;
//! use procession::saga::{Call, Fault, SagaStatus, Sagas};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let definition = r#"{
//!     "Name": "order",
//!     "StartState": "Reserve",
//!     "States": {
//!         "Reserve": {
//!             "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "reserve",
//!             "Input": ["$.[article]"], "Output": { "reservation": "$.#root" },
//!             "CompensateState": "Release", "Next": "Charge"
//!         },
//!         "Release": {
//!             "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "release", "Input": ["$.[reservation]"]
//!         },
//!         "Charge": {
//!             "Type": "ServiceTask", "ServiceName": "bank", "ServiceMethod": "charge", "Input": ["$.[cents]"],
//!             "Catch": [{ "Exceptions": ["com.acme.NotCovered"], "Next": "Undo" }]
//!         },
//!         "Undo": { "Type": "CompensationTrigger", "Next": "NotPaid" },
//!         "NotPaid": { "Type": "Fail", "ErrorCode": "NOT_PAID" }
//!     }
//! }"#;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("journal");
//! # actix_rt::System::new().block_on(async {
//! let sagas = Sagas::builder()
//!     .json("order.json", definition)
//!     .method("stock", "reserve", async |call: Call, (article,): (String,)| {
//!         // The token is the same however often the call is made.
//!         Ok(format!("{article} for {}", call.token()))
//!     })
//!     .method("stock", "release", async |_: Call, (_reservation,): (String,)| Ok(()))
//!     .method("bank", "charge", async |_: Call, (cents,): (u32,)| match cents {
//!         0..1_000 => Ok(()),
//!         _ => Err(Fault::new("com.acme.NotCovered", "the account is not covered")),
//!     })
//!     .build()?;
//! let executor = Executor::builder(path).sagas(sagas.clone()).start().await?;
//!
//! let order = sagas.machine("order")?.params(&json!({ "article": "tea", "cents": 5_000 }))?;
//! let order = executor.submit(order).key("order-42").await?; // durable
//! let outcome = executor.saga(order.id()).outcome().await?;
//! assert_eq!((outcome.status, outcome.compensation), (SagaStatus::Unknown, Some(SagaStatus::Success)));
//! assert_eq!(outcome.error.and_then(|error| error.code).as_deref(), Some("NOT_PAID"));
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Checking files
//!
//! [`Definitions`] reads files of either form that Seata's designers write, and reports everything that is wrong with
//! them, each with its place and what to do. It needs no service, so it suits a test of a repository of definitions.
//!
//! ```
//! use procession::saga::Definitions;
//!
//! let text = r#"{
//!     "Name": "order",
//!     "StartState": "Reserve",
//!     "States": {
//!         "Reserve": {
//!             "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "reserve",
//!             "CompensateState": "Release", "Next": "Done"
//!         },
//!         "Release": { "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "release" },
//!         "Done": { "Type": "Succeed" }
//!     }
//! }"#;
//! let checked = Definitions::new().json("order.json", text).check()?;
//! let order = checked.machines().next().ok_or("there is a machine")?;
//! assert_eq!(order.name(), "order");
//! assert!(order.mermaid().starts_with("flowchart TD"));
//!
//! let wrong = text.replace("\"Next\": \"Done\"", "\"Next\": \"Doen\"");
//! let errors = Definitions::new().json("order.json", wrong).check().unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     "order.json#/States/Reserve/Next: Subsequent state [Doen] of [Reserve] does not exist; did you mean [Done]?",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a saga is
//!
//! A saga is one family of the engine. Each task is one stage, one commit, named by its state; Choices, Joins and ends cost
//! none of their own. Branches of a Fork, elements of a Loop and sub machines are children. A `CompensationTrigger`, an
//! abort or the saga's time-out begins the engine's own rollback: states are undone in the exact reverse of the order in
//! which they were committed, over all branches, elements and sub machines.
//!
//! A state that fails and catches nothing *rests*: it asks a person, and everything beside it goes on. [`Saga::forward`]
//! lets it go on with other params, [`Saga::skip`] goes on behind it, [`Saga::compensate`] undoes all.
//!
//! Calls are made *at least* once: a call that the end of a process cut off is made again with the same
//! [`Call::token`]. A saga goes on by the definition with which it began, also if its file has changed since.

mod build;
mod bundle;
mod handle;
mod machine;
#[cfg(feature = "dashboard")]
mod picture;
mod reader;
mod reading;
mod sagas;
mod service;
mod setup;
mod shared;
mod status;
mod store;

pub use handle::{DecideError, Decided, Saga, Settled};
pub use machine::{Decision, Machine, SagaError, SagaOutput, SagaStage};
#[cfg(feature = "dashboard")]
pub use picture::Said;
#[doc(inline)]
pub use procession_saga_language::{
    CheckedDefinitions, DefinitionErrors, Definitions, MachineOutline, Problem, Severity,
};
pub use reader::SagaReader;
#[cfg(feature = "dashboard")]
pub(crate) use reading::is_member;
pub use reading::{Resting, SagaInstance, SagaOutcome, SkippedUndo, Standing, StateInstance};
pub use sagas::{Sagas, SagasBuilder, UnknownMachine};
#[cfg(feature = "saga-http")]
pub use service::Endpoint;
pub use service::{Arguments, Call, CallToken, Fault, Network, Service};
#[cfg(feature = "dashboard")]
pub(crate) use setup::{submission, versions};
pub use shared::{MachineSettings, OnRest, SagaEnv};
pub use status::SagaStatus;
