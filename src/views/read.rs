//! How views are read back where what was sent need not be what this release sends: a text
//! of users' that a redaction has replaced, and words of a later release.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::Reason;

/// What stands where a text was.
#[derive(Deserialize)]
#[serde(untagged)]
enum Shown {
    Text(String),
    Other(IgnoredAny),
}

impl Shown {
    fn words(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Other(_) => "(redacted)".to_owned(),
        }
    }
}

/// Reads a text that may have been redacted.
pub(super) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Shown::deserialize(from).map(Shown::words)
}

/// Reads a text that may have been redacted, or not be there.
pub(super) fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let shown = Option::<Shown>::deserialize(from)?;
    Ok(shown.map(Shown::words))
}

/// Reads a reason; one that is not known here is none.
pub(super) fn reason<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Reason>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    Ok(word.and_then(|word| word.parse().ok()))
}
