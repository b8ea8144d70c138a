//! Labels: names with values under which people find their procedures again. The kernel stores and inherits them; it
//! never decides by them.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::fnv;

/// Most labels of one procedure. Lists read them with each row that they look at.
pub const LABELS_MAX: usize = 16;
/// Longest name of a label, in bytes.
pub const LABEL_NAME_MAX: usize = 64;
/// Longest value of a label, in bytes: any mail address fits, and a line of text. Documents belong into the payload.
pub const LABEL_VALUE_MAX: usize = 256;

/// Set in every [`LabelDigest::Long`]. No family has such a number, so an index of labels can share a keyspace with one
/// of families.
pub const LABEL_BIT: u64 = 1 << 63;

/// Stands between name and value where they are digested. No UTF-8 contains it.
const BETWEEN: u8 = 0xff;

/// One label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    name: Box<str>,
    value: Box<str>,
}

/// The number that stands for a label in an index. It is on disk. Two labels may share one, so whoever finds a row by it
/// looks at the row's labels as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LabelDigest {
    /// Bits 62 to 36 of the long digest: its 27 highest bits below [`LABEL_BIT`]. All new entries have this form.
    Short(u32),
    /// All 64 bits, with [`LABEL_BIT`] set. Entries of procedures that were born before format 7 have this form.
    Long(u64),
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

    /// Returns the digest under which a new entry of an index names it: bits 62 to 36 of 64-bit FNV-1a of the name, a
    /// byte `ff` and the value.
    #[must_use]
    pub fn digest(&self) -> LabelDigest {
        let [first, second, third, fourth, ..] = (self.hash() << 1).to_be_bytes();
        LabelDigest::Short(u32::from_be_bytes([first, second, third, fourth]) >> 5)
    }

    /// Returns the digest under which entries of before format 7 name it: all of the same hash, with [`LABEL_BIT`] set.
    #[must_use]
    pub fn long_digest(&self) -> LabelDigest {
        LabelDigest::Long(self.hash() | LABEL_BIT)
    }

    fn hash(&self) -> u64 {
        fnv([self.name.as_bytes(), &[BETWEEN], self.value.as_bytes()])
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

/// The labels of a row, and where they are stored. Cheap to clone, and free if there are none.
///
/// Labels never change after the birth, and a row is written again with each stage. So they are stored in an entry of
/// their own, and the row names the member of its family that has the entry: itself, or the ancestor whose labels it
/// inherits and to which it adds none. Rows written in journal format 6 or older have their labels inside, and keep
/// them there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowLabels(Option<Arc<Stored>>);

#[derive(Debug, PartialEq, Eq)]
struct Stored {
    labels: Labels,
    /// The member that has the entry. `None` if they are in the row.
    entry: Option<u32>,
}

/// What a row without labels refers to.
static NO_LABELS: Labels = Labels(None);

impl RowLabels {
    /// Creates the labels of a row that names the entry of this member of its family.
    #[must_use]
    pub fn in_entry(member: u32, labels: Labels) -> Self {
        Self(Some(Arc::new(Stored {
            labels,
            entry: Some(member),
        })))
    }

    /// Creates the labels of a row that has them inside.
    #[must_use]
    pub fn in_row(labels: Labels) -> Self {
        let some = Some(labels).filter(|labels| !labels.is_empty());
        Self(some.map(|labels| Arc::new(Stored { labels, entry: None })))
    }

    /// Returns the member whose entry has them. `None` if there are none, or if they are in the row.
    #[must_use]
    pub fn entry(&self) -> Option<u32> {
        self.0.as_ref()?.entry
    }

    /// Returns `true` if the row was written in journal format 6 or older, and has labels.
    #[must_use]
    pub fn is_in_row(&self) -> bool {
        self.0.as_ref().is_some_and(|stored| stored.entry.is_none())
    }

    /// Returns `true` if a row leaves the field out.
    pub(crate) const fn is_left_out(&self) -> bool {
        self.0.is_none()
    }
}

impl Deref for RowLabels {
    type Target = Labels;

    fn deref(&self) -> &Labels {
        self.0.as_ref().map_or(&NO_LABELS, |stored| &stored.labels)
    }
}

impl Serialize for RowLabels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.entry() {
            Some(member) => serializer.serialize_u32(member),
            None => Labels::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for RowLabels {
    /// Reads a number as the entry of that member, which is still to be read.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Place;
        impl<'de> Visitor<'de> for Place {
            type Value = RowLabels;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of labels, or the number of a member that has them")
            }
            fn visit_u64<E: Error>(self, member: u64) -> Result<RowLabels, E> {
                let member = u32::try_from(member).map_err(|_| E::custom("no member has such a number"))?;
                Ok(RowLabels::in_entry(member, Labels::default()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RowLabels, A::Error> {
                Pairs.visit_map(map).map(RowLabels::in_row)
            }
        }
        deserializer.deserialize_any(Place)
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
        deserializer.deserialize_map(Pairs)
    }
}

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

#[cfg(test)]
mod tests;
