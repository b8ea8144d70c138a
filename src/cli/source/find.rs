//! What an idempotency key stands for, of either source.

use procession::ProcedureId;
use procession::views::time;
use serde::Deserialize;

use super::super::exit::Failure;
use super::super::print;
use super::super::site::Site;
use super::Journal;

/// As a dashboard tells it.
#[derive(Deserialize)]
struct Found {
    found: String,
    id: String,
    key_until: Option<String>,
}

impl Journal {
    pub(super) async fn find(&self, key: &str) -> Result<ProcedureId, Failure> {
        let found = self.offline.find(key).await?.ok_or_else(|| unknown(key))?;
        match found.status() {
            Some(status) => Ok(status.id),
            None => Err(gone(
                key,
                &found.id().to_string(),
                found.key_until().map(time).as_deref(),
            )),
        }
    }
}

impl Site {
    pub(crate) async fn find(&self, key: &str) -> Result<ProcedureId, Failure> {
        let found: Found = self.get("find", &[("key", key)]).await?.read()?;
        if found.found == "gone" {
            return Err(gone(key, &found.id, found.key_until.as_deref()));
        }
        found.id.parse().map_err(Failure::new)
    }
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
