//! Locks: who gets them, in which order and for how long, and that a crash changes none of it.

mod contention;
mod families;
mod held_since;
mod kit;
mod mixture;
mod order;
mod parked;
mod parts;
mod passed_on;
mod paths;
mod recovery;
mod undo;
mod unreadable;
