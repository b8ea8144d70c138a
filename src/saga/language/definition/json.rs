//! A JSON document in the order of its file. `serde_json` reads it; its own value sorts keys and drops those that are
//! given twice.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::path::Path;
use super::problem::{Problems, shown};

/// Largest file, in bytes.
pub(super) const BYTES_MAX: usize = 512 << 10;
/// Members of an object up to which each is compared with each: most objects are small.
const FEW: usize = 16;

/// A value of JSON. Members of an object are in the order of the file, and keys may be there twice.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Returns the members; none if it is no object.
    pub(super) fn members(&self) -> Option<&[(String, Json)]> {
        match self {
            Self::Object(members) => Some(members),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    /// Returns the first member of this name that is not null; none as well if this is no object.
    pub(super) fn member(&self, key: &str) -> Option<&Json> {
        let mut members = self.members()?.iter();
        members
            .find(|(name, value)| name == key && *value != Json::Null)
            .map(|(_, value)| value)
    }

    /// Returns the text; none if it is no string.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Returns what it is, for a reader: `"3", a string`.
    pub(super) fn described(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => format!("{value}, a boolean"),
            Self::Number(number) => format!("{number}, a number"),
            Self::Text(text) => format!("\"{}\", a string", shown(text)),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }
}

/// Reads a document, and reports keys that are given twice. None if it is no JSON, or too large.
pub(super) fn read(bytes: &[u8], problems: &mut Problems) -> Option<Json> {
    if bytes.len() > BYTES_MAX {
        too_large(bytes.len().try_into().unwrap_or(u64::MAX), problems);
        return None;
    }
    match parse(bytes) {
        Ok(json) => {
            find_twice(&json, &Path::DOCUMENT, problems);
            Some(json)
        }
        Err(error) => {
            let said = error.to_string();
            // The place is told apart from the text.
            let text = said.rsplit_once(" at line ").map_or(said.as_str(), |(text, _)| text);
            problems.at_position(error.line(), error.column(), text, "the file is cut, or is no JSON");
            None
        }
    }
}

pub(super) fn too_large(size: u64, problems: &mut Problems) {
    let text = format!("the file has {size} bytes, at most {BYTES_MAX}");
    problems.error("", text, "move states into sub machines");
}

fn parse(bytes: &[u8]) -> Result<Json, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let json = Json::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(json)
}

/// As deep as the reader goes, which is 128 levels.
fn find_twice(json: &Json, path: &Path<'_>, problems: &mut Problems) {
    match json {
        Json::Object(members) => {
            for key in twice(members) {
                let text = format!("\"{}\" is given twice", shown(key));
                problems.error(&path.key(key).to_string(), text, "remove one");
            }
            for (key, value) in members {
                find_twice(value, &path.key(key), problems);
            }
        }
        Json::List(items) => {
            for (index, item) in items.iter().enumerate() {
                find_twice(item, &path.index(index), problems);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
    }
}

/// Returns keys that are there before, once for each time.
fn twice(members: &[(String, Json)]) -> Vec<&str> {
    let keys = || members.iter().map(|(key, _)| key.as_str());
    if members.len() <= FEW {
        let is_before = |at: usize, key: &str| keys().take(at).any(|other| other == key);
        return keys()
            .enumerate()
            .filter(|(at, key)| is_before(*at, key))
            .map(|(_, key)| key)
            .collect();
    }
    let mut seen = HashSet::with_capacity(members.len());
    keys().filter(|key| !seen.insert(*key)).collect()
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Whole)
    }
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = entries.next_entry()? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}
