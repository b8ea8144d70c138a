//! Labels: names with values under which people find their procedures again. The kernel stores and inherits them; it
//! never decides by them.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::fnv;

/// Most labels of one procedure. They stand in its row, which each of its stages writes again.
pub const LABELS_MAX: usize = 16;
/// Longest name of a label, in bytes.
pub const LABEL_NAME_MAX: usize = 64;
/// Longest value of a label, in bytes: any mail address fits, and a line of text. Documents belong into the payload.
pub const LABEL_VALUE_MAX: usize = 256;

/// Set in every [`Label::digest`]. No family has such a number, so an index of labels can share a keyspace with one of
/// families.
pub const LABEL_BIT: u64 = 1 << 63;

/// Stands between name and value where they are digested. No UTF-8 contains it.
const BETWEEN: u8 = 0xff;

/// One label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    name: Box<str>,
    value: Box<str>,
}

/// Why a procedure cannot have these labels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelError {
    /// There are more than [`LABELS_MAX`], inherited ones included.
    TooMany(usize),
    /// The name is empty, longer than [`LABEL_NAME_MAX`], or has other characters than letters, digits, `_`, `-`, `.`
    /// and `/` of ASCII. Longer names are cut.
    Name(String),
    /// The value of the label with this name has this many bytes, over [`LABEL_VALUE_MAX`].
    Value(String, usize),
}

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(count) => write!(
                f,
                "{count} labels, inherited ones included, are over the limit of {LABELS_MAX}; leave some out"
            ),
            Self::Name(name) => write!(
                f,
                "\"{}\" is no name of a label; use 1 to {LABEL_NAME_MAX} letters, digits, \"_\", \"-\", \".\" and \
                 \"/\" of ASCII",
                name.escape_debug()
            ),
            Self::Value(name, size) => write!(
                f,
                "the value of the label \"{name}\" has {size} bytes, over the limit of {LABEL_VALUE_MAX}; shorten it, \
                 or put it into the procedure's own value"
            ),
        }
    }
}

impl std::error::Error for LabelError {}

impl Label {
    /// Creates a label. A procedure takes it only if [`check`](Self::check) does.
    #[must_use]
    pub fn new(name: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Checks that a procedure may have it.
    ///
    /// # Errors
    ///
    /// [`LabelError`] if name or value are out of bounds.
    pub fn check(&self) -> Result<(), LabelError> {
        let may_have = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
        let length = self.name.len();
        if !(1..=LABEL_NAME_MAX).contains(&length) || !self.name.bytes().all(may_have) {
            let shown = self.name.chars().take(LABEL_NAME_MAX).collect();
            return Err(LabelError::Name(shown));
        }
        if self.value.len() > LABEL_VALUE_MAX {
            return Err(LabelError::Value(self.name.to_string(), self.value.len()));
        }
        Ok(())
    }

    /// Returns the number that stands for it in an index: 64-bit FNV-1a of the name, a byte `ff` and the value, with
    /// [`LABEL_BIT`] set. It is on disk. Two labels may share one, so whoever finds a row by it looks at the row's
    /// labels as well.
    #[must_use]
    pub fn digest(&self) -> u64 {
        fnv([self.name.as_bytes(), &[BETWEEN], self.value.as_bytes()]) | LABEL_BIT
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// The labels of a procedure: one value for each name, in the order of the names. Cheap to clone, and free if there
/// are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Option<Arc<Vec<Label>>>);

impl Labels {
    /// Returns `true` if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// Returns them in the order of their names.
    pub fn iter(&self) -> std::slice::Iter<'_, Label> {
        self.0.as_ref().map_or(&[][..], |labels| labels.as_slice()).iter()
    }

    /// Returns the value of a label.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|label| label.name() == name).map(Label::value)
    }

    /// Returns `true` if this label is among them.
    #[must_use]
    pub fn contains(&self, label: &Label) -> bool {
        self.iter().any(|own| own == label)
    }

    /// Sets a label. It replaces the one of the same name.
    pub fn set(&mut self, label: Label) {
        let labels = Arc::make_mut(self.0.get_or_insert_default());
        match labels.binary_search_by(|own| own.name.cmp(&label.name)) {
            Ok(at) => {
                if let Some(own) = labels.get_mut(at) {
                    *own = label;
                }
            }
            Err(at) => labels.insert(at, label),
        }
    }

    /// Returns these labels with `own` set over them.
    #[must_use]
    pub fn with(&self, own: &Self) -> Self {
        if self.is_empty() {
            return own.clone();
        }
        let mut all = self.clone();
        own.iter().cloned().for_each(|label| all.set(label));
        all
    }

    /// Checks that a procedure may have them.
    ///
    /// # Errors
    ///
    /// [`LabelError`] if they are too many, or one of them is out of bounds.
    pub fn check(&self) -> Result<(), LabelError> {
        if self.len() > LABELS_MAX {
            return Err(LabelError::TooMany(self.len()));
        }
        self.iter().try_for_each(Label::check)
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<T: IntoIterator<Item = Label>>(labels: T) -> Self {
        let mut all = Self::default();
        labels.into_iter().for_each(|label| all.set(label));
        all
    }
}

impl<'a> IntoIterator for &'a Labels {
    type Item = &'a Label;
    type IntoIter = std::slice::Iter<'a, Label>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for label in self {
            map.serialize_entry(label.name(), label.value())?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Labels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of labels")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
                let mut labels = Labels::default();
                while let Some((name, value)) = map.next_entry::<Box<str>, Box<str>>()? {
                    labels.set(Label { name, value });
                }
                Ok(labels)
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

#[cfg(test)]
mod tests;
