//! For tests of procedures and of the engine: a clock that the test moves, and
//! a store in memory with crash points.

pub use procession_actors::journal::memory;
pub use procession_actors::testkit::TestClock;
