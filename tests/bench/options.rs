//! Options that make no sense are refused before anything is run.

use crate::{Outcome, bench};

#[test]
fn numbers_out_of_bounds_are_refused_with_the_bounds() -> Outcome {
    for (arguments, named) in [
        ("chain --concurrency 0", "1..=1000000"),
        ("fanout --children 100001", "1..=100000"),
        ("rollback --stages 0", "1..=100000"),
        ("parked --procedures 0", "1..=10000000"),
        ("parked --on doors", "timers"),
        ("recovery --live 0", "1..=1000000"),
        ("limits --kinds 9", "1..=8"),
        ("locks --locks many", "many"),
        ("submit --rounds 0", "1..=1000"),
        ("set --nodes 2", "3..=1000000"),
        ("set --shape round", "lattice"),
        ("stream --producers 0", "1..=100000"),
        ("saga --tasks 10001", "1..=10000"),
        ("saga --shape round", "nested"),
    ] {
        let output = bench(arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(said.contains(named), "{arguments}: {said}");
    }
    Ok(())
}

#[test]
fn options_that_do_not_fit_each_other_say_which_to_change() -> Outcome {
    for (arguments, named) in [
        ("fanout --children 5 --width 6", "--width"),
        ("locks --locks 2 --each 3", "--each"),
        ("stream --streams 3 --nodes 2", "--nodes"),
        ("set --streams 3", "--shape recovery"),
        ("saga --shape rest --tasks 3", "--tasks"),
        ("saga --branches 3", "--branches"),
        ("saga --shape fork --branches 1000 --levels 16", "--levels"),
        ("saga --tasks 2001", "--tasks"),
    ] {
        let output = bench(arguments)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {said}");
        assert!(said.contains(named), "{arguments}: {said}");
        assert!(output.stdout.is_empty());
    }
    Ok(())
}

#[test]
fn a_place_that_cannot_be_written_to_is_named() -> Outcome {
    let file = tempfile::NamedTempFile::new()?;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(["bench", "submit", "--submissions", "1", "--data"])
        .arg(file.path())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--data"), "{said}");
    Ok(())
}
