//! What tests of sagas share that are no cases of the runner: a world with files and the double of services.

use std::future::Future;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::saga::{Machine, Saga, SagaStatus, Sagas};
use procession::status::WaitReason;
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World, enumerate};
use procession::{Builder, Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Tested;
use crate::runner::{self, Case, Double};

pub(crate) const RECOVERY: &str = "simple_statelang_with_compensation_for_recovery.json";
pub(crate) const RECOVERY_MACHINE: &str = "simpleCompensationStateMachineForRecovery";

/// How long ends are kept: longer than any test.
pub(crate) const KEPT: Duration = Duration::from_hours(24 * 30);

/// Machines, services, and what survives an engine.
pub(crate) struct Ground {
    pub(crate) double: Double,
    pub(crate) sagas: Sagas,
    pub(crate) world: World,
    machine: String,
}

impl Ground {
    /// Registers these files, with the double for all that they call.
    pub(crate) fn new(files: &[&str], machine: &str) -> Result<Self, Trouble> {
        let case: Case = serde_json::from_value(json!({ "name": machine, "files": files }))?;
        let (double, world) = (Double::default(), World::new());
        double.begin_anew(world.clock.clone());
        Ok(Self {
            sagas: runner::sagas(&case, &double)?,
            double,
            world,
            machine: machine.to_owned(),
        })
    }

    /// Sets what services answer, as a case does.
    pub(crate) fn rules(&self, rules: Value) -> Result<(), Trouble> {
        self.double.set_rules(&serde_json::from_value::<Vec<_>>(rules)?);
        Ok(())
    }

    /// Lives one life of an engine.
    pub(crate) fn live<T>(&self, drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
        self.live_with(&self.sagas, FaultPlan::none(), drive)
    }

    /// Lives one life with these machines and faults.
    pub(crate) fn live_with<T>(
        &self,
        sagas: &Sagas,
        plan: FaultPlan,
        drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let set_up = |builder: Builder| builder.sagas(sagas.clone()).retention(KEPT, KEPT);
        self.world.run(plan, set_up, drive)?.done()
    }

    /// Starts a saga with this key, and lets it come to where it stays.
    pub(crate) async fn start(&self, run: &Run, key: &str, params: Value) -> Result<Saga, Trouble> {
        self.start_of(&self.sagas, run, key, params).await
    }

    pub(crate) async fn start_of(&self, sagas: &Sagas, run: &Run, key: &str, params: Value) -> Result<Saga, Trouble> {
        let machine = sagas.machine(&self.machine)?.params(&params)?;
        let handle = run.wait(run.executor.submit(machine).key(key)).await??;
        run.settle().await;
        Ok(run.executor.saga(handle.id()))
    }

    /// Returns the states that were called since the last time, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        let mut outside = self.double.outside();
        let calls = outside.take_log();
        calls.into_iter().map(|called| called.state).collect()
    }
}

/// Returns how a saga stands: status and compensation.
pub(crate) async fn status(saga: &Saga) -> Result<(SagaStatus, Option<SagaStatus>), Trouble> {
    let instance = saga.instance().await?;
    Ok((instance.status, instance.compensation))
}

/// A process that died twice or more while one saga ran suspects it, and leaves the rest to a person, who lets it go on.
pub(crate) async fn release(run: &Run, saga: &Saga) -> Result<(), Trouble> {
    let members = run.executor.members(saga.id(), 0, 1_000).await?;
    for member in members.items {
        if member.wait == Some(WaitReason::Poison) {
            ask(run, run.executor.retry_now(member.id, by())).await??;
            run.settle().await;
        }
    }
    Ok(())
}

/// Lives a scenario plainly, and then crashed at every commit, of which there are `least` or more, and again in every
/// recovery. `fresh` clears what survives an engine beside its journal.
pub(crate) fn crashed(
    sagas: &Sagas,
    least: u64,
    fresh: impl Fn(),
    set_up: impl Fn(Builder) -> Builder,
    drive: impl AsyncFn(&Run) -> Result<(), Trouble>,
) -> Tested {
    let done = enumerate(
        fresh,
        |(), builder| set_up(builder.sagas(sagas.clone()).retention(KEPT, KEPT)),
        async |(), run| drive(run).await,
        &["saga.definitions"],
        |(), (), _| Ok(()),
    )?;
    assert!(done.commits >= least && done.second > 4, "{done:?}");
    Ok(())
}

/// A procedure of the host that runs a saga as a child. There are `below` more procedures of this kind between the two.
#[derive(Serialize, Deserialize)]
pub(crate) struct Host {
    pub(crate) saga: Machine,
    pub(crate) below: u32,
}

impl Procedure for Host {
    const KIND: &'static str = "host";
    type Stage = bool;
    type Env = ();
    type Output = ();

    fn first(&self) -> bool {
        false
    }

    async fn execute(&mut self, is_back: bool, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if is_back {
            return Ok(Step::Done(()));
        }
        let saga = self.saga.clone();
        let children = match self.below.checked_sub(1) {
            Some(below) => Children::new().and_compensated(&Self { saga, below })?,
            None => Children::new().and_compensated(&saga)?,
        };
        Ok(Step::Spawn { children, then: true })
    }
}

/// One life of an engine: what happens in it, with these faults.
pub(crate) type Life<'a, T> = &'a dyn Fn(&T, FaultPlan) -> Result<Ended<()>, Trouble>;

/// Lives some lives one after the other: plainly, and once for each commit of each of them and each way to crash there. A life
/// that crashed is lived again. Returns how many crashes there were.
pub(crate) fn crash_in_each_life<T>(
    fresh: impl Fn() -> T,
    lives: &[Life<'_, T>],
    check: impl Fn(&T) -> Result<(), Trouble>,
) -> Result<usize, Trouble> {
    let through = |crashed: usize, plan: &FaultPlan| -> Result<bool, Trouble> {
        let (world, mut has_crashed) = (fresh(), false);
        for (number, life) in lives.iter().enumerate() {
            let is_it = number == crashed;
            let ended = life(&world, if is_it { plan.clone() } else { FaultPlan::none() })?;
            if matches!(ended, Ended::Crashed) {
                has_crashed = true;
                life(&world, FaultPlan::none())?.done()?;
            }
        }
        check(&world)?;
        Ok(has_crashed)
    };
    let mut crashes = 0;
    through(lives.len(), &FaultPlan::none())?;
    for life in 0..lives.len() {
        for commit in 0.. {
            let mut has_crashed = false;
            for fault in [Fault::CrashBefore, Fault::CrashAfter] {
                let crashed = through(life, &FaultPlan::at(commit, fault));
                has_crashed |= crashed.map_err(|why| format!("life {life}, commit {commit}, {fault:?}: {why}"))?;
            }
            if !has_crashed {
                break;
            }
            crashes += 2;
        }
    }
    Ok(crashes)
}

/// Awaits an answer of the engine without time passing.
pub(crate) async fn ask<F: Future>(run: &Run, future: F) -> Result<F::Output, Trouble> {
    Ok(run.at_rest(future).await.ok_or("the engine does not answer")?)
}

pub(crate) fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a test")
}
