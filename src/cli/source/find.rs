//! What an idempotency key or a label stands for, of either source.

use procession::ProcedureId;
use procession::submit::Label;
use procession::views::{PageView, time};
use serde::Deserialize;

use super::super::document::Document;
use super::super::exit::Failure;
use super::super::named::Named;
use super::super::print;
use super::super::site::{Site, Unanswered};
use super::{Journal, Wanted};

/// Procedures with one label that are looked at, at most.
const LABELLED_MAX: usize = 500;

/// As a dashboard tells it.
#[derive(Deserialize)]
pub(super) struct Found {
    found: String,
    id: String,
    key_until: Option<String>,
}

impl Journal {
    pub(super) async fn find(&self, key: &str) -> Result<Option<Found>, Failure> {
        let found = self.offline.find(key).await?;
        Ok(found.map(|found| Found {
            found: found.as_str().to_owned(),
            id: found.id().to_string(),
            key_until: found.key_until().map(time),
        }))
    }
}

impl Journal {
    pub(super) async fn resolve(&self, named: &Named) -> Result<ProcedureId, Failure> {
        match named {
            Named::Label(label) => one_of(label, &self.list(&labelled(label)?).await?),
            Named::Id(_) | Named::Number { .. } | Named::Key(_) => {
                resolve(named, async |key| self.find(key).await).await
            }
        }
    }
}

impl Site {
    pub(crate) async fn resolve(&self, named: &Named) -> Result<ProcedureId, Failure> {
        if let Named::Label(label) = named {
            return one_of(label, &self.list(&labelled(label)?).await?);
        }
        // A number need not be a key.
        let may_be_unknown = matches!(named, Named::Number { .. });
        resolve(named, async |key| match self.get("find", &[("key", key)]).await {
            Ok(document) => Ok(Some(document.read()?)),
            Err(Unanswered::Problem(problem)) if may_be_unknown && problem.kind == "unknown" => Ok(None),
            Err(other) => Err(other.into()),
        })
        .await
    }
}

/// Returns the id of a named procedure. `find` looks up a key.
pub(super) async fn resolve(
    named: &Named,
    find: impl AsyncFn(&str) -> Result<Option<Found>, Failure>,
) -> Result<ProcedureId, Failure> {
    match named {
        Named::Id(id) => Ok(*id),
        Named::Number { family, text } => match find(text).await? {
            Some(found) if found.id != ProcedureId::root(*family).to_string() => {
                Err(ambiguous(text, *family, &found.id))
            }
            Some(_) | None => Ok(ProcedureId::root(*family)),
        },
        Named::Key(key) => {
            let found = find(key).await?.ok_or_else(|| unknown(key))?;
            if found.found == "gone" {
                return Err(gone(key, &found.id, found.key_until.as_deref()));
            }
            found.id.parse().map_err(Failure::new)
        }
        // It is looked up by the index of labels.
        Named::Label(label) => Err(unknown(&label.to_string())),
    }
}

/// Returns what to look for: procedures with this label, those that have ended, too.
fn labelled(label: &Label) -> Result<Wanted, Failure> {
    let value = label.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    Ok(Wanted {
        filter: format!("label:\"{value}\"").parse().map_err(Failure::usage)?,
        all: true,
        limit: LABELLED_MAX,
        after: None,
    })
}

/// Returns the one root that has a label. Children may have inherited it.
fn one_of(label: &Label, page: &Document) -> Result<ProcedureId, Failure> {
    let page: PageView = page.read()?;
    let ids = page.items.iter().filter_map(|item| item.id.parse::<ProcedureId>().ok());
    let roots: Vec<ProcedureId> = ids.filter(|id| id.is_root()).collect();
    let label = print::plain(&label.to_string());
    match roots.as_slice() {
        [root] if page.cursor.is_none() => Ok(*root),
        [] if page.cursor.is_none() => Err(Failure::new(format!(
            "no procedure has the label {label}; see \"procession ls --all\" for what is there"
        ))),
        several => Err(Failure::usage(format!(
            "the label {label} is ambiguous: {} have it; name one by its id, see \"procession ls --all label:{label}\"",
            print::named(several.iter().map(ToString::to_string).collect())
        ))),
    }
}

fn ambiguous(text: &str, family: u64, keyed: &str) -> Failure {
    Failure::usage(format!(
        "{text} is ambiguous: it is the number of a family and the key of {keyed}; write {} or key:{text}",
        ProcedureId::root(family)
    ))
}

fn unknown(key: &str) -> Failure {
    Failure::new(format!(
        "the journal knows no procedure with the key \"{}\"; a key goes with the result unless its submission keeps it \
         longer; see \"procession ls --all\" for what is there",
        print::plain(key)
    ))
}

fn gone(key: &str, id: &str, until: Option<&str>) -> Failure {
    let until = until
        .map(|until| format!("; the key is kept until {until}"))
        .unwrap_or_default();
    Failure::new(format!(
        "the key \"{}\" stands for {id}, which has ended, and its result has gone{until}",
        print::plain(key)
    ))
}
