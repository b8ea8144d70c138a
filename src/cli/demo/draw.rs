//! Draws numbers from a seed. The same seed gives the same workload on every
//! machine and in every release, which no library promises for its generators.

/// A stream of numbers, all of them a function of the seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// Starts a stream.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Starts a stream for one of many things that share a seed.
    #[must_use]
    pub fn of(seed: u64, number: u64) -> Self {
        let mut draw = Self(seed ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        draw.number();
        draw
    }

    /// Draws any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Draws a number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = self.number();
        u64::try_from(bound)
            .ok()
            .and_then(|bound| drawn.checked_rem(bound))
            .and_then(|drawn| usize::try_from(drawn).ok())
            .unwrap_or(0)
    }

    /// Is true in this share of all draws.
    pub fn chance(&mut self, share: f64) -> bool {
        const SCALE: f64 = 9_007_199_254_740_992.0;
        ((self.number() >> 11) as f64) / SCALE < share
    }

    /// Draws one of the list, if there is one.
    pub fn one<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }
}
