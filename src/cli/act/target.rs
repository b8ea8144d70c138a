//! What an act is meant for.

use std::fmt;

use procession::ProcedureId;

use super::super::print;
use super::super::site::segment;

pub(crate) enum Target {
    One(ProcedureId),
    Kind(String),
    All,
}

impl Target {
    /// Takes what was given; one thing was.
    pub(super) fn of(id: Option<ProcedureId>, kind: Option<String>) -> Self {
        match (id, kind) {
            (Some(id), _) => Self::One(id),
            (None, Some(kind)) => Self::Kind(kind),
            (None, None) => Self::All,
        }
    }

    /// Gives its place in the API.
    pub(super) fn path(&self) -> String {
        match self {
            Self::One(id) => format!("procedures/{id}"),
            Self::Kind(kind) => format!("kinds/{}", segment(kind)),
            Self::All => "engine".to_owned(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => write!(f, "{id}"),
            Self::Kind(kind) => write!(f, "the kind {}", print::plain(kind)),
            Self::All => f.write_str("the engine"),
        }
    }
}
