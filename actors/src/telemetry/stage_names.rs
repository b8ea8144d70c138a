//! The stages of one kind by number: whatever is counted of them later needs no name.

use super::labels::OTHER;

/// Stages of one kind that are counted by themselves. An enum has fewer variants; further stages count as one, so that
/// no kind can flood the recorder.
pub(super) const STAGES: usize = 64;

/// The index of a stage, or of what all further ones share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagePlace(usize);

impl StagePlace {
    pub(super) const fn index(self) -> usize {
        self.0
    }
}

/// The names of one kind's stages, in the order in which they were first seen.
#[derive(Default)]
pub(super) struct StageNames {
    names: Vec<String>,
    /// Index of the name that was looked up last.
    last: usize,
}

impl StageNames {
    /// Returns the index of a stage, which is mostly the one looked up before.
    pub(super) fn place(&mut self, stage: &str) -> StagePlace {
        if self.names.get(self.last).is_none_or(|name| name != stage) {
            self.last = match self.position(stage) {
                Some(index) => index,
                None => self.add(stage),
            };
        }
        StagePlace(self.last)
    }

    pub(super) fn position(&self, stage: &str) -> Option<usize> {
        self.names.iter().position(|name| name == stage)
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or(OTHER, String::as_str)
    }

    fn add(&mut self, stage: &str) -> usize {
        let name = if self.names.len() < STAGES { stage } else { OTHER };
        self.position(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_stages_share_one_place() {
        let mut names = StageNames::default();
        let all: Vec<StagePlace> = (0..1_000).map(|number| names.place(&number.to_string())).collect();
        let again: Vec<StagePlace> = (0..1_000).map(|number| names.place(&number.to_string())).collect();
        assert_eq!(all, again);
        for (number, place) in all.iter().enumerate() {
            assert_eq!(place.index(), number.min(STAGES));
        }
        assert_eq!((names.name(7), names.name(STAGES)), ("7", OTHER));
    }
}
