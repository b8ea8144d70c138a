//! Tools for tests of procedures and of the engine.

pub mod clock;
pub mod format;
pub mod labels;
pub mod life;
pub mod log;

pub use crate::fault_injection::seen::{Called, Injection, Interception, Leaving, StageInterceptor};
pub use crate::supervisor::reveal::{Reveal, reload};
pub use clock::TestClock;
