//! The kinds that a dashboard's engine has: a name that is none of them is told, with the one that was meant.

use serde::Deserialize;

use super::exit::Failure;
use super::nearest::nearest;
use super::print;
use super::site::Site;

#[derive(Deserialize)]
struct Kinds {
    items: Vec<KnownKind>,
}

#[derive(Deserialize)]
struct KnownKind {
    kind: String,
}

/// Returns the kinds that the engine has.
pub(crate) async fn names(site: &Site) -> Result<Vec<String>, Failure> {
    let kinds: Kinds = site.get("kinds", &[]).await?.read()?;
    Ok(kinds.items.into_iter().map(|known| known.kind).collect())
}

/// Refuses a kind that the engine does not have.
pub(crate) async fn must_be_known(site: &Site, kind: &str) -> Result<(), Failure> {
    match unknown(site, &[kind]).await? {
        Some(said) => Err(Failure::usage(said)),
        None => Ok(()),
    }
}

/// Says which of these kinds the engine does not have, and which was meant; `None` if it has all.
pub(crate) async fn unknown(site: &Site, kinds: &[&str]) -> Result<Option<String>, Failure> {
    if kinds.is_empty() {
        return Ok(None);
    }
    let known = names(site).await?;
    let Some(kind) = kinds.iter().find(|kind| !known.iter().any(|known| known == *kind)) else {
        return Ok(None);
    };
    let hint = match nearest(kind, known.iter().map(String::as_str)) {
        Some(meant) => format!("; is {meant} meant?"),
        None => format!("; it has {}", print::named(known)),
    };
    let kind = print::plain(kind);
    Ok(Some(format!("the engine has no kind {kind}{hint}")))
}
