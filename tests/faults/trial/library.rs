//! The library that stands between a process and the system: how it is built,
//! and how a process gets it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::Outcome;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/faults/trial/between.c");

/// Builds it once in a process.
fn built() -> Outcome<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(|| build().map_err(|error| error.to_string())) {
        Ok(path) => Ok(path),
        Err(error) => Err(error.clone().into()),
    }
}

fn build() -> Outcome<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join("between.so");
    // Others may build it at the same time: a name comes to be as a whole.
    let own = folder.join(format!("between.{}.so", std::process::id()));
    let compiled = Command::new("cc")
        .args([
            "-O1",
            "-U_FORTIFY_SOURCE",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
            "-o",
        ])
        .arg(&own)
        .args([SOURCE, "-ldl", "-lpthread"])
        .output()
        .map_err(|error| format!("the trial needs a C compiler by the name of cc: {error}"))?;
    if !compiled.status.success() {
        return Err(format!("{SOURCE}: {}", String::from_utf8_lossy(&compiled.stderr)).into());
    }
    std::fs::rename(&own, &library)?;
    Ok(library)
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum How {
    /// It alone.
    Once,
    /// It and all that follow.
    On,
    /// A write is cut in half, and later ones fail.
    Short,
    /// It succeeds, and the process is killed behind it.
    Kill,
}

/// The one operation that fails, of those that count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    /// From 1 on; 0 is none.
    pub(crate) at: usize,
    pub(crate) how: How,
    pub(crate) error: i32,
    /// Which operations count, a letter each.
    pub(crate) letters: String,
    /// A part of the path, if not all count.
    pub(crate) path: Option<String>,
}

/// Errors by the system's numbers, the same on all of its architectures.
pub(crate) const INPUT_OUTPUT: i32 = 5;
pub(crate) const NO_MORE_FILES: i32 = 24;
pub(crate) const NO_ROOM: i32 = 28;

/// What the library does in a process.
pub(crate) struct Between<'a> {
    pub(crate) below: &'a Path,
    pub(crate) ledger: Option<&'a Path>,
    pub(crate) record: Option<&'a Path>,
    pub(crate) list: Option<&'a Path>,
    pub(crate) fault: Option<&'a Fault>,
}

impl Between<'_> {
    /// Has a process preload it.
    pub(crate) fn stand(&self, command: &mut Command) -> Outcome {
        command.env("LD_PRELOAD", built()?).env("TRIAL_BELOW", self.below);
        let files = [
            ("TRIAL_LEDGER", self.ledger),
            ("TRIAL_RECORD", self.record),
            ("TRIAL_LIST", self.list),
        ];
        for (variable, path) in files {
            command.envs(path.map(|path| (variable, path)));
        }
        if let Some(Fault {
            at,
            how,
            error,
            letters,
            path,
        }) = self.fault
        {
            let how = match how {
                How::Once => "once",
                How::On => "on",
                How::Short => "short",
                How::Kill => "kill",
            };
            command.env("TRIAL_FAULT", format!("{at}:{how}:{error}:{letters}"));
            command.envs(path.as_ref().map(|path| ("TRIAL_MATCH", path)));
        }
        Ok(())
    }
}
