//! What shells and `man` read of this program, made of the same description as its `--help`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::{Exit, Failure};
use super::print;

#[derive(Debug, Clone, Args)]
pub(super) struct CompletionArgs {
    /// Which shell. For bash: procession completion bash > ~/.local/share/bash-completion/completions/procession
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Clone, Args)]
pub(super) struct ManArgs {
    /// The directory, for instance ~/.local/share/man/man1. It is made if it is not there.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the script of a shell.
pub(super) fn complete(args: &CompletionArgs, mut command: Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "procession", &mut script);
    print::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes a page for the program and for each of its verbs.
pub(super) fn write(args: &ManArgs, command: Command) -> Result<Exit, Failure> {
    let place = args.directory.display();
    let failed = |error: std::io::Error| Failure::new(format!("cannot write manual pages into {place}: {error}"));
    fs::create_dir_all(&args.directory).map_err(failed)?;
    clap_mangen::generate_to(command, &args.directory).map_err(failed)?;
    print::notice(&format!(
        "the manual pages are in {place}; \"man procession\" shows the first"
    ));
    Ok(Exit::Done)
}
