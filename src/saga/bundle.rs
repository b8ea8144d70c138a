//! Bundles: all definitions that a machine can reach, as they were when it was registered. Sagas are pinned to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use procession_actors::{CallContext, CodecError};
use serde::{Deserialize, Serialize};

use super::definition::{Call as Calls, Definition, Files, Parsed, State};
use super::digest::Digest;

/// The keyspace of user data in which definitions are stored. Nothing in it is ever removed.
pub(super) const SPACE: &str = "saga.definitions";
/// Keys begin with one of these, and end with the digest of the value.
pub(super) const FILE: &str = "file/";
pub(super) const BUNDLE: &str = "bundle/";

/// A definition with the text of its file.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) definition: Arc<Definition>,
    pub(super) text: String,
    pub(super) digest: Digest,
}

impl Source {
    pub(super) fn new(definition: Definition, text: String) -> Self {
        let digest = Digest::of(text.as_bytes());
        Self {
            definition: Arc::new(definition),
            text,
            digest,
        }
    }

    /// Reads a file that a store has kept.
    pub(super) fn stored(text: String) -> Result<Self, String> {
        let mut files = Files::default();
        files.add_text("a stored definition", text.as_bytes());
        let parsed = files.into_parsed().pop();
        let problem = match parsed {
            Some(Parsed {
                definition: Some(definition),
                ..
            }) => return Ok(Self::new(definition, text)),
            Some(Parsed { problems, .. }) => problems.first().map(ToString::to_string),
            None => None,
        };
        let digest = Digest::of(text.as_bytes());
        Err(format!(
            "this release does not understand definition {digest}: {}",
            problem.unwrap_or_default()
        ))
    }
}

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
            for name in called(&source.definition) {
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

/// Returns the machines that a definition runs as sub machines.
pub(super) fn called(definition: &Definition) -> impl Iterator<Item = &str> {
    definition
        .states
        .iter()
        .filter_map(|state: &State| match &state.task()?.call {
            Calls::Machine { machine } => Some(machine.as_str()),
            Calls::Service { .. } | Calls::Script { .. } | Calls::CompensateMachine => None,
        })
}
