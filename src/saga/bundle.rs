//! Bundles: all definitions that a machine can reach, as they were when it was registered. Sagas are pinned to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use procession_actors::{CallContext, CodecError};
use procession_saga_language::definition::Definition;
use procession_saga_language::{Digest, Source};
use serde::{Deserialize, Serialize};

/// The keyspace of user data in which definitions are stored. Nothing in it is ever removed.
pub(super) const SPACE: &str = "saga.definitions";
/// Keys begin with one of these, and end with the digest of the value.
pub(super) const FILE: &str = "file/";
pub(super) const BUNDLE: &str = "bundle/";

/// The names of machines with the digests of their files: what is stored of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listing {
    /// The machine for which the bundle was made.
    #[serde(rename = "m")]
    pub(super) machine: String,
    #[serde(rename = "f")]
    pub(super) files: BTreeMap<String, Digest>,
}

impl Listing {
    pub(super) fn digest(&self) -> Result<Digest, CodecError> {
        Ok(Digest::of(
            procession_actors::journal::codec::encode_user(self)?.as_slice(),
        ))
    }
}

/// A machine with all that it can reach, itself and circles included.
#[derive(Debug)]
pub(super) struct Bundle {
    digest: Digest,
    listing: Listing,
    sources: BTreeMap<String, Arc<Source>>,
    /// It is on disk.
    is_stored: AtomicBool,
}

impl Bundle {
    /// Gathers what a machine can reach. `find` returns the newest definition of a name; one that is not found is left
    /// out, which those who check definitions have told.
    pub(super) fn gather(root: &Arc<Source>, find: impl Fn(&str) -> Option<Arc<Source>>) -> Result<Self, CodecError> {
        let mut sources = BTreeMap::new();
        let mut pending = vec![Arc::clone(root)];
        let mut seen = BTreeSet::from([root.definition.name.clone()]);
        while let Some(source) = pending.pop() {
            for name in source.called() {
                if seen.insert(name.to_owned()) {
                    pending.extend(find(name));
                }
            }
            sources.insert(source.definition.name.clone(), source);
        }
        let files = sources
            .iter()
            .map(|(name, source)| (name.clone(), source.digest))
            .collect();
        let listing = Listing {
            machine: root.definition.name.clone(),
            files,
        };
        Self::listed(listing, sources, false)
    }

    pub(super) fn listed(
        listing: Listing,
        sources: BTreeMap<String, Arc<Source>>,
        is_stored: bool,
    ) -> Result<Self, CodecError> {
        Ok(Self {
            digest: listing.digest()?,
            listing,
            sources,
            is_stored: AtomicBool::new(is_stored),
        })
    }

    pub(super) const fn digest(&self) -> Digest {
        self.digest
    }

    pub(super) fn definition(&self, name: &str) -> Result<Arc<Definition>, String> {
        let source = self.sources.get(name).map(|source| Arc::clone(&source.definition));
        source.ok_or_else(|| format!("machine [{name}] is not registered"))
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.sources.values().map(|source| &*source.definition)
    }

    /// Writes it in the commit of a stage, unless it is known to be on disk.
    pub(super) fn store(&self, cx: &mut CallContext<'_>) -> Result<(), CodecError> {
        if self.is_stored.load(Ordering::Acquire) {
            return Ok(());
        }
        for (key, text) in self.files() {
            cx.put(SPACE, key, &text)?;
        }
        cx.put(SPACE, self.key(), &self.listing)
    }

    /// Returns its files as they are stored: key and text.
    pub(super) fn files(&self) -> impl Iterator<Item = (String, &str)> {
        let sources = self.sources.values();
        sources.map(|source| (format!("{FILE}{}", source.digest), source.text.as_str()))
    }

    pub(super) fn key(&self) -> String {
        format!("{BUNDLE}{}", self.digest)
    }

    pub(super) const fn listing(&self) -> &Listing {
        &self.listing
    }

    pub(super) fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Acquire)
    }

    pub(super) fn set_stored(&self) {
        self.is_stored.store(true, Ordering::Release);
    }
}
