//! Power cuts over a record: each drawn state of the disk is built, and judged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use procession_cli::demo::draw::Draw;
use serde::{Deserialize, Serialize};

use super::disk::{Cut, Disk, Left, Names, Unnamed};
use super::file::Unsynced;
use super::judge::{Ledger, judge};
use super::record::{Operation, Record};
use crate::Outcome;

/// A sound state that takes longer is told of, as what may wait for something that does not come.
const SLOW: Duration = Duration::from_secs(3);

#[expect(clippy::disallowed_methods, reason = "times the trial, outside the engine")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Which states of which disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cuts {
    pub(crate) record: PathBuf,
    /// The directory that was watched.
    pub(crate) root: PathBuf,
    /// The journal's, below it.
    pub(crate) journal: PathBuf,
    /// What was there before the record, if anything, and what the ledger said by then.
    pub(crate) base: Option<PathBuf>,
    pub(crate) ledger: String,
    /// Bytes of each submission.
    pub(crate) filler: usize,
    pub(crate) seed: u64,
    /// The first operation behind which the power may be cut.
    pub(crate) from: usize,
    /// The last one.
    pub(crate) until: usize,
    /// Only names as POSIX has them, and all that was not synced is lost.
    pub(crate) is_strictest: bool,
    /// The control.
    pub(crate) without_syncs: bool,
}

/// One state: so many operations are done, and this is done to what was not synced.
#[derive(Clone, Copy, Debug)]
struct State {
    number: usize,
    operations: usize,
    names: Names,
    cut: Cut,
}

impl Cuts {
    /// Over a record of what was done below a directory that was empty.
    pub(crate) fn new(record: &Path, root: &Path, journal: &Path) -> Self {
        Self {
            record: record.to_owned(),
            root: root.to_owned(),
            journal: journal.to_owned(),
            base: None,
            ledger: String::new(),
            filler: 0,
            seed: 0,
            from: 0,
            until: usize::MAX,
            is_strictest: false,
            without_syncs: false,
        }
    }

    /// Draws a state. A third of them walks through the boundaries of syncs, one after the other; another is
    /// around changes of names and lengths, and the rest anywhere.
    fn draw(&self, number: usize, record: &Record) -> State {
        const NAMES: [Unnamed; 3] = [Unnamed::Lost, Unnamed::Kept, Unnamed::Drawn];
        const BYTES: [Unsynced; 6] = [
            Unsynced::Lost,
            Unsynced::Kept,
            Unsynced::Torn,
            Unsynced::Scattered,
            Unsynced::Hollow,
            Unsynced::Mixed,
        ];
        let mut draw = Draw::of(self.seed, number as u64);
        let end = record.operations.len().min(self.until);
        let at = |is_one: &dyn Fn(&Operation) -> bool| -> Vec<usize> {
            let numbered = record.operations.iter().enumerate().take(end).skip(self.from);
            numbered.filter(|(_, one)| is_one(one)).map(|(at, _)| at).collect()
        };
        let around = match number % 3 {
            0 => {
                let syncs = at(&Operation::is_sync);
                syncs
                    .get((number / 6) % syncs.len().max(1))
                    .map(|at| at + (number / 3) % 2)
            }
            1 => {
                let names = at(&Operation::is_of_names);
                let around = draw.below(3);
                draw.one(&names).map(|at| at + around)
            }
            _ => None,
        };
        let operations = around.unwrap_or_else(|| self.from + draw.below(end - self.from + 1));
        let names = if draw.chance(0.6) {
            Names::Strict
        } else {
            Names::Ordered
        };
        let cut = Cut {
            names: draw.one(&NAMES).copied().unwrap_or(Unnamed::Lost),
            bytes: draw.one(&BYTES).copied().unwrap_or(Unsynced::Lost),
        };
        let state = State {
            number,
            operations: operations.min(end),
            names,
            cut,
        };
        if !self.is_strictest {
            return state;
        }
        let cut = Cut {
            names: Unnamed::Lost,
            bytes: Unsynced::Lost,
        };
        State {
            names: Names::Strict,
            cut,
            ..state
        }
    }

    fn disk(&self, names: Names) -> Outcome<Disk> {
        let disk = match &self.base {
            Some(base) => Disk::holding(&self.root, names, base)?,
            None => Disk::new(&self.root, names),
        };
        Ok(if self.without_syncs { disk.without_syncs() } else { disk })
    }

    /// Follows the whole record, and compares the end with what is there: what the library did not see shows here.
    pub(crate) fn is_complete(&self) -> Outcome {
        let record = Record::read(&self.record)?;
        let mut disk = self.disk(Names::Strict)?;
        for operation in &record.operations {
            disk.follow(&record, operation)?;
        }
        let complete = disk.now().is_at(&self.root);
        Ok(complete.map_err(|error| format!("the record misses something: {error}"))?)
    }

    /// Builds one state below a directory; gives what the ledger said by then, and in a line what state it is.
    pub(crate) fn build(&self, number: usize, place: &Path) -> Outcome<(String, String)> {
        let mut built = None;
        self.each(&[number], |state, left, ledger| {
            left.write(place)?;
            built = Some((ledger, format!("{state:?}")));
            Ok(())
        })?;
        Ok(built.ok_or("no such state")?)
    }

    /// Builds these states one after the other, in the order of the record, and has each looked at.
    fn each(&self, numbers: &[usize], mut look: impl FnMut(&State, &Left, String) -> Outcome) -> Outcome {
        let record = Record::read(&self.record)?;
        let mut states: Vec<State> = numbers.iter().map(|number| self.draw(*number, &record)).collect();
        states.sort_by_key(|state| state.operations);
        let mut disks = [self.disk(Names::Strict)?, self.disk(Names::Ordered)?];
        let mut done = 0;
        for state in &states {
            for operation in record.operations.iter().take(state.operations).skip(done) {
                for disk in &mut disks {
                    disk.follow(&record, operation)?;
                }
            }
            done = state.operations;
            let disk = match state.names {
                Names::Strict => &disks[0],
                Names::Ordered => &disks[1],
            };
            let mut draw = Draw::of(self.seed.rotate_left(32), state.number as u64);
            let left = disk.cut(state.cut, &mut draw);
            look(state, &left, format!("{}{}", self.ledger, record.ledger(done)))?;
        }
        Ok(())
    }

    /// Builds and judges these states below a directory. Says which is next, and how it went.
    pub(crate) fn try_states(&self, numbers: &[usize], place: &Path, mut say: impl FnMut(&str) -> Outcome) -> Outcome {
        self.each(numbers, |state, left, ledger| {
            say(&format!("next {}", state.number))?;
            let place = place.join(state.number.to_string());
            left.write(&place)?;
            let journal = place.join(&self.journal);
            let begun = now();
            let judged = Ledger::read(&ledger).and_then(|ledger| judge(&journal, &ledger, self.filler));
            // An engine that did not stop may still be writing; the directory goes with the test's.
            fs::remove_dir_all(place).ok();
            match judged {
                Ok(()) if begun.elapsed() > SLOW => say(&format!("sound {} slowly {state:?}", state.number)),
                Ok(()) => say(&format!("sound {}", state.number)),
                Err(why) => say(&format!("wrong {} {why} ({state:?})", state.number)),
            }
        })
    }
}
