//! What operators do: bypass, pause, retry, override; dry runs, keys, the audit.

mod audit;
mod broadcast;
mod bulk;
mod bypass;
mod bypass_family;
mod bypass_tree;
mod dry_run;
mod keys;
mod many_questions;
mod override_result;
mod pause;
mod pause_parked;
mod pause_rollback;
mod priority;
mod questions;
mod retry_now;
mod submit_by;
