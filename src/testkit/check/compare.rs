//! What a run leaves, and what must be the same in two runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use procession_actors::journal::Space;
use procession_actors::journal::memory::MemoryDisk;
use procession_actors::journal::store::Entries;
use procession_kernel::ProcedureId;

use super::{families, shown};
use crate::testkit::effects::Effects;
use crate::testkit::world::{Run, Trouble};

/// Lines that differ and are shown.
const SHOWN: usize = 12;

/// What a run leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    procedures: String,
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
            procedures: String::new(),
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
        let pictures = (before.picture.as_deref(), self.picture.as_deref());
        let picture = |picture: Option<&str>| picture.unwrap_or_default().to_owned();
        differ(
            &format!("{what} the picture is not as before"),
            &picture(pictures.0),
            &picture(pictures.1),
        )?;
        differ(
            &format!("{what} not all effects were taken back"),
            &before.standing.join("\n"),
            &self.standing.join("\n"),
        )
    }

    /// All is as in a run that was not disturbed.
    pub(super) fn is_as(&self, plain: &Self) -> Result<(), String> {
        let picture = |left: &Self| left.picture.clone().unwrap_or_default();
        differ("the procedures did not end alike", &plain.procedures, &self.procedures)?;
        let all = BTreeSet::new();
        differ("user data differ", &plain.data(&all), &self.data(&all))?;
        differ("the picture differs", &picture(plain), &picture(self))?;
        differ(
            "other effects happened",
            &plain.standing.join("\n"),
            &self.standing.join("\n"),
        )
    }

    /// Shows user data, an entry a line, without that of the keyspaces left out.
    fn data(&self, left_out: &BTreeSet<String>) -> String {
        let mut text = String::new();
        for (space, entries) in self.user.iter().filter(|(space, _)| !left_out.contains(*space)) {
            for (key, value) in entries {
                let (key, value) = (shown::key(key), shown::value(value));
                // Writing to a string cannot fail.
                writeln!(text, "{space}/{key}: {value}").ok();
            }
        }
        text
    }
}

/// Shows the lines of two texts that are not in the other.
fn differ(what: &str, expected: &str, found: &str) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let only = |sign: char, these: &str, those: &str| -> Vec<String> {
        let others: Vec<&str> = those.lines().collect();
        let lines = these.lines().filter(|line| !others.contains(line));
        lines
            .take(SHOWN)
            .map(|line| format!("\n    {sign} {}", line.trim()))
            .collect()
    };
    let lines = [only('-', expected, found), only('+', found, expected)].concat();
    if lines.is_empty() {
        return Err(format!("{what}: the same lines, in another order or number"));
    }
    Err(format!("{what}:{}", lines.concat()))
}
