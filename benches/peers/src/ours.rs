//! The workloads on procession.

use std::path::Path;
use std::time::Duration;

use procession::errors::ProcedureError;
use procession::procedure::PureContext;
use procession::{Children, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Failed;
use crate::workload::{Counter, Load, Rate, SAGA_STAGES, STAGES, Workload, payload, rate};

/// Counts its stages.
#[derive(Clone, Serialize, Deserialize)]
struct Chain {
    ran: u32,
    payload: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pure: bool,
}

impl Procedure for Chain {
    const KIND: &'static str = "chain";
    type Stage = ();
    type Env = Counter;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn is_pure(&self, (): &()) -> bool {
        self.is_pure
    }

    fn compute(&mut self, (): (), cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(self.next(cx.env()))
    }

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(self.next(cx.env()))
    }
}

impl Chain {
    fn next(&mut self, counter: &Counter) -> Step<Self> {
        counter.add(1);
        self.ran += 1;
        if self.ran == STAGES {
            Step::Done(())
        } else {
            Step::Next(())
        }
    }
}

/// Has children.
#[derive(Clone, Serialize, Deserialize)]
struct Parent {
    children: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pure: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Split,
    Collect,
}

impl Procedure for Parent {
    const KIND: &'static str = "parent";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Split
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Split => {
                let child = Child {
                    payload: payload(),
                    is_pure: self.is_pure,
                };
                let children = (0..self.children).try_fold(Children::new(), |children, _| children.and(&child))?;
                Ok(Step::Spawn {
                    children,
                    then: Stage::Collect,
                })
            }
            Stage::Collect => Ok(Step::Done(())),
        }
    }
}

/// Has one stage.
#[derive(Clone, Serialize, Deserialize)]
struct Child {
    payload: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pure: bool,
}

impl Procedure for Child {
    const KIND: &'static str = "child";
    type Stage = ();
    type Env = Counter;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn is_pure(&self, (): &()) -> bool {
        self.is_pure
    }

    fn compute(&mut self, (): (), cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().add(1);
        Ok(Step::Done(()))
    }

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().add(1);
        Ok(Step::Done(()))
    }
}

/// Fails at its last stage.
#[derive(Clone, Serialize, Deserialize)]
struct Saga {
    ran: u32,
    payload: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pure: bool,
}

impl Procedure for Saga {
    const KIND: &'static str = "saga";
    type Stage = ();
    type Env = Counter;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn is_pure(&self, (): &()) -> bool {
        self.is_pure
    }

    fn compute(&mut self, (): (), cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.next(cx.env())
    }

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.next(cx.env())
    }

    async fn rollback(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.env().add(1);
        self.ran -= 1;
        Ok(())
    }
}

impl Saga {
    fn next(&mut self, counter: &Counter) -> Result<Step<Self>, StageError> {
        counter.add(1);
        self.ran += 1;
        if self.ran == SAGA_STAGES {
            Err(StageError::fail("the last stage fails"))
        } else {
            Ok(Step::Next(()))
        }
    }
}

/// Measures one load, with stages that run ahead of the disk if they are pure.
pub fn measure(load: Load, window: Duration, directory: &Path, is_pure: bool) -> Result<Rate, Failed> {
    actix_rt::System::new().block_on(run(load, window, directory, is_pure))
}

async fn run(load: Load, window: Duration, directory: &Path, is_pure: bool) -> Result<Rate, Failed> {
    let counter = Counter::default();
    let executor = Executor::builder(directory.join("journal"))
        .register::<Chain>(counter.clone())
        .register::<Parent>(())
        .register::<Child>(counter.clone())
        .register::<Saga>(counter.clone())
        .start()
        .await?;
    let one = async || -> Result<(), Failed> {
        let payload = payload();
        match load.workload {
            Workload::Chain => {
                executor
                    .submit(Chain {
                        ran: 0,
                        payload,
                        is_pure,
                    })
                    .await?
                    .await?
            }
            Workload::FanOut => {
                let children = load.children;
                executor.submit(Parent { children, is_pure }).await?.await?;
            }
            Workload::Saga => {
                let outcome = executor
                    .submit(Saga {
                        ran: 0,
                        payload,
                        is_pure,
                    })
                    .await?
                    .await;
                if !matches!(outcome, Err(ProcedureError::RolledBack { .. })) {
                    return Err("a saga was not rolled back".into());
                }
            }
        }
        Ok(())
    };
    // A saga's last stage is undone as well: it may have had an effect before it failed.
    let calls = match load.workload {
        Workload::Chain | Workload::FanOut => 1,
        Workload::Saga => 2 * SAGA_STAGES,
    };
    Ok(rate(load, window, &counter, one).await?.of(calls))
}
