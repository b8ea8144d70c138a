//! Limits, timers, signals, keys, results and ids, one behaviour a file. Scenario numbers are in the names.

mod endings;
mod idempotency;
mod ids;
mod limits;
mod results;
mod retention;
mod signals;
#[path = "../engine/support.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "shared with the other tests of the engine, which use the rest"
)]
mod support;
mod timeouts;
mod timers;
