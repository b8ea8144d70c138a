//! An engine that runs the sagas of a shape.

use std::path::Path;
use std::time::Duration;

use procession::Executor;
use procession::saga::{Call, Fault, Machine, MachineSettings, OnRest, Sagas};
use serde_json::{Map, Value};

use super::machines::{self, BEGIN, CALL, CHECK, File, HOLD, PASS, SERVICE, SLOT};
use super::{Shape, Sizes};
use crate::bench::BenchError;
use crate::bench::common::builder;
use crate::bench::meter::{Load, Meter, Times};
use crate::bench::recovery::Life;
use crate::bench::rollback::undone;
use crate::bench::taken::{Taken, now};

/// An engine, the machines that it runs, and what their states are timed with.
pub(super) struct Host {
    pub(super) executor: Executor,
    sagas: Sagas,
    meter: Meter,
    params: Map<String, Value>,
}

impl Host {
    /// Starts an engine. `life` says what becomes of sagas that are held.
    pub(super) async fn start(directory: &Path, sizes: &Sizes, life: Life) -> Result<Self, BenchError> {
        let meter = Meter::new(sizes.sagas);
        let sagas = registered(sizes, &meter, life)?;
        let builder = builder(directory, sizes.concurrency).sagas(sagas.clone());
        let executor = builder.start().await?;
        let params = machines::params(sizes);
        Ok(Self {
            executor,
            sagas,
            meter,
            params,
        })
    }

    /// Returns a saga to submit.
    pub(super) fn machine(&self, name: &str, slot: u32) -> Result<Machine, BenchError> {
        let mut params = self.params.clone();
        if let Some(value) = params.get_mut(SLOT) {
            *value = slot.into();
        }
        Ok(self.sagas.machine(name)?.params(&params)?)
    }

    /// Runs a round of sagas of this machine.
    pub(super) async fn round(&self, name: &str, sizes: &Sizes) -> Result<(Taken, Times), BenchError> {
        let load = Load {
            procedures: sizes.sagas,
            concurrency: sizes.concurrency,
            units: sizes.all_states(),
        };
        let run_one = |slot| self.run_one(name, slot, sizes.shape);
        self.meter.round(&self.executor, load, run_one).await
    }

    async fn run_one(&self, name: &str, slot: u32, shape: Shape) -> Result<Duration, BenchError> {
        let begun = now();
        let ended = self.executor.submit(self.machine(name, slot)?).await?.await;
        if shape == Shape::Compensate {
            undone(ended)?;
        } else {
            drop(ended?);
        }
        Ok(begun.elapsed())
    }
}

fn registered(sizes: &Sizes, meter: &Meter, life: Life) -> Result<Sagas, BenchError> {
    let (begins, passes) = (meter.clone(), meter.clone());
    // A saga that cannot go on ends its run with an error. Else the run would wait for a person.
    let on_rest = if sizes.shape == Shape::Rest {
        OnRest::Stay
    } else {
        OnRest::Compensate { after: Duration::ZERO }
    };
    let settings = MachineSettings::default().on_rest(on_rest);
    let sagas = Sagas::builder()
        .method(SERVICE, BEGIN, async move |_: Call, (slot,): (u32,)| {
            begins.stage_ran(slot, true);
            Ok(())
        })
        .method(SERVICE, PASS, async move |_: Call, (slot,): (u32,)| {
            passes.stage_ran(slot, false);
            Ok(())
        })
        .method(SERVICE, CALL, async |_: Call, (_,): (u32,)| Ok(()))
        .method(SERVICE, CHECK, async |_: Call, (fails,): (bool,)| match fails {
            true => Err(Fault::new("bench.Fails", "it fails until it is forwarded")),
            false => Ok(()),
        })
        .method(SERVICE, HOLD, async move |_: Call, (_,): (u32,)| {
            life.stage_begins().await;
            Ok(())
        });
    let add = |sagas: procession::saga::SagasBuilder, File { machine, text }| {
        sagas.json(&format!("{machine}.json"), text).set(&machine, settings)
    };
    Ok(machines::files(sizes).into_iter().fold(sagas, add).build()?)
}
