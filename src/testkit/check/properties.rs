//! The properties, one method each.

use procession_actors::journal::memory::Fault;
use procession_actors::view::Outcome;
use procession_kernel::ProcedureState;

use super::Check;
use super::case::{Case, Crashes};
use super::finding::Finding;
use super::life::{self, Lived};
use crate::testkit::calls::{Failure, Moment, Spot};
use crate::testkit::world::Trouble;

/// What a property did to be sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Runs of the procedure from its submission to the end of all it left behind.
    pub runs: usize,
    /// Crashes in them.
    pub crashes: usize,
}

impl Checked {
    fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            crashes: self.crashes + other.crashes,
        }
    }
}

impl<S: 'static> Check<S> {
    /// Runs it once, undisturbed, and gives its outcome, whichever that is.
    ///
    /// # Errors
    ///
    /// [`Finding`] if it does not come to an end, or leaves something held.
    pub fn outcome(&self) -> Result<Outcome, Finding> {
        Ok(Property::new(self, "outcome").plain()?.outcome)
    }

    /// Undisturbed it succeeds, and nothing is held when it has.
    ///
    /// # Errors
    ///
    /// [`Finding`] says how it ended instead.
    pub fn succeeds(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "succeeds");
        let plain = property.plain()?;
        let state = plain.outcome.state;
        if state == ProcedureState::Success {
            return Ok(property.checked);
        }
        let cause = plain.outcome.cause.as_ref().map_or("", |cause| &cause.text);
        let what = format!("it ended as {state}: {cause}");
        Err(property.finding(&Case::default(), plain.calls.line(), what))
    }

    /// The engine crashes at every commit, before it and after it, and goes on: all
    /// ends as without a crash. It is what shows that a stage may be cut off anywhere.
    ///
    /// # Errors
    ///
    /// [`Finding`] names the commit.
    pub fn crash_at_every_commit(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "crash_at_every_commit");
        let plain = property.plain()?;
        property.sweep(&Case::default(), Some(&plain), plain.commits)?;
        Ok(property.checked)
    }

    /// As [`crash_at_every_commit`](Self::crash_at_every_commit), and each time the
    /// engine crashes once more at every commit of the next life. It takes as many runs
    /// as the square of the commits.
    ///
    /// # Errors
    ///
    /// [`Finding`] names the two commits.
    pub fn crash_again_in_recovery(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "crash_again_in_recovery");
        let plain = property.plain()?;
        for first in crashes(plain.commits) {
            for second in crashes(u64::MAX) {
                let second = (second.0 - 1, second.1);
                let case = Case::default().with(Crashes::At(vec![first, second]));
                let lived = property.run(&case, Some(&plain))?;
                // From here on the second life ends before it would crash.
                if lived.is_none_or(|lived| lived.crashes < 2) && self.only.is_none() || second.0 > plain.commits + 2 {
                    break;
                }
            }
        }
        Ok(property.checked)
    }

    /// Every stage runs twice, with the same value: the engine crashes before each
    /// commit once. It is what shows that stages bear repetition.
    ///
    /// # Errors
    ///
    /// [`Finding`] lists the calls.
    pub fn run_stages_twice(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "run_stages_twice");
        let plain = property.plain()?;
        property.run(&Case::default().with(Crashes::EachOnce), Some(&plain))?;
        Ok(property.checked)
    }

    /// Each attempt of each stage fails for good in turn, before it begins and after all
    /// that it does: what the procedure did until then must be undone.
    ///
    /// A stage beyond its point of no return fails twice, and then goes on.
    ///
    /// # Errors
    ///
    /// [`Finding`] names the stage.
    pub fn fail_each_stage(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "fail_each_stage");
        let plain = property.plain()?;
        for spot in plain.calls.spots(false) {
            for moment in [Moment::Before, Moment::After] {
                property.run(&Case::failing((spot.clone(), moment)), None)?;
            }
        }
        Ok(property.checked)
    }

    /// Each undo fails once while the family rolls back, before it begins and after all
    /// that it does, and is tried again: it must bear that it was done before.
    ///
    /// # Errors
    ///
    /// [`Finding`] names the stage that failed, and the undo.
    pub fn fail_each_undo(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "fail_each_undo");
        for (stage, undos) in property.rollbacks()? {
            for undo in undos {
                for moment in [Moment::Before, Moment::After] {
                    let case = Case {
                        undo: Some((undo.clone(), moment)),
                        ..Case::failing(stage.clone())
                    };
                    property.run(&case, None)?;
                }
            }
        }
        Ok(property.checked)
    }

    /// Every stage and every undo runs twice while the family rolls back: the engine
    /// crashes before each commit once.
    ///
    /// # Errors
    ///
    /// [`Finding`] names the stage that failed, and lists the calls.
    pub fn run_undos_twice(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "run_undos_twice");
        for (stage, _) in property.rollbacks()? {
            property.run(&Case::failing(stage).with(Crashes::EachOnce), None)?;
        }
        Ok(property.checked)
    }

    /// The engine crashes at every commit of a run that rolls back, before it and after it.
    ///
    /// # Errors
    ///
    /// [`Finding`] names the stage that failed, and the commit.
    pub fn crash_while_rolling_back(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "crash_while_rolling_back");
        for (stage, _) in property.rollbacks()? {
            let case = Case::failing(stage);
            let base = property.undisturbed(&case)?;
            property.sweep(&case, None, base.commits)?;
        }
        Ok(property.checked)
    }

    /// Nothing is left when results and keys have been kept for their time: no row, key,
    /// signal or timer of the engine, whether the procedure succeeds or rolls back.
    /// Locks, permits and actors are looked at by every property, when all has ended.
    ///
    /// # Errors
    ///
    /// [`Finding`] lists what is left.
    pub fn nothing_left(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "nothing_left");
        property.to_the_last = true;
        let plain = property.plain()?;
        for spot in plain.calls.spots(false) {
            property.run(&Case::failing((spot, Moment::After)), None)?;
        }
        Ok(property.checked)
    }

    /// All properties but [`crash_again_in_recovery`](Self::crash_again_in_recovery).
    ///
    /// # Errors
    ///
    /// [`Finding`] of the first that does not hold.
    pub fn everything(&self) -> Result<Checked, Finding> {
        Ok(self
            .succeeds()?
            .and(self.run_stages_twice()?)
            .and(self.fail_each_stage()?)
            .and(self.fail_each_undo()?)
            .and(self.run_undos_twice()?)
            .and(self.nothing_left()?)
            .and(self.crash_at_every_commit()?)
            .and(self.crash_while_rolling_back()?))
    }
}

/// Lists both ways to crash at each of so many commits.
fn crashes(commits: u64) -> impl Iterator<Item = (u64, Fault)> {
    (1..=commits).flat_map(|commit| [Fault::CrashBefore, Fault::CrashAfter].map(|fault| (commit, fault)))
}

/// One property on its way.
struct Property<'a, S> {
    check: &'a Check<S>,
    name: &'static str,
    /// The family of the undisturbed run, by which calls are found again.
    root: u64,
    to_the_last: bool,
    checked: Checked,
}

impl<'a, S: 'static> Property<'a, S> {
    fn new(check: &'a Check<S>, name: &'static str) -> Self {
        Self {
            check,
            name,
            root: 0,
            to_the_last: false,
            checked: Checked::default(),
        }
    }

    fn finding(&self, case: &Case, calls: String, what: impl ToString) -> Finding {
        Finding {
            property: self.name,
            case: case.to_string(),
            what: what.to_string(),
            calls,
            seed: self.check.seed,
        }
    }

    /// Lives the scenario as it is.
    fn plain(&mut self) -> Result<Lived, Finding> {
        let plain = self.undisturbed(&Case::default())?;
        self.root = plain.calls.first_family();
        Ok(plain)
    }

    /// Lives a case that others are made from, whichever is asked for.
    fn undisturbed(&mut self, case: &Case) -> Result<Lived, Finding> {
        let (calls, lived) = life::live(self.check, case, self.root, self.to_the_last);
        self.judge(case, None, lived)
            .map_err(|why| self.finding(case, calls.line(), why))
    }

    /// Lives a case, unless another is asked for.
    fn run(&mut self, case: &Case, plain: Option<&Lived>) -> Result<Option<Lived>, Finding> {
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
        if lived.outcome.state == ProcedureState::RolledBack {
            if let Some(not_undone) = lived.outcome.not_undone.first() {
                return Err(format!("it was rolled back, but not {not_undone:?}").into());
            }
            // What is kept on purpose is for the user's own check to tell.
            if !lived.after.stands {
                lived.after.is_restored(&lived.before)?;
            }
        }
        if let (Some(plain), None) = (plain, &case.stage) {
            lived.after.is_as(&plain.after)?;
        }
        Ok(lived)
    }

    /// Crashes a case at each of its commits.
    fn sweep(&mut self, case: &Case, plain: Option<&Lived>, commits: u64) -> Result<(), Finding> {
        for crash in crashes(commits) {
            self.run(&case.with(Crashes::At(vec![crash])), plain)?;
        }
        Ok(())
    }

    /// Finds as few failures of a stage as it takes to have every undo called, each
    /// with the undos that no failure before it has called.
    fn rollbacks(&mut self) -> Result<Vec<(Failure, Vec<Spot>)>, Finding> {
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
