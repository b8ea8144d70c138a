//! What tests of sagas share that are no cases of the runner: a world with files and the double of services.

use std::future::Future;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::saga::{Saga, SagaStatus, Sagas};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use serde_json::{Value, json};

use crate::runner::{self, Case, Double};

pub(crate) const RECOVERY: &str = "simple_statelang_with_compensation_for_recovery.json";
pub(crate) const RECOVERY_MACHINE: &str = "simpleCompensationStateMachineForRecovery";

/// How long ends are kept: longer than any test.
const KEPT: Duration = Duration::from_hours(24 * 30);

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
        let set_up = |builder: procession::Builder| builder.sagas(sagas.clone()).retention(KEPT, KEPT);
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

/// Awaits an answer of the engine without time passing.
pub(crate) async fn ask<F: Future>(run: &Run, future: F) -> Result<F::Output, Trouble> {
    Ok(run.at_rest(future).await.ok_or("the engine does not answer")?)
}

pub(crate) fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a test")
}
