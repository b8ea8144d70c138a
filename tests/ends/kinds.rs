//! What the engines of these tests run: a stage that waits for a gate, and one that holds its thread.

use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// A gate that stages wait for.
#[derive(Clone)]
pub(crate) struct Gate(watch::Sender<bool>);

impl Gate {
    pub(crate) fn shut() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }
}

/// Waits in its only stage until the gate is open.
#[derive(Serialize, Deserialize)]
pub(crate) struct Gated;

impl Procedure for Gated {
    const KIND: &'static str = "gated";
    type Stage = ();
    type Env = Gate;
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let mut gate = cx.env().0.subscribe();
        // The gate is part of its environment, so it is there as long as the stage.
        gate.wait_for(|open| *open)
            .await
            .map_err(|error| StageError::fail(error.to_string()))?;
        Ok(Step::Done(()))
    }
}

/// Waits for a signal that nobody sends.
#[derive(Serialize, Deserialize)]
pub(crate) struct Parked;

impl Procedure for Parked {
    const KIND: &'static str = "parked";
    type Stage = bool;
    type Env = ();
    type Output = ();

    fn first(&self) -> bool {
        false
    }

    async fn execute(&mut self, _: bool, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "never".to_owned(),
            timeout: None,
            then: true,
        })
    }
}

/// Holds its worker's thread until the gate is open, without awaiting anything.
#[derive(Serialize, Deserialize)]
pub(crate) struct Holding;

impl Procedure for Holding {
    const KIND: &'static str = "holding";
    type Stage = ();
    type Env = Gate;
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let gate = cx.env().0.subscribe();
        while !*gate.borrow() {
            std::thread::yield_now();
        }
        Ok(Step::Done(()))
    }
}
