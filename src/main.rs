//! The `procession` binary: see [`procession::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    procession::cli::main()
}
