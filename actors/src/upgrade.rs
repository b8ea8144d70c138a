//! Values of older versions: the input of `upgrade`, and its error.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::error::CodecError;
use crate::journal::codec;

/// A stored value of an older version, to be decoded as the type that it then had.
#[derive(Clone, Copy)]
pub struct Old<'a> {
    bytes: &'a [u8],
}

impl<'a> Old<'a> {
    /// Wraps bytes that were stored before: for code that keeps values inside its own.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Decodes the value from MessagePack with field names, as it was stored.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is not of this type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, CodecError> {
        codec::decode_user(self.bytes)
    }
}

impl fmt::Debug for Old<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Old({} bytes)", self.bytes.len())
    }
}

/// Why a value of an older version could not be upgraded. Any error passed up with `?` becomes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpgradeError(String);

impl UpgradeError {
    /// Creates an error with this text.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }

    /// Returns the text of the error.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl<E: std::error::Error> From<E> for UpgradeError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}
