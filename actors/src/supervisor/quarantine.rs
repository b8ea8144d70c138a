//! The quarantined families. They cannot be loaded or rolled back, and are kept out of the way of all others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::read::Quarantined;

/// The quarantined families, each with its reason. The engine does not run them, and the limiter keeps what their
/// rows hold. Code that releases permits or locks must ask here first.
pub(super) struct Quarantine(Quarantined);

impl Quarantine {
    pub(super) fn new(families: &[(u64, String)]) -> Self {
        Self(Arc::new(families.iter().cloned().collect()))
    }

    /// Returns `true` if this family is quarantined.
    pub(super) fn contains(&self, family: u64) -> bool {
        self.0.contains_key(&family)
    }

    /// Returns why this family is quarantined.
    pub(super) fn why(&self, family: u64) -> Option<&str> {
        self.0.get(&family).map(String::as_str)
    }

    /// Returns all quarantined families, by number.
    pub(super) fn families(&self) -> &BTreeMap<u64, String> {
        &self.0
    }

    /// Returns all quarantined families as they are now, for an answer that is still being read.
    pub(super) fn shared(&self) -> Quarantined {
        Arc::clone(&self.0)
    }

    /// Returns how many families are quarantined.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a family. Copies the whole map while an answer still reads the old one, which is rare and short.
    pub(super) fn insert(&mut self, family: u64, why: String) {
        Arc::make_mut(&mut self.0).insert(family, why);
    }

    /// Removes a family that was discharged.
    pub(super) fn remove(&mut self, family: u64) {
        Arc::make_mut(&mut self.0).remove(&family);
    }
}
