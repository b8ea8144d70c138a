//! Lock paths and modes: a path in a tree, locked shared or exclusive. This module says which two locks exclude each
//! other; `admission` tracks their holders.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A place in the tree of lockable things, for instance `ns/table/region`.
///
/// Build paths that contain names from outside with [`of`](Self::of): no name can then reach another level of the tree.
/// A literal converts into a path by itself, and [`parse`](Self::parse) reads any other text.
///
/// The empty path is the whole tree: it covers every other path, and is displayed as `/`.
///
/// ```
/// # use procession_kernel::{LockNeed, LockPath};
/// let name = "smith/jones";
/// let customer = LockNeed::exclusive(LockPath::of(["customer", name]));
/// assert_eq!(customer.path.as_str(), "customer/smith%2Fjones");
/// let customers = LockNeed::shared("customer");
/// assert!(customers.path.covers(&customer.path));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockPath(Arc<str>);

impl LockPath {
    /// Creates a path of these parts, the topmost first. A part may be any text but an empty one: `/` and `%` in it are
    /// escaped as in URLs, so each part is one level.
    ///
    /// A path with an empty part, or without parts, is refused where it is asked for: the submission is refused, or the
    /// stage before fails, and the text names the path. It never stands for the level above.
    ///
    /// ```
    /// # use procession_kernel::LockPath;
    /// assert_eq!(LockPath::of(["customer", "4711"]), LockPath::parse("customer/4711"));
    /// assert_eq!(LockPath::of(["discount", "50%"]).as_str(), "discount/50%25");
    /// assert!(LockPath::of(["customer", ""]).has_empty_part());
    /// ```
    #[must_use]
    pub fn of<S: AsRef<str>>(parts: impl IntoIterator<Item = S>) -> Self {
        let mut text = String::new();
        for (number, part) in parts.into_iter().enumerate() {
            if number > 0 {
                text.push('/');
            }
            let part = part.as_ref();
            if part.is_empty() {
                text.push(EMPTY_PART);
            }
            for character in part.chars() {
                match character {
                    '%' => text.push_str("%25"),
                    '/' => text.push_str("%2F"),
                    EMPTY_PART => text.push_str("%00"),
                    plain => text.push(plain),
                }
            }
        }
        if text.is_empty() {
            text.push(EMPTY_PART);
        }
        Self(text.into())
    }

    /// Returns `true` if the path was made of parts of which one is empty, or of none. No engine grants it.
    #[must_use]
    pub fn has_empty_part(&self) -> bool {
        self.0.contains(EMPTY_PART)
    }

    /// Reads a path from its text: levels are separated by `/`, and leading, trailing and repeated slashes are dropped.
    /// So a text that contains a name from outside may name any level; use [`of`](Self::of) for these.
    #[must_use]
    pub fn parse(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        let is_normal = !text.starts_with('/') && !text.ends_with('/') && !text.contains("//");
        if is_normal {
            return Self(text.into());
        }
        let segments: Vec<&str> = text.split('/').filter(|segment| !segment.is_empty()).collect();
        Self(segments.join("/").into())
    }

    /// Returns the text of the path, without slashes at its ends; empty for the whole tree.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the paths above this one, nearest first. The whole tree is the last.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        self.above().map(|text| Self(text.into()))
    }

    /// Returns `true` if `other` is this path or lies under it.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match other.0.strip_prefix(&*self.0) {
            Some(rest) => rest.is_empty() || self.0.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }

    /// Returns the texts of the paths above this one, nearest first.
    pub(crate) fn above(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(parent_of(&self.0), |text| parent_of(text))
    }
}

/// Stands for an empty part, which no path has that may be asked for.
const EMPTY_PART: char = '\0';

/// Returns the path one level up, or `None` for the whole tree.
fn parent_of(text: &str) -> Option<&str> {
    match text.rsplit_once('/') {
        Some((parent, _)) => Some(parent),
        None if text.is_empty() => None,
        None => Some(""),
    }
}

impl Borrow<str> for LockPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Reads a literal, as [`LockPath::parse`] does. A text that is put together at run time says which it is:
/// [`LockPath::of`] or [`LockPath::parse`].
impl From<&'static str> for LockPath {
    fn from(text: &'static str) -> Self {
        Self::parse(text)
    }
}

impl fmt::Display for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

impl fmt::Debug for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for LockPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LockPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::parse)
    }
}

/// How a path is locked. Append-only: the short names are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LockMode {
    /// Held together with other shared locks.
    #[serde(rename = "s")]
    Shared,
    /// Held alone at the path and under it.
    #[serde(rename = "x")]
    Exclusive,
}

impl fmt::Display for LockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "shared",
            Self::Exclusive => "exclusive",
        })
    }
}

/// One lock that is requested or held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockNeed {
    /// The locked path.
    #[serde(rename = "p")]
    pub path: LockPath,
    /// The mode.
    #[serde(rename = "m")]
    pub mode: LockMode,
}

impl LockNeed {
    /// Creates a lock that others may share. For a path with names from outside see [`LockPath::of`].
    #[must_use]
    pub fn shared(path: impl Into<LockPath>) -> Self {
        Self {
            path: path.into(),
            mode: LockMode::Shared,
        }
    }

    /// Creates an exclusive lock on a path and on everything under it. For a path with names from outside see
    /// [`LockPath::of`].
    #[must_use]
    pub fn exclusive(path: impl Into<LockPath>) -> Self {
        Self {
            path: path.into(),
            mode: LockMode::Exclusive,
        }
    }

    /// Returns `true` if two unrelated procedures may not hold both locks at once.
    ///
    /// Locking a path implicitly locks the paths above it shared, never exclusive. Hence a shared lock excludes
    /// nothing under its path.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> bool {
        let excludes = |one: &Self, by: &Self| by.mode == LockMode::Exclusive && by.path.covers(&one.path);
        excludes(self, other) || excludes(other, self)
    }
}

impl fmt::Display for LockNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.mode, self.path)
    }
}

#[cfg(test)]
mod tests;
