//! What an act is meant for.

use std::fmt;

use procession::ProcedureId;

use super::super::exit::Failure;
use super::super::named::Named;
use super::super::print;
use super::super::site::{Site, segment};

pub(crate) enum Target<I = ProcedureId> {
    One(I),
    Kind(String),
    Limit(String),
    All,
    /// All that a filter admits.
    Filter(String),
}

impl Target<Named> {
    /// Takes what was given; one thing was.
    pub(super) fn of(id: Option<Named>, kind: Option<String>, filter: Option<String>) -> Self {
        match (id, kind, filter) {
            (Some(id), ..) => Self::One(id),
            (None, Some(kind), _) => Self::Kind(kind),
            (None, None, Some(filter)) => Self::Filter(filter),
            (None, None, None) => Self::All,
        }
    }

    /// Asks the dashboard for the procedure of a key.
    pub(super) async fn resolve(self, site: &Site) -> Result<Target, Failure> {
        Ok(match self {
            Self::One(named) => Target::One(site.resolve(&named).await?),
            Self::Kind(kind) => Target::Kind(kind),
            Self::Limit(key) => Target::Limit(key),
            Self::All => Target::All,
            Self::Filter(filter) => Target::Filter(filter),
        })
    }
}

impl Target {
    /// Returns its place in the API.
    pub(super) fn path(&self) -> String {
        match self {
            Self::One(id) => format!("procedures/{id}"),
            Self::Kind(kind) => format!("kinds/{}", segment(kind)),
            Self::Limit(key) => format!("limits/{}", segment(key)),
            Self::All => "engine".to_owned(),
            Self::Filter(_) => "bulk".to_owned(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => write!(f, "{id}"),
            Self::Kind(kind) => write!(f, "the kind {}", print::plain(kind)),
            Self::Limit(key) => write!(f, "the limit {}", print::plain(key)),
            Self::All => f.write_str("the engine"),
            Self::Filter(filter) => write!(f, "all of {}", print::plain(filter)),
        }
    }
}
