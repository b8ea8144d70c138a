//! The properties, one method each.

use procession_actors::view::Outcome;
use procession_kernel::ProcedureState;

use super::Check;
use super::case::{Case, Crashes};
use super::finding::Finding;
use super::property::{Property, crashes};
use crate::testkit::calls::Moment;

/// Commits that a life after a crash makes more than one without, at most.
const RECOVERY_COMMITS: u64 = 8;

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
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            runs: self.runs + other.runs,
            crashes: self.crashes + other.crashes,
        }
    }
}

impl<S: 'static> Check<S> {
    /// Runs it once, undisturbed, and returns its outcome, whichever that is.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// assert!(check.outcome()?.cause.is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Finding`] if it does not come to an end, or leaves something held.
    pub fn outcome(&self) -> Result<Outcome, Finding> {
        Ok(Property::new(self, "outcome").plain()?.outcome)
    }

    /// Undisturbed it succeeds, and nothing is held when it has.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.succeeds()?;
    /// # Ok(()) }
    /// ```
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
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.crash_at_every_commit()?;
    /// # Ok(()) }
    /// ```
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
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.crash_again_in_recovery()?;
    /// # Ok(()) }
    /// ```
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
                let over = lived.is_some_and(|lived| lived.crashes < 2);
                if over || second.0 > plain.commits + RECOVERY_COMMITS {
                    break;
                }
            }
        }
        Ok(property.checked)
    }

    /// Every stage runs twice, with the same value: the engine crashes before each
    /// commit once. It is what shows that stages bear repetition.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.run_stages_twice()?;
    /// # Ok(()) }
    /// ```
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

    /// Each [pure stage](crate::Procedure::is_pure) is computed five times, from copies of the same value: it must leave the
    /// same each time, and may not take longer than a millisecond. It is what shows that the stage may run ahead of the
    /// disk, as often as crashes and its run ask for.
    ///
    /// The clock stands still meanwhile. A stage that draws random numbers is a finding here, although the engine bears
    /// that. The entries of a map may come in another order. What a stage does to memory of its environment shows if [`picture`](Self::picture) or
    /// [`effects`](Self::effects) tell of it. The time is that of this build: one without optimisation may take longer
    /// than the millisecond where a release would not.
    ///
    /// ```
    /// use procession::procedure::PureContext;
    /// use procession::testkit::Check;
    /// # use procession::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Quote { pieces: u32 }
    /// # impl Procedure for Quote {
    /// #     const KIND: &'static str = "quote";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = u32;
    /// #     fn first(&self) {}
    /// #     fn is_pure(&self, (): &()) -> bool { true }
    ///     fn compute(&mut self, (): (), _: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///         Ok(Step::Done(self.pieces * 250))
    ///     }
    /// #     async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         Ok(Step::Done(0))
    /// #     }
    /// # }
    /// # fn main() -> Result<(), procession::testkit::Finding> {
    /// let check = Check::new(|builder| builder.register::<Quote>(()), || Quote { pieces: 12 });
    /// check.assert_pure()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Finding`] names the stage and what differs; or says that no stage was pure.
    pub fn assert_pure(&self) -> Result<Checked, Finding> {
        let mut property = Property::new(self, "assert_pure");
        let plain = property.plain()?;
        let case = Case {
            examines: true,
            ..Case::default()
        };
        let Some(lived) = property.run(&case, None)? else {
            return Ok(property.checked);
        };
        // The stage says more than what became of it.
        let found = match lived.calls.examined() {
            Ok(0) => Err("no stage of it is pure, so nothing was checked".to_owned()),
            Ok(_) => lived.after.is_as(&plain.after),
            Err(why) => Err(why),
        };
        found.map_err(|why| property.finding(&case, lived.calls.line(), why))?;
        Ok(property.checked)
    }

    /// Each attempt of each stage fails for good in turn, before it begins and after all
    /// that it does: what the procedure did until then must be undone.
    ///
    /// A stage beyond its point of no return fails twice, and then goes on.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.fail_each_stage()?;
    /// # Ok(()) }
    /// ```
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
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.fail_each_undo()?;
    /// # Ok(()) }
    /// ```
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
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.run_undos_twice()?;
    /// # Ok(()) }
    /// ```
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
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.crash_while_rolling_back()?;
    /// # Ok(()) }
    /// ```
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
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.nothing_left()?;
    /// # Ok(()) }
    /// ```
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
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Finding> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// check.everything()?;
    /// # Ok(()) }
    /// ```
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
