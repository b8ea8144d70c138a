//! What lies outside the engine and survives its crashes: the log of calls, gates, notes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession::limits::LockNeed;
use procession::testkit::{Run, Trouble};
use procession::{Executor, ProcedureId};

use super::Tested;
use super::kinds::has_runs_here;

/// One call of a body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    /// The plan's name.
    pub(crate) name: String,
    /// The stage, from 1.
    pub(crate) stage: u32,
    /// An undo.
    pub(crate) undo: bool,
    /// The attempt, from 1.
    pub(crate) attempt: u32,
    /// The stored value that it saw.
    pub(crate) value: Vec<u32>,
}

impl Call {
    /// Reads as in the scenarios: `a1`, or `a1'` for an undo.
    pub(crate) fn short(&self) -> String {
        format!("{}{}{}", self.name, self.stage, if self.undo { "'" } else { "" })
    }
}

#[derive(Default)]
struct Notes {
    calls: Vec<Call>,
    open: BTreeSet<String>,
    yielded: BTreeMap<String, u32>,
    yields_no_more: bool,
    outcomes: Vec<String>,
    id: BTreeMap<String, ProcedureId>,
    inside: Vec<Inside>,
    clashes: Vec<String>,
    /// A body may outlive its hold on its locks: an operator ends it while it runs.
    overlaps: bool,
    /// How many calls there were when this life began.
    before: usize,
    asker: Option<Executor>,
}

/// A body that has begun and not ended, and what it runs under.
#[derive(Clone, PartialEq, Eq)]
struct Inside {
    name: String,
    undo: bool,
    locks: Vec<LockNeed>,
}

impl Inside {
    /// A descendant enters what its ancestor holds, and an undo what its family does; `a.0` is a child of `a`.
    fn clashes(&self, other: &Self) -> bool {
        let below =
            |one: &str, other: &str| one == other || one.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'));
        let kin = below(&self.name, &other.name) || below(&other.name, &self.name);
        !kin && self
            .locks
            .iter()
            .any(|lock| other.locks.iter().any(|held| held.conflicts(lock)))
    }
}

/// Leaves when the body ends, also by a panic or a crash.
pub(crate) struct Guard(Lab, Inside);

impl Drop for Guard {
    fn drop(&mut self) {
        let inside = &mut self.0.notes().inside;
        if let Some(place) = inside.iter().position(|other| *other == self.1) {
            inside.swap_remove(place);
        }
    }
}

/// What lies outside the engine and survives its crashes.
#[derive(Clone, Default)]
pub(crate) struct Lab(Arc<Mutex<Notes>>);

impl Lab {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.notes().calls.clone()
    }

    /// Returns all calls as one line: `r1 s1 t1 t1' s1' r1'`.
    pub(crate) fn line(&self) -> String {
        let calls: Vec<String> = self.calls().iter().map(Call::short).collect();
        calls.join(" ")
    }

    /// Counts the calls with this short name.
    pub(crate) fn count(&self, short: &str) -> usize {
        self.calls().iter().filter(|call| call.short() == short).count()
    }

    /// Tells whether a body with this short name has begun.
    pub(crate) fn has(&self, short: &str) -> bool {
        self.count(short) > 0
    }

    /// Opens a gate, for good.
    pub(crate) fn open(&self, gate: &str) {
        self.notes().open.insert(gate.to_owned());
    }

    /// Tells whether a gate is open.
    pub(crate) fn is_open(&self, gate: &str) -> bool {
        self.notes().open.contains(gate)
    }

    /// Notes something that must be the same after every crash.
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.notes().outcomes.push(text.into());
    }

    /// Returns the notes.
    pub(crate) fn noted(&self) -> Vec<String> {
        self.notes().outcomes.clone()
    }

    /// Returns the id of the newest procedure with this name that ran a body.
    pub(crate) fn id(&self, name: &str) -> Option<ProcedureId> {
        self.notes().id.get(name).copied()
    }

    /// Every committed attempt appears at least once, at most once more for each crash, and nothing
    /// else appears; and no two bodies ever ran side by side whose locks exclude each other.
    ///
    /// Without a crash a body may run twice in a run that is taken back. Nothing runs ahead of the disk for a while after a
    /// crash, so there it may run once.
    pub(crate) fn compare(&self, crashed: &Self, crashes: usize) -> Tested {
        for lab in [self, crashed] {
            if let Some(clash) = lab.clashes().into_iter().next() {
                return Err(clash.into());
            }
        }
        let count = |lab: &Self| {
            let mut counts: BTreeMap<Call, usize> = BTreeMap::new();
            for call in lab.calls() {
                *counts.entry(call).or_default() += 1;
            }
            counts
        };
        let (plain, found) = (count(self), count(crashed));
        let names = |counts: &BTreeMap<Call, usize>| counts.keys().cloned().collect::<Vec<_>>();
        if names(&plain) != names(&found) {
            return Err(format!(
                "other bodies ran.\n expected {}\n    found {}",
                self.line(),
                crashed.line()
            )
            .into());
        }
        for (call, times) in &found {
            let expected = plain.get(call).copied().unwrap_or_default();
            let least = if has_runs_here() { expected.min(1) } else { expected };
            if *times < least || *times > expected + crashes {
                return Err(format!(
                    "{} ran {times} times; {expected} are expected with {crashes} crashes",
                    call.short()
                )
                .into());
            }
        }
        Ok(())
    }

    /// Waits until a gate is open.
    pub(crate) async fn gate(&self, gate: &str) {
        while !self.is_open(gate) {
            tokio::task::yield_now().await;
        }
    }

    /// Tells whether a body of this name is still to yield, of so many times.
    pub(crate) fn yields(&self, name: &str, times: u32) -> bool {
        let mut notes = self.notes();
        let is_over = notes.yields_no_more;
        let yielded = notes.yielded.entry(name.to_owned()).or_default();
        *yielded += 1;
        *yielded <= times && !is_over
    }

    /// No body yields from here on, however many times are left.
    pub(crate) fn yields_no_more(&self) {
        self.notes().yields_no_more = true;
    }

    /// Notes that a body runs under these locks, until the guard is dropped; and a clash, if another excludes it.
    pub(crate) fn enters(&self, name: &str, undo: bool, locks: &[LockNeed]) -> Guard {
        let inside = Inside {
            name: name.to_owned(),
            undo,
            locks: locks.to_vec(),
        };
        let mut notes = self.notes();
        let clashing = notes
            .inside
            .iter()
            .filter(|other| !notes.overlaps && inside.clashes(other));
        let clashes: Vec<String> = clashing
            .map(|other| format!("{name} entered {locks:?} while {} was in {:?}", other.name, other.locks))
            .collect();
        notes.clashes.extend(clashes);
        notes.inside.push(inside.clone());
        drop(notes);
        Guard(self.clone(), inside)
    }

    /// A body may run on when its locks are gone, because an operator ends it while it runs.
    pub(crate) fn lets_overlap(&self) {
        self.notes().overlaps = true;
    }

    /// Returns all clashes of bodies that exclude each other.
    pub(crate) fn clashes(&self) -> Vec<String> {
        self.notes().clashes.clone()
    }

    /// A crash ends all bodies, whatever was dropped; nobody can be asked until the engine is up.
    pub(crate) fn begin_life(&self) {
        let mut notes = self.notes();
        notes.inside.clear();
        notes.before = notes.calls.len();
        notes.asker = None;
    }

    /// Returns the calls of this life.
    pub(crate) fn calls_of_life(&self) -> Vec<Call> {
        let notes = self.notes();
        notes.calls.iter().skip(notes.before).cloned().collect()
    }

    /// Lets bodies ask the engine of this life.
    pub(crate) fn can_ask(&self, run: &Run) {
        self.notes().asker = Some(run.executor.clone());
    }

    /// Tells, to a body, who holds this very path now, by the names of those that ran a body; waits until it can ask.
    pub(crate) async fn owners(&self, path: &str) -> Result<String, Trouble> {
        let asker = loop {
            let asker = self.notes().asker.clone();
            match asker {
                Some(asker) => break asker,
                None => tokio::task::yield_now().await,
            }
        };
        let locks = asker.locks().await?;
        let of_path = locks.into_iter().filter(|lock| lock.path.as_str() == path);
        let holders: Vec<ProcedureId> = of_path.flat_map(|lock| lock.holders).map(|(id, _)| id).collect();
        let names = self.notes().id.clone();
        let name = |holder: &ProcedureId| names.iter().find(|(_, id)| *id == holder).map(|(name, _)| name.clone());
        let names: Vec<String> = holders
            .iter()
            .map(|id| name(id).unwrap_or_else(|| id.to_string()))
            .collect();
        Ok(names.join(" "))
    }

    /// Logs that a body has begun.
    pub(crate) fn called(&self, id: ProcedureId, call: Call) {
        let mut notes = self.notes();
        notes.id.insert(call.name.clone(), id);
        notes.calls.push(call);
    }
}
