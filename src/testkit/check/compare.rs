//! What a run leaves, and what must be the same in two runs.

use std::collections::{BTreeMap, BTreeSet};

use procession_actors::journal::Space;
use procession_actors::journal::memory::MemoryDisk;
use procession_actors::journal::store::Entries;
use procession_kernel::ProcedureId;

use super::lines::{self, Line, differ};
use super::{families, shown};
use crate::testkit::effects::Effects;
use crate::testkit::world::{Run, Trouble};

/// What a run leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    procedures: Vec<Line>,
    /// Something of the run stands, though its root may have been rolled back.
    pub(super) stands: bool,
    user: BTreeMap<String, Entries>,
    picture: Option<String>,
    effects: Option<Effects>,
    /// The effects that stood when it was looked at.
    standing: Vec<String>,
}

impl Left {
    /// Looks at user data and at what lies outside.
    pub(super) fn outside(disk: &MemoryDisk, picture: Option<String>, effects: Option<Effects>) -> Self {
        let own = |space: Space| {
            if let Space::User(name) = &space {
                return Some((name.to_string(), disk.dump(&space)));
            }
            None
        };
        let user = disk.spaces().into_iter().filter_map(own);
        Self {
            procedures: Vec::new(),
            stands: false,
            user: user.collect(),
            picture,
            standing: effects.as_ref().map(Effects::standing).unwrap_or_default(),
            effects,
        }
    }

    /// Looks at the procedures; `root` is the one under test.
    pub(super) async fn inside(run: &Run, root: ProcedureId) -> Result<Self, Trouble> {
        Ok(Self {
            procedures: families::shown(run).await?,
            stands: families::stands(run, root).await?,
            ..Self::default()
        })
    }

    pub(super) fn add(&mut self, outside: Self) {
        let procedures = std::mem::take(&mut self.procedures);
        *self = Self {
            procedures,
            stands: self.stands,
            ..outside
        };
    }

    /// No effect happened twice.
    pub(super) fn once(&self) -> Result<(), String> {
        match self.effects.as_ref().map(Effects::twice).unwrap_or_default() {
            twice if twice.is_empty() => Ok(()),
            twice => Err(twice.join("; ")),
        }
    }

    /// Outside all is as it was, except what these keyspaces keep.
    pub(super) fn is_restored(&self, before: &Self, kept: &BTreeSet<String>) -> Result<(), String> {
        let what = "it was rolled back, and";
        differ(
            &format!("{what} user data are not as before"),
            &before.data(kept),
            &self.data(kept),
        )?;
        differ(
            &format!("{what} the picture is not as before"),
            &before.picture(),
            &self.picture(),
        )?;
        differ(
            &format!("{what} not all effects were taken back"),
            &before.standing(),
            &self.standing(),
        )
    }

    /// All is as in a run that was not disturbed.
    pub(super) fn is_as(&self, plain: &Self) -> Result<(), String> {
        differ("the procedures did not end alike", &plain.procedures, &self.procedures)?;
        let all = BTreeSet::new();
        differ("user data differ", &plain.data(&all), &self.data(&all))?;
        differ("the picture differs", &plain.picture(), &self.picture())?;
        differ("other effects happened", &plain.standing(), &self.standing())
    }

    /// Returns user data, an entry a line, without that of the keyspaces left out.
    fn data(&self, left_out: &BTreeSet<String>) -> Vec<Line> {
        let spaces = self.user.iter().filter(|(space, _)| !left_out.contains(*space));
        let entries = spaces.flat_map(|(space, entries)| entries.iter().map(move |entry| (space, entry)));
        entries
            .map(|(space, (key, value))| {
                let text = format!("{space}/{}: {}", shown::key(key), shown::value(value));
                Line::new(text, &shown::compared(value))
            })
            .collect()
    }

    fn picture(&self) -> Vec<Line> {
        lines::of(self.picture.as_deref().unwrap_or_default())
    }

    fn standing(&self) -> Vec<Line> {
        lines::of(&self.standing.join("\n"))
    }
}
