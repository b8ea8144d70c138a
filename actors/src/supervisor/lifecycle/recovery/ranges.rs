//! The stored data of the live families, read in order.
//!
//! Live families lie among finished ones. Live families near each other are read as one range, including the few
//! finished ones between them. A separate scan for each would cost more than everything it reads.

use std::collections::VecDeque;

use super::number;
use crate::error::StoreError;
use crate::journal::reader::PAGE;
use crate::journal::store::{Entries, Scan};
use crate::journal::{JournalStore, READ_OVER, Space, keys};

/// Rows that are passed on together.
const TOGETHER: usize = 1024;

/// The stored data of a family.
pub(super) struct Stored {
    pub(super) family: u64,
    pub(super) rows: Entries,
    pub(super) signals: Entries,
}

/// Reads the live families, a page of their numbers at a time. Passes them on in groups, until all are passed on or
/// the receiver is gone.
pub(super) async fn read_live(
    store: &dyn JournalStore,
    mut give: impl FnMut(Vec<Stored>) -> bool,
) -> Result<(), StoreError> {
    let mut live = Range::new(Space::Live, Vec::new(), Some(keys::first_label().to_vec()));
    loop {
        let page = live.read_page(store).await?;
        let Some(page) = page else { return Ok(()) };
        let number = |(key, _)| Ok(number(b"a live family", Some(key))?.unwrap_or_default());
        let numbers: Vec<u64> = page.into_iter().map(number).collect::<Result<_, StoreError>>()?;
        for run in numbers.chunk_by(|one, next| next - one <= READ_OVER) {
            if !read_run(store, run, &mut give).await? {
                return Ok(());
            }
        }
    }
}

/// Reads families that lie near each other.
async fn read_run(
    store: &dyn JournalStore,
    run: &[u64],
    give: &mut impl FnMut(Vec<Stored>) -> bool,
) -> Result<bool, StoreError> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else {
        return Ok(true);
    };
    let from = || keys::family(*first).to_vec();
    let to = || keys::after_prefix(&keys::family(*last));
    let mut rows = Range::new(Space::Procedures, from(), to());
    let mut signals = Range::new(Space::Signals, from(), to());
    let (mut some, mut size) = (Vec::new(), 0);
    for family in run {
        let stored = Stored {
            family: *family,
            rows: rows.of(store, *family).await?,
            signals: signals.of(store, *family).await?,
        };
        size += stored.rows.len() + stored.signals.len();
        some.push(stored);
        if size >= TOGETHER {
            if !give(std::mem::take(&mut some)) {
                return Ok(false);
            }
            size = 0;
        }
    }
    Ok(give(some))
}

/// A range of families of one keyspace, read page by page.
struct Range {
    space: Space,
    page: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// Where the next page begins. `None` after the last page.
    next: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
}

impl Range {
    const fn new(space: Space, from: Vec<u8>, to: Option<Vec<u8>>) -> Self {
        Self {
            space,
            page: VecDeque::new(),
            next: Some(from),
            to,
        }
    }

    /// Returns the entries of a family, and skips the families before it.
    async fn of(&mut self, store: &dyn JournalStore, family: u64) -> Result<Entries, StoreError> {
        let prefix = keys::family(family);
        let mut entries = Entries::new();
        loop {
            while let Some((key, _)) = self.page.front() {
                if key.get(..8) > Some(&prefix[..]) {
                    return Ok(entries);
                }
                let entry = self.page.pop_front();
                entries.extend(entry.filter(|(key, _)| key.starts_with(&prefix)));
            }
            match self.read_page(store).await? {
                Some(page) => self.page = page.into(),
                None => return Ok(entries),
            }
        }
    }

    /// Reads the next page. Returns `None` after the last.
    async fn read_page(&mut self, store: &dyn JournalStore) -> Result<Option<Entries>, StoreError> {
        let Some(from) = self.next.take() else {
            return Ok(None);
        };
        let page = store
            .scan(Scan {
                space: self.space.clone(),
                from,
                to: self.to.clone(),
                limit: PAGE,
            })
            .await?;
        self.next = page.last().filter(|_| page.len() == PAGE).map(|(last, _)| {
            let mut next = last.clone();
            next.push(0);
            next
        });
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests;
