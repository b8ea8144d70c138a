//! What an idempotency key stands for, of either source.

use procession::ProcedureId;
use procession::views::time;
use serde::Deserialize;

use super::super::exit::Failure;
use super::super::named::Named;
use super::super::print;
use super::super::site::{Site, Unanswered};
use super::Journal;

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

impl Site {
    pub(crate) async fn resolve(&self, named: &Named) -> Result<ProcedureId, Failure> {
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
