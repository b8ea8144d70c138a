//! The workloads on memable: a workflow with a step for each stage, in a file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use memable::{Context, Engine, EngineError, WorkflowState};

use crate::Failed;
use crate::workload::{Counter, Load, Rate, STAGES, Workload, payload, rate};

async fn chain(context: Context, counter: Counter) -> Result<(), EngineError> {
    let carried: String = context.input()?.unwrap_or_default();
    for stage in 0..STAGES {
        step(&context, stage, counter.clone(), carried.clone()).await?;
    }
    Ok(())
}

/// It has no children: all steps of one workflow are joined.
async fn fan_out(context: Context, counter: Counter, children: u32) -> Result<(), EngineError> {
    let carried = payload();
    let steps = (0..children).map(|child| step(&context, child, counter.clone(), carried.clone()));
    futures::future::try_join_all(steps).await?;
    Ok(())
}

async fn step(context: &Context, number: u32, counter: Counter, carried: String) -> Result<(), EngineError> {
    let key = format!("stage-{number}");
    let left: String = context
        .step(&key)
        .run(async move || {
            counter.add(1);
            Ok(carried.clone())
        })
        .await?;
    drop(left);
    Ok(())
}

/// Measures one load.
pub fn measure(load: Load, window: Duration, directory: &Path) -> Result<Rate, Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let rate = runtime.block_on(run(load, window, directory));
    // What is still under way is of no interest.
    runtime.shutdown_background();
    rate
}

async fn run(load: Load, window: Duration, directory: &Path) -> Result<Rate, Failed> {
    let counter = Counter::default();
    let mut engine = Engine::builder().open(directory.join("workflows.redb"))?.build();
    let counted = counter.clone();
    engine.register("chain", move |context| chain(context, counted.clone()));
    let (counted, children) = (counter.clone(), load.children);
    engine.register("fan-out", move |context| fan_out(context, counted.clone(), children));
    engine.start().await?;
    let engine = Arc::new(engine);
    let one = async || -> Result<(), Failed> {
        let invoked = match load.workload {
            Workload::Chain => engine.invoke("chain").input(payload()).await?,
            Workload::FanOut => engine.invoke("fan-out").await?,
            Workload::Saga => return Err("memable has no undo".into()),
        };
        match invoked.wait().await {
            WorkflowState::Completed(_) => Ok(()),
            other => Err(format!("a workflow ended as {other}").into()),
        }
    };
    rate(load, window, &counter, one).await
}
