//! What crashes, faults, damage and floods lead to, one behaviour a file.
//! Scenario numbers are in the names.

#![expect(
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test names what it expects, and fails on all else; panics are what some test"
)]

mod crash;
mod drain;
mod endless;
mod exactly_once;
mod fencing;
mod journal_failure;
mod lists;
mod overload;
mod panics;
mod poison;
mod quarantine;
mod recovery;
mod subscription;

mod damage;
mod helper;

#[path = "../engine/support.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "shared by all tests of the engine, each of which uses a part"
)]
mod support;
