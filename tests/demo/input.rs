//! Inputs of the user's own.

use std::fs;

use crate::Outcome;
use crate::command::{content, demo, must_be_whole, run};

fn own(rows: &[&str], sizes: &str) -> Outcome<Vec<String>> {
    let directory = tempfile::tempdir()?;
    let (data, file) = (directory.path().join("data"), directory.path().join("rows.txt"));
    fs::write(&file, rows.join("\n"))?;
    must_be_whole(&run(
        &data,
        &format!("{sizes} --fail-rate 0 --input {}", file.display()),
    )?);
    must_be_whole(&run(&data, "")?);
    let mut found: Vec<String> = content(&data)?.into_values().flatten().collect();
    found.sort_unstable();
    Ok(found)
}

#[test]
fn rows_are_keyed_by_the_text_before_a_semicolon_or_a_tab() -> Outcome {
    let rows: Vec<String> = (0..200)
        .map(|n| format!("k{n}{}value {n}", if n % 2 == 0 { ";" } else { "\t" }))
        .collect();
    let mut rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let found = own(&rows, "--tables 1 --operations 0")?;
    rows.sort_unstable();
    assert_eq!(found, rows);
    Ok(())
}

#[test]
fn few_rows_equal_rows_and_rows_of_one_key_are_kept() -> Outcome {
    let rows = ["a;1", "a;1", "a;2", "b", "c\tx", "\u{e4};umlaut"];
    assert_eq!(own(&rows, "--tables 1 --operations 0")?, rows);
    assert_eq!(own(&["only"], "--tables 3 --operations 0")?, ["only"]);
    Ok(())
}

#[test]
fn an_input_that_changed_between_two_runs_is_refused() -> Outcome {
    let directory = tempfile::tempdir()?;
    let (data, file) = (directory.path().join("data"), directory.path().join("rows.txt"));
    fs::write(&file, "a;1\nb;2\n")?;
    run(&data, &format!("--tables 1 --operations 0 --input {}", file.display()))?;
    fs::write(&file, "a;1\nb;3\n")?;
    let output = demo(&data, "").output()?;
    assert!(!output.status.success());
    assert!(crate::command::said(&output).contains("the input"));
    Ok(())
}
