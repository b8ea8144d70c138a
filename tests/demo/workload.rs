//! The whole workload, undisturbed.

use crate::Outcome;
use crate::command::{content, demo, must_be_whole, run, said};

#[test]
fn e_122_a_whole_workload() -> Outcome {
    for seed in [1, 2, 3] {
        for rate in ["0", "0.2"] {
            let directory = tempfile::tempdir()?;
            let sizes = format!("--tables 5 --operations 40 --seed {seed} --fail-rate {rate}");
            let closing = run(directory.path(), &sizes)?;
            must_be_whole(&closing);
            assert_eq!(
                closing["rolled_back"] == 0,
                rate == "0",
                "seed {seed}, rate {rate}: {closing}"
            );
            assert_eq!(closing["resumed"], 0, "{closing}");
            let rows: usize = content(directory.path())?.values().map(Vec::len).sum();
            assert_eq!(Some(rows as u64), closing["rows_expected"].as_u64());
        }
    }
    Ok(())
}

#[test]
fn e_122_the_same_seed_ends_in_the_same_tables_and_rows() -> Outcome {
    let (first, second, other) = (tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?);
    let sizes = "--tables 4 --operations 60 --fail-rate 0.3 --servers 3";
    run(first.path(), &format!("{sizes} --seed 7"))?;
    run(second.path(), &format!("{sizes} --seed 7"))?;
    run(other.path(), &format!("{sizes} --seed 8"))?;
    assert_eq!(content(first.path())?, content(second.path())?);
    assert!(!content(other.path())?.is_empty());
    Ok(())
}

#[test]
fn a_summary_is_for_people_and_the_closing_line_for_programs() -> Outcome {
    let directory = tempfile::tempdir()?;
    let output = demo(directory.path(), "--tables 3 --operations 20").output()?;
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout)?;
    for part in ["Done:", "Rolled back:", "Verified:", "create_table", "--dump"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let again = run(directory.path(), "")?;
    let names: Vec<&String> = again.as_object().ok_or("no object")?.keys().collect();
    let mut wanted = [
        "rows_expected",
        "rows_found",
        "missing",
        "duplicated",
        "orphan_files",
        "procedures",
        "rolled_back",
        "resumed",
        "commits",
        "seconds",
    ];
    wanted.sort_unstable();
    let mut names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, wanted);
    Ok(())
}
