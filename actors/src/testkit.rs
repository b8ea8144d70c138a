//! Tools for tests of procedures and of the engine.

pub mod clock;
pub mod format;
pub mod log;

pub use crate::meddle::seen::{Called, Fate, Leaving, Meddler, Meddling};
pub use crate::supervisor::reveal::{Reveal, reload};
pub use clock::TestClock;
