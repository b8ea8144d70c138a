//! How an engine ends: by itself, by an operator, by a fault, in a start that fails. Each time no
//! thread, no descriptor and no lock of it is left in the process, and everybody who waits is told.
//!
//! Threads and descriptors are the whole process's, so one test runs at a time here.

#[cfg(target_os = "linux")]
mod census;
#[cfg(target_os = "linux")]
mod kinds;
#[cfg(target_os = "linux")]
mod ownership;
#[cfg(target_os = "linux")]
mod rounds;
#[cfg(target_os = "linux")]
mod shutdown;
#[cfg(target_os = "linux")]
mod side_by_side;
#[cfg(target_os = "linux")]
mod slow;
#[cfg(target_os = "linux")]
mod starts;

/// Tests pass errors up; the harness prints them.
#[cfg(target_os = "linux")]
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
