//! `procession tail`: what changes, line by line, as a dashboard tells of it.

use std::time::Duration;

use clap::Args;
use procession::provider::{Clock, SystemClock};
use serde::Deserialize;
use serde_json::Value;

use super::document::{Document, read};
use super::exit::{Exit, Failure};
use super::look::{ROWS, why};
use super::place::Remote;
use super::site::{Event, Heard, Listening, Site, Unanswered};
use super::source::Wanted;
use super::{moment, print};
use procession::filter::Filter;
use procession::views::ProcedureView;

/// How long to wait before a stream that was cut is opened again; twice as long each time.
const BACKOFF: Duration = Duration::from_millis(500);
/// The longest of these waits.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Args)]
pub(super) struct TailArgs {
    #[command(flatten)]
    remote: Remote,
    /// What to tell of, as for ls.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Print JSON, one event a line: `event`, and what the API says of it.
    #[arg(long)]
    json: bool,
    /// How often in a row to try to reach the dashboard again when it is gone.
    #[arg(long, value_name = "N", default_value_t = 10)]
    retries: u32,
}

/// Rows that changed.
#[derive(Deserialize)]
struct Change {
    now: String,
    rows: Vec<ProcedureView>,
}

/// What happens next.
enum Next {
    GoOn,
    End,
}

struct Tail {
    site: Site,
    filter: Filter,
    json: bool,
    /// Up to which commit it has told: the `as_of` of what was read last.
    at: String,
    /// The last event, if there was one since then.
    last: Option<String>,
}

/// Tells of changes until Ctrl-C, or until the engine drains.
pub(super) async fn run(args: TailArgs) -> Result<Exit, Failure> {
    let filter: Filter = args.filter.join(" ").parse().map_err(Failure::usage)?;
    let site = args.remote.must_be_named()?;
    tokio::select! {
        biased;
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.map_err(Failure::new)?;
            Ok(Exit::Done)
        }
        ended = follow(site, filter, &args) => ended,
    }
}

async fn follow(site: Site, filter: Filter, args: &TailArgs) -> Result<Exit, Failure> {
    let page = page(&site, &filter, 1).await?;
    let mut tail = Tail {
        at: as_of(&page),
        last: None,
        json: args.json,
        filter,
        site,
    };
    let mut failed = 0;
    loop {
        let asked = Listening {
            filter: tail.filter.to_string(),
            from: tail.at.clone(),
            last: tail.last.clone(),
        };
        let mut stream = tail.site.listen(asked);
        let cut = loop {
            match stream.recv().await {
                Some(Heard::Event(event)) => {
                    failed = 0;
                    if matches!(tail.tell(event).await?, Next::End) {
                        return Ok(Exit::Done);
                    }
                }
                Some(Heard::Cut(why)) => break why,
                None => break Unanswered::Unreached("the stream was cut".to_owned()),
            }
        };
        if !cut.may_pass() || failed == args.retries {
            return Err(cut.into());
        }
        print::notice(&format!("{}; trying again", Failure::from(cut).text));
        let wait = BACKOFF.saturating_mul(1 << failed.min(8)).min(BACKOFF_MAX);
        SystemClock.sleep_until(SystemClock.now().after(wait)).await;
        failed += 1;
    }
}

impl Tail {
    async fn tell(&mut self, event: Event) -> Result<Next, Failure> {
        let before = self.last.as_ref().unwrap_or(&self.at).clone();
        if event.id.is_some() {
            self.last.clone_from(&event.id);
        }
        match event.name.as_str() {
            "change" => self.change(&event),
            "resync" => self.resync(&event, seq(&before)).await,
            "bye" => {
                self.as_json(&event);
                print::notice("the stream has ended: the engine drains, or its dashboard was closed");
                Ok(Next::End)
            }
            // Pings, and how the engine as a whole stands.
            _ => Ok(Next::GoOn),
        }
    }

    /// Prints an event for programs; tells whether to go on. On a terminal it prints nothing.
    fn as_json(&self, event: &Event) -> Next {
        if !self.json {
            return Next::GoOn;
        }
        let mut line = Document(event.data.clone());
        line.put("event", event.name.as_str());
        printed(&line.0.to_string())
    }

    fn change(&self, event: &Event) -> Result<Next, Failure> {
        if self.json {
            return Ok(self.as_json(event));
        }
        let change: Change = read(&event.data)?;
        Ok(self.rows(&change.now, &change.rows))
    }

    fn rows(&self, now: &str, rows: &[ProcedureView]) -> Next {
        for row in rows {
            if let Next::End = printed(&line(now, row)) {
                return Next::End;
            }
        }
        Next::GoOn
    }

    /// More changed than the stream could tell: what stands there now is read, and of it told
    /// what was written after the commit that was `seen` last.
    async fn resync(&mut self, event: &Event, seen: u64) -> Result<Next, Failure> {
        print::notice("too much has changed to be told one by one: reading anew; what has ended meanwhile is left out");
        if let Next::End = self.as_json(event) {
            return Ok(Next::End);
        }
        let page = page(&self.site, &self.filter, ROWS).await?;
        self.at = as_of(&page);
        self.last = None;
        let rows = page.get("items").as_array().into_iter().flatten();
        let is_new = |row: &&Value| seq(row.get("revision").and_then(Value::as_str).unwrap_or_default()) > seen;
        let rows: Vec<Value> = rows.filter(is_new).cloned().collect();
        if self.json {
            let data = serde_json::json!({ "now": page.get("now"), "as_of": page.get("as_of"), "rows": rows });
            let (name, id) = ("change".to_owned(), None);
            return Ok(self.as_json(&Event { name, id, data }));
        }
        let rows: Vec<ProcedureView> = rows.iter().map(read).collect::<Result<_, _>>()?;
        Ok(self.rows(&page.get("now").as_str().map(print::plain).unwrap_or_default(), &rows))
    }
}

/// Reads at most so many of those that the filter admits.
async fn page(site: &Site, filter: &Filter, limit: usize) -> Result<Document, Failure> {
    let wanted = Wanted {
        filter: filter.clone(),
        all: false,
        limit,
        after: None,
    };
    site.list(&wanted).await
}

fn as_of(page: &Document) -> String {
    page.get("as_of").as_str().unwrap_or_default().to_owned()
}

/// Returns the commit of a moment, `epoch-commit`, or of a revision; the first if it is neither.
fn seq(text: &str) -> u64 {
    let seq = text.split_once('-').map_or(text, |(_, seq)| seq);
    seq.parse().unwrap_or_default()
}

/// Prints a line; there is no more to do when nobody reads it.
fn printed(text: &str) -> Next {
    if print::next_line(text) { Next::GoOn } else { Next::End }
}

fn line(now: &str, row: &ProcedureView) -> String {
    let why = why(row).map(|why| format!(" ({why})")).unwrap_or_default();
    let (now, state) = (moment::seconds(now), print::standing(row));
    format!("{now}  {} {}  {state}{why}  {}", row.id, row.kind, row.next)
}
