//! Life cycle and steps, children and their latch: scenarios E-001 to E-023.

#[path = "../engine/support.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with other tests, which use the rest")]
#[allow(clippy::allow_attributes, reason = "each user leaves other items out")]
mod support;

mod children_rounds;
mod detached;
mod fan_out;
mod join_custom;
mod join_policies;
mod kit;
mod panic;
mod retry;
mod signals;
mod spawn_bounds;
mod steps;
mod submit_more;
mod timers;
mod withheld;
mod writes;
