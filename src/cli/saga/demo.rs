//! `procession saga demo`: every definition of Seata's, run against a double of its services, case by case. It can be killed
//! at any time, and goes on with the same directory.

mod go;
mod results;

use std::path::{Path, PathBuf};

use clap::Args;
use procession::provider::{Clock, SystemClock};
use rust_embed::RustEmbed;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::cases::Case;
use results::{Results, Verdict};

#[derive(Args)]
pub(super) struct DemoArgs {
    /// The directory of the journals, one for each case. Run again with it, the demo goes on. Without it, a temporary one
    /// that is removed at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Run only the cases whose names begin so, for instance g_009.
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Print JSON, one document a case.
    #[arg(long)]
    json: bool,
}

/// The cases.
#[derive(RustEmbed)]
#[folder = "saga/demo/cases"]
struct Cases;

/// The definitions, which each case names.
#[derive(RustEmbed)]
#[folder = "saga/demo/data/seata"]
struct Seata;

pub(super) async fn run(args: DemoArgs) -> Result<Exit, Failure> {
    let cases = cases(args.case.as_deref())?;
    match &args.data {
        Some(root) => run_in(root, &cases, args.json).await,
        None => {
            let root = std::env::temp_dir().join(format!("procession-saga-demo-{}", std::process::id()));
            let ran = run_in(&root, &cases, args.json).await;
            let removed = std::fs::remove_dir_all(&root);
            let exit = ran?;
            removed.map_err(|error| Failure::new(format!("{} cannot be removed: {error}", root.display())))?;
            Ok(exit)
        }
    }
}

/// A case with its name.
struct Named {
    name: String,
    case: Case,
}

impl Named {
    /// Returns the file that the case is about. The others have its sub machines.
    fn file(&self) -> &str {
        self.case.files.first().map_or("", String::as_str)
    }
}

fn cases(beginning: Option<&str>) -> Result<Vec<Named>, Failure> {
    let mut cases = Vec::new();
    for file in Cases::iter() {
        let name = file.trim_end_matches(".json").to_owned();
        if !name.starts_with(beginning.unwrap_or_default()) {
            continue;
        }
        let text = Cases::get(&file).unwrap_or_else(|| unreachable!("it is one of them"));
        let case = Case::parse(&text.data).map_err(|error| Failure::new(format!("{name}: {error}")))?;
        cases.push(Named { name, case });
    }
    match (cases.is_empty(), beginning) {
        (true, Some(beginning)) => Err(Failure::usage(format!(
            "no case begins with {beginning}; leave --case out to run all of them"
        ))),
        _ => Ok(cases),
    }
}

async fn run_in(root: &Path, cases: &[Named], is_json: bool) -> Result<Exit, Failure> {
    let begun = SystemClock.now();
    let mut results = Results::open(root)?;
    let table = Table::new(cases, is_json);
    table.head();
    for named in cases {
        let verdict = match results.get(&named.name) {
            Some(verdict) => verdict.clone(),
            None => {
                let verdict = go::go(root, named).await?;
                results.add(&verdict)?;
                verdict
            }
        };
        table.row(named, &verdict)?;
    }
    let wrong = results.wrong(cases);
    let files = cases
        .iter()
        .map(Named::file)
        .collect::<std::collections::BTreeSet<_>>()
        .len();
    if wrong == 0 {
        let seconds = SystemClock.now().since(begun).as_secs_f64();
        print::notice(&format!(
            "{} of {} agree with what was expected, in {seconds:.1} s",
            print::counted(cases.len(), "case", "cases"),
            print::counted(files, "file", "files")
        ));
        return Ok(Exit::Done);
    }
    Err(Failure::new(format!(
        "{wrong} of {} cases differ from what was expected",
        cases.len()
    )))
}

/// The table, a row for each case as soon as it has run.
struct Table {
    file: usize,
    is_json: bool,
}

impl Table {
    fn new(cases: &[Named], is_json: bool) -> Self {
        let file = cases.iter().map(|named| named.file().len()).max().unwrap_or_default();
        Self { file, is_json }
    }

    fn head(&self) {
        if !self.is_json {
            self.line(["expected", "found", "commits", "file", "shows"]);
        }
    }

    fn row(&self, named: &Named, verdict: &Verdict) -> Result<(), Failure> {
        if self.is_json {
            return print::json(verdict);
        }
        let commits = verdict.commits.map_or_else(String::new, |commits| commits.to_string());
        self.line([
            &verdict.expected,
            &verdict.found,
            &commits,
            named.file(),
            &named.case.name,
        ]);
        if let Some(why) = &verdict.differs {
            why.lines().for_each(|line| print::line(&print::plain(line)));
        }
        Ok(())
    }

    /// What a case shows stands last: it has any length.
    fn line(&self, [expected, found, commits, file, shows]: [&str; 5]) {
        let wide = self.file;
        print::line(&format!(
            "{expected:<26}  {found:<26}  {commits:>7}  {file:<wide$}  {shows}"
        ));
    }
}
