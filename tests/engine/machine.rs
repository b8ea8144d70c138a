//! State machines in full: children added on the way, one stage in a row, points of
//! no return, the procedure's own time, cleanup, jitter.

mod added_children;
mod circle;
mod cleanup;
mod jitter;
mod no_return;
mod shielded;
mod told;
