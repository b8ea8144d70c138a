//! The stages of one kind by number: whatever is counted of them later needs no name.

use super::labels::OTHER;

/// Stages of one kind that are counted by themselves. An enum has fewer variants; further stages count as one, so that
/// no kind can flood the recorder.
pub(super) const STAGES: usize = 64;

/// The index of a stage, or of what all further ones share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagePlace(usize);

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

    /// Returns the index of a stage that was seen before under its own name.
    pub(super) fn known(&self, stage: &str) -> Option<StagePlace> {
        self.position(stage).map(StagePlace)
    }

    pub(super) fn name(&self, stage: StagePlace) -> &str {
        self.names.get(stage.0).map_or(OTHER, String::as_str)
    }

    fn position(&self, stage: &str) -> Option<usize> {
        self.names.iter().position(|name| name == stage)
    }

    fn add(&mut self, stage: &str) -> usize {
        let name = if self.names.len() < STAGES { stage } else { OTHER };
        self.position(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }
}

/// What is counted of each stage of a kind; nothing of one that has only been named.
pub(super) struct ByStage<T>(Vec<Option<T>>);

impl<T> Default for ByStage<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByStage<T> {
    /// Returns what is counted of a stage, and begins with `new` if it is the first time.
    pub(super) fn of(&mut self, stage: StagePlace, new: impl FnOnce() -> T) -> Option<&mut T> {
        if stage.0 >= self.0.len() {
            self.0.resize_with(stage.0 + 1, || None);
        }
        self.0.get_mut(stage.0).map(|found| found.get_or_insert_with(new))
    }

    pub(super) fn get(&self, stage: StagePlace) -> Option<&T> {
        self.0.get(stage.0)?.as_ref()
    }

    /// Returns the stages of which something was counted, in the order in which they were first seen.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StagePlace, &T)> {
        let all = self.0.iter().enumerate();
        all.filter_map(|(index, found)| Some((StagePlace(index), found.as_ref()?)))
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
            assert_eq!(*place, StagePlace(number.min(STAGES)));
        }
        assert_eq!(
            (names.name(StagePlace(7)), names.name(StagePlace(STAGES))),
            ("7", OTHER)
        );
        assert_eq!((names.known("7"), names.known("700")), (Some(StagePlace(7)), None));
    }

    #[test]
    fn nothing_is_counted_of_a_stage_that_was_only_named() {
        let mut counts = ByStage::default();
        for stage in [3, 1, 3] {
            if let Some(count) = counts.of(StagePlace(stage), || 0) {
                *count += 1;
            }
        }
        let all: Vec<_> = counts.iter().collect();
        assert_eq!(all, [(StagePlace(1), &1), (StagePlace(3), &2)]);
        assert_eq!((counts.get(StagePlace(2)), counts.get(StagePlace(4))), (None, None));
    }
}
