//! `procession doctor`: what is stuck, damaged or set aside, and what the journal holds.

use clap::Args;
use serde::Deserialize;

use super::super::exit::{Exit, Failure};
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};
use super::ROWS;
use procession::views::VerdictView;

#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// Of a closed journal, leave tables, values, histories and user data unread
    #[arg(long)]
    quick: bool,
}

#[derive(Deserialize)]
struct Findings {
    /// Bytes that the journal takes up.
    bytes: Option<u64>,
    /// Bytes that are free on its disk.
    #[serde(default)]
    disk_free_bytes: Option<u64>,
    /// Families that a start would take up; none if they cannot be read.
    families: Option<usize>,
    /// Unfinished procedures in them.
    procedures: Option<usize>,
    kinds: Vec<LiveKind>,
    verdicts: Vec<VerdictView>,
    /// Procedures, finished ones too, whose rows cannot be read.
    unreadable: Vec<String>,
    /// What else is damaged, where the journal was read through.
    #[serde(default)]
    damaged: Vec<String>,
    /// How much that is; of very many, not all are told.
    #[serde(default)]
    damages: usize,
    /// It was not read through.
    #[serde(default)]
    quick: bool,
    /// What is paused as a whole: kinds, or everything.
    #[serde(default)]
    paused: Vec<String>,
    /// Of an engine that runs.
    #[serde(default)]
    engine: Running,
}

/// How many unfinished procedures there are of one version of a kind.
#[derive(Deserialize)]
struct LiveKind {
    kind: String,
    version: u16,
    live: usize,
}

/// What only an engine that runs tells of itself.
#[derive(Default, Deserialize)]
struct Running {
    /// It sets nothing more going.
    #[serde(default)]
    draining: bool,
    /// Within how many milliseconds 99 of 100 of its newest batches were on disk.
    #[serde(default)]
    commit_p99_ms: Option<u64>,
    /// Within how many milliseconds half of the newest syncs were done, and 99 of 100.
    #[serde(default)]
    sync_p50_ms: Option<f64>,
    #[serde(default)]
    sync_p99_ms: Option<f64>,
}

pub(super) async fn run(source: &Source, args: &DoctorArgs) -> Result<Exit, Failure> {
    let document = source.findings(args.quick).await?;
    let findings: Findings = document.read()?;
    let needs_you = !findings.verdicts.is_empty() || !findings.unreadable.is_empty() || findings.damages > 0;
    if !args.place.prints(&document)? {
        show(&findings, needs_you);
    }
    Ok(if needs_you { Exit::NeedsYou } else { Exit::Done })
}

fn show(findings: &Findings, needs_you: bool) {
    let bytes = findings.bytes.map_or_else(|| "?".to_owned(), moment::bytes);
    let live = match (findings.families, findings.procedures) {
        (Some(families), Some(procedures)) => format!(
            "{}, {}",
            print::counted(families, "live family", "live families"),
            print::counted(procedures, "unfinished procedure", "unfinished procedures")
        ),
        (None, _) | (_, None) => "live families cannot be read".to_owned(),
    };
    print::line(&format!("{bytes}, {live}"));
    if let Some(free) = findings.disk_free_bytes {
        let synced = findings.engine.commit_p99_ms;
        // Whole milliseconds, cut: within one more it was done.
        let synced = synced.map(|time| format!("; commit p99 {} ms", time + 1));
        let syncs = findings.engine.sync_p50_ms.zip(findings.engine.sync_p99_ms);
        let syncs = syncs.map(|(half, most)| format!("; fsync p50 {half} ms, p99 {most} ms"));
        print::line(&format!(
            "{} are free on its disk{}{}",
            moment::bytes(free),
            synced.unwrap_or_default(),
            syncs.unwrap_or_default()
        ));
    }
    let kinds = findings.kinds.iter().map(|kind| {
        [
            print::plain(&kind.kind),
            kind.version.to_string(),
            kind.live.to_string(),
        ]
    });
    print::table(["KIND", "VERSION", "LIVE"], kinds);
    if findings.engine.draining {
        print::line("the engine drains: no further stage starts");
    }
    for what in &findings.paused {
        print::line(&format!(
            "{} is paused: no stage of it starts until an operator resumes it",
            print::plain(what)
        ));
    }
    if findings.quick {
        print::notice("tables, values, histories and user data were not read, as --quick says");
    }
    if !needs_you {
        print::line("nothing needs you");
        return;
    }
    for id in &findings.unreadable {
        print::line(&format!("unreadable  the row of {id} is damaged"));
    }
    for damage in findings.damaged.iter().take(ROWS) {
        print::line(&format!("damaged     {}", print::plain(damage)));
    }
    let more = findings.damages.saturating_sub(findings.damaged.len().min(ROWS));
    if more > 0 {
        print::notice(&format!("{more} more damages are not shown; see --json"));
    }
    let more = findings.verdicts.len().saturating_sub(ROWS);
    if more > 0 {
        print::notice(&format!("{more} more are not shown; see --json"));
    }
    for verdict in findings.verdicts.iter().take(ROWS) {
        print::line(&format!("{:<16} {}", verdict.rule, print::plain(&verdict.text)));
    }
    print::notice("docs/reference/operations.md says what to do about each");
}
