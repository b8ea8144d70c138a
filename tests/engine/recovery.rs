//! What crashes, faults, damage, floods and other versions of the code lead to: scenarios E-046, E-092 to E-107, E-112 to E-114, E-059.

mod blocked;
mod blocked_crashed;
pub(crate) mod crash;
mod damage;
mod drain;
mod endless;
mod exactly_once;
mod export;
mod fencing;
mod helper;
mod hooks;
mod import;
mod journal_failure;
mod lists;
mod mailboxes;
mod metrics;
mod metrics_crashed;
mod metrics_more;
mod overload;
mod panics;
mod poison;
mod quarantine;
mod sequence;
mod spans;
mod start;
mod subscription;
mod versions;
