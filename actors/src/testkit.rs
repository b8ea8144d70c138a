//! What tests of procedures and of the engine are made with.

pub mod clock;

pub use clock::TestClock;
