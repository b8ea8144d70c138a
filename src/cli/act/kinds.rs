//! The kinds that a dashboard's engine has: a name that is none of them is refused, with the one that was meant.

use serde::Deserialize;

use super::super::exit::Failure;
use super::super::print;
use super::super::site::Site;

/// How like a known name one must be to be the one that was meant.
const LIKE: f64 = 0.75;

#[derive(Deserialize)]
struct Kinds {
    items: Vec<KnownKind>,
}

#[derive(Deserialize)]
struct KnownKind {
    kind: String,
}

/// Refuses a kind that the engine does not have.
pub(super) async fn must_be_known(site: &Site, kind: &str) -> Result<(), Failure> {
    let kinds: Kinds = site.get("kinds", &[]).await?.read()?;
    if kinds.items.iter().any(|known| known.kind == kind) {
        return Ok(());
    }
    let likeness = |known: &KnownKind| strsim::jaro_winkler(&known.kind, kind);
    let closest = kinds.items.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let meant = closest.filter(|known| likeness(known) >= LIKE);
    let hint = match meant {
        Some(known) => format!("; is {} meant?", known.kind),
        None => format!(
            "; it has {}",
            print::named(kinds.items.into_iter().map(|known| known.kind).collect())
        ),
    };
    let kind = print::plain(kind);
    Err(Failure::usage(format!("the engine has no kind {kind}{hint}")))
}
