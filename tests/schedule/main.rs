//! Schedules on the engine's simulated clock: which ticks run, what is stored, and that no crash loses or doubles one.

mod changes;
mod crashes;
mod growth;
mod policies;
mod work;
