//! `procession demo tablets`: the tablet master's workload, and the look into its directory.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::demo::input::Input;
use crate::demo::record::{Record, Wishes};
use crate::demo::report::Report;
use crate::demo::run as runner;
use crate::demo::story::{Place, Story};
use crate::demo::watch::WatchArgs;
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
pub(crate) struct TabletsArgs {
    /// Directory to work in; run again on the same one, it goes on. Without it, one of this
    /// user's own, which begins anew once a run has ended.
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
    #[command(flatten)]
    watch: WatchArgs,
    /// Print one line of JSON for each tablet of a directory that nobody works in,
    /// and do nothing else.
    #[arg(long)]
    dump: bool,
}

/// Carries out the command.
///
/// # Errors
///
/// [`DemoError`], whose text says what to do; also if the verification failed.
pub(crate) async fn run(args: TabletsArgs) -> Result<(), DemoError> {
    if args.dump {
        let place = Place::of(args.data.as_deref(), Story::Tablets)?;
        return dump::dump(&place.root).await;
    }
    check(&args)?;
    let place = Place::open(args.data.as_deref(), Story::Tablets)?;
    run_in(&place.root, &args).await?;
    place.end()
}

/// Refuses values that make no sense.
fn check(args: &TabletsArgs) -> Result<(), DemoError> {
    let refused = |text: String| Err(DemoError::Argument(text));
    let within = |value: u64, most: u64| (1..=most).contains(&value);
    match args {
        TabletsArgs {
            tables: Some(tables), ..
        } if !within(u64::from(*tables), u64::from(TABLES_MAX)) => refused(format!(
            "--tables {tables} makes no sense; give a number from 1 to {TABLES_MAX}"
        )),
        TabletsArgs {
            servers: Some(servers), ..
        } if !within(u64::from(*servers), u64::from(SERVERS_MAX)) => refused(format!(
            "--servers {servers} makes no sense; give a number from 1 to {SERVERS_MAX}"
        )),
        TabletsArgs {
            operations: Some(operations),
            ..
        } if *operations > OPERATIONS_MAX => refused(format!(
            "--operations {operations} is too many; give a number up to {OPERATIONS_MAX}"
        )),
        TabletsArgs {
            fail_rate: Some(rate), ..
        } if !(0.0..=1.0).contains(rate) => {
            refused(format!("--fail-rate {rate} makes no sense; give a share from 0 to 1"))
        }
        _ => Ok(()),
    }
}

async fn run_in(root: &Path, args: &TabletsArgs) -> Result<(), DemoError> {
    let (record, input) = prepare(root, args)?;
    let sizes = Sizes {
        seed: record.seed,
        tables: record.tables,
        operations: record.operations,
        fail_rate: record.fail_rate,
        servers: record.servers,
    };
    let ended = runner::run(root, &sizes, input, args.watch.view()).await?;
    show(root, args, &ended.report)?;
    if args.watch.stays() {
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

fn show(root: &Path, args: &TabletsArgs, report: &Report) -> Result<(), DemoError> {
    for finding in report.findings() {
        console::notice(&finding);
    }
    if args.watch.json {
        let line = report.json().map_err(|error| DemoError::file(root, &error.into()))?;
        console::result(&line);
    } else {
        console::result(&report.summary(root));
    }
    Ok(())
}

/// Reads what the directory was begun with, or begins it.
fn prepare(root: &Path, args: &TabletsArgs) -> Result<(Record, Input), DemoError> {
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
