//! Who waits for whom, and what is stuck.

mod chain;
mod deadlock;
mod healthy;
mod kit;
mod stuck;
mod stuck_crashed;
mod stuck_engine;
