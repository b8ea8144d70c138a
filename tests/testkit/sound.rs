//! Sound procedures of every sort have every property.

use std::time::Duration;

use procession::testkit::Check;
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Tested;
use crate::outside::Outside;
use crate::provision::{Fault, Provision};

/// What one does besides.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Sort {
    /// Has children, and goes on when they are done.
    Family,
    /// Passes a point of no return.
    OneWay,
    /// Sleeps for a day, and waits for a signal.
    Patient,
    /// Waits for another thread.
    Threads,
    /// Leaves a family of its own behind.
    Detaches,
}

#[derive(Clone, Serialize, Deserialize)]
struct Sound(Sort);

impl Procedure for Sound {
    const KIND: &'static str = "sound";
    type Stage = u32;
    type Env = Outside;
    type Output = u32;

    fn first(&self) -> u32 {
        1
    }

    fn rollback_supported(&self, stage: &u32) -> bool {
        !matches!(self.0, Sort::OneWay) || *stage < 2
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 3 {
            return Ok(Step::Done(stage));
        }
        let volume = |number: u32| Provision {
            name: format!("v{stage}-{number}"),
            fault: Fault::None,
        };
        let then = stage + 1;
        match self.0 {
            Sort::Family if stage == 1 => Ok(Step::Spawn {
                children: [volume(1)]
                    .iter()
                    .try_fold(Children::new(), Children::and_compensated)?,
                then,
            }),
            Sort::Family | Sort::OneWay => {
                cx.put("sound", stage.to_string(), &true)?;
                Ok(Step::Next(then))
            }
            Sort::Patient if stage == 1 => Ok(Step::Sleep {
                until: cx.now().after(Duration::from_hours(24)),
                then,
            }),
            Sort::Patient => Ok(Step::Wait {
                event: "go".into(),
                timeout: None,
                then,
            }),
            Sort::Threads => {
                let (sender, receiver) = futures::channel::oneshot::channel();
                std::thread::spawn(move || sender.send(7_u32).ok());
                cx.put("sound", stage.to_string(), &receiver.await?)?;
                Ok(Step::Next(then))
            }
            Sort::Detaches => {
                if stage == 2 {
                    cx.submit(&Sound(Sort::Threads))?;
                    return Ok(Step::Done(stage));
                }
                Ok(Step::Next(then))
            }
        }
    }

    async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.delete("sound", stage.to_string());
        Ok(())
    }
}

fn sound(sort: Sort) -> Check<Outside> {
    Check::with(
        Outside::new,
        |outside, builder| {
            builder
                .register::<Sound>(outside.clone())
                .register::<Provision>(outside.clone())
        },
        move |_| Sound(sort),
    )
    .picture(Outside::picture)
}

#[test]
fn a_family_with_compensated_children() -> Tested {
    sound(Sort::Family)
        .effects(|outside| outside.effects.clone())
        .everything()?;
    Ok(())
}

#[test]
fn one_with_a_point_of_no_return() -> Tested {
    sound(Sort::OneWay).everything()?;
    Ok(())
}

#[test]
fn one_that_sleeps_for_a_day_and_waits_for_a_signal() -> Tested {
    let check = sound(Sort::Patient).client(async |_, run, id| {
        match run.executor.signal(id, "go", &(), Some("once")).await {
            // It may have ended before a crash.
            Ok(_) | Err(procession::AskError::Finished(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    });
    check.everything()?;
    Ok(())
}

#[test]
fn one_that_waits_for_other_threads() -> Tested {
    sound(Sort::Threads).everything()?;
    Ok(())
}

#[test]
fn one_that_leaves_a_family_behind() -> Tested {
    let check = sound(Sort::Detaches);
    check.succeeds()?;
    check.run_stages_twice()?;
    check.crash_at_every_commit()?;
    check.nothing_left()?;
    Ok(())
}

#[test]
fn one_in_a_scene_that_was_set() -> Tested {
    let check = sound(Sort::Family)
        .given(async |_, run| {
            let handle = run.executor.submit(Sound(Sort::OneWay)).await?;
            handle.await?;
            Ok(())
        })
        .afterwards(async |_, run, _| match run.executor.get::<bool>("sound", "1").await? {
            Some(true) => Ok(()),
            other => Err(format!("{other:?}").into()),
        });
    check.succeeds()?;
    check.crash_at_every_commit()?;
    Ok(())
}
