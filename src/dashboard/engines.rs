//! The engines that one page leads to: names and addresses that the host's code gives.

use std::collections::BTreeSet;

use serde::Serialize;
use thiserror::Error;

/// Engines of one menu, at most.
const ENGINES_MAX: usize = 64;
/// Longest name, and longest address, in bytes.
const NAME_MAX: usize = 64;
const URL_MAX: usize = 2_048;

/// Why a list of engines is none that a page can lead to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EngineListError {
    /// There are too many.
    #[error("a page leads to 64 engines at most; leave some out")]
    TooMany,
    /// A name is empty, too long, has control characters, or stands for two engines.
    #[error("{0:?} is no name of an engine; give each a name of its own, of 1 to 64 bytes without control characters")]
    Name(String),
    /// A browser would not go there, or would run it.
    #[error("{0:?} is no address of a dashboard; write https:// or http:// and a host, or a path that begins with /")]
    Address(String),
}

/// One engine of the menu.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    name: String,
    url: String,
}

/// Checks a list.
pub(super) fn checked<N: AsRef<str>, U: AsRef<str>>(
    engines: impl IntoIterator<Item = (N, U)>,
) -> Result<Vec<Listed>, EngineListError> {
    let (mut names, mut listed) = (BTreeSet::new(), Vec::new());
    for (name, url) in engines {
        let (name, url) = (name.as_ref().to_owned(), url.as_ref().to_owned());
        if listed.len() == ENGINES_MAX {
            return Err(EngineListError::TooMany);
        }
        let is_name = (1..=NAME_MAX).contains(&name.len()) && !name.contains(char::is_control);
        if !is_name || !names.insert(name.clone()) {
            return Err(EngineListError::Name(name));
        }
        if !is_address(&url) {
            return Err(EngineListError::Address(url));
        }
        listed.push(Listed { name, url });
    }
    Ok(listed)
}

/// Returns `true` for a path of this host, or an address with a host, without a query or a fragment.
fn is_address(url: &str) -> bool {
    let is_odd = |char: char| char.is_whitespace() || char.is_control() || matches!(char, '\\' | '?' | '#');
    if url.len() > URL_MAX || url.contains(is_odd) {
        return false;
    }
    let host = ["https://", "http://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    match host {
        Some(host) => !host.is_empty() && !host.starts_with('/'),
        None => url.starts_with('/') && !url.starts_with("//"),
    }
}
