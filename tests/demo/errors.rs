//! The verification can fail, and errors are plain.

use std::fs;
use std::path::{Path, PathBuf};

use procession::limits::LockNeed;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use procession_cli::demo::input::Input;
use procession_cli::demo::master::Master;
use procession_cli::demo::meta::{self, TableRow};
use procession_cli::demo::verify::{self, Rule};
use procession_cli::demo::workload::Expected;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::command::{Running, demo, run, said};

const SIZES: &str = "--tables 3 --operations 12 --seed 3 --fail-rate 0";

/// Runs a small workload to its end, spoils what it left, and runs it again: it
/// must fail, name these things, and not panic.
fn spoilt(spoil: impl FnOnce(&Path) -> Outcome, named: &[&str]) -> Outcome {
    let directory = tempfile::tempdir()?;
    run(directory.path(), SIZES)?;
    spoil(directory.path())?;
    refused(demo(directory.path(), "--json"), named)
}

fn refused(mut command: std::process::Command, named: &[&str]) -> Outcome {
    let output = command.output()?;
    let text = said(&output);
    assert!(!output.status.success(), "it succeeded: {text}");
    assert!(output.status.code().is_some() && !text.contains("panicked"), "{text}");
    for part in named {
        assert!(text.contains(part), "\"{part}\" is not named in: {text}");
    }
    Ok(())
}

/// Finds the files with several rows, loaded or not.
fn files_with_rows(data: &Path) -> Outcome<Vec<PathBuf>> {
    let servers: Vec<PathBuf> = fs::read_dir(data.join("servers"))?
        .map(|server| server.map(|server| server.path()))
        .collect::<Result<_, _>>()?;
    let mut files = Vec::new();
    for directory in servers.into_iter().chain([data.join("shared")]) {
        for file in fs::read_dir(directory)? {
            let path = file?.path();
            if fs::read_to_string(&path)?.lines().count() > 2 {
                files.push(path);
            }
        }
    }
    Ok(files)
}

fn some_file(data: &Path) -> Outcome<PathBuf> {
    Ok(files_with_rows(data)?.into_iter().next().ok_or("there is no file")?)
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<String>)) -> Outcome {
    let mut lines: Vec<String> = fs::read_to_string(path)?.lines().map(str::to_owned).collect();
    change(&mut lines);
    Ok(fs::write(path, lines.join("\n") + "\n")?)
}

#[test]
fn e_124_a_missing_row_is_named() -> Outcome {
    let remove = |data: &Path| edit(&some_file(data)?, |lines| drop(lines.remove(1)));
    spoilt(remove, &["is missing", "rows, and the meta table says"])
}

#[test]
fn e_124_a_doubled_row_is_named() -> Outcome {
    let double = |data: &Path| edit(&some_file(data)?, |lines| lines.insert(1, lines[1].clone()));
    spoilt(double, &["there too often"])
}

#[test]
fn e_124_a_file_over_is_named() -> Outcome {
    spoilt(
        |data| Ok(fs::write(data.join("servers/s1/stray.rows"), "x\n")?),
        &["stray.rows", "named nowhere"],
    )
}

#[test]
fn e_124_a_damaged_tablet_file_is_named() -> Outcome {
    spoilt(
        |data| edit(&some_file(data)?, |lines| lines.reverse()),
        &["is not sorted"],
    )?;
    spoilt(
        |data| Ok(fs::write(some_file(data)?, [0xFF, 0xFE, 0x00])?),
        &["cannot be read"],
    )?;
    spoilt(
        |data| Ok(fs::remove_file(some_file(data)?)?),
        &["cannot be read", "is missing"],
    )
}

#[test]
fn e_124_damaged_files_are_named_by_a_run_that_has_still_to_use_them() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut running = Running::start(demo(directory.path(), "--tables 3 --operations 120 --seed 9"))?;
    // Late, so that no table is made anew after its files were damaged.
    running.until("93 of 123 operations")?.ok_or("no progress")?;
    assert!(running.kill_after(0)?);
    for file in files_with_rows(directory.path())? {
        edit(&file, |lines| lines.reverse())?;
    }
    refused(
        demo(directory.path(), ""),
        &["is not sorted", "has changed since it was written"],
    )
}

/// Changes a row of the meta table behind the master's back.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Vandal {
    pub(crate) table: String,
}

impl Procedure for Vandal {
    const KIND: &'static str = "vandal";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let row: Option<TableRow> = cx.get(meta::TABLES, &self.table).await?;
        let mut row = row.ok_or_else(|| StageError::fail("no such table"))?;
        row.schema += 1;
        cx.put(meta::TABLES, &self.table, &row)?;
        Ok(Step::Done(()))
    }
}

#[test]
fn e_124_a_changed_meta_row_is_named() -> Outcome {
    let vandalise = |data: &Path| -> Outcome {
        actix_rt::System::new().block_on(async {
            let master = Master::open(data, 4, Input::shipped())?;
            let builder = Executor::builder(procession_cli::demo::engine::journal_of(data)).register::<Vandal>(());
            let executor = master.register(builder).start().await?;
            let tables: Vec<(Vec<u8>, TableRow)> = executor.scan(meta::TABLES, "").await?;
            let table = tables.into_iter().next().ok_or("no table")?.1.name;
            executor.submit(Vandal { table }).await?.await?;
            executor.drain(std::time::Duration::from_secs(5)).await?;
            Ok(())
        })
    };
    spoilt(vandalise, &["has schema", "and should be"])
}

/// Holds a lock and a permit, and waits for ever.
#[derive(Serialize, Deserialize)]
pub(crate) struct Lurker;

impl Procedure for Lurker {
    const KIND: &'static str = "lurker";
    const HOLD_LOCKS: bool = true;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    fn locks(&self, (): &()) -> Vec<LockNeed> {
        vec![LockNeed::exclusive("table/t")]
    }

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "never".to_owned(),
            timeout: None,
            then: (),
        })
    }
}

#[test]
fn e_124_a_lock_or_permit_that_is_held_is_named() -> Outcome {
    actix_rt::System::new().block_on(async {
        let directory = tempfile::tempdir()?;
        let master = Master::open(directory.path(), 1, Input::of("a;1\n"))?;
        let builder = Executor::builder(directory.path().join("journal")).register::<Lurker>(());
        let executor = master.register(builder).limit("lurker", 1).start().await?;
        executor.submit(Lurker).await?;
        executor.submit(Lurker).await?;
        let verdict = verify::verify(&executor, master.files(), master.input(), &Expected::default()).await?;
        let found: Vec<&str> = verdict.findings.iter().map(|(_, text)| text.as_str()).collect();
        let named = [
            "2 procedures with their families are unfinished",
            "1 permits of lurker are held, and 1 procedures wait for one",
            "procedure 1.0 still holds table/t, exclusive",
            "procedure 2.0 still waits for table/t",
        ];
        assert_eq!(found, named);
        assert!(verdict.findings.iter().all(|(rule, _)| *rule == Rule::Unfinished));
        executor.drain(std::time::Duration::from_secs(5)).await?;
        Ok(())
    })
}

#[test]
fn e_124_a_directory_in_use_is_named() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut running = Running::start(demo(directory.path(), "--tables 2 --operations 3000"))?;
    running.until("resumed")?.ok_or("it did not start")?;
    refused(demo(directory.path(), ""), &["in use"])?;
    refused(demo(directory.path(), "--dump"), &["in use"])?;
    assert!(running.kill_after(0)?);
    Ok(())
}

#[test]
fn e_124_an_input_that_cannot_be_read_is_named() -> Outcome {
    let directory = tempfile::tempdir()?;
    let (data, file) = (directory.path().join("data"), directory.path().join("input"));
    let with_input = || {
        let mut command = demo(&data, "--json --input");
        command.arg(&file);
        command
    };
    refused(with_input(), &["input", "No such file"])?;
    fs::write(&file, "")?;
    refused(with_input(), &["it has no row"])?;
    fs::write(&file, b"caf\xE9\n")?;
    refused(with_input(), &["not UTF-8"])?;
    assert!(!data.exists(), "a refused run left something behind");
    Ok(())
}

#[test]
fn e_124_arguments_that_make_no_sense_are_named() -> Outcome {
    let directory = tempfile::tempdir()?;
    for (argument, named) in [
        ("--fail-rate 1.5", "fail-rate"),
        ("--tables 0", "tables"),
        ("--servers 0", "servers"),
        ("--seed minus", "seed"),
        ("--operations 99999999", "operations"),
    ] {
        refused(demo(&directory.path().join("data"), argument), &[named])?;
    }
    Ok(())
}

#[test]
fn e_124_another_workload_in_one_directory_is_refused() -> Outcome {
    let directory = tempfile::tempdir()?;
    run(directory.path(), SIZES)?;
    refused(
        demo(directory.path(), "--seed 4"),
        &["--seed 3", "leave the option out"],
    )?;
    let foreign = tempfile::tempdir()?;
    fs::write(foreign.path().join("letter.txt"), "dear")?;
    refused(demo(foreign.path(), ""), &["not empty"])?;
    refused(demo(foreign.path(), "--dump"), &["not empty"])
}
