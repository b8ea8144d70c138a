//! Kinds that only these tests need: one whose results are kept longer, one that leaves
//! less history, one that cannot be revived.

use std::time::Duration;

use procession::limits::LockNeed;
use procession::procedure::{HistoryDetail, RetryPolicy};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Deserializer, Serialize};

use crate::support::{Call, Lab, kinds};

/// How long results of [`Kept`] are there.
pub(super) const HOUR: Duration = Duration::from_hours(1);

/// One stage, whose result is kept for an hour, and for half of one after it was acknowledged.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept;

impl Procedure for Kept {
    const KIND: &'static str = "kept";
    type Stage = ();
    type Env = ();
    type Output = i64;

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(7))
    }

    fn keep_after_end() -> Option<Duration> {
        Some(HOUR)
    }

    fn keep_after_acknowledgement() -> Option<Duration> {
        Some(HOUR / 2)
    }
}

/// Leaves only what stands on the rollback stack: tries each of its stages twice, and fails
/// in the last if it is to.
#[derive(Serialize, Deserialize)]
pub(super) struct Terse {
    pub(super) stages: u32,
    pub(super) fails: bool,
}

impl Procedure for Terse {
    const KIND: &'static str = "terse";
    const HISTORY: HistoryDetail = HistoryDetail::Stack;
    type Stage = u32;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        called(cx, stage, false);
        match (cx.attempt(), stage == self.stages) {
            (1, _) => Err(StageError::retry("not yet")),
            (_, true) if self.fails => Err(StageError::retry("boom")),
            (_, true) => Ok(Step::Done(7)),
            (_, false) => Ok(Step::Next(stage + 1)),
        }
    }

    async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        called(cx, stage, true);
        match cx.attempt() {
            1 => Err(StageError::retry("not yet")),
            _ => Ok(()),
        }
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(3)
    }

    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default().attempts(3)
    }
}

fn called<P: Procedure<Env = Lab>>(cx: &StageContext<'_, P>, stage: u32, undo: bool) {
    let call = Call {
        name: P::KIND.to_owned(),
        stage,
        undo,
        attempt: cx.attempt(),
        value: Vec::new(),
    };
    cx.env().called(cx.id(), call);
}

/// Holds the lock `t` and the permit of its kind while it waits for `go`; if it is spoilt
/// by its first stage, its value can be revived no more.
#[derive(Serialize, Deserialize)]
pub(super) struct Brittle {
    #[serde(deserialize_with = "whole")]
    pub(super) spoilt: bool,
    pub(super) spoils: bool,
}

fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match bool::deserialize(deserializer)? {
        true => Err(serde::de::Error::custom("it is spoilt")),
        false => Ok(false),
    }
}

impl Brittle {
    pub(super) const fn that(spoils: bool) -> Self {
        Self { spoilt: false, spoils }
    }
}

impl Procedure for Brittle {
    const KIND: &'static str = "brittle";
    const HOLD_LOCKS: bool = true;
    type Stage = u32;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    fn locks(&self, _: &u32) -> Vec<LockNeed> {
        vec![LockNeed::exclusive("t")]
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let call = Call {
            name: if self.spoils { "brittle" } else { "stranger" }.to_owned(),
            stage,
            undo: false,
            attempt: cx.attempt(),
            value: Vec::new(),
        };
        cx.env().called(cx.id(), call);
        if !self.spoils || stage == 2 {
            return Ok(Step::Done(7));
        }
        self.spoilt = true;
        Ok(Step::Wait {
            event: "go".to_owned(),
            timeout: None,
            then: 2,
        })
    }
}

/// Registers these kinds and those of all other tests.
pub(super) fn all(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder)
        .register::<Kept>(())
        .register::<Terse>(lab.clone())
        .register::<Brittle>(lab.clone())
        .limit("brittle", 1)
}
