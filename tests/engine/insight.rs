//! Who waits for whom, and what is stuck.

mod chain;
mod deadlock;
mod deadlock_stages;
mod failure_log;
mod healthy;
mod kit;
mod measured_beside;
mod stuck;
mod stuck_crashed;
mod stuck_engine;
mod stuck_kinds;
mod stuck_said;
mod stuck_size;
