//! Life cycle and steps, children, their latch and their gates: scenarios E-001 to E-023, F-001 to F-008, F-011, F-012,
//! F-014, F-018, F-019 and G-073 to G-075.

mod attempts;
mod branches;
mod children;
mod children_rounds;
mod custom_gates;
mod detached;
mod errors;
mod failing_children;
mod fan_out;
mod graphs;
mod in_place;
pub(crate) mod join_custom;
mod join_named;
mod join_policies;
mod kept_values;
mod keyspaces;
mod kinds;
pub(crate) mod kit;
mod panic;
mod retry;
mod runs;
mod seen;
mod send;
mod signals;
mod spawn_bounds;
mod speculation;
mod steps;
mod submit;
mod submit_more;
mod timers;
mod values;
mod windows;
pub(crate) mod withheld;
mod writes;
mod writes_outside;
