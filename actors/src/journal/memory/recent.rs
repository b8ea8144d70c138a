//! Which keys were written last, as far as the store has that in memory, and when it says so.

use std::collections::{BTreeMap, BTreeSet};

use super::disk::World;
use crate::journal::keys::Space;
use crate::journal::store::{RECENT_BYTES, RecentWrites, Scan};

/// Keys of one keyspace that are kept. Beyond that all of them are dropped, as a checkpoint drops them.
const KEPT: usize = 256;

/// Answers half of the questions, drawn from a seed; without a seed it keeps nothing.
#[derive(Debug, Default)]
pub(super) struct Recent {
    draw: Option<u64>,
    written: BTreeMap<Space, BTreeSet<Vec<u8>>>,
}

impl Recent {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Self {
            // A xorshift generator must not start with zero.
            draw: seed.map(|seed| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            written: BTreeMap::new(),
        }
    }

    /// Keeps a key whose write has taken effect.
    pub(super) fn note(&mut self, space: &Space, key: &[u8]) {
        if self.draw.is_none() {
            return;
        }
        let written = self.written.entry(space.clone()).or_default();
        if written.len() >= KEPT {
            written.clear();
        }
        written.insert(key.to_vec());
    }

    /// Returns the kept writes of a range with what they have left, or `None` if they are too many, or if that is drawn.
    pub(super) fn writes(&mut self, world: &World, scan: &Scan) -> Option<RecentWrites> {
        if !self.answers() {
            return None;
        }
        let rows = world.get(&scan.space);
        let mut found = RecentWrites::new();
        let mut room = RECENT_BYTES;
        let written = self.written.get(&scan.space).into_iter();
        let written = written.flat_map(|written| written.range(scan.from.clone()..));
        for key in written.take_while(|key| scan.to.as_ref().is_none_or(|to| *key < to)) {
            let value = rows.and_then(|rows| rows.get(key)).cloned();
            room = room.checked_sub(key.len() + value.as_ref().map_or(0, Vec::len))?;
            found.push((key.clone(), value));
        }
        (found.len() <= scan.limit).then_some(found)
    }

    fn answers(&mut self) -> bool {
        let Some(state) = &mut self.draw else { return false };
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 32).is_multiple_of(2)
    }
}
