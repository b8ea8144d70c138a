//! Pages of rows, read directly from the store.
//!
//! Live families lie among finished families, which may be a hundred times as many. A list of live families must not
//! read all of the others.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use procession_kernel::{KeyEntry, Label, ProcedureId, Row};

use super::failures::failed_families;
use super::labels::{LabelledFamilies, NextFamily};
use crate::error::{ReadError, StoreError};
use crate::journal::reader::{LabelEntries, decode_row, slices};
use crate::journal::store::{Entries, Scan};
use crate::journal::{READ_OVER, Reader, Space, codec, keys};
use crate::view::{FamilyScope, Page, Status};

/// The maximum number of rows in one page, and of keys that are read at once.
pub(crate) const PAGE_MAX: usize = 1_000;
/// The number of labelled families that are looked up before their rows are read.
const FAMILIES_AT_ONCE: usize = 256;
/// The number of rows after which a request stops, and reports that it did.
const SCAN_MAX: usize = 100_000;

/// Reads one page of rows, up to the limit of one request. `show` returns the status of each row that belongs to the
/// page.
pub(super) async fn page(
    reader: &Reader,
    scope: &FamilyScope,
    cursor: Option<ProcedureId>,
    limit: usize,
    show: impl FnMut(&Row) -> Option<Status>,
) -> Result<Page, ReadError> {
    let mut filling = Filling {
        reader,
        limit: limit.clamp(1, PAGE_MAX),
        show,
        page: Page {
            items: Vec::new(),
            next: None,
            scanned: 0,
            truncated: false,
            unreadable: Vec::new(),
        },
    };
    let from = cursor.unwrap_or(ProcedureId::root(0));
    let filled = match scope {
        FamilyScope::All => filling.range(from, None, |_| true).await?,
        FamilyScope::Families(families) => filling.families(from, families).await?,
        FamilyScope::Live => filling.live(from).await?,
        FamilyScope::Labelled(labels) if labels.is_empty() => filling.range(from, None, |_| true).await?,
        FamilyScope::Labelled(labels) => filling.labelled(from, labels).await?,
        FamilyScope::KeyPrefix { prefix, live } => filling.keyed(from, prefix, *live).await?,
        FamilyScope::Key(key) => filling.submitted_with(from, key).await?,
        FamilyScope::Failures(print) => {
            let families = failed_families(reader, *print, SCAN_MAX).await?;
            filling.families(from, &families).await?
        }
    };
    let next = filled.break_value();
    Ok(Page { next, ..filling.page })
}

/// Continues, or breaks with the id where the next page begins.
type Filled = ControlFlow<ProcedureId>;

/// A page that is being filled.
struct Filling<'a, F> {
    reader: &'a Reader,
    limit: usize,
    show: F,
    page: Page,
}

impl<F: FnMut(&Row) -> Option<Status>> Filling<'_, F> {
    async fn live(&mut self, from: ProcedureId) -> Result<Filled, StoreError> {
        let mut begin = keys::family(from.family).to_vec();
        loop {
            let entries = self
                .read(Space::Live, begin, Some(keys::first_label().to_vec()))
                .await?;
            let numbers = entries.iter().filter_map(|(key, _)| keys::parse_family(key));
            let filled = self.families(from, &numbers.collect()).await?;
            match after(&entries) {
                Some(next) if filled.is_continue() => begin = next,
                Some(_) | None => return Ok(filled),
            }
        }
    }

    /// Reads the families that the index has under all of these labels, some at a time.
    async fn labelled(&mut self, from: ProcedureId, labels: &[Label]) -> Result<Filled, StoreError> {
        let mut index = LabelledFamilies::new(self.reader, labels);
        let mut begin = from;
        loop {
            let mut some = BTreeSet::new();
            let mut next = index.next(begin.family).await?;
            while let NextFamily::Found(family) = next {
                if some.len() == FAMILIES_AT_ONCE {
                    break;
                }
                some.insert(family);
                next = match family.checked_add(1) {
                    Some(from) => index.next(from).await?,
                    None => NextFamily::None,
                };
            }
            let filled = self.families(begin, &some).await?;
            match next {
                NextFamily::Found(family) if filled.is_continue() => begin = ProcedureId::root(family),
                NextFamily::Later(family) if filled.is_continue() => {
                    self.page.truncated = true;
                    return Ok(ControlFlow::Break(begin.max(ProcedureId::root(family))));
                }
                NextFamily::Found(_) | NextFamily::Later(_) | NextFamily::None => return Ok(filled),
            }
        }
    }

    /// Reads the families whose keys begin so. Keys are not in the order of families, so all of these keys are looked at,
    /// once for each page.
    async fn keyed(&mut self, from: ProcedureId, prefix: &str, live: bool) -> Result<Filled, ReadError> {
        match self.families_with_key(from.family, prefix).await? {
            Some(families) => Ok(self.families(from, &families).await?),
            None if live => Ok(self.live(from).await?),
            None => Ok(self.range(from, None, |_| true).await?),
        }
    }

    /// Returns the families from this number on whose keys begin so. Returns `None` if too many keys do.
    async fn families_with_key(&self, from: u64, prefix: &str) -> Result<Option<BTreeSet<u64>>, ReadError> {
        let prefix = prefix.as_bytes();
        let entries = self.reader.scan_up_to(Space::Keys, prefix, SCAN_MAX + 1).await?;
        if entries.len() > SCAN_MAX {
            return Ok(None);
        }
        // A damaged entry hides its own family alone; verifying the journal names it.
        let read = entries
            .iter()
            .filter_map(|(_, value)| codec::decode::<KeyEntry>(value).ok());
        let families = read.map(|entry| entry.id.family).filter(|family| *family >= from);
        Ok(Some(families.collect()))
    }

    async fn submitted_with(&mut self, from: ProcedureId, key: &str) -> Result<Filled, ReadError> {
        let entry = self.reader.key_entry(key.as_bytes()).await?;
        let family = entry.map(|entry| entry.id.family).into_iter().collect();
        Ok(self.families(from, &family).await?)
    }

    /// Reads families that lie near each other as one range: a read for each would cost more.
    async fn families(&mut self, from: ProcedureId, families: &BTreeSet<u64>) -> Result<Filled, StoreError> {
        let families: Vec<u64> = families.range(from.family..).copied().collect();
        for run in families.chunk_by(|one, next| next - one <= READ_OVER) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                continue;
            };
            let to = keys::after_prefix(&keys::family(*last));
            let from = from.max(ProcedureId::root(*first));
            let is_in = |family| run.binary_search(&family).is_ok();
            let filled = self.range(from, to, is_in).await?;
            if filled.is_break() {
                return Ok(filled);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn range(
        &mut self,
        from: ProcedureId,
        to: Option<Vec<u8>>,
        is_in: impl Fn(u64) -> bool,
    ) -> Result<Filled, StoreError> {
        let mut from = keys::procedure(from).to_vec();
        loop {
            let entries = self.read(Space::Procedures, from, to.clone()).await?;
            let filled = self.put_all(&entries, &is_in).await?;
            match after(&entries) {
                Some(next) if filled.is_continue() => from = next,
                Some(_) | None => return Ok(filled),
            }
        }
    }

    async fn put_all(&mut self, entries: &Entries, is_in: impl Fn(u64) -> bool) -> Result<Filled, StoreError> {
        let mut labels = LabelEntries::of(slices(entries));
        let page = &mut self.page;
        for (key, value) in entries {
            let Some(id) = keys::parse_row(key) else {
                continue;
            };
            if page.items.len() == self.limit || page.scanned == SCAN_MAX {
                page.truncated = page.scanned == SCAN_MAX;
                return Ok(ControlFlow::Break(id));
            }
            page.scanned += 1;
            if !is_in(id.family) {
                continue;
            }
            let row = match decode_row(id, value) {
                Ok(row) => labels.complete_or_read(self.reader, row).await?,
                Err(error) => Some(Err(error)),
            };
            match row {
                Some(Ok(row)) => page.items.extend((self.show)(&row)),
                // One damaged row must not hide all other rows.
                Some(Err(_)) => page.unreadable.push(id),
                None => {}
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn read(&self, space: Space, from: Vec<u8>, to: Option<Vec<u8>>) -> Result<Entries, StoreError> {
        let limit = PAGE_MAX;
        self.reader.scan(Scan { space, from, to, limit }).await
    }
}

/// Returns where the next read begins after a full one.
fn after(entries: &Entries) -> Option<Vec<u8>> {
    let (last, _) = entries.last().filter(|_| entries.len() == PAGE_MAX)?;
    Some(keys::after(last))
}
