//! Limits, timers, signals, keys, results and ids: scenarios E-060 to E-091, E-109 to E-111.

mod accepts;
mod batches;
mod broods;
mod clock_set_back;
mod endings;
mod idempotency;
mod ids;
mod labels;
mod limit_order;
mod limits;
mod mailbox;
mod named;
mod permits;
mod rates;
mod results;
mod retention;
mod root_names;
mod signal_keys;
mod signal_pages;
mod signals;
mod stage_limits;
mod timeouts;
mod timers;
