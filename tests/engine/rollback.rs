//! Rollback, compensation, stages as a state machine, abort: scenarios E-024 to E-053.

mod abort;
mod abort_parked;
mod at_once;
mod compensation;
mod decided;
pub(crate) mod helper;
mod noted;
mod order;
mod rollback_failed;
mod siblings;
mod stages;
mod token;
mod undo;
