//! The kernel through its public interface: an event gives exactly these records and effects; under drawn histories
//! every invariant holds.
//!
//! One program for all files, because each is small beside what linking and the kernel's generic code cost.

mod attempts;
mod behind_gates;
mod broods;
mod circles;
mod clock_set_back;
mod contention;
mod decided_failures;
mod decisions;
mod end_signals;
mod failure_streaks;
mod first_values;
mod gates;
mod held_since;
mod join_counts;
mod labels;
mod late_reports;
mod lifecycle_table;
mod lifted_pauses;
mod lifted_timeouts;
mod lost_wakes;
mod lost_wakes_crashed;
mod mailbox;
mod named_places;
mod names;
mod nothing_to_undo;
mod outstanding;
mod past_no_return;
mod questions;
#[path = "support/shell.rs"]
mod shell;
mod signal_keys;
mod simulation;
mod speculation;
mod stacks_at_hand;
mod stage_limits;
mod stale_grants;
mod starts;
mod suspects;
mod undo_values;
mod user_writes;
mod victims;
mod waves;
mod windows;
mod yields;
