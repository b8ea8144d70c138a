//! Results that cannot be written: a full disk is a failure, a reader that has gone is none.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::golden::made;
use crate::journal::of_each;
use crate::run::on_a_terminal;
use crate::site::{Site, Time, all};

fn into_nothing(arguments: &str, journal: &Path, out: Stdio) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.args(arguments.split_whitespace()).arg("--data").arg(journal);
    command.stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
    command
}

#[test]
fn output_that_cannot_be_written_is_a_failure() -> Outcome {
    let place = made(of_each)?;
    for arguments in [
        "ls --all",
        "show 3.0",
        "audit --json",
        "doctor",
        "tree 5",
        "export --all --payload",
        "ls --fields id",
    ] {
        let full = File::options().write(true).open("/dev/full")?;
        let output = into_nothing(arguments, &place.journal, full.into()).output()?;
        let err = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(1), "{arguments}: {err}");
        assert!(
            err.contains("the output could not be written, and is not complete: No space left"),
            "{arguments}: {err}"
        );
    }
    Ok(())
}

#[test]
fn a_reader_that_has_gone_is_no_failure() -> Outcome {
    let place = made(of_each)?;
    for arguments in ["ls --all", "export --all --payload", "audit --json"] {
        let mut child = into_nothing(arguments, &place.journal, Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let output = child.wait_with_output()?;
        let err = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(0), "{arguments}: {err}");
        assert!(!err.contains("could not be written"), "{arguments}: {err}");
    }
    Ok(())
}

#[test]
fn on_a_narrow_terminal_ids_and_fingerprints_stay_whole() -> Outcome {
    let place = made(of_each)?;
    let data = place.journal.display();
    let tree = on_a_terminal(40, 40, "", &format!("tree 5 --data {data}"))?.out;
    assert!(tree.contains("    5.4"), "{tree}");
    let failures = on_a_terminal(40, 40, "", &format!("failures --data {data}"))?.out;
    let is_whole = |word: &str| word.len() == 16 && word.chars().all(|letter| letter.is_ascii_hexdigit());
    assert!(failures.split_whitespace().any(is_whole), "{failures}");
    Ok(())
}

#[test]
fn a_no_is_a_failure() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open(root.path(), Time::Still, all)?;
    let binary = env!("CARGO_BIN_EXE_procession");
    let line = format!("{binary} pause --all --reason x --url {}", site.url());
    let mut script = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut answer = script.stdin.take().ok_or("no input")?;
    std::io::Write::write_all(&mut answer, b"n\n")?;
    let output = script.wait_with_output()?;
    drop(answer);
    let out = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("it was not confirmed, and nothing was done"), "{out}");
    Ok(())
}
