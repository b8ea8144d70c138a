//! The engine's actix shell: four actors, their messages, and the stores.
//!
//! Users import `procession`; this package is for authors of stores and of tests.

pub mod clock;
mod context;
mod engine;
pub mod error;
pub mod journal;
mod limiter;
pub mod messages;
pub mod offline;
mod procedure;
mod procedure_actor;
mod registry;
mod step;
mod supervisor;
#[cfg(feature = "testkit")]
pub mod testkit;
pub mod view;

pub use context::{Fence, Signal, StageContext, Token};
pub use engine::{Engine, Placement, Settings};
pub use error::{AskError, CodecError, ReadError, StartError, StoreError, SubmitError};
pub use procedure::Procedure;
pub use registry::Registry;
pub use step::{ChildOutcome, Children, JoinVerdict, StageError, Step};
pub use supervisor::Supervisor;
