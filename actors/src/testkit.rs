//! What tests of procedures and of the engine are made with.

pub mod clock;
pub mod format;

pub use clock::TestClock;
