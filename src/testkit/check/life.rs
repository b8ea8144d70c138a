//! One case, lived to its end: life after life, until one survives.

use std::cell::{Cell, RefCell};
use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;

use procession_actors::AskError;
use procession_actors::view::{ListFilter, Outcome, Status};
use procession_kernel::{OperatorRequest, PauseScope, ProcedureId, WaitReason};

use super::Check;
use super::case::Case;
use super::compare::Left;
use super::families;
use super::rest;
use crate::testkit::calls::{Calls, Shared};
use crate::testkit::world::{Ended, Run, Trouble, World};

/// Lives after which a case is taken to crash for ever.
const LIVES_MAX: usize = 2_000;
/// Looks at a call that waits for something outside, each of many turns, after which
/// it is taken to wait for ever: a minute or so.
const LOOKS_MAX: usize = 400_000;
/// Deadlines after which a scenario is taken to go on for ever.
const DEADLINES_MAX: usize = 100_000;

/// A case that has come to its end.
pub(super) struct Lived {
    pub(super) before: Left,
    pub(super) after: Left,
    pub(super) outcome: Outcome,
    /// Commits of the last life, from the submission on.
    pub(super) commits: u64,
    pub(super) crashes: usize,
    pub(super) calls: Shared,
}

/// One case on its way.
struct Trial<'a, S> {
    check: &'a Check<S>,
    state: S,
    world: World,
    calls: Shared,
    /// What the client knows, which survives the engine's crashes.
    id: Cell<Option<ProcedureId>>,
    outcome: RefCell<Option<Outcome>>,
    /// Retention is let pass as well, and nothing may be left.
    to_the_last: bool,
}

/// Lives one case. With `to_the_last` the world is lived on until nothing of it may be left.
pub(super) fn live<S: 'static>(
    check: &Check<S>,
    case: &Case,
    root: u64,
    to_the_last: bool,
) -> (Shared, Result<Lived, Trouble>) {
    let calls = Arc::new(Calls::new(root, case));
    let lived = begin(check, &calls).and_then(|(world, state)| {
        let trial = Trial {
            check,
            state,
            world,
            calls: Arc::clone(&calls),
            id: Cell::new(None),
            outcome: RefCell::new(None),
            to_the_last,
        };
        trial.live(case)
    });
    (calls, lived)
}

/// Returns a world with its scene set.
fn begin<S: 'static>(check: &Check<S>, calls: &Shared) -> Result<(World, S), Trouble> {
    let Some(copy) = &check.copied else {
        return set_scene(check, calls);
    };
    let mut kept = check.scene.borrow_mut();
    let scene = match kept.take() {
        Some(scene) => scene,
        None => set_scene(check, calls)?,
    };
    let (world, state) = kept.insert(scene);
    Ok((world.fork(), copy(state)?))
}

fn set_scene<S: 'static>(check: &Check<S>, calls: &Shared) -> Result<(World, S), Trouble> {
    let (world, state) = (check.fresh)()?;
    let trial = Trial {
        check,
        state,
        world,
        calls: Arc::clone(calls),
        id: Cell::new(None),
        outcome: RefCell::new(None),
        to_the_last: false,
    };
    trial.set_the_scene()?;
    Ok((trial.world, trial.state))
}

impl<S: 'static> Trial<'_, S> {
    fn live(&self, case: &Case) -> Result<Lived, Trouble> {
        let before = self.look()?;
        self.calls.begin(self.check.seed);
        for life in 0..LIVES_MAX {
            let ended = self.world.run(
                case.crashes.plan(life),
                |builder| self.set_up(builder),
                async |run: &Run| self.drive(run).await,
            )?;
            if let Ended::Done((commits, mut after)) = ended {
                after.add(self.look()?);
                let outcome = self.outcome.borrow().clone();
                return Ok(Lived {
                    before,
                    after,
                    outcome: outcome.ok_or("its outcome is not known")?,
                    commits,
                    crashes: life,
                    calls: Arc::clone(&self.calls),
                });
            }
        }
        Err(format!("it has not come to an end in {LIVES_MAX} lives").into())
    }

    fn set_up(&self, builder: crate::Builder) -> crate::Builder {
        let builder = builder.seed(self.check.seed.max(1)).interceptor(self.calls.clone());
        #[cfg(feature = "flow")]
        let builder = {
            let mut builder = builder;
            let injections = self.calls.injections();
            builder.at_start(|set_up: &mut crate::flow::SetUp| set_up.injections = Some(injections));
            builder
        };
        (self.check.register)(&self.state, builder)
    }

    fn set_the_scene(&self) -> Result<(), Trouble> {
        let Some(given) = &self.check.given else { return Ok(()) };
        let set = self.world.run(
            procession_actors::journal::memory::FaultPlan::none(),
            |builder| self.set_up(builder),
            async |run: &Run| {
                self.wait(run, given.act(&self.state, run)).await??;
                self.settle(run).await
            },
        );
        set.and_then(Ended::done)
            .map_err(|why| format!("the scene could not be set: {why}").into())
    }

    /// Looks at what is outside the engine.
    fn look(&self) -> Result<Left, Trouble> {
        let picture = self.check.picture.as_ref().map(|picture| picture(&self.state));
        let effects = self.check.effects.as_ref().map(|effects| effects(&self.state));
        Ok(Left::outside(&self.world.disk, picture.transpose()?, effects))
    }

    /// One life: submits, waits for the end, and for the end of all that it left behind.
    async fn drive(&self, run: &Run) -> Result<(u64, Left), Trouble> {
        self.help(run).await?;
        if self.outcome.borrow().is_none() {
            let id = match self.id.get() {
                Some(id) => id,
                None => self.wait(run, self.check.submit.act(&self.state, run)).await??,
            };
            self.id.set(Some(id));
            if let Some(client) = &self.check.client {
                self.wait(run, client.act(&self.state, run, id)).await??;
            }
            let outcome = self.wait(run, run.executor.outcome(id)).await??;
            *self.outcome.borrow_mut() = Some(outcome);
        }
        let outcome = self.outcome.borrow().clone().ok_or("its outcome is not known")?;
        self.settle(run).await?;
        // The start's own commit is number 0, and not counted.
        let commits = run.store.commits().saturating_sub(1);
        let left = Left::inside(run, outcome.id).await?;
        rest::nothing_is_held(run).await?;
        if let Some(afterwards) = &self.check.afterwards {
            self.wait(run, afterwards.act(&self.state, run, outcome)).await??;
        }
        if self.to_the_last {
            rest::nothing_is_left(run).await?;
        }
        Ok((commits, left))
    }

    /// Waits until no family is live.
    async fn settle(&self, run: &Run) -> Result<(), Trouble> {
        let quiet = async {
            loop {
                match run.executor.snapshot().await {
                    Ok(snapshot) if snapshot.live_families > 0 => tokio::task::yield_now().await,
                    Ok(_) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        Ok(self.wait(run, quiet).await??)
    }

    /// Waits for a future. Whenever nothing else can run the clock jumps to the next
    /// deadline; but not while user code waits for something outside.
    async fn wait<T>(&self, run: &Run, future: impl IntoFuture<Output = T>) -> Result<T, Trouble> {
        let mut future = pin!(future.into_future());
        let (mut looks, mut deadlines) = (0, 0);
        loop {
            if let Some(value) = run.at_rest(future.as_mut()).await {
                return Ok(value);
            }
            if self.calls.inside() {
                looks += 1;
                if looks > LOOKS_MAX {
                    let stuck = self.stuck(run).await?;
                    return Err(format!(
                        "a call of user code has not come to an end in {LOOKS_MAX} looks, and {stuck}"
                    )
                    .into());
                }
                continue;
            }
            if self.help(run).await? {
                continue;
            }
            deadlines += 1;
            if deadlines > DEADLINES_MAX || !run.world.clock.jump() {
                return Err(self.stuck(run).await?);
            }
        }
    }

    /// Does what an operator would: tries an undo again that has used up its attempts,
    /// and lets those go on that crashes made look like their cause.
    async fn help(&self, run: &Run) -> Result<bool, Trouble> {
        let mut helped = false;
        for status in live_ones(run).await? {
            let by = || OperatorRequest::new("test kit", "the faults are part of the test");
            let asked = match status.wait {
                Some(WaitReason::RollbackFailed) if self.calls.fails_an_undo() => {
                    run.executor.retry_undo(status.id, by()).await
                }
                Some(WaitReason::Poison) => {
                    // Else a life might hold this commit and one crash, and nothing of the scenario, for ever.
                    run.store.postpone_faults(1);
                    run.executor.resume(PauseScope::One(status.id), by()).await
                }
                Some(_) | None => continue,
            };
            match asked {
                Ok(_) => helped = true,
                Err(AskError::NotNow { .. } | AskError::Finished { .. } | AskError::Unknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(helped)
    }

    async fn stuck(&self, run: &Run) -> Result<Trouble, Trouble> {
        let set_aside = run.executor.snapshot().await?.quarantined.into_iter();
        let set_aside = set_aside.map(|(family, why)| format!("family {family} is quarantined: {why}"));
        let live = live_ones(run).await?;
        let lines = live
            .iter()
            .map(|status| format!("{} {} is {}: {}", status.kind, status.id, status.state, status.next));
        let lines: Vec<String> = set_aside.chain(lines).collect();
        let cause = live.iter().find_map(|status| status.cause.as_ref());
        let cause = cause.map_or_else(String::new, |cause| format!("; it failed because: {}", cause.text));
        Ok(format!("it does not come to an end: {}{cause}", lines.join("; ")).into())
    }
}

async fn live_ones(run: &Run) -> Result<Vec<Status>, Trouble> {
    let live = ListFilter {
        live_only: true,
        ..ListFilter::default()
    };
    families::list(run, live).await
}
