//! Stages that say that they are pure, and what is not pure about them.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use procession::procedure::PureContext;
use procession::testkit::{Check, Finding};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Tested;

/// What a stage does besides its work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Slip {
    None,
    /// Leaves a number in its value that another computation does not leave.
    InValue,
    InNote,
    InStep,
    /// Counts in its environment, and leaves the same each time.
    InEnvironment,
    TakesLong,
    /// Panics in its fourth computation.
    Panics,
    /// Fails for good each second time, and may be tried again otherwise.
    InFailure,
    /// Says that no stage is pure.
    NotPure,
}

#[derive(Serialize, Deserialize)]
struct Computes {
    slip: Slip,
    sum: u32,
    /// Is encoded in another order each time that it was decoded.
    by_name: HashMap<String, u32>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Count(u32),
    End(u32),
}

impl Procedure for Computes {
    const KIND: &'static str = "computes";
    type Stage = Stage;
    /// Counted by whoever slips.
    type Env = Arc<AtomicU32>;
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Count(0)
    }

    fn is_pure(&self, stage: &Stage) -> bool {
        self.slip != Slip::NotPure && matches!(stage, Stage::Count(_))
    }

    fn compute(&mut self, stage: Stage, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let Stage::Count(number) = stage else {
            return Ok(Step::Yield);
        };
        let counts = !matches!(self.slip, Slip::None | Slip::NotPure | Slip::TakesLong) && number == 2;
        let drawn = if counts {
            cx.env().fetch_add(1, Ordering::Relaxed)
        } else {
            0
        };
        self.sum += number;
        match self.slip {
            Slip::InValue => self.sum += drawn,
            Slip::InNote => cx.note(&drawn)?,
            Slip::Panics => assert!(drawn != 3, "the fourth"),
            Slip::InFailure if number == 2 && drawn < 5 => {
                let why = "no".to_owned();
                return Err(if drawn % 2 == 0 {
                    StageError::Retry(why)
                } else {
                    StageError::Fail(why)
                });
            }
            Slip::InStep if number == 2 => return Ok(Step::Next(Stage::End(drawn))),
            Slip::TakesLong => {
                black_box((0..3_000_000_u64).fold(0, |sum, number| black_box(sum ^ number)));
            }
            Slip::None | Slip::InStep | Slip::InFailure | Slip::InEnvironment | Slip::NotPure => {}
        }
        Ok(Step::Next(if number < 3 {
            Stage::Count(number + 1)
        } else {
            Stage::End(0)
        }))
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(match stage {
            Stage::Count(_) => Step::Next(Stage::End(0)),
            Stage::End(_) => Step::Done(self.sum),
        })
    }
}

fn checked(slip: Slip) -> Result<(), Finding> {
    let check = Check::with(
        || Ok(Arc::new(AtomicU32::new(0))),
        |counter, builder| builder.register::<Computes>(Arc::clone(counter)),
        move |_| Computes {
            slip,
            sum: 0,
            by_name: (0..20).map(|number| (number.to_string(), number)).collect(),
        },
    );
    if slip == Slip::InEnvironment {
        let check = check.picture(|counter| Ok(counter.load(Ordering::Relaxed)));
        return check.assert_pure().map(drop);
    }
    check.assert_pure().map(drop)
}

#[test]
fn stages_that_compute_are_pure() -> Tested {
    Ok(checked(Slip::None)?)
}

#[test]
fn what_is_not_pure_is_named_with_its_stage() -> Tested {
    let expected = [
        (Slip::InValue, "Count(2) of computes"),
        (Slip::InNote, "Count(2) of computes"),
        (Slip::InStep, "Count(2) of computes"),
        (Slip::InEnvironment, "picture"),
        (Slip::TakesLong, "Count(0) of computes"),
        (Slip::Panics, "Count(2) of computes"),
        (Slip::InFailure, "Count(2) of computes"),
        (Slip::NotPure, "no stage of it is pure"),
    ];
    for (slip, part) in expected {
        let Err(finding) = checked(slip) else {
            return Err(format!("{slip:?} was not found").into());
        };
        let text = finding.to_string();
        assert!(text.contains(part), "{slip:?}: {text}");
        assert_eq!(finding.property, "assert_pure");
    }
    Ok(())
}
