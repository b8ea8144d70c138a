//! The private copy of a journal: a signal removes it, and what a killed program left goes with the next one.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::Outcome;
use crate::golden::made;
use crate::journal::of_each;

/// A program that has copied the journal, and waits for somebody to read what it prints.
struct Stuck {
    child: Child,
    _reader: UnixStream,
}

fn stuck(journal: &Path, scratch: &Path) -> Outcome<Stuck> {
    let (mut writer, reader) = UnixStream::pair()?;
    writer.set_nonblocking(true)?;
    loop {
        match writer.write(&[0; 4096]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    writer.set_nonblocking(false)?;
    let before = copies(scratch)?;
    let child = Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["export", "--all", "--payload", "--data"])
        .arg(journal)
        .env("TMPDIR", scratch)
        .stdin(Stdio::null())
        .stdout(OwnedFd::from(writer))
        .spawn()?;
    while copies(scratch)?.iter().all(|copy| before.contains(copy)) {
        std::thread::yield_now();
    }
    Ok(Stuck { child, _reader: reader })
}

/// Returns the copies of stores, each in the directory of its program.
fn copies(scratch: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for program in fs::read_dir(scratch)? {
        // It may go meanwhile.
        let inside = fs::read_dir(program?.path()).into_iter().flatten().flatten();
        found.extend(
            inside
                .map(|copy| copy.path())
                .filter(|copy| copy.join("store").is_dir()),
        );
    }
    Ok(found)
}

fn signal(name: &str, child: &Child) -> Outcome {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status()?;
    assert!(sent.success(), "{name}");
    Ok(())
}

#[test]
fn a_signal_leaves_no_copy() -> Outcome {
    let place = made(of_each)?;
    let scratch = tempfile::tempdir()?;
    let mut stuck = stuck(&place.journal, scratch.path())?;
    signal("-TERM", &stuck.child)?;
    assert_eq!(stuck.child.wait()?.code(), Some(128 + 15));
    assert_eq!(fs::read_dir(scratch.path())?.count(), 0);
    Ok(())
}

#[test]
fn what_a_killed_program_left_goes_with_the_next_one() -> Outcome {
    let place = made(of_each)?;
    let scratch = tempfile::tempdir()?;
    let mut first = stuck(&place.journal, scratch.path())?;
    signal("-KILL", &first.child)?;
    first.child.wait()?;
    assert_eq!(fs::read_dir(scratch.path())?.count(), 1);
    // One that lives keeps its own.
    let mut second = stuck(&place.journal, scratch.path())?;
    assert_eq!(fs::read_dir(scratch.path())?.count(), 1, "the leftover has gone");
    let looked = Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["ls", "--data"])
        .arg(&place.journal)
        .env("TMPDIR", scratch.path())
        .output()?;
    assert!(looked.status.success());
    assert_eq!(copies(scratch.path())?.len(), 1, "it is in use");
    signal("-TERM", &second.child)?;
    second.child.wait()?;
    assert_eq!(fs::read_dir(scratch.path())?.count(), 0);
    Ok(())
}
