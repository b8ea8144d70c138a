//! What users see of the engine, one behaviour a file, one folder a theme.
//! Scenario numbers are in the names of the tests.

#![expect(
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test names what it expects, and fails on all else; panics are what some test"
)]

mod admission;
mod insight;
mod lifecycle;
mod locks;
mod machine;
mod operate;
mod recovery;
mod retention;
mod rollback;
mod support;
