//! Finds the number of an item by its name. The index cannot be iterated, so that no order can depend on the hashes:
//! only the owner defines an order.

/// The number of an empty place.
const NOBODY: u32 = u32::MAX;

/// Numbers by the hash of the name that each represents.
#[derive(Clone, Debug, Default)]
pub(super) struct HashIndex {
    /// The places. Their number is a power of two, and at least half of them are empty. Each entry is at its hash's own
    /// place or follows it without a gap.
    places: Vec<Place>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    hash: u32,
    number: u32,
}

const EMPTY: Place = Place {
    hash: 0,
    number: NOBODY,
};

impl HashIndex {
    /// The smallest number of places.
    const LEAST: usize = 16;

    /// Returns the number under this hash for which `is` returns `true`.
    #[inline]
    pub(super) fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.seek(hash, is).map(|(_, number)| number)
    }

    #[inline]
    fn seek(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mut at = self.home(hash);
        loop {
            let place = self.places.get(at)?;
            if place.number == NOBODY {
                return None;
            }
            if place.hash == hash && is(place.number) {
                return Some((at, place.number));
            }
            at = self.next(at);
        }
    }

    /// Adds a number. The index must not contain it yet.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        if self.places.len() <= self.len * 2 {
            self.resize((self.len * 4).max(Self::LEAST));
        }
        self.len += 1;
        self.put(Place { hash, number });
    }

    fn put(&mut self, entry: Place) {
        let mut at = self.home(entry.hash);
        while let Some(place) = self.places.get_mut(at) {
            if place.number == NOBODY {
                *place = entry;
                return;
            }
            at = self.next(at);
        }
    }

    /// Removes a number, if the index contains it.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let Some((mut gap, _)) = self.seek(hash, |other| other == number) else {
            return;
        };
        self.len -= 1;
        // An entry that could no longer be found behind the gap moves into it.
        let mut at = self.next(gap);
        while let Some(place) = self.places.get(at).copied().filter(|place| place.number != NOBODY) {
            if self.distance(self.home(place.hash), at) >= self.distance(gap, at) {
                self.set(gap, place);
                gap = at;
            }
            at = self.next(at);
        }
        self.set(gap, EMPTY);
        if self.len == 0 && self.places.len() > 1024 {
            self.places = Vec::new();
        }
    }

    fn resize(&mut self, places: usize) {
        let old = std::mem::replace(&mut self.places, vec![EMPTY; places.next_power_of_two()]);
        old.into_iter()
            .filter(|place| place.number != NOBODY)
            .for_each(|place| self.put(place));
    }

    fn set(&mut self, at: usize, entry: Place) {
        if let Some(place) = self.places.get_mut(at) {
            *place = entry;
        }
    }

    #[inline]
    const fn home(&self, hash: u32) -> usize {
        hash as usize & self.mask()
    }

    #[inline]
    const fn next(&self, at: usize) -> usize {
        (at + 1) & self.mask()
    }

    /// Returns the number of steps from one place to another.
    #[inline]
    const fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    #[inline]
    const fn mask(&self) -> usize {
        self.places.len().wrapping_sub(1)
    }
}

/// The multiplier of the hash: the fraction of the golden ratio, which is odd and without a pattern.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the hash of a number.
#[inline]
pub(super) const fn of_number(number: u64) -> u32 {
    fold(number, MIX)
}

/// Returns the hash of a sequence of numbers.
pub(super) fn of_numbers(numbers: impl Iterator<Item = u64>) -> u32 {
    of_number(numbers.fold(0, step))
}

/// Returns the hash of a text.
pub(super) fn of_text(text: &str) -> u32 {
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let length = text.len() as u64;
    of_number(step(words.fold(length, step), rest))
}

/// Mixes one more word into a hash.
#[inline]
const fn step(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(MIX);
    mixed ^ mixed >> 32
}

/// Returns the upper half of a product, which depends on every bit of the number.
#[inline]
const fn fold(number: u64, by: u64) -> u32 {
    (number.wrapping_mul(by) >> 32) as u32
}
