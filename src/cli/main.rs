//! The `procession` binary: see the library `procession_cli`.

use std::process::ExitCode;

/// A stage is born on one thread and ends on another: the system's allocator
/// spends a third of the engine's time on that, this one little.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    procession_cli::main()
}
