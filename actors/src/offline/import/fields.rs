//! Names of the row fields that this release knows. An import rewrites rows, and would silently lose fields that it
//! does not know.

use std::collections::BTreeMap;

use procession_kernel::Row;
use serde::de::IgnoredAny;

use crate::journal::codec;

/// Returns a field of a stored row that this release does not know, if there is one.
pub(super) fn unknown_field(bytes: &[u8]) -> Option<String> {
    let fields: BTreeMap<String, IgnoredAny> = codec::decode(bytes).ok()?;
    fields.into_keys().find(|name| !Row::FIELDS.contains(&name.as_str()))
}
