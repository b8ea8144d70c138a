//! Definitions in the store: what a start reads, and writes.

use std::collections::BTreeMap;
use std::sync::Arc;

use procession_actors::journal::store::{JournalStore, Scan};
use procession_actors::journal::{Space, codec};
use procession_actors::{AskError, StoreError};
use procession_kernel::Key;
use procession_saga_language::{Digest, Source};

use super::bundle::{BUNDLE, Bundle, FILE, Listing, SPACE};
use super::shared::Shared;
use crate::executor::Executor;

/// Bundles that are read at once.
const PAGE: usize = 1_000;

/// Adds the bundles that a store has. One that this release does not understand keeps its sagas back, and no others.
pub(super) async fn read(store: &dyn JournalStore, shared: &mut Shared) -> Result<(), StoreError> {
    let mut files = BTreeMap::new();
    let mut from = BUNDLE.as_bytes().to_vec();
    loop {
        let entries = store.scan(scan(from.clone())).await?;
        let is_last = entries.len() < PAGE;
        for (key, listing) in entries {
            from = [key.as_slice(), &[0]].concat();
            add(store, shared, &mut files, &listing).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}

fn space() -> Space {
    Space::User(Key::from(SPACE))
}

/// Keys of bundles from this one on.
fn scan(from: Vec<u8>) -> Scan {
    let mut to = BUNDLE.as_bytes().to_vec();
    if let Some(last) = to.last_mut() {
        *last += 1;
    }
    Scan {
        space: space(),
        from,
        to: Some(to),
        limit: PAGE,
    }
}

type Files = BTreeMap<Digest, Arc<Source>>;

async fn add(
    store: &dyn JournalStore,
    shared: &mut Shared,
    files: &mut Files,
    listing: &[u8],
) -> Result<(), StoreError> {
    let Ok(listing) = codec::decode_user::<Listing>(listing) else {
        return Ok(());
    };
    let Ok(digest) = listing.digest() else { return Ok(()) };
    let mut sources = BTreeMap::new();
    for (name, file) in &listing.files {
        match source(store, files, *file).await? {
            Ok(source) => drop(sources.insert(name.clone(), source)),
            Err(why) => {
                shared.add_unreadable(digest, why);
                return Ok(());
            }
        }
    }
    if let Ok(bundle) = Bundle::listed(listing, sources, true) {
        shared.add(bundle);
    }
    Ok(())
}

async fn source(
    store: &dyn JournalStore,
    files: &mut Files,
    digest: Digest,
) -> Result<Result<Arc<Source>, String>, StoreError> {
    if let Some(known) = files.get(&digest) {
        return Ok(Ok(Arc::clone(known)));
    }
    let bytes = store.get(space(), format!("{FILE}{digest}").into_bytes()).await?;
    let read = bytes.ok_or_else(|| format!("the store has lost definition {digest}"));
    let text = read.and_then(|bytes| codec::decode_user::<String>(&bytes).map_err(|error| error.to_string()));
    let source = text.and_then(Source::stored).map(Arc::new);
    if let Ok(source) = &source {
        files.insert(digest, Arc::clone(source));
    }
    Ok(source)
}

/// Stores the bundles that are new. A saga that begins before writes its own.
pub(super) async fn write(executor: &Executor, shared: &Shared) -> Result<(), AskError> {
    for bundle in shared.unstored() {
        for (key, text) in bundle.files() {
            executor.put(SPACE, key, &text).await?;
        }
        // The list comes last, so a list that is there is whole.
        executor.put(SPACE, bundle.key(), bundle.listing()).await?;
        bundle.set_stored();
    }
    Ok(())
}
