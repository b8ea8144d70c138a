//! Sets as users see them: order, strategies, failures, decisions, crashes. Scenario numbers are in the names of the tests.

#![expect(
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test names what it expects, and fails on all else; panics are what some test"
)]

mod alarms;
mod building;
mod checked;
mod crash;
mod every_crash;
mod failure;
mod killed;
mod kit;
mod model;
mod nodes;
mod order;
mod resolve;
mod strategies;
mod streams;
