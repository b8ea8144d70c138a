//! `procession saga show`: how a saga stands, and what it has come to at each of its states.

use std::collections::BTreeMap;

use clap::Args;
use procession::ProcedureId;
use procession::errors::AskError;
use procession::saga::SagaReader;
use serde::Deserialize;
use serde_json::json;

use super::super::document::Document;
use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::site::Unanswered;
use super::super::source::{Journal, Source};
use super::super::{moment, print};

#[derive(Debug, Clone, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    place: Place,
    /// Which saga: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
}

/// The parts of a picture that a terminal shows.
#[derive(Deserialize)]
struct Shown {
    id: String,
    machine: String,
    version: Option<String>,
    standing: String,
    status: String,
    compensation: Option<String>,
    sentence: String,
    since: String,
    states: Vec<State>,
    rests: Vec<Rest>,
    truncated: bool,
}

#[derive(Deserialize)]
struct State {
    name: String,
    r#type: String,
    status: Option<String>,
    visited: bool,
    tries: u32,
    took_ms: u64,
    compensated: u32,
    here: Vec<Here>,
    here_more: usize,
    counts: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct Here {
    id: String,
    does: String,
}

#[derive(Deserialize)]
struct Rest {
    id: String,
    state: String,
    why: String,
    since: String,
    can_skip: bool,
}

pub(super) async fn run(args: &ShowArgs) -> Result<Exit, Failure> {
    let source = args.place.open().await?;
    let id = source.resolve(&args.id).await?;
    let document = match &source {
        Source::Site(site) => {
            let picture = site.get(&format!("procedures/{id}/saga"), &[]).await;
            picture.map_err(|why| match why {
                Unanswered::Problem(problem) if problem.kind == "unknown" => no_saga(id),
                other @ (Unanswered::Problem(_) | Unanswered::Unreached(_) | Unanswered::Other(_)) => other.into(),
            })?
        }
        Source::Journal(journal) => of_journal(journal, id).await?,
    };
    match args.place.json {
        true => document.print()?,
        false => show(&document.read()?),
    }
    Ok(Exit::Done)
}

/// Whoever has the directory may read all of it. The context is left to `export --payload`, as other payloads are.
async fn of_journal(journal: &Journal, id: ProcedureId) -> Result<Document, Failure> {
    let reader = SagaReader::closed(journal.offline(), id);
    let picture = reader.picture(|_, _, text| text.to_owned()).await;
    if let Err(AskError::Unknown(id)) = picture {
        return Err(no_saga(id));
    }
    let picture = picture?;
    let mut document = journal.reply(picture)?;
    let size = document.get("context").get("size").cloned();
    document.put("context", json!({ "redacted": true, "size": size }));
    Ok(document)
}

fn no_saga(id: ProcedureId) -> Failure {
    Failure::new(format!(
        "there is no saga {id}; see \"procession ls kind:saga.NAME\" and \"procession ls reason:decision\""
    ))
}

fn show(saga: &Shown) {
    let version = saga.version.as_ref().map(|version| format!(" version {version}"));
    let compensation = saga.compensation.as_deref().unwrap_or("-");
    print::line(&format!(
        "{} {}{}: {} ({},{compensation}){}",
        saga.id,
        saga.machine,
        version.unwrap_or_default(),
        saga.standing.replace('_', " "),
        saga.status,
        moment::since(&saga.since),
    ));
    print::line(&saga.sentence);
    let headings = ["STATE", "TYPE", "STATUS", "TRIES", "TOOK", "UNDONE", "HERE"];
    print::table(headings, saga.states.iter().map(row));
    if saga.states.is_empty() {
        print::notice("its states are shown once the first one has committed: its definition is stored with that");
    }
    let rests = saga.rests.iter().map(|rest| {
        [
            rest.id.clone(),
            rest.state.clone(),
            moment::when(&rest.since),
            if rest.can_skip { "yes" } else { "no" }.to_owned(),
            rest.why.clone(),
        ]
    });
    print::table(["RESTS", "AT", "SINCE", "CAN SKIP", "WHY"], rests);
    if saga.truncated {
        print::notice("there is more of this saga than is counted here");
    }
}

fn row(state: &State) -> [String; 7] {
    let counts: Vec<String> = state
        .counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let status = match (&state.status, state.visited) {
        (Some(status), _) => status.clone(),
        (None, true) => "passed".to_owned(),
        (None, false) => "-".to_owned(),
    };
    let status = match counts.is_empty() {
        true => status,
        false => format!("{status}: {}", counts.join(", ")),
    };
    let was_run = state.tries > 0;
    let number = |number: String| if was_run { number } else { "-".to_owned() };
    let here = state
        .here
        .iter()
        .map(|here| format!("{} {}", here.id, here.does.replace('_', " ")));
    let mut here: Vec<String> = here.collect();
    here.extend((state.here_more > 0).then(|| format!("{} more", state.here_more)));
    [
        state.name.clone(),
        state.r#type.clone(),
        status,
        number(state.tries.to_string()),
        number(format!("{} ms", state.took_ms)),
        if state.compensated > 0 {
            state.compensated.to_string()
        } else {
            "-".to_owned()
        },
        if here.is_empty() {
            "-".to_owned()
        } else {
            here.join(", ")
        },
    ]
}
