//! Says when a reader would press Ctrl-C: a procedure sleeps or waits, and that is on disk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use serde_json::Value;

/// What a procedure at rest waits for.
const REASONS: [&str; 3] = ["timer", "event", "decision"];

/// Says whether the journal below this folder would show a procedure at rest if its process died now. It looks at a copy,
/// as a crash would leave it. One that was taken in the middle of a write says no.
pub(crate) fn is_at_rest(folder: &Path) -> bool {
    let look = || -> io::Result<bool> {
        let Some(journal) = journal(folder)? else {
            return Ok(false);
        };
        let copy = tempfile::tempdir()?;
        copy_all(&journal, copy.path())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
        let output = command.args(["ls", "--json", "--data"]).arg(copy.path()).output()?;
        let list: Value = serde_json::from_slice(&output.stdout)?;
        let reasons = list
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|item| item.get("reason")?.as_str());
        let reasons: Vec<_> = reasons.collect();
        Ok(!reasons.is_empty()
            && reasons
                .iter()
                .all(|reason| reason.is_some_and(|reason| REASONS.contains(&reason))))
    };
    look().unwrap_or(false)
}

/// The folder that an engine has locked, here or below.
fn journal(folder: &Path) -> io::Result<Option<PathBuf>> {
    if folder.join("owner").exists() {
        return Ok(Some(folder.to_owned()));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Some(found) = journal(&entry.path())?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_all(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
