//! For tests of procedures and of the engine: a clock that the test moves, a
//! store in memory with crash points, and a harness that crashes a scenario at
//! every commit and compares what comes out.
//!
//! A [`World`] is what survives a crash: the disk, the clock, and whatever the
//! test keeps beside them. [`World::run`] starts an engine in it on one thread,
//! drives a scenario, and tells whether it ended or crashed.

mod calls;
mod check;
mod effects;
mod enumerate;
mod replay;
mod world;

pub use check::{Check, Checked, Finding};
pub use effects::Effects;
pub use enumerate::{Enumeration, Final, enumerate};
pub use procession_actors::journal::memory::{Fault, FaultPlan, MemoryDisk, MemoryStore};
pub use procession_actors::testkit::TestClock;
pub use replay::replay;
pub use world::{Ended, Run, Trouble, World};
