//! `import`: what it prints, that its plan changes nothing, and that what is refused says what to do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use procession::operate::OperatorRequest;
use procession_actors::testkit::TestClock;
use serde_json::Value;

use crate::Outcome;
use crate::golden::{Place, files, made, must_have_said};
use crate::journal::{Does, Running, of_each};
use crate::run::{Said, look, procession};

/// A journal in which nothing ever ran.
pub(crate) fn empty(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async { Running::start(place).await?.leave().await })
}

/// A journal whose first family holds the lock that the third of the other holds.
fn with_a_lock(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        running.submit(Some("default/users"), Does::Sleeps, "mine").await?;
        running.leave().await
    })
}

/// Two journals, and what was exported from the first.
struct Moving {
    here: Place,
    from: Place,
}

impl Moving {
    fn to(make: fn(&Path) -> Outcome) -> Outcome<Self> {
        Ok(Self {
            from: made(of_each)?,
            here: made(make)?,
        })
    }

    /// Exports into a file.
    fn export(&self, what: &str) -> Outcome<PathBuf> {
        let said = look(&format!("export {what}"), &self.from.journal)?;
        assert_eq!(said.code, Some(0), "{}", said.err);
        let file = self.from.journal.with_file_name("family.jsonl");
        fs::write(&file, said.out)?;
        Ok(file)
    }

    /// Imports from a file.
    fn import(&self, file: &Path, more: &str) -> Outcome<Said> {
        let file = file.to_str().ok_or("the file's name is not UTF-8")?;
        let data = self.here.journal.to_str().ok_or("the directory's name is not UTF-8")?;
        let arguments = ["import", file, "--data", data, "--who", "ann"];
        procession(arguments.into_iter().chain(more.split_whitespace()))
    }
}

#[test]
fn an_import_prints_its_plan_and_what_it_did() -> Outcome {
    let moving = Moving::to(empty)?;
    let file = moving.export("5.0 --payload")?;
    let before = files(&moving.here.journal)?;
    for (name, more) in [("import_plan", "--dry-run"), ("import_plan_json", "--dry-run --json")] {
        let said = moving.import(&file, more)?;
        must_have_said(&said, name, &format!("import family.jsonl {more}"), 0)?;
    }
    assert!(files(&moving.here.journal)? == before, "a plan changes nothing");
    let more = "--yes --reason incident-17";
    let done = moving.import(&file, more)?;
    must_have_said(&done, "import", &format!("import family.jsonl {more}"), 0)?;
    let again = moving.import(&file, more)?;
    must_have_said(&again, "import_again", &format!("import family.jsonl {more}"), 5)?;
    for (name, arguments) in [("import_ls", "ls"), ("import_history", "history 5.0 --family")] {
        must_have_said(&look(arguments, &moving.here.journal)?, name, arguments, 0)?;
    }
    Ok(())
}

#[test]
fn what_was_imported_is_paused_and_goes_on_when_it_is_resumed() -> Outcome {
    let moving = Moving::to(empty)?;
    let file = moving.export("3.0 --payload")?;
    let said = Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["import", "-", "--yes", "--reason", "look", "--json", "--data"])
        .arg(&moving.here.journal)
        .env("USER", "bob")
        .stdin(File::open(&file)?)
        .output()?;
    assert_eq!(said.status.code(), Some(0), "{}", String::from_utf8_lossy(&said.stderr));
    let document: Value = serde_json::from_slice(&said.stdout)?;
    assert_eq!(
        (document.get("family"), document.get("number"), document.get("live")),
        (Some(&"3".into()), Some(&"0".into()), Some(&true.into()))
    );
    actix_rt::System::new().block_on(async {
        let clock = TestClock::new();
        clock.advance_to(crate::journal::BEGIN.after(std::time::Duration::from_secs(3 * 3_600)));
        let running = Running::start_on(&moving.here.journal, clock).await?;
        let id = "3.0".parse()?;
        crate::journal::rest(&running.executor, id).await?;
        assert!(running.executor.status(id).await?.paused);
        let audit = running.executor.audit(None, 10).await?;
        assert!(
            matches!(&audit[..], [entry] if entry.who == "bob" && entry.why == "look"),
            "{audit:?}"
        );
        let by = OperatorRequest::new("bob", "looked at it");
        running
            .executor
            .resume(procession::operate::PauseScope::One(id), by)
            .await?;
        let outcome = running.executor.outcome(id).await?;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some("done"));
        running.leave().await
    })
}

#[test]
fn one_that_has_ended_is_kept_from_now_on() -> Outcome {
    let moving = Moving::to(empty)?;
    let file = moving.export("2.0 --payload")?;
    let said = moving.import(&file, "--yes --reason look")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(
        said.out.contains("the family 2 is imported, ended, and kept until 20"),
        "{}",
        said.out
    );
    let there = look("show 2.0", &moving.from.journal)?.out;
    assert_eq!(look("show 2.0", &moving.here.journal)?.out, there);
    Ok(())
}

#[test]
fn one_that_was_discharged_comes_back_out_of_the_archive() -> Outcome {
    let place = made(of_each)?;
    actix_rt::System::new().block_on(async {
        // An engine without its code, where somebody gives it up.
        let executor = procession::Executor::builder(&place.journal).inline().start().await?;
        executor
            .discharge(3, OperatorRequest::new("ann", "nobody has its code"))
            .await?;
        executor.drain(std::time::Duration::ZERO).await?;
        Outcome::Ok(())
    })?;
    let gone = look("show 3.0", &place.journal)?;
    assert_eq!(gone.code, Some(1), "{}", gone.out);
    let arguments = "import --archived 3 --yes --reason found --who ann";
    must_have_said(&look(arguments, &place.journal)?, "import_archived", arguments, 0)?;
    must_have_said(
        &look("show 3.0", &place.journal)?,
        "import_archived_show",
        "show 3.0",
        0,
    )
}

#[test]
fn what_is_in_the_way_is_named() -> Outcome {
    let moving = Moving::to(with_a_lock)?;
    let said = moving.import(&moving.export("3.0 --payload")?, "--dry-run")?;
    must_have_said(&said, "import_locked", "import family.jsonl --dry-run", 5)?;
    let said = moving.import(&moving.export("1.0 --payload")?, "--dry-run")?;
    must_have_said(&said, "import_present", "import family.jsonl --dry-run", 5)
}

#[test]
fn a_file_that_holds_no_family_says_what_to_do() -> Outcome {
    let moving = Moving::to(empty)?;
    for (what, expected) in [
        ("5.0", "export it with --payload"),
        (
            "--all --payload",
            "an import takes one: export the one that is meant by its id",
        ),
    ] {
        let said = moving.import(&moving.export(what)?, "--dry-run")?;
        assert_eq!(said.code, Some(1), "{}", said.out);
        assert!(said.err.contains(expected), "{}", said.err);
    }
    let file = moving.export("5.0 --payload")?;
    let whole = fs::read(&file)?;
    fs::write(&file, whole.get(..whole.len() - 9).unwrap_or_default())?;
    let said = moving.import(&file, "--dry-run")?;
    assert!(
        said.code == Some(1) && said.err.contains("cut off in the middle"),
        "{}",
        said.err
    );
    let said = moving.import(Path::new("/nowhere/at/all"), "--dry-run")?;
    assert!(
        said.code == Some(1) && said.err.contains("cannot be read"),
        "{}",
        said.err
    );
    let said = look("import --archived 9 --dry-run", &moving.here.journal)?;
    assert!(
        said.code == Some(1) && said.err.contains("has no family 9"),
        "{}",
        said.err
    );
    Ok(())
}

#[test]
fn an_engine_that_runs_takes_no_import() -> Outcome {
    let moving = Moving::to(empty)?;
    let file = moving.export("5.0 --payload")?;
    actix_rt::System::new().block_on(async {
        let _running = Running::start(&moving.here.journal).await?;
        for more in ["--dry-run", "--yes --reason look"] {
            let said = moving.import(&file, more)?;
            assert_eq!(said.code, Some(5), "{}", said.err);
            assert!(
                said.err.contains("is held by an engine (process ") && said.err.contains("needs a closed journal"),
                "{}",
                said.err
            );
        }
        Ok(())
    })
}

#[test]
fn arguments_of_an_import_that_make_no_sense_are_usage() -> Outcome {
    let moving = Moving::to(empty)?;
    let file = moving.export("5.0 --payload")?;
    for (more, expected) in [
        (
            "--url http://localhost:1/ops --dry-run",
            "stop the engine, and give the directory",
        ),
        ("--yes", "say why with --reason"),
        ("--yes --reason=", "say why with --reason"),
        ("--reason look", "there is no terminal to ask on"),
        ("--archived 5 --dry-run", "cannot be used with"),
    ] {
        let said = moving.import(&file, more)?;
        assert_eq!(said.code, Some(2), "{more}: {}", said.err);
        assert!(said.err.contains(expected), "{more}: {}", said.err);
    }
    let said = procession(["import", "x.jsonl"])?;
    assert!(said.code == Some(2) && said.err.contains("--data"), "{}", said.err);
    let said = look("import", &moving.here.journal)?;
    assert!(said.code == Some(2) && said.err.contains("FILE"), "{}", said.err);
    Ok(())
}

#[test]
#[cfg(unix)]
fn without_a_login_the_account_of_the_process_imports() -> Outcome {
    let moving = Moving::to(empty)?;
    let file = moving.export("5.0 --payload")?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for name in ["USER", "LOGNAME", "USERNAME"] {
        command.env_remove(name);
    }
    let output = command
        .arg("import")
        .arg(&file)
        .arg("--data")
        .arg(&moving.here.journal)
        .args(["--yes", "--reason", "incident-17"])
        .output()?;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8(output.stderr)?);
    let audit = look("audit --fields who", &moving.here.journal)?.out;
    let id = String::from_utf8(Command::new("id").arg("-un").output()?.stdout)?;
    assert!(audit.contains(id.trim()), "{audit}");
    Ok(())
}
