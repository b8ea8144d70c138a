//! The demo. The tablet master: its procedures one by one, the whole workload undisturbed
//! and under kills, and its errors. The shop, under every crash and under kills; its trouble; where they are told.

mod command;
mod conflicts;
mod crashes;
mod errors;
mod fan_out;
mod input;
mod kills;
mod lab;
mod moves;
mod places;
mod properties;
mod reshaping;
mod shop;
mod small;
mod trouble;
mod twelve;
mod watched;
mod workload;
mod world;

/// Tests pass errors up; the harness prints them.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
