//! A join rule that the user wrote: what it is asked, and where it runs.

use std::future::IntoFuture;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use procession::procedure::{ChildOutcome, JoinPolicy, JoinVerdict, Timestamp};
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};
use procession::{Builder, Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{enumerate_in, submit};
use crate::support::{Act, Call, Lab, Planned, Tested, chain, failing, kinds, plan};

/// Threads on which user code ran, and whether it was the rule.
static RAN_ON: Mutex<Vec<(ThreadId, bool)>> = Mutex::new(Vec::new());

fn ran(is_rule: bool) {
    let mut ran = RAN_ON.lock().unwrap_or_else(PoisonError::into_inner);
    ran.push((thread::current().id(), is_rule));
}

/// Spawns a, b and c, and goes on when a has succeeded, or both b and c.
/// The child at the place `fails` fails.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Ruled {
    pub(crate) fails: usize,
    pub(crate) rounds: u32,
    pub(crate) width: u32,
}

impl Procedure for Ruled {
    const KIND: &'static str = "ruled";
    type Stage = u32;
    type Env = Lab;
    type Output = u32;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        ran(false);
        let call = Call {
            name: "r".to_owned(),
            stage,
            undo: false,
            attempt: cx.attempt(),
            value: Vec::new(),
        };
        cx.env().called(cx.id(), call);
        if stage > self.rounds {
            return Ok(Step::Done(stage));
        }
        let mut children = Children::new().join(JoinPolicy::Custom).width(self.width);
        for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
            let child = if place == self.fails {
                failing(name, 1)
            } else {
                chain(name, 1)
            };
            children = children.and(&Planned(child))?;
        }
        Ok(Step::Spawn {
            children,
            then: stage + 1,
        })
    }

    fn join(&self, _: &u32, outcomes: &[ChildOutcome]) -> JoinVerdict {
        ran(true);
        let ended = |place: usize, ended: fn(&ChildOutcome) -> bool| outcomes.get(place).is_some_and(ended);
        let (succeeded, failed) = (ChildOutcome::succeeded, ChildOutcome::failed);
        if ended(0, succeeded) || (ended(1, succeeded) && ended(2, succeeded)) {
            JoinVerdict::Met
        } else if ended(0, failed) && (ended(1, failed) || ended(2, failed)) {
            JoinVerdict::Unmeetable
        } else {
            JoinVerdict::Pending
        }
    }
}

fn ruled(fails: usize, rounds: u32, width: u32) -> Ruled {
    Ruled { fails, rounds, width }
}

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).register::<Ruled>(lab.clone())
}

async fn ended(run: &Run, ruled: Ruled) -> Tested {
    let handle = submit(run, ruled.clone(), "k").await?;
    assert_eq!(run.wait(handle.outcome()).await??, ruled.rounds + 1);
    for member in 1..=3 * ruled.rounds {
        let child = procession::ProcedureId::new(handle.id().family, member);
        run.wait(run.executor.outcome(child)).await??;
    }
    Ok(())
}

#[test]
fn e_019_the_users_own_rule() -> Tested {
    let drive = async |_: &Lab, run: &Run| ended(run, ruled(0, 1, 0)).await;
    let (_, lab) = enumerate_in(Lab::default, set_up, drive)?;
    let undone: Vec<String> = lab.calls().iter().filter(|call| call.undo).map(Call::short).collect();
    assert_eq!((undone, lab.count("r2")), (vec!["a1'".to_owned()], 1));
    Ok(())
}

/// A ruling on one round is none on the next.
#[test]
fn e_019_the_users_own_rule_round_after_round() -> Tested {
    let drive = async |_: &Lab, run: &Run| ended(run, ruled(9, 2, 0)).await;
    let (_, lab) = enumerate_in(Lab::default, set_up, drive)?;
    assert_eq!((lab.count("a1"), lab.count("r2"), lab.count("r3")), (2, 1, 1));
    Ok(())
}

#[test]
fn e_019_the_users_own_rule_with_a_restart_before_every_end() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    for restart in 0.. {
        let plan = FaultPlan::at(2, Fault::CrashBefore);
        let life = world.run(
            plan,
            |builder| set_up(&lab, builder),
            async |run| ended(run, ruled(0, 1, 1)).await,
        )?;
        if matches!(life, Ended::Done(())) {
            break;
        }
        assert!(restart < 40, "it does not come to an end");
    }
    assert!(lab.has("r2") && lab.has("a1'"));
    assert_eq!((lab.count("b1'"), lab.count("c1'"), lab.count("r1'")), (0, 0, 0));
    Ok(())
}

#[test]
fn e_019_the_users_own_rule_never_runs_on_the_supervisors_thread() -> Tested {
    let lab = Lab::default();
    let home = thread::current().id();
    let supervisor = std::sync::Arc::new(Mutex::new(None));
    let clock = Spying(std::sync::Arc::clone(&supervisor));
    let threads = |builder: Builder| set_up(&lab, builder).workers(1).clock(std::sync::Arc::new(clock));
    World::new()
        .run(FaultPlan::none(), threads, async |run| {
            // The next to read the clock is the supervisor, for its decision on this.
            *supervisor.lock().map_err(|_| "the clock panicked")? = None;
            let handle = run.executor.submit(ruled(0, 1, 0)).await?;
            let supervisor = *supervisor.lock().map_err(|_| "the clock panicked")?;
            assert_eq!(handle.await?, 2);
            run.executor.drain(Duration::from_secs(60)).await?;
            let ran = RAN_ON.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // The rule was asked, or the parent would still wait.
            assert!(ran.iter().any(|(_, is_rule)| *is_rule));
            assert!(supervisor.is_some_and(|thread| thread != home));
            assert!(ran.iter().all(|(thread, _)| Some(*thread) != supervisor));
            Ok(())
        })?
        .done()
}

/// Notes the first thread that reads it.
pub(super) struct Spying(pub(super) std::sync::Arc<Mutex<Option<ThreadId>>>);

impl procession::provider::Clock for Spying {
    fn now(&self) -> Timestamp {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| thread::current().id());
        Timestamp(0)
    }

    fn sleep_until(&self, _: Timestamp) -> futures::future::BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Each end asks the rule; two hundred questions at once are no more than its mailbox holds.
#[test]
fn e_019_the_users_own_rule_asked_by_two_hundred_at_once() -> Tested {
    let ended = World::new().run(
        FaultPlan::default(),
        |builder| set_up(&Lab::default(), builder),
        async |run: &Run| {
            let children: Vec<_> = (0..200).map(|place| chain(&format!("c{place}"), 1)).collect();
            let all = plan("r", [Act::Spawn(children, JoinPolicy::Custom, 0), Act::Done(7)]);
            let handle = run.wait(run.executor.submit(Planned(all)).into_future()).await??;
            Ok(run.wait(handle.into_future()).await??)
        },
    )?;
    assert!(matches!(ended, Ended::Done(7)));
    Ok(())
}
