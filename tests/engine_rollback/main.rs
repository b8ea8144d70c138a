//! Rollback, compensation, stages as a state machine, abort: one behaviour a file. Scenario numbers are in the names.

mod abort;
mod abort_parked;
mod compensation;
mod helper;
mod order;
mod rollback;
mod rollback_failed;
mod siblings;
mod stages;
#[path = "../engine/support.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "shared with the other tests of the engine, which use the rest"
)]
mod support;
