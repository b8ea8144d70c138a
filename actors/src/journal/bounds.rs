//! The largest keys, values and batches that a store takes.

use super::batch::Write;
use super::keys::Space;
use crate::error::CodecError;

/// The largest keys, values and batches of a store, in bytes. The engine checks them before anything becomes part of
/// a commit, because a commit that the store refuses stops the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreBounds {
    /// Longest name of a keyspace of user data.
    pub space_name: usize,
    /// Longest key; the engine's own keys have up to 1,100 bytes.
    pub key: usize,
    /// Longest value.
    pub value: usize,
    /// Largest batch: all keys and values of one commit.
    pub batch: usize,
}

impl StoreBounds {
    /// Returns `true` if a keyspace of user data may have this name.
    #[must_use]
    pub fn admits_space(&self, name: &str) -> bool {
        (1..=self.space_name).contains(&name.len())
    }

    /// Returns `true` if this may be a key.
    #[must_use]
    pub fn admits_key(&self, key: &[u8]) -> bool {
        (1..=self.key).contains(&key.len())
    }

    /// Checks that user data can be stored under this name and key.
    pub(crate) fn check_user(&self, space: &str, key: &[u8]) -> Result<(), CodecError> {
        if self.admits_space(space) && self.admits_key(key) {
            return Ok(());
        }
        Err(CodecError {
            what: "the value cannot be stored under this name and key",
            why: format!(
                "the name has {} bytes of 1 to {}, the key {} of 1 to {}",
                space.len(),
                self.space_name,
                key.len(),
                self.key
            ),
        })
    }

    /// Returns why the store would refuse this write, or `None` if the store takes it.
    #[must_use]
    #[inline]
    pub fn refusal(&self, write: &Write<'_>) -> Option<String> {
        if let Space::User(name) = write.space
            && !self.admits_space(name.as_str())
        {
            return Some(self.misnamed(name.as_str()));
        }
        if !self.admits_key(write.key) {
            return Some(self.wrong_key(write));
        }
        let size = write.value.map_or(0, <[u8]>::len);
        (size > self.value).then(|| self.too_long(write, size))
    }

    #[cold]
    fn misnamed(&self, name: &str) -> String {
        let (length, most) = (name.len(), self.space_name);
        format!("the name of a user keyspace has {length} bytes; give it 1 to {most}")
    }

    #[cold]
    fn wrong_key(&self, write: &Write<'_>) -> String {
        let (space, length, most) = (write.space.name(), write.key.len(), self.key);
        format!("a key in \"{space}\" has {length} bytes; give it 1 to {most}")
    }

    #[cold]
    fn too_long(&self, write: &Write<'_>, size: usize) -> String {
        let (space, most) = (write.space.name(), self.value);
        format!("a value in \"{space}\" has {size} bytes; the limit is {most}")
    }
}
