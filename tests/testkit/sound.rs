//! Sound procedures of every sort have every property.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
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
    /// Has a child whose result is kept, whatever becomes of its parent.
    Keeps,
    /// Passes a point of no return.
    OneWay,
    /// Sleeps for a day, and waits for a signal.
    Patient,
    /// Waits for another thread.
    Threads,
    /// Leaves a family of its own behind.
    Detaches,
    /// Has several slow children at once.
    Crowd,
    /// Takes far longer for a stage than an operator takes for a request.
    Slow,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
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
            Sort::Crowd if stage == 1 => Ok(Step::Spawn {
                children: [Sound(Sort::Slow); 4]
                    .iter()
                    .try_fold(Children::new(), Children::and_compensated)?,
                then,
            }),
            Sort::Slow => {
                for _ in 0..10_000 {
                    tokio::task::yield_now().await;
                }
                cx.put("sound", stage.to_string(), &true)?;
                Ok(Step::Next(then))
            }
            Sort::Keeps if stage == 1 => Ok(Step::Spawn {
                children: Children::new().and(&volume(1))?,
                then,
            }),
            Sort::Family | Sort::Keeps | Sort::OneWay | Sort::Crowd => {
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
fn a_family_with_a_child_whose_result_is_kept() -> Tested {
    let check = sound(Sort::Keeps).afterwards(async |outside, run, outcome| {
        // The child's volume is there if it came to its end, and not otherwise.
        let child = run.executor.tree(outcome.id).await?.into_iter().nth(1);
        let there = child.is_some_and(|child| child.state == procession::status::ProcedureState::Success);
        let file = outside.path().join("v1-1").exists();
        if file == there {
            Ok(())
        } else {
            Err("child and file do not agree".into())
        }
    });
    check.everything()?;
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
        match run.executor.signal(id, "go", &()).key("once").await {
            // It may have ended before a crash.
            Ok(_) | Err(procession::errors::AskError::Finished { .. }) => Ok(()),
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

/// Three crashes poison a stage. With several poisoned at once, each life resumed one of them before any stage was
/// through, crashed at its second commit, and so got nowhere.
#[test]
fn slow_children_are_run_twice_although_crashes_poison_them() -> Tested {
    let check = sound(Sort::Crowd);
    check.run_stages_twice()?;
    check.run_undos_twice()?;
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
fn a_scene_is_set_once_where_it_can_be_copied() -> Tested {
    let set = Arc::new(AtomicU32::new(0));
    let times = Arc::clone(&set);
    let check = sound(Sort::Family)
        .given(async move |_, run| {
            times.fetch_add(1, Ordering::Relaxed);
            run.executor.submit(Sound(Sort::OneWay)).await?.await?;
            Ok(())
        })
        .copied_by(|_| Outside::new());
    let checked = check.crash_at_every_commit()?;
    check.run_stages_twice()?;
    assert_eq!(set.load(Ordering::Relaxed), 1);
    assert!(checked.runs > 8, "{checked:?}");
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
