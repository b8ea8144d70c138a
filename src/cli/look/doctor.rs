//! `procession doctor`: what is stuck, damaged or set aside, and what the journal holds.

use clap::Args;
use procession_actors::offline::{Offline, Standing};
use procession_kernel::ProcedureId;
use serde::Serialize;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, ROWS, cut, reply};
use crate::views::VerdictView;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct DoctorArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Findings {
    /// Bytes that the journal takes up.
    bytes: Option<u64>,
    /// Families that a start would take up.
    families: usize,
    /// Unfinished procedures in them.
    procedures: usize,
    kinds: Vec<LiveKind>,
    verdicts: Vec<VerdictView>,
    /// Procedures, finished ones too, whose rows cannot be read.
    unreadable: Vec<String>,
}

/// How many unfinished procedures there are of one version of a kind.
#[derive(Serialize)]
struct LiveKind {
    kind: String,
    version: u16,
    live: usize,
}

pub(super) async fn run(args: DoctorArgs) -> Result<Exit, Failure> {
    let journal = args.place.open().await?;
    let standing = journal.standing().await?;
    let findings = findings(&journal, &standing).await?;
    let needs_you = !findings.verdicts.is_empty() || !findings.unreadable.is_empty();
    if args.place.json {
        print::json(&reply(&journal, findings))?;
    } else {
        show(&findings, needs_you);
    }
    Ok(if needs_you { Exit::NeedsYou } else { Exit::Done })
}

async fn findings(journal: &Offline, standing: &Standing) -> Result<Findings, Failure> {
    let kind = |((kind, version), live): ((procession_kernel::Kind, u16), usize)| LiveKind {
        kind: kind.to_string(),
        version,
        live,
    };
    Ok(Findings {
        bytes: journal.size_bytes(),
        families: standing.recovered().families,
        procedures: standing.recovered().procedures,
        kinds: standing.kinds().into_iter().map(kind).collect(),
        verdicts: standing.verdicts().iter().map(VerdictView::from).collect(),
        unreadable: unreadable(journal).await?,
    })
}

/// Reads every row there is, a page at a time.
async fn unreadable(journal: &Offline) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    let mut cursor: Option<ProcedureId> = None;
    loop {
        let page = journal.list(cursor, 1, |_| false).await?;
        found.extend(page.unreadable.iter().map(ToString::to_string));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(found),
        }
    }
}

fn show(findings: &Findings, needs_you: bool) {
    let bytes = findings.bytes.map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    let families = print::counted(findings.families, "live family", "live families");
    let procedures = print::counted(findings.procedures, "unfinished procedure", "unfinished procedures");
    print::line(&format!("{bytes} bytes, {families}, {procedures}"));
    let kinds = findings.kinds.iter().map(|kind| {
        [
            print::plain(&kind.kind),
            kind.version.to_string(),
            kind.live.to_string(),
        ]
    });
    print::table(["KIND", "VERSION", "LIVE"], kinds);
    if !needs_you {
        print::line("nothing needs you");
        return;
    }
    for id in &findings.unreadable {
        print::line(&format!("unreadable  the row of {id} is damaged"));
    }
    for verdict in cut(findings.verdicts.iter().collect(), ROWS) {
        print::line(&format!("{:<16} {}", verdict.rule, print::plain(&verdict.text)));
    }
    print::notice("docs/operations.md says what to do about each");
}
