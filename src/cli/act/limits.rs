//! The limits that an engine has: a name that is none of them is told, with the one that was meant.

use serde::Deserialize;

use super::super::exit::Failure;
use super::super::kinds;
use super::super::nearest::nearest;
use super::super::print;
use super::super::site::Site;

#[derive(Deserialize)]
struct Limits {
    items: Vec<KnownLimit>,
}

#[derive(Deserialize)]
struct KnownLimit {
    key: String,
}

/// Says that there is no such limit, which one was meant, and how a new one is made.
pub(super) async fn unknown(site: &Site, key: &str) -> Failure {
    match hint(site, key).await {
        Ok(hint) => Failure::usage(format!(
            "the engine has no limit {}; {hint} To make a new one, give --new",
            print::plain(key)
        )),
        Err(failure) => failure,
    }
}

async fn hint(site: &Site, key: &str) -> Result<String, Failure> {
    let limits: Limits = site.get("limits", &[]).await?.read()?;
    let limits = limits.items.into_iter().map(|limit| limit.key);
    // Each kind has a limit of its own name.
    let names: Vec<String> = limits.chain(kinds::names(site).await?).collect();
    Ok(match nearest(key, names.iter().map(String::as_str)) {
        Some(meant) => format!("is {meant} meant?"),
        None => format!("it has {}.", print::named(names)),
    })
}
