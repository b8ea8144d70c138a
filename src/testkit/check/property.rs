//! One property on its way: the cases that it lives, and the verdict on each.

use procession_actors::journal::memory::Fault;
use procession_kernel::ProcedureState;

use super::Check;
use super::case::{Case, Crashes};
use super::finding::Finding;
use super::life::{self, Lived};
use super::properties::Checked;
use crate::testkit::calls::{Failure, Moment, Spot};
use crate::testkit::world::Trouble;

/// Lists both ways to crash at each of so many commits.
pub(super) fn crashes(commits: u64) -> impl Iterator<Item = (u64, Fault)> {
    (1..=commits).flat_map(|commit| [Fault::CrashBefore, Fault::CrashAfter].map(|fault| (commit, fault)))
}

/// One property on its way.
pub(super) struct Property<'a, S> {
    check: &'a Check<S>,
    name: &'static str,
    /// The family of the undisturbed run, by which calls are found again.
    root: u64,
    pub(super) to_the_last: bool,
    pub(super) checked: Checked,
}

impl<'a, S: 'static> Property<'a, S> {
    pub(super) fn new(check: &'a Check<S>, name: &'static str) -> Self {
        Self {
            check,
            name,
            root: 0,
            to_the_last: false,
            checked: Checked::default(),
        }
    }

    pub(super) fn finding(&self, case: &Case, calls: String, what: impl ToString) -> Finding {
        Finding {
            property: self.name,
            case: case.to_string(),
            what: what.to_string(),
            calls,
            seed: self.check.seed,
        }
    }

    /// Lives the scenario as it is.
    pub(super) fn plain(&mut self) -> Result<Lived, Finding> {
        let plain = self.undisturbed(&Case::default())?;
        self.root = plain.calls.first_family();
        Ok(plain)
    }

    /// Lives a case that others are made from, whichever is asked for.
    pub(super) fn undisturbed(&mut self, case: &Case) -> Result<Lived, Finding> {
        let (calls, lived) = life::live(self.check, case, self.root, self.to_the_last);
        self.judge(case, None, lived)
            .map_err(|why| self.finding(case, calls.line(), why))
    }

    /// Lives a case, unless another is asked for.
    pub(super) fn run(&mut self, case: &Case, plain: Option<&Lived>) -> Result<Option<Lived>, Finding> {
        let name = case.to_string();
        if self.check.only.as_ref().is_some_and(|only| *only != name) {
            return Ok(None);
        }
        let (calls, lived) = life::live(self.check, case, self.root, self.to_the_last);
        self.judge(case, plain, lived)
            .map(Some)
            .map_err(|why| self.finding(case, calls.line(), why))
    }

    fn judge(&mut self, case: &Case, plain: Option<&Lived>, lived: Result<Lived, Trouble>) -> Result<Lived, Trouble> {
        let lived = lived?;
        self.checked = self.checked.and(Checked {
            runs: 1,
            crashes: lived.crashes,
        });
        lived.after.once()?;
        if lived.outcome.state == ProcedureState::RolledBack && self.check.undoes {
            if let Some(not_undone) = lived.outcome.not_undone.first() {
                return Err(format!("it was rolled back, but not {not_undone:?}").into());
            }
            // What is kept on purpose is for the user's own check to tell.
            if !lived.after.stands {
                lived.after.is_restored(&lived.before, &self.check.kept)?;
            }
        }
        if let (Some(plain), None) = (plain, &case.stage) {
            lived.after.is_as(&plain.after)?;
        }
        Ok(lived)
    }

    /// Crashes a case at each of its commits.
    pub(super) fn sweep(&mut self, case: &Case, plain: Option<&Lived>, commits: u64) -> Result<(), Finding> {
        for crash in crashes(commits) {
            self.run(&case.with(Crashes::At(vec![crash])), plain)?;
        }
        Ok(())
    }

    /// Finds as few failures of a stage as it takes to have every undo called, each
    /// with the undos that no failure before it has called.
    pub(super) fn rollbacks(&mut self) -> Result<Vec<(Failure, Vec<Spot>)>, Finding> {
        let plain = self.plain()?;
        let mut found = Vec::new();
        for spot in plain.calls.spots(false) {
            let failure = (spot, Moment::After);
            let lived = self.undisturbed(&Case::failing(failure.clone()))?;
            found.push((failure, lived.calls.spots(true)));
        }
        found.sort_by_key(|(_, undos)| std::cmp::Reverse(undos.len()));
        let mut known: Vec<Spot> = Vec::new();
        for (_, undos) in &mut found {
            undos.retain(|undo| !known.contains(undo));
            known.extend(undos.iter().cloned());
        }
        found.retain(|(_, undos)| !undos.is_empty());
        Ok(found)
    }
}
