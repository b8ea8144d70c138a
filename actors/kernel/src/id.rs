//! Identifiers: procedures, kinds, commits, epochs and instants. Each is a newtype, so that the compiler tells them
//! apart.

mod digest;
mod instant;
mod trace;

pub(crate) use digest::fnv;
pub use trace::{ParseTraceParentError, TraceParent};

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identity of a procedure: the number of its family, and its own number in the family.
///
/// The root of a family is member 0. An id is displayed and parsed as `42.3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcedureId {
    /// Number of the family. It grows in the order of commits and is never reused.
    #[serde(rename = "f")]
    pub family: u64,
    /// Number of the member within the family; the root is 0.
    #[serde(rename = "m")]
    pub member: u32,
}

impl ProcedureId {
    /// Creates the id of a member of a family.
    #[must_use]
    pub const fn new(family: u64, member: u32) -> Self {
        Self { family, member }
    }

    /// Creates the id of the root of a family.
    #[must_use]
    pub const fn root(family: u64) -> Self {
        Self::new(family, 0)
    }

    /// Returns `true` if this is the root of its family.
    #[must_use]
    pub const fn is_root(self) -> bool {
        self.member == 0
    }
}

impl fmt::Display for ProcedureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.family, self.member)
    }
}

impl fmt::Debug for ProcedureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a procedure id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseProcedureIdError(String);

impl fmt::Display for ParseProcedureIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is not a procedure id; write it as family.member, for instance 42.0",
            self.0
        )
    }
}

impl std::error::Error for ParseProcedureIdError {}

impl FromStr for ProcedureId {
    type Err = ParseProcedureIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = |_: ParseIntError| ParseProcedureIdError(text.to_owned());
        let (family, member) = text
            .split_once('.')
            .ok_or_else(|| ParseProcedureIdError(text.to_owned()))?;
        Ok(Self::new(
            family.parse().map_err(refused)?,
            member.parse().map_err(refused)?,
        ))
    }
}

macro_rules! shared_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Eq, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates the name from its text.
            #[must_use]
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the text of the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        // The engine hands one text around, so most comparisons end here. `Arc<str>` compares the bytes always.
        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
            }
        }

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

shared_text! {
    /// Stable name of a type of procedure, as stored on disk.
    Kind
}
shared_text! {
    /// Name of an admission limit. A kind's own limit has the kind's name.
    LimitKey
}
shared_text! {
    /// Name of an event that procedures wait for.
    EventName
}
shared_text! {
    /// Idempotency key of a submission or a signal (HBase's nonce).
    Key
}

/// Bytes that the engine stores and passes on without interpreting them; cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob(Arc<[u8]>);

impl Blob {
    /// Returns the bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns a digest that identifies repeated content: 64-bit FNV-1a. It is on disk, so the algorithm must not
    /// change.
    #[must_use]
    pub fn digest(&self) -> u64 {
        fnv([self.as_slice()])
    }

    /// Returns `true` if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Blob {
    fn default() -> Self {
        Self(Arc::from(&[][..]))
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.0.len())
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> serde::de::Visitor<'de> for Bytes {
            type Value = Blob;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a byte string")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob::from(bytes))
            }
            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Blob, E> {
                Ok(Blob::from(bytes))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// Number of a commit; grows by one with each decision that leaves records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the next number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Number of an ownership of the store. Each start of an engine takes a higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An instant of the engine's clock, in microseconds since 1970 (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The last instant, some 292,000 years after 1970. The highest bit is free: the store's index of ends has failures
    /// under keys with that bit.
    pub const LAST: Self = Self(u64::MAX >> 1);

    /// Returns the instant `delay` later, or [the last one](Self::LAST) if that is too far.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(delay)).min(Self::LAST)
    }

    /// Returns the time from `earlier` to this instant, or zero if `earlier` is not before it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Number of a caller's request that waits for its reply. Only the caller that chose it gives it a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names what one procedure holds and asks of the limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u64);

/// One request of a claim.
///
/// Each request of a claim has a higher generation than the one before it. The limiter answers a request with its
/// generation, whether at once or when it is served later. So a grant of an older request can be told from a grant of
/// the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// Which claim.
    pub id: ClaimId,
    /// Which request of it.
    pub generation: u64,
}

impl Claim {
    /// Returns the first request of a claim.
    #[must_use]
    pub const fn first(id: ClaimId) -> Self {
        Self { id, generation: 1 }
    }
}

#[cfg(test)]
mod tests;
