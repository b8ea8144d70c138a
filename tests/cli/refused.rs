//! What cannot be looked at is refused in words that say what to do, with an exit code of its own.

use std::fs;

use crate::Outcome;
use crate::journal::{Running, of_each};
use crate::run::{look, procession};

#[test]
fn a_journal_that_an_engine_holds_is_refused() -> Outcome {
    let root = tempfile::tempdir()?;
    actix_rt::System::new().block_on(async {
        let _running = Running::start(root.path()).await?;
        let said = look("ls", root.path())?;
        assert_eq!(said.code, Some(5), "{}", said.err);
        assert!(said.err.contains("is held by an engine (process "), "{}", said.err);
        assert!(
            said.err.contains("stop the engine first") && said.err.contains("--url"),
            "{}",
            said.err
        );
        Ok(())
    })
}

#[test]
fn a_directory_without_a_journal_is_named() -> Outcome {
    let root = tempfile::tempdir()?;
    let said = look("ls", &root.path().join("missing"))?;
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("there is no directory"), "{}", said.err);

    let said = look("doctor", root.path())?;
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("there is no journal in"), "{}", said.err);
    assert_eq!(fs::read_dir(root.path())?.count(), 0, "a look makes nothing");

    of_each(&root.path().join("journal"))?;
    let said = look("ls", root.path())?;
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("but one in"), "{}", said.err);
    Ok(())
}

#[test]
fn a_damaged_journal_is_named_and_left_as_it_is() -> Outcome {
    let root = tempfile::tempdir()?;
    of_each(root.path())?;
    let keyspaces = root.path().join("store/keyspaces");
    fs::rename(&keyspaces, root.path().join("store/elsewhere"))?;
    let said = look("doctor", root.path())?;
    assert_eq!(said.code, Some(1), "{}", said.out);
    let place = format!("the journal in {} ", root.path().display());
    assert!(
        said.err.contains(&place) && said.err.contains("is damaged"),
        "{}",
        said.err
    );
    assert!(!keyspaces.exists(), "a look repairs nothing");
    Ok(())
}

#[test]
fn a_copy_that_finds_no_place_says_what_to_do() -> Outcome {
    let root = tempfile::tempdir()?;
    of_each(root.path())?;
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["ls", "--data"])
        .arg(root.path())
        .env("TMPDIR", root.path().join("missing"))
        .output()?;
    let err = String::from_utf8(said.stderr)?;
    assert_eq!(said.status.code(), Some(1));
    assert!(err.contains("set TMPDIR to a directory with room"), "{err}");
    Ok(())
}

#[test]
fn arguments_that_make_no_sense_are_usage() -> Outcome {
    let root = tempfile::tempdir()?;
    for (arguments, expected) in [
        ("ls state:sleepy", "at character 7: \"sleepy\" is no state"),
        ("ls --limit 0", "0 is not in 1..=1000"),
        ("ls --after 7", "write it as family.member"),
        ("show key:", "or by its idempotency key"),
        ("show", "<ID>"),
        ("export", "<ID|--all>"),
        ("export 1.0 --all", "cannot be used with"),
    ] {
        let said = look(arguments, root.path())?;
        assert_eq!(said.code, Some(2), "{arguments}: {}", said.err);
        assert!(said.err.contains(expected), "{arguments}: {}", said.err);
    }
    let said = procession(["ls", "--data", "x", "--fields", ""])?;
    assert!(said.code == Some(2) && said.err.contains("--fields"), "{}", said.err);
    let said = procession(["ls"])?;
    assert!(said.code == Some(2) && said.err.contains("--data"), "{}", said.err);
    Ok(())
}

#[test]
fn an_option_of_another_command_of_the_verb_leads_to_that_command() -> Outcome {
    for (arguments, expected, usage) in [
        (
            "demo --tables 3",
            "tip: 'procession demo tablets' has the option '--tables'",
            "Usage: procession demo tablets [OPTIONS]",
        ),
        (
            "demo shop --tables=3",
            "tip: 'procession demo tablets' has the option '--tables'",
            "Usage: procession demo tablets [OPTIONS]",
        ),
        (
            "demo tablets --orders 3",
            "tip: 'procession demo' has the option '--orders'",
            "Usage: procession demo [OPTIONS]",
        ),
        (
            "demo --data x tablets",
            "tip: write options behind 'tablets'",
            "Usage: procession demo",
        ),
        // What no command of the verb has is taken for a slip, as ever.
        (
            "demo --trubble",
            "a similar argument exists: '--trouble'",
            "Usage: procession demo",
        ),
        (
            "pause 1.0 --data x",
            "tip: 'procession pause' needs a running engine: give the address of its dashboard with '--url'",
            "Usage: procession pause",
        ),
        (
            "tail --data=x",
            "tip: 'procession tail' needs a running engine",
            "Usage: procession tail",
        ),
        (
            "ls --orders 3",
            "unexpected argument '--orders'",
            "Usage: procession ls",
        ),
    ] {
        let said = procession(arguments.split_whitespace())?;
        assert_eq!(said.code, Some(2), "{arguments}: {}", said.err);
        for expected in [expected, usage] {
            assert!(said.err.contains(expected), "{arguments}: {}", said.err);
        }
        let is_a_slip = arguments.contains("trubble");
        assert_eq!(said.err.contains("--trouble"), is_a_slip, "{arguments}: {}", said.err);
    }
    Ok(())
}

#[test]
fn one_that_is_not_there_is_not_made_up() -> Outcome {
    let root = tempfile::tempdir()?;
    of_each(root.path())?;
    for verb in [
        "show 77.0",
        "tree 77.0",
        "tree 5.77",
        "history 77.0",
        "why 77.0",
        "export 77.0",
    ] {
        let said = look(verb, root.path())?;
        assert_eq!(said.code, Some(1), "{verb}: {}", said.out);
        assert!(said.err.contains("77"), "{verb}: {}", said.err);
    }
    Ok(())
}
