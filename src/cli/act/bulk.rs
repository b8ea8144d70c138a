//! One verb for all that a filter admits: the plan names the first of them and how many there are, and the act is a
//! procedure of its own, which is followed until it has asked for all.

use std::time::Duration;

use procession::filter::Filter;
use procession::operate::VerbName;
use procession::provider::{Clock, SystemClock};
use procession::views::ProcedureView;
use serde::Deserialize;
use serde_json::json;

use super::super::document::Document;
use super::super::exit::{Exit, Failure};
use super::super::site::Site;
use super::super::{kinds, print};
use super::target::Target;
use super::{How, send};

/// Procedures that a plan names.
const NAMED: usize = 20;
/// As many as one request may ask for.
const MANY: u32 = 5_000;
/// Between two looks at how far it has got.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A verb for all that a filter admits.
pub(super) struct BulkWish<'a> {
    pub(super) how: &'a How,
    pub(super) verb: VerbName,
    pub(super) filter: &'a str,
}

/// What a dry run says.
#[derive(Deserialize)]
struct Planned {
    revision: String,
    count: usize,
    over: bool,
    truncated: bool,
    items: Vec<ProcedureView>,
}

#[derive(Deserialize)]
struct Begun {
    id: String,
}

#[derive(Deserialize)]
struct Progress {
    state: String,
    left: u64,
    done: u64,
    refused: u64,
    items: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    id: String,
    refused: Option<String>,
}

impl BulkWish<'_> {
    pub(super) async fn make(&self, site: &Site, reason: &str) -> Result<Exit, Failure> {
        let target = Target::Filter(self.filter.to_owned());
        let path = format!("{}/{}", target.path(), self.verb);
        let plan = site
            .post(&path, &json!({ "filter": self.filter, "limit": MANY }), true)
            .await?;
        let planned: Planned = plan.read()?;
        let is_all = self.how.dry_run || planned.count == 0;
        match self.how.json {
            true if is_all => plan.print()?,
            true => {}
            false => planned.show(),
        }
        if planned.truncated {
            return Err(planned.uncounted());
        }
        if planned.over {
            return Err(Failure::usage(format!(
                "the filter admits more than the {MANY} that one request may ask for, and nothing was done; narrow it, \
                 for instance with since:<1h"
            )));
        }
        if planned.count == 0 {
            let filter: Filter = self.filter.parse().map_err(Failure::usage)?;
            if let Some(said) = kinds::unknown(site, &filter.kinds()).await? {
                print::notice(&said);
            }
        }
        if is_all {
            return Ok(Exit::Done);
        }
        self.how.must_be_meant(self.verb.as_str(), &target)?;
        let body = json!({
            "filter": self.filter, "limit": MANY, "reason": reason, "expected": planned.revision,
        });
        let begun = send(site, &path, &body, self.verb.as_str(), &target).await?;
        let Begun { id } = begun.read()?;
        print::notice(&format!(
            "procedure {id} carries it out; Ctrl-C ends only this view of it"
        ));
        self.follow(site, &id).await
    }

    /// Waits until all were asked, and tells what became of them.
    async fn follow(&self, site: &Site, id: &str) -> Result<Exit, Failure> {
        loop {
            let document = site.get(&format!("procedures/{id}/bulk"), &[]).await?;
            let progress: Progress = document.read()?;
            let has_ended = ["Success", "Failed", "RolledBack"].contains(&progress.state.as_str());
            if has_ended || progress.left == 0 {
                return self.told(id, &document, &progress);
            }
            SystemClock.sleep_until(SystemClock.now().after(LOOK_AGAIN)).await;
        }
    }

    fn told(&self, id: &str, document: &Document, progress: &Progress) -> Result<Exit, Failure> {
        if self.how.json {
            document.print()?;
        } else {
            let refused = progress.items.iter().filter_map(|outcome| {
                let why = outcome.refused.as_ref()?;
                Some([outcome.id.clone(), print::plain(why)])
            });
            print::table(["REFUSED", "WHY"], refused.collect::<Vec<_>>());
            print::line(&format!(
                "{}: {} done, {} refused, {} left; procedure {id} keeps each outcome",
                self.verb, progress.done, progress.refused, progress.left
            ));
        }
        Ok(if progress.refused == 0 && progress.left == 0 {
            Exit::Done
        } else {
            Exit::Refused
        })
    }
}

impl Planned {
    /// Says why nothing is done: an act for those that were found would leave out others.
    fn uncounted(&self) -> Failure {
        Failure::new(format!(
            "counting took too long: the filter admits at least {}, and nothing was done; narrow it, for instance with \
             since:<1h, or try again when the engine is less busy",
            print::counted(self.count, "procedure", "procedures")
        ))
    }

    fn show(&self) {
        let rows = self.items.iter().take(NAMED);
        let rows = rows.map(|row| {
            [
                row.id.clone(),
                row.kind.clone(),
                print::standing(row),
                print::or_dash(row.key.as_deref()),
            ]
        });
        print::table(["ID", "KIND", "STATE", "KEY"], rows);
        let more = self.count.saturating_sub(self.items.len().min(NAMED));
        let mut text = print::counted(self.count, "procedure", "procedures");
        if self.truncated {
            text = format!("at least {text}: counting took too long");
        }
        if more > 0 {
            text.push_str(&format!("; {more} are not named here"));
        }
        print::notice(&text);
    }
}

/// Returns the filter as it is sent; one that makes no sense is refused before anything is asked.
pub(super) fn filter_of(text: &str) -> Result<String, String> {
    let filter: Filter = text.parse().map_err(|error| format!("{error}"))?;
    let written = filter.to_string();
    if written.is_empty() {
        return Err("an empty filter admits everything; say which procedures are meant".to_owned());
    }
    Ok(written)
}
