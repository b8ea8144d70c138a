//! Random changes of inputs: bytes, lengths, numbers at their limits, pieces moved
//! and mixed. A seed gives the same changes again.

/// Numbers as MessagePack and as keys have them, at their limits.
const LIMITS: [&[u8]; 12] = [
    &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0xce, 0xff, 0xff, 0xff, 0xff],
    &[0xce, 0x7f, 0xff, 0xff, 0xff],
    &[0xcd, 0xff, 0xff],
    &[0xc0],
    &[0x00],
    &[0x7f],
    &[0xff; 8],
    &[0xff; 4],
    &[0xdd, 0xff, 0xff, 0xff, 0xff],
    &[0xc6, 0xff, 0xff, 0xff, 0xff],
    &[0x90],
];

/// Changes that one input goes through at most.
const CHANGES_MAX: usize = 6;

/// Longest input: what finds more is found by the fuzzer.
const LENGTH_MAX: usize = 16 * 1024;

pub(crate) struct Mutator {
    state: u64,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    pub(crate) fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { state: seed, corpus }
    }

    /// Draws a number (SplitMix64).
    pub(crate) fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw() % (end.max(1) as u64)).unwrap_or_default()
    }

    fn pick(&mut self) -> Vec<u8> {
        let place = self.below(self.corpus.len());
        self.corpus.get(place).cloned().unwrap_or_default()
    }

    /// Returns the next input.
    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.pick();
        for _ in 0..=self.below(CHANGES_MAX) {
            self.change(&mut bytes);
        }
        bytes.truncate(LENGTH_MAX);
        bytes
    }

    /// Changes something.
    pub(crate) fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        match self.below(9) {
            0 => self.set(bytes, at, |byte, drawn| byte ^ (1 << (drawn % 8))),
            1 => self.set(bytes, at, |_, drawn| drawn),
            2 => self.set(bytes, at, |byte, drawn| byte.wrapping_add(drawn % 3).wrapping_sub(1)),
            3 => bytes.truncate(at),
            4 => {
                let length = self.below(16);
                bytes.drain(at..(at + length).min(bytes.len()));
            }
            5 => {
                // A number in place of as many bytes, so that what follows keeps its place.
                let limit = LIMITS.get(self.below(LIMITS.len())).copied().unwrap_or_default();
                let end = (at + limit.len()).min(bytes.len());
                bytes.splice(at..end, limit.iter().copied());
            }
            6 => {
                let limit = LIMITS.get(self.below(LIMITS.len())).copied().unwrap_or_default();
                let end = (at + 1).min(bytes.len());
                bytes.splice(at..end, limit.iter().copied());
            }
            7 => {
                let other = self.pick();
                let (from, length) = (self.below(other.len()), self.below(64));
                let piece = other.get(from..(from + length).min(other.len())).unwrap_or_default();
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => {
                let other = self.pick();
                let from = self.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(other.get(from..).unwrap_or_default());
            }
        }
    }

    fn set(&mut self, bytes: &mut [u8], at: usize, change: impl Fn(u8, u8) -> u8) {
        let [drawn, ..] = self.draw().to_le_bytes();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = change(*byte, drawn);
        }
    }
}
