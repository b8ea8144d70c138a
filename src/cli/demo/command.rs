//! `procession demo`: the tablet master's workload, and the look into its directory.

use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::demo::input::Input;
use crate::demo::record::{Record, Wishes};
use crate::demo::report::Report;
use crate::demo::run::{self as runner, View};
use crate::demo::workload::Sizes;
use crate::demo::{DemoError, console, dump};

/// Most tables: a lane of operations and some hundred bytes each.
const TABLES_MAX: u32 = 10_000;
/// Most servers: a directory each.
const SERVERS_MAX: u32 = 1_000;
/// Most operations: the list of them is held in memory.
const OPERATIONS_MAX: u64 = 1_000_000;

/// Runs a tablet master over servers that are directories, kills welcome, and
/// verifies that no row was lost.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DemoArgs {
    /// Directory to work in; run again on the same one, it goes on. Without it, a
    /// temporary one that is removed at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// File of rows, one a line, keyed by the text before the first `;` or tab.
    /// Without it, the Unicode Character Database.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Seed of the workload: the same seed ends in the same tables and rows [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How many tables the rows are dealt out to [default: 16].
    #[arg(long, value_name = "N")]
    tables: Option<u32>,
    /// How many operations follow the creation of the tables [default: 3000].
    #[arg(long, value_name = "N")]
    operations: Option<u64>,
    /// Share of the operations in which a stage fails for good, so that they are
    /// rolled back, from 0 to 1 [default: 0.05].
    #[arg(long, value_name = "SHARE")]
    fail_rate: Option<f64>,
    /// How many tablet servers there are [default: 4].
    #[arg(long, value_name = "N")]
    servers: Option<u32>,
    /// Print one closing line of JSON in place of the summary.
    #[arg(long)]
    json: bool,
    /// Keep the dashboard after the end, and inspect the tables for whoever watches, until Ctrl-C.
    /// On a terminal this is so without being asked for.
    #[arg(long, overrides_with = "no_serve")]
    serve: bool,
    /// End as soon as the workload has.
    #[arg(long)]
    no_serve: bool,
    /// Port of the dashboard, on this machine's loopback address; 0 for any that is free
    /// [default: 8077, or any if that is taken].
    #[arg(long, value_name = "PORT", conflicts_with = "no_dashboard")]
    port: Option<u16>,
    /// Serve no dashboard.
    #[arg(long, conflicts_with = "serve")]
    no_dashboard: bool,
    /// Print one line of JSON for each tablet of a directory that nobody works in,
    /// and do nothing else.
    #[arg(long, requires = "data")]
    dump: bool,
}

/// Carries out the command.
///
/// # Errors
///
/// [`DemoError`], whose text says what to do; also if the verification failed.
pub(crate) async fn run(args: DemoArgs) -> Result<(), DemoError> {
    if let (true, Some(root)) = (args.dump, &args.data) {
        return dump::dump(root).await;
    }
    check(&args)?;
    match &args.data {
        Some(root) => run_in(root, &args).await,
        None => {
            let root = temporary()?;
            console::notice(&format!("working in {}", root.display()));
            run_in(&root, &args).await?;
            std::fs::remove_dir_all(&root).map_err(|error| DemoError::file(&root, &error))
        }
    }
}

/// Refuses values that make no sense.
fn check(args: &DemoArgs) -> Result<(), DemoError> {
    let refused = |text: String| Err(DemoError::Argument(text));
    let within = |value: u64, most: u64| (1..=most).contains(&value);
    match args {
        DemoArgs {
            tables: Some(tables), ..
        } if !within(u64::from(*tables), u64::from(TABLES_MAX)) => refused(format!(
            "--tables {tables} makes no sense; give a number from 1 to {TABLES_MAX}"
        )),
        DemoArgs {
            servers: Some(servers), ..
        } if !within(u64::from(*servers), u64::from(SERVERS_MAX)) => refused(format!(
            "--servers {servers} makes no sense; give a number from 1 to {SERVERS_MAX}"
        )),
        DemoArgs {
            operations: Some(operations),
            ..
        } if *operations > OPERATIONS_MAX => refused(format!(
            "--operations {operations} is too many; give a number up to {OPERATIONS_MAX}"
        )),
        DemoArgs {
            fail_rate: Some(rate), ..
        } if !(0.0..=1.0).contains(rate) => {
            refused(format!("--fail-rate {rate} makes no sense; give a share from 0 to 1"))
        }
        _ => Ok(()),
    }
}

async fn run_in(root: &Path, args: &DemoArgs) -> Result<(), DemoError> {
    let (record, input) = prepare(root, args)?;
    let sizes = Sizes {
        seed: record.seed,
        tables: record.tables,
        operations: record.operations,
        fail_rate: record.fail_rate,
        servers: record.servers,
    };
    let view = if args.no_dashboard {
        View::None
    } else {
        View::Served { port: args.port }
    };
    let ended = runner::run(root, &sizes, input, view).await?;
    show(root, args, &ended.report)?;
    if stays(args) {
        console::notice("the dashboard stays; the tables are inspected, until Ctrl-C");
        ended.stay().await?;
    }
    let report = ended.end().await?;
    if report.verdict.holds() {
        Ok(())
    } else {
        Err(DemoError::Unverified {
            findings: report.verdict.findings.len(),
            path: root.to_owned(),
        })
    }
}

/// Somebody at a terminal has just been told where to look, and would find nothing there.
fn stays(args: &DemoArgs) -> bool {
    let somebody_is_there = || stdout().is_terminal() && stderr().is_terminal() && !args.json;
    args.serve || (!args.no_serve && !args.no_dashboard && somebody_is_there())
}

fn show(root: &Path, args: &DemoArgs, report: &Report) -> Result<(), DemoError> {
    for finding in report.findings() {
        console::notice(&finding);
    }
    if args.json {
        let line = report.json().map_err(|error| DemoError::file(root, &error.into()))?;
        console::result(&line);
    } else {
        console::result(&report.summary(args.data.as_deref()));
    }
    Ok(())
}

/// Reads what the directory was begun with, or begins it.
fn prepare(root: &Path, args: &DemoArgs) -> Result<(Record, Input), DemoError> {
    let wishes = Wishes {
        seed: args.seed,
        tables: args.tables,
        operations: args.operations,
        fail_rate: args.fail_rate,
        servers: args.servers,
    };
    let begun = Record::read(root)?;
    let named = args
        .input
        .clone()
        .or_else(|| begun.as_ref()?.input.as_ref().map(PathBuf::from));
    let input = match &named {
        Some(path) => Input::read(path)?,
        None => Input::shipped(),
    };
    match begun {
        Some(record) => {
            record.must_fit(root, &wishes)?;
            if record.digest == input.digest() {
                Ok((record, input))
            } else {
                Err(DemoError::Different {
                    path: root.to_owned(),
                    what: "the input",
                    before: format!("a text with digest {:016x}", record.digest),
                    now: format!("one with digest {:016x}", input.digest()),
                })
            }
        }
        None => {
            let path = named.map(|path| std::path::absolute(&path).unwrap_or(path));
            let record = Record::begin(&wishes, path.map(|path| path.display().to_string()), input.digest());
            record.write(root)?;
            Ok((record, input))
        }
    }
}

/// Names a directory below the system's temporary one that is not there yet.
fn temporary() -> Result<PathBuf, DemoError> {
    let base = std::env::temp_dir();
    let process = std::process::id();
    (0..u32::MAX)
        .map(|number| base.join(format!("procession-demo-{process}-{number}")))
        .find(|root| !root.exists())
        .ok_or(DemoError::Absent(base))
}
