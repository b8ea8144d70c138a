//! For tests of procedures and of the engine: a clock that the test moves, a
//! store in memory with crash points, and properties to ask of a procedure.
//!
//! [`Check`] asks them, one line each: crash at every commit, run every stage twice,
//! fail each stage and each undo in turn, look for what is left. [`Effects`] notes
//! calls to the outside, and [`replay`] goes on with an exported family.
//!
//! ```
//! use procession::testkit::{Check, Finding};
//! # use procession::{Procedure, StageContext, StageError, Step};
//! # use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Rename { from: String, to: String }
//!
//! impl Procedure for Rename {
//!     const KIND: &'static str = "rename";
//!     type Stage = ();
//!     type Env = ();
//!     type Output = ();
//! #   fn first(&self) {}
//!
//!     async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
//!         cx.delete("names", &self.from);
//!         cx.put("names", &self.to, &true)?;
//!         Ok(Step::Done(()))
//!     }
//! }
//!
//! # fn main() -> Result<(), Finding> {
//! let rename = Check::new(
//!     |builder| builder.register::<Rename>(()),
//!     || Rename { from: "a".into(), to: "b".into() },
//! );
//! rename.crash_at_every_commit()?;
//! rename.run_stages_twice()?;
//! rename.fail_each_stage()?;
//! # Ok(()) }
//! ```
//!
//! Below them: a [`World`] is what survives a crash: the disk, the clock, and whatever the
//! test keeps beside them. [`World::run`] starts an engine in it on one thread,
//! drives a scenario, and tells whether it ended or crashed; [`enumerate`] crashes a
//! scenario of any number of procedures at every commit.

mod calls;
mod check;
mod effects;
mod enumerate;
mod moving;
mod replay;
mod simulated;
mod world;

pub use check::{Check, Checked, Finding};
#[cfg(feature = "flow")]
pub use check::{SetLeft, StreamLeft};
pub use effects::Effects;
pub use enumerate::{Enumeration, Final, enumerate, second_faults};
pub use procession_actors::journal::conformance;
pub use procession_actors::journal::memory::{Fault, FaultPlan, MemoryDisk, MemoryStore, ReadFault};
pub use procession_actors::testkit::TestClock;
pub use replay::replay;
pub use simulated::Simulated;
pub use world::{Ended, Run, Trouble, World};
