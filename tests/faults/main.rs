//! Real faults on the real store, one a file: processes that are killed, stopped
//! and starved of memory, disks that are full, read-only or fail to sync. Each
//! time nothing that was acknowledged is lost, the error says what to do, and
//! the engine works once the cause is gone.
//!
//! The engine under fault runs in another process, which notes in a ledger of
//! its own what it was told. What a fault needs and this machine does not give
//! is said, and that test ends there.

#[cfg(target_os = "linux")]
#[path = "../ends/census.rs"]
mod census;
#[cfg(unix)]
mod check;
#[cfg(unix)]
mod disk;
#[cfg(unix)]
mod full;
#[cfg(unix)]
mod killed;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
mod other;
#[cfg(unix)]
mod place;
#[cfg(unix)]
mod read_only;
#[cfg(target_os = "linux")]
mod rounds;
#[cfg(target_os = "linux")]
mod soak;
#[cfg(target_os = "linux")]
mod stopped;
#[cfg(target_os = "linux")]
mod trial;
#[cfg(unix)]
mod unsynced;
#[cfg(unix)]
mod work;

/// Tests pass errors up; the harness prints them.
#[cfg(unix)]
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
