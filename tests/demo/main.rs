//! The tablet master: its procedures one by one, the whole workload undisturbed
//! and under kills, and its errors.

mod command;
mod conflicts;
mod crashes;
mod errors;
mod fan_out;
mod input;
mod kills;
mod lab;
mod moves;
mod properties;
mod reshaping;
mod small;
mod twelve;
mod watched;
mod workload;
mod world;

/// Tests pass errors up; the harness prints them.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
