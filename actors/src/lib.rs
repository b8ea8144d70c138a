//! The engine's actix shell: five actors, their messages, and the stores.
//!
//! Users import `procession`. This package is for authors of stores and of tests.

mod accepts;
mod actor_loop;
mod charts;
mod child;
pub mod clock;
mod context;
mod engine;
pub mod error;
mod export;
mod fault_injection;
mod guard;
mod heartbeats;
mod hooks;
pub mod journal;
mod kind_settings;
mod limiter;
pub mod messages;
pub mod offline;
mod procedure;
mod procedure_actor;
mod queues;
mod read;
mod registry;
mod signal;
mod stage_error;
mod step;
mod submission_key;
mod submit;
mod supervisor;
mod sync;
mod telemetry;
#[cfg(feature = "testkit")]
pub mod testkit;
mod threads;
mod thresholds;
mod time_limit;
mod upgrade;
mod value;
pub mod view;
mod worker;
mod worker_inbox;

pub use accepts::{Accepts, SignalOffer};
pub use child::Child;
pub use context::{CallContext, Fence, PureContext, Signal, StageContext, Token};
pub use engine::{Engine, Placement, Settings};
pub use error::{AskError, CodecError, ImportError, ReadError, StartError, StoreError, SubmitBound, SubmitError};
pub use export::{ExportedEntry, ExportedProcedure, ExportedStage, FamilyExport};
#[doc(hidden)]
pub use guard::{guarded, panic_text};
pub use hooks::{Finished, Hooks, Submitted};
pub use kind_settings::KindSettings;
pub use procedure::Procedure;
#[doc(hidden)]
pub use queues::CountedMessage;
pub use read::CommittedReader;
pub use registry::Registry;
pub use stage_error::{OrStageError, StageError, Transient};
pub use step::{ChildOutcome, Children, JoinVerdict, Step};
pub use supervisor::Supervisor;
pub use supervisor::admission::claims::GLOBAL_LIMIT;
pub use telemetry::{CallTelemetry, ScheduleTelemetry, StreamTelemetry};
pub use thresholds::{KindThresholds, Thresholds};
pub use time_limit::Elapsed;
#[doc(hidden)]
pub use time_limit::within;
pub use upgrade::{Old, UpgradeError};
