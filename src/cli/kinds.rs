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
    let known: Kinds = site.get("kinds", &[]).await?.read()?;
    let is_known = |kind: &str| known.items.iter().any(|known| known.kind == kind);
    let Some(kind) = kinds.iter().find(|kind| !is_known(kind)) else {
        return Ok(None);
    };
    let hint = match nearest(kind, known.items.iter().map(|known| known.kind.as_str())) {
        Some(meant) => format!("; is {meant} meant?"),
        None => format!(
            "; it has {}",
            print::named(known.items.into_iter().map(|known| known.kind).collect())
        ),
    };
    let kind = print::plain(kind);
    Ok(Some(format!("the engine has no kind {kind}{hint}")))
}
