//! Limits, timers, signals, keys, results and ids, one behaviour a file. Scenario numbers are in the names.

mod limits;
#[path = "../engine/support.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with the other tests of the engine, which use the rest")]
mod support;
