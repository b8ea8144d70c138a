//! `procession saga`: what it prints of definitions that are right, that may be wrong, and that are wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::golden::must_have_said;
use crate::run::Said;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cli/sagas")
}

/// The files of Seata, from there.
const SEATA: &str = "../../../src/cli/saga/demo/data/seata";

/// Runs `procession saga` beside the definitions, without any variable that a services file names.
fn saga(arguments: &str) -> Outcome<Said> {
    let output = Command::new(env!("CARGO_BIN_EXE_procession"))
        .arg("saga")
        .args(arguments.split_whitespace())
        .current_dir(directory())
        .env_remove("STOCK")
        .env_remove("TOKEN")
        .stdin(Stdio::null())
        .output()?;
    Ok(Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

#[test]
fn what_is_said_of_definitions_is_what_its_file_says() -> Outcome {
    for (name, arguments, code) in [
        ("saga_validate", "validate order.json inform.json", 0),
        ("saga_validate_warned", "validate order.json", 0),
        ("saga_validate_strict", "validate --strict order.json inform.json", 1),
        ("saga_validate_mistakes", "validate inform.json mistakes.json", 1),
        (
            "saga_validate_services",
            "validate order.json inform.json --services services.json",
            1,
        ),
        (
            "saga_validate_wrong_services",
            "validate order.json --services wrong_services.json",
            1,
        ),
        ("saga_draw", "draw order.json", 0),
        ("saga_draw_dot", "draw order.json --dot", 0),
        ("saga_draw_refused", "draw mistakes.json", 1),
    ] {
        let said = saga(arguments)?;
        must_have_said(&said, name, &format!("saga {arguments}"), code)?;
    }
    Ok(())
}

/// Each mistake is a line with a pointer and a hint.
#[test]
fn g_031_twenty_mistakes_are_listed_each_with_a_pointer_and_a_hint() -> Outcome {
    let said = saga("validate mistakes.json")?;
    assert_eq!(said.code, Some(1));
    assert!(said.out.lines().count() > 20, "{}", said.out);
    for line in said.out.lines() {
        let place = line.strip_prefix("mistakes.json#/");
        let rest = place.and_then(|rest| rest.split_once(": "));
        assert!(rest.is_some_and(|(_, text)| text.contains("; ")), "{line}");
    }
    let count = said.out.lines().filter(|line| !line.starts_with("warning: ")).count();
    assert_eq!(
        said.err.trim_end(),
        format!("procession: {count} errors: mend the definitions, then validate them again")
    );
    Ok(())
}

/// Files of upstream that were made to be refused end with upstream's own words.
#[test]
fn g_031_files_of_seata_that_are_refused_are_refused_on_the_command_line() -> Outcome {
    for (name, text) in [
        ("statelang__simple_statemachine_with_non_existed_name", "does not exist"),
        (
            "statelang__simple_statemachine_with_single_infinite_loop",
            "without outgoing flow to end",
        ),
        (
            "statelang__simple_statemachine_with_recursive_sub_machine",
            "call itself",
        ),
        (
            "pr4349__simple_statelang_with_parallel",
            "State Type [Parallel] is not supported",
        ),
        ("go-config__invalid", "EOF while parsing a value"),
        ("go__simple_statemachine", "has the unknown type [exception]"),
    ] {
        let said = saga(&format!("validate {SEATA}/{name}.json"))?;
        assert_eq!(said.code, Some(1), "{name}: {}", said.out);
        let is_said = said.out.lines().any(|line| {
            let problem = line.split_once("; ").map_or(line, |(problem, _)| problem);
            problem.ends_with(text)
        });
        assert!(is_said, "{name}: {}", said.out);
    }
    Ok(())
}

/// All files that are right are right together.
#[test]
fn g_031_files_of_seata_are_validated_together() -> Outcome {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory().join(SEATA))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_old = name.contains("__") && !name.starts_with("compatible__");
        if name.ends_with(".json") && !is_old {
            names.push(format!("{SEATA}/{name}"));
        }
    }
    assert!(names.len() > 20);
    let said = saga(&format!("validate {}", names.join(" ")))?;
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let machines = said.out.lines().filter(|line| line.contains(": machine [")).count();
    assert_eq!(machines, names.len());
    Ok(())
}

#[test]
fn what_cannot_be_read_is_named() -> Outcome {
    for (arguments, words) in [
        ("validate no_such.json", "no_such.json#/: the file cannot be read: "),
        ("validate .", ".#/: the file cannot be read: "),
        ("draw no_such.json", "no_such.json#/: the file cannot be read: "),
        ("draw .", ".#/: the file cannot be read: "),
        (
            "validate order.json --services no_such.json",
            "the services file no_such.json cannot be read: ",
        ),
        (
            "validate order.json --services .",
            "the services file . cannot be read: ",
        ),
        (
            "validate order.json --services ../main.rs",
            "the services file ../main.rs is no JSON: ",
        ),
    ] {
        let said = saga(arguments)?;
        assert_eq!(said.code, Some(1), "{arguments}: {}{}", said.out, said.err);
        assert!(
            said.out.contains(words) || said.err.contains(words),
            "{arguments}: {}{}",
            said.out,
            said.err
        );
        assert!(!said.err.is_empty(), "{arguments}");
    }
    let root = tempfile::tempdir()?;
    let list = root.path().join("list.json");
    fs::write(&list, "[1]")?;
    let said = saga(&format!("validate order.json --services {}", list.display()))?;
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("is no object; write "), "{}", said.err);
    let large = root.path().join("large.json");
    fs::write(&large, vec![b' '; (1 << 20) + 1])?;
    let said = saga(&format!("validate order.json --services {}", large.display()))?;
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("has more than 1048576 bytes"), "{}", said.err);
    Ok(())
}

#[test]
fn arguments_that_make_no_sense_are_usage() -> Outcome {
    for arguments in [
        "",
        "validate",
        "validate --strict",
        "validate order.json --services",
        "validate --dot order.json",
        "draw",
        "draw order.json inform.json",
        "draw order.json --strict",
        "check order.json",
    ] {
        let said = saga(arguments)?;
        assert_eq!(said.code, Some(2), "{arguments}: {}{}", said.out, said.err);
        assert!(!said.err.is_empty(), "{arguments}");
    }
    Ok(())
}

#[test]
fn one_machine_of_one_version_in_two_files_is_a_warning() -> Outcome {
    let root = tempfile::tempdir()?;
    let text = fs::read_to_string(directory().join("order.json"))?;
    let (one, same, other) = (
        root.path().join("a.json"),
        root.path().join("b.json"),
        root.path().join("c.json"),
    );
    fs::write(&one, &text)?;
    fs::write(&same, &text)?;
    fs::write(&other, format!("{text}\n"))?;
    let both = saga(&format!("validate {} {}", one.display(), same.display()))?;
    assert_eq!(both.code, Some(0), "{}", both.err);
    assert!(
        !both.out.contains("two files have machine ["),
        "the same text twice is one machine: {}",
        both.out
    );
    for (more, code) in [("", 0), ("--strict", 1)] {
        let warned = saga(&format!("validate {} {} {more}", one.display(), other.display()))?;
        assert_eq!(warned.code, Some(code), "{}", warned.out);
        assert!(warned.out.contains("two files have machine ["), "{}", warned.out);
    }
    Ok(())
}
