//! What is kept of what has ended, for how long, and what is told of it: results, keys,
//! history, archives, and the table of transitions that all of them went through.

mod attempts;
mod clock_ahead;
mod discharge;
mod eviction;
mod failures;
pub(crate) mod fill;
mod history;
mod hostile;
mod ids;
mod keys;
mod kinds;
mod lists;
mod overtaken;
mod results;
mod run_again;
mod set_aside;
mod space;
mod terse;
mod transitions;
mod transitions_crashed;
pub(crate) mod world;
