//! The list of failures that nobody has acknowledged, newest first.

use std::collections::BTreeSet;

use procession_kernel::{FailureEntry, Timestamp};

use super::CommittedReader;
use crate::error::{AskError, CodecError, StoreError};
use crate::journal::store::Scan;
use crate::journal::{Reader, Space, codec, keys};
use crate::view::{FailureCursor, FailurePage};

/// The maximum number of entries of one page.
const PAGE_MAX: usize = 1_000;

impl CommittedReader {
    /// Reads one page of the failures that nobody has acknowledged, newest first, 1,000 at most.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store cannot be read, or the engine has stopped.
    pub async fn failures(&self, after: Option<FailureCursor>, limit: usize) -> Result<FailurePage, AskError> {
        Ok(failures(&self.reader, after, limit).await?)
    }

    /// Reads the newest failures, `limit` or a few more. Returns as well whether there are more.
    ///
    /// # Errors
    ///
    /// As [`failures`](Self::failures).
    pub async fn newest_failures(&self, limit: usize) -> Result<(Vec<FailureEntry>, bool), AskError> {
        let (mut entries, mut after) = (Vec::new(), None);
        loop {
            let page = self.failures(after, PAGE_MAX).await?;
            entries.extend(page.items);
            after = page.next;
            if after.is_none() || entries.len() >= limit {
                return Ok((entries, after.is_some()));
            }
        }
    }
}

/// Reads one page. Damaged entries are counted, and hide no other.
pub(crate) async fn failures(
    reader: &Reader,
    after: Option<FailureCursor>,
    limit: usize,
) -> Result<FailurePage, StoreError> {
    let limit = limit.clamp(1, PAGE_MAX);
    let from = match after {
        Some(FailureCursor { ended, family }) => keys::after(&keys::failure(ended, family)),
        None => keys::first_failure().to_vec(),
    };
    let scan = Scan {
        space: Space::Finished,
        from,
        to: None,
        limit,
    };
    let entries = reader.scan(scan).await?;
    let mut page = FailurePage::default();
    for (key, value) in &entries {
        let Some((ended, family)) = keys::parse_failure(key) else {
            continue;
        };
        page.next = Some(FailureCursor { ended, family });
        match failure_of(ended, family, value) {
            Ok(entry) => page.items.push(entry),
            Err(_) => page.unreadable += 1,
        }
    }
    if entries.len() < limit {
        page.next = None;
    }
    Ok(page)
}

/// Returns the families of the newest failures, `limit` at most: all, or those with this fingerprint.
pub(super) async fn failed_families(
    reader: &Reader,
    print: Option<u64>,
    limit: usize,
) -> Result<BTreeSet<u64>, StoreError> {
    let (mut families, mut after, mut read) = (BTreeSet::new(), None, 0);
    loop {
        let page = failures(reader, after, PAGE_MAX).await?;
        read += page.items.len() + page.unreadable;
        let alike = page
            .items
            .iter()
            .filter(|entry| print.is_none_or(|print| entry.print == print));
        families.extend(alike.map(|entry| entry.family));
        after = page.next;
        if after.is_none() || read >= limit {
            return Ok(families);
        }
    }
}

/// Decodes an entry of the list.
pub(crate) fn failure_of(ended: Timestamp, family: u64, value: &[u8]) -> Result<FailureEntry, CodecError> {
    let mut entry: FailureEntry = codec::decode(value)?;
    (entry.ended, entry.family) = (ended, family);
    Ok(entry)
}
