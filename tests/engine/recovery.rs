//! What crashes, faults, damage and floods lead to: scenarios E-092 to E-107, E-113, E-114, E-059.

mod crash;
mod damage;
mod drain;
mod endless;
mod exactly_once;
mod fencing;
mod helper;
mod journal_failure;
mod lists;
mod overload;
mod panics;
mod poison;
mod quarantine;
mod start;
mod subscription;
