//! The index of labels. It names families, not procedures: an inherited label costs no further entry, and a digest that
//! two labels share only makes a list look at rows that it does not show.

use std::collections::{BTreeSet, VecDeque};

use procession_kernel::{Label, LabelDigest, Labels, ProcedureId, Row};

use crate::error::StoreError;
use crate::journal::reader::{PAGE, StoredRow};
use crate::journal::store::Scan;
use crate::journal::{Reader, Space, keys};

/// Families that are read of one label at once: few after a leap, because the next leap skips the rest, and then twice
/// as many each time.
const AT_ONCE: (usize, usize) = (8, 256);
/// Entries of the index after which one request stops, like one that has read as many rows.
const ENTRIES_MAX: usize = 100_000;

/// Returns the digests under which the index has the family of these rows, each once.
pub(crate) fn digests_of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<LabelDigest> {
    let digests: BTreeSet<LabelDigest> = rows.into_iter().flat_map(digests).collect();
    digests.into_iter().collect()
}

/// Returns the digests under which the index has the family of this row because of the row.
fn digests(row: &Row) -> impl Iterator<Item = LabelDigest> {
    in_form(&row.labels, row.labels.is_in_row())
}

fn in_form(labels: &Labels, is_old: bool) -> impl Iterator<Item = LabelDigest> {
    let digest = if is_old { Label::long_digest } else { Label::digest };
    labels.iter().map(digest)
}

/// Searches the whole index for a family, because rows of it cannot be read.
pub(super) async fn search(reader: &Reader, family: u64) -> Result<Vec<LabelDigest>, StoreError> {
    let mut found = Vec::new();
    let mut from = keys::first_label().to_vec();
    loop {
        let scan = Scan {
            space: Space::Live,
            from,
            to: None,
            limit: PAGE,
        };
        let page = reader.scan(scan).await?;
        let labels = page.iter().filter_map(|(key, _)| keys::parse_label(key));
        found.extend(labels.filter(|(_, of)| *of == family).map(|(digest, _)| digest));
        match page.last().filter(|_| page.len() == PAGE) {
            Some((last, _)) => from = keys::after(last),
            None => return Ok(found),
        }
    }
}

/// What a search for the next family has found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextFamily {
    /// This family has all of the labels, unless digests are shared.
    Found(u64),
    /// No further family has them.
    None,
    /// The request has read as much as it may. Go on at this family.
    Later(u64),
}

/// Families that have all of several labels, in order. Each label's families are read from where the others are, so a
/// rare label keeps a frequent one from being read whole.
pub(super) struct LabelledFamilies<'a> {
    reader: &'a Reader,
    labels: Vec<OneLabel>,
    entries: usize,
}

/// Families with one label. The entries of procedures that were born before format 7 have long digests, and stand in a
/// range of their own.
struct OneLabel {
    short: OneDigest,
    long: OneDigest,
}

/// Families with one digest, as far as they are read.
struct OneDigest {
    digest: LabelDigest,
    ahead: VecDeque<u64>,
    /// Families that are read next at once.
    at_once: usize,
    /// Nothing lies behind `ahead`.
    is_all: bool,
}

impl<'a> LabelledFamilies<'a> {
    pub(super) fn new(reader: &'a Reader, labels: &[Label]) -> Self {
        let labels: BTreeSet<&Label> = labels.iter().collect();
        let one = |label: &Label| OneLabel {
            short: OneDigest::new(label.digest()),
            long: OneDigest::new(label.long_digest()),
        };
        Self {
            reader,
            labels: labels.into_iter().map(one).collect(),
            entries: 0,
        }
    }

    /// Returns the first family from this number on that has all of the labels.
    pub(super) async fn next(&mut self, from: u64) -> Result<NextFamily, StoreError> {
        let mut family = from;
        'all: loop {
            for label in &mut self.labels {
                if self.entries >= ENTRIES_MAX {
                    return Ok(NextFamily::Later(family));
                }
                match label.seek(self.reader, family, &mut self.entries).await? {
                    None => return Ok(NextFamily::None),
                    Some(further) if further > family => {
                        family = further;
                        continue 'all;
                    }
                    Some(_) => {}
                }
            }
            return Ok(NextFamily::Found(family));
        }
    }
}

impl OneLabel {
    /// Returns the first family from this number on that has the label.
    async fn seek(&mut self, reader: &Reader, from: u64, entries: &mut usize) -> Result<Option<u64>, StoreError> {
        let short = self.short.seek(reader, from, entries).await?;
        if short == Some(from) {
            // None comes before it, so the other range need not be read.
            return Ok(short);
        }
        let long = self.long.seek(reader, from, entries).await?;
        Ok(short.into_iter().chain(long).min())
    }
}

impl OneDigest {
    const fn new(digest: LabelDigest) -> Self {
        Self {
            digest,
            ahead: VecDeque::new(),
            at_once: AT_ONCE.0,
            is_all: false,
        }
    }

    /// Returns the first family from this number on that has the digest. Once the end of the range is read, nothing is
    /// read again.
    async fn seek(&mut self, reader: &Reader, from: u64, entries: &mut usize) -> Result<Option<u64>, StoreError> {
        // The family before this one was the front; whatever else goes is skipped.
        while self.ahead.front().is_some_and(|family| *family < from) {
            self.ahead.pop_front();
            if self.ahead.front().is_some_and(|family| *family < from) {
                self.at_once = AT_ONCE.0;
            }
        }
        if self.ahead.is_empty() && !self.is_all {
            let scan = Scan {
                space: Space::Live,
                from: keys::label(self.digest, from).to_vec(),
                to: keys::after_label(self.digest),
                limit: self.at_once,
            };
            let page = reader.scan(scan).await?;
            *entries += page.len();
            self.is_all = page.len() < self.at_once;
            self.at_once = (self.at_once * 2).min(AT_ONCE.1);
            let families = page.iter().filter_map(|(key, _)| keys::parse_label(key));
            self.ahead.extend(families.map(|(_, family)| family));
        }
        Ok(self.ahead.front().copied())
    }
}

/// Compares the index with the rows in one pass over each, in little memory: as the number of entries, and a sum of
/// digests of their keys. A row says by its birth which form its entries have, so entries of both forms are compared.
#[derive(Debug, Default)]
pub(crate) struct LabelTally {
    rows: (u64, u64),
    index: (u64, u64),
    /// The family whose rows are passing by.
    family: TalliedFamily,
    /// The first family whose rows name other entries of labels than it has.
    mismatched: Option<u64>,
}

#[derive(Debug, Default)]
struct TalliedFamily {
    number: u64,
    /// The digests of its labels.
    digests: BTreeSet<LabelDigest>,
    /// Members that rows name for their labels, and members that have an entry of labels.
    named: BTreeSet<u32>,
    held: BTreeSet<u32>,
}

impl LabelTally {
    /// Counts a row. Rows and their labels arrive in the order of their ids.
    pub(crate) fn add_row(&mut self, row: StoredRow) {
        let entry = row.labels_in();
        let row = row.without_labels();
        self.begin(row.id.family);
        self.family.named.extend(entry.map(|id| id.member));
        self.add_digests(digests(&row));
    }

    /// Counts an entry of labels.
    pub(crate) fn add_labels_of(&mut self, id: ProcedureId, labels: &Labels) {
        self.begin(id.family);
        self.family.held.insert(id.member);
        self.add_digests(in_form(labels, false));
    }

    fn add_digests(&mut self, digests: impl Iterator<Item = LabelDigest>) {
        for digest in digests {
            if self.family.digests.insert(digest) {
                add(&mut self.rows, digest, self.family.number);
            }
        }
    }

    fn begin(&mut self, family: u64) {
        if self.family.number != family {
            self.mismatched = self.mismatched();
            self.family = TalliedFamily {
                number: family,
                ..TalliedFamily::default()
            };
        }
    }

    fn mismatched(&self) -> Option<u64> {
        let differs = self.family.named != self.family.held;
        self.mismatched.or(differs.then_some(self.family.number))
    }

    /// Counts an entry of the index.
    pub(crate) fn add_entry(&mut self, digest: LabelDigest, family: u64) {
        add(&mut self.index, digest, family);
    }

    /// Returns what is wrong, if the index has something else than the rows.
    pub(crate) fn difference(&self) -> Option<String> {
        if let Some(family) = self.mismatched() {
            return Some(format!(
                "the rows of family {family} name other entries of labels than it has: some of its labels are missing, or \
                 belong to no row"
            ));
        }
        (self.rows != self.index).then(|| {
            let (rows, index) = (self.rows.0, self.index.0);
            format!(
                "the index of labels has {index} entries, and the rows ask for {rows} or others: lists that filter by \
                 label may be incomplete"
            )
        })
    }
}

fn add(sum: &mut (u64, u64), digest: LabelDigest, family: u64) {
    let key = keys::label(digest, family);
    sum.0 += 1;
    sum.1 = sum.1.wrapping_add(xxhash_rust::xxh3::xxh3_64(&key));
}

#[cfg(test)]
mod tests;
