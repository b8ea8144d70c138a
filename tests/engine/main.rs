//! What users see of the engine, one behaviour a file, one folder a theme.
//! Scenario numbers are in the names of the tests.

#![expect(
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test names what it expects, and fails on all else; panics are what some test"
)]

mod admission;
mod lifecycle;
mod recovery;
mod rollback;
mod support;
