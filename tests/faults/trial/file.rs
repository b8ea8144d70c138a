//! One file of a rebuilt disk: what is on it for sure, what the system has in
//! memory, and what a power cut may leave.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use procession_cli::demo::draw::Draw;

/// What a disk writes as a whole, or not at all.
pub(crate) const SECTOR: u64 = 512;

/// Bytes of a file; all behind them, up to its length, are zeros.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) length: u64,
}

impl Content {
    pub(crate) fn new(mut bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        bytes.truncate(bytes.len() - zeros);
        Self { bytes, length }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let range = index(at)..index(at) + bytes.len();
        if self.bytes.len() < range.end {
            self.bytes.resize(range.end, 0);
        }
        self.bytes[range.clone()].copy_from_slice(bytes);
        self.length = self.length.max(range.end as u64);
    }

    fn cut(&mut self, length: u64) {
        self.bytes.truncate(index(length));
        self.length = length;
    }

    /// Returns a sector, or what there is of it.
    fn sector(&self, sector: u64) -> &[u8] {
        let end = self.bytes.len();
        let from = index(sector * SECTOR).min(end);
        &self.bytes[from..index((sector + 1) * SECTOR).min(end)]
    }

    /// Takes sectors as they are in another content; the length is as it was.
    fn take_sectors(&mut self, sectors: &Range<u64>, from: &Self) {
        let (at, end) = (index(sectors.start * SECTOR), index(sectors.end * SECTOR));
        let from = &from.bytes[at.min(from.bytes.len())..end.min(from.bytes.len())];
        let whole = at + from.len();
        if self.bytes.len() < whole {
            self.bytes.resize(whole, 0);
        }
        let end = end.min(self.bytes.len());
        if at < end {
            self.bytes[at..whole].copy_from_slice(from);
            self.bytes[whole..end].fill(0);
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { at, bytes } => self.put(*at, bytes),
            Change::Length(length) => self.cut(*length),
        }
    }
}

/// The tests run on 64 bits, and their files fit into memory.
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write { at: u64, bytes: Rc<[u8]> },
    Length(u64),
}

impl Change {
    fn sectors(&self) -> Range<u64> {
        match self {
            Self::Write { at, bytes } => at / SECTOR..(at + bytes.len() as u64).div_ceil(SECTOR),
            Self::Length(_) => 0..0,
        }
    }
}

/// What becomes of writes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsynced {
    Lost,
    Kept,
    /// All but the last are there, and of that one the beginning; the length may have gone before it.
    Torn,
    /// Each sector is as it was after one of them, or before all; so is the length.
    Scattered,
    /// The length is that of the last one, and the bytes are lost.
    Hollow,
    /// Each file draws one of the others.
    Mixed,
}

/// A file, whatever its names are.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    /// On disk for sure.
    kept: Content,
    /// As the system has it in memory.
    now: Content,
    /// Not synced yet, in order.
    pending: Vec<Change>,
    /// Sectors as they were when a sync failed: the system took them for clean, and no later sync writes them
    /// unless they are written again.
    forgotten: BTreeMap<u64, Vec<u8>>,
}

impl File {
    pub(crate) fn synced(content: Content) -> Self {
        Self {
            now: content.clone(),
            kept: content,
            ..Self::default()
        }
    }

    pub(crate) const fn now(&self) -> &Content {
        &self.now
    }

    pub(crate) fn change(&mut self, change: Change) {
        self.now.apply(&change);
        self.pending.push(change);
    }

    pub(crate) fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            if let Change::Length(length) = change {
                self.kept.cut(length);
            }
            let sectors = change.sectors();
            if !sectors.is_empty() {
                self.forgotten.retain(|sector, _| !sectors.contains(sector));
                self.kept.take_sectors(&sectors, &self.now);
            }
        }
        self.kept.cut(self.now.length);
    }

    pub(crate) fn fail_to_sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            for sector in change.sectors() {
                self.forgotten.insert(sector, self.now.sector(sector).to_vec());
            }
        }
        // Its length is in the file system's own log, not among its pages.
        if self.kept.length != self.now.length {
            self.pending.push(Change::Length(self.now.length));
        }
    }

    /// Returns what a power cut leaves.
    pub(crate) fn cut(&self, unsynced: Unsynced, draw: &mut Draw) -> Content {
        const EACH: [Unsynced; 5] = [
            Unsynced::Lost,
            Unsynced::Kept,
            Unsynced::Torn,
            Unsynced::Scattered,
            Unsynced::Hollow,
        ];
        let mut left = self.kept.clone();
        if self.pending.is_empty() && self.forgotten.is_empty() {
            return left;
        }
        self.remember(&mut left, unsynced, draw);
        match unsynced {
            Unsynced::Lost => {}
            Unsynced::Kept => self.pending.iter().for_each(|change| left.apply(change)),
            Unsynced::Torn => self.tear(&mut left, draw),
            Unsynced::Scattered => self.scatter(&mut left, draw),
            Unsynced::Hollow => {
                let mut length = left.clone();
                self.pending.iter().for_each(|change| length.apply(change));
                left.cut(length.length);
            }
            Unsynced::Mixed => {
                let drawn = draw.one(&EACH).copied().unwrap_or(Unsynced::Lost);
                return self.cut(drawn, draw);
            }
        }
        left
    }

    /// Some of what a sync failed to write may have reached the disk all the same.
    fn remember(&self, left: &mut Content, unsynced: Unsynced, draw: &mut Draw) {
        for (sector, bytes) in &self.forgotten {
            let is_kept = match unsynced {
                Unsynced::Kept => true,
                Unsynced::Scattered => draw.chance(0.5),
                Unsynced::Lost | Unsynced::Torn | Unsynced::Hollow | Unsynced::Mixed => false,
            };
            if is_kept {
                left.put(sector * SECTOR, bytes);
            }
        }
    }

    fn tear(&self, left: &mut Content, draw: &mut Draw) {
        let Some((last, before)) = self.pending.split_last() else {
            return;
        };
        before.iter().for_each(|change| left.apply(change));
        let Change::Write { at, bytes } = last else { return };
        let mut part = draw.below(bytes.len() + 1);
        if draw.chance(0.7) {
            let end = (at + part as u64) / SECTOR * SECTOR;
            part = index(end.saturating_sub(*at));
        }
        if draw.chance(0.5) {
            left.length = left.length.max(at + bytes.len() as u64);
        }
        if part > 0 {
            left.put(*at, &bytes[..part]);
        }
    }

    fn scatter(&self, left: &mut Content, draw: &mut Draw) {
        let mut cache = left.clone();
        let mut lengths = vec![left.length];
        let share = draw.one(&[0.1, 0.5, 0.9]).copied().unwrap_or(0.5);
        for change in &self.pending {
            cache.apply(change);
            lengths.push(cache.length);
            if let Change::Length(length) = change
                && draw.chance(share)
            {
                left.bytes.truncate(index(*length));
            }
            for sector in change.sectors() {
                if draw.chance(share) {
                    left.take_sectors(&(sector..sector + 1), &cache);
                }
            }
        }
        let length = draw.one(&lengths).copied().unwrap_or(left.length);
        left.cut(length);
    }
}
