//! Where a story is told: the user's own directory, which goes on or begins anew, and directories that hold something else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::command::{Running, closing, demo, procession, run, said, shop};

const QUICK: &str = "--orders 6 --pace 0 --no-dashboard";
/// So slow that it is not over before it is killed.
const SLOW: &str = "--orders 40 --pace 2000 --no-dashboard";
const HURRIED: &str = "--orders 40 --pace 20 --no-dashboard --json";

/// A demo of a user whose state is here, and whose temporary files would be too.
fn of_user(user: &Path, arguments: &str) -> Outcome<Command> {
    let temporary = user.join("tmp");
    fs::create_dir_all(&temporary)?;
    let mut command = procession(arguments);
    command
        .env("XDG_STATE_HOME", user.join("state"))
        .env("HOME", user.join("home"))
        .env("TMPDIR", &temporary);
    Ok(command)
}

/// All that is there but the user's own directory of this story.
fn elsewhere(user: &Path, story: &str) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in ["tmp", "state", "state/procession", "state/procession/demo"] {
        for entry in fs::read_dir(user.join(folder))? {
            found.push(entry?.path());
        }
    }
    let own = user.join("state/procession/demo").join(story);
    found.retain(|path| !own.starts_with(path));
    Ok(found)
}

#[test]
fn without_a_directory_a_run_goes_on_in_the_users_own_and_begins_anew_after_the_end() -> Outcome {
    let user = tempfile::tempdir()?;
    let mut first = Running::start(of_user(user.path(), SLOW)?)?;
    let line = first.until("working in")?.ok_or("it did not say where it works")?;
    assert!(line.contains("state/procession/demo/shop"), "{line}");
    first.until("the shop is open")?.ok_or("it did not open")?;
    let second = of_user(user.path(), SLOW)?.output()?;
    assert!(!second.status.success() && said(&second).contains("in use by another engine"));
    assert!(first.kill_after(0)?);

    let output = of_user(user.path(), HURRIED)?.output()?;
    assert!(
        said(&output).contains("goes on where the last one stopped"),
        "{}",
        said(&output)
    );
    assert!(closing(&output)?["resumed"].as_u64() > Some(0));

    // It has ended: the next one begins anew, and may be another.
    let output = of_user(user.path(), &format!("{QUICK} --json"))?.output()?;
    assert!(said(&output).contains("begins anew"), "{}", said(&output));
    assert_eq!(closing(&output)?["orders"], 6);
    assert_eq!(elsewhere(user.path(), "shop")?, Vec::<PathBuf>::new());
    Ok(())
}

#[test]
fn tablets_have_a_directory_of_their_own() -> Outcome {
    let user = tempfile::tempdir()?;
    let arguments = "tablets --tables 2 --operations 10 --no-dashboard";
    let output = of_user(user.path(), &format!("{arguments} --json"))?.output()?;
    assert_eq!(closing(&output)?["missing"], 0);
    let dump = of_user(user.path(), "tablets --dump")?.output()?;
    assert!(dump.status.success() && !dump.stdout.is_empty(), "{}", said(&dump));
    assert_eq!(elsewhere(user.path(), "tablets")?, Vec::<PathBuf>::new());
    Ok(())
}

#[test]
fn a_directory_of_another_story_is_refused() -> Outcome {
    let (tablets, orders, foreign) = (tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?);
    run(tablets.path(), "--tables 1 --operations 1 --no-dashboard")?;
    assert!(shop(orders.path(), QUICK).output()?.status.success());
    fs::write(foreign.path().join("letter.txt"), "dear")?;
    for (command, named) in [
        (shop(tablets.path(), ""), "go on with `procession demo tablets --data"),
        (demo(orders.path(), ""), "go on with `procession demo --data"),
        (shop(orders.path(), "--trouble"), "go on with `procession demo --data"),
        (shop(foreign.path(), ""), "not empty"),
        (shop(orders.path(), "--orders 7"), "--orders 6"),
    ] {
        let mut command = command;
        let output = command.output()?;
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(named), "{}", said(&output));
    }
    Ok(())
}

#[test]
fn arguments_that_make_no_sense_are_named() -> Outcome {
    let user = tempfile::tempdir()?;
    for (arguments, code, named) in [
        ("--orders 0", 1, "--orders 0"),
        ("--pace 60001", 1, "--pace 60001"),
        ("--tables 3", 2, "--tables"),
        ("tablets --trouble", 2, "--trouble"),
        ("--trouble --orders 3", 2, "cannot be used with"),
        ("--trouble --earlier-life", 2, "--data"),
    ] {
        let output = of_user(user.path(), arguments)?.output()?;
        assert_eq!(output.status.code(), Some(code), "{arguments}: {}", said(&output));
        assert!(said(&output).contains(named), "{arguments}: {}", said(&output));
    }
    assert!(
        !user.path().join("state").exists(),
        "a refused run left something behind"
    );
    Ok(())
}
