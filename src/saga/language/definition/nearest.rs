//! The name that was probably meant. Its work is bounded for a whole file: a hostile one has thousands of long names.

/// Work for one file: products of lengths that are compared, in bytes. Enough for hundreds of usual mistakes.
const WORK_MAX: usize = 4_000_000;

/// Looks names up by likeness, until the work for a file is used up.
#[derive(Default)]
pub(super) struct Nearest {
    work: usize,
}

impl Nearest {
    /// Returns the candidate that is nearest to the word, if one is near: at most a third of the word differs.
    pub(super) fn find<'a>(&mut self, word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        let limit = (word.chars().count() / 3).max(1);
        let mut best: Option<(usize, &str)> = None;
        for candidate in candidates {
            self.work += 1;
            if self.work > WORK_MAX {
                return None;
            }
            // Each byte more or less is a difference of at most one character, so these cannot be near.
            if candidate.len().abs_diff(word.len()) > limit.saturating_mul(4) {
                continue;
            }
            self.work += (word.len() + 1) * (candidate.len() + 1);
            let distance = strsim::osa_distance(word, candidate);
            if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, candidate));
            }
        }
        best.map(|(_, candidate)| candidate)
    }
}
