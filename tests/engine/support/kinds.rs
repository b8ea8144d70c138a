//! Kinds that run plans: they differ in attempts, rollback and limits alone.

use std::time::Duration;

use procession::{Children, Procedure, RetryPolicy, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::lab::{Call, Lab};
use super::plan::{Act, Plan, UndoAct};

macro_rules! kind_of_plan {
    ($(#[$doc:meta])* $name:ident, $kind:literal, rollback: $rollback:literal, attempts: $attempts:literal, undo_attempts: $undo:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) Plan);

        impl Procedure for $name {
            const KIND: &'static str = $kind;
            const ROLLBACK: bool = $rollback;
            type Stage = u32;
            type Env = Lab;
            type Output = i64;

            fn first(&self) -> u32 {
                1
            }

            async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
                let (id, attempt, lab) = (cx.id(), cx.attempt(), cx.env().clone());
                lab.called(id, self.0.call(stage, attempt, false));
                let act = self.0.act(stage);
                let act = act.ok_or_else(|| StageError::fail(format!("there is no stage {stage}")))?;
                // What fails or yields after this leaves no trace of it.
                self.0.value.push(stage);
                perform(act, &self.0.name, stage, cx, &lab).await
            }

            async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
                let (id, attempt, lab) = (cx.id(), cx.attempt(), cx.env().clone());
                lab.called(id, self.0.call(stage, attempt, true));
                let is_own = self.0.value.last() == Some(&stage);
                if is_own {
                    self.0.value.pop();
                }
                match self.0.undos.get(&stage) {
                    Some(UndoAct::Fail(times)) if attempt <= *times => Err(StageError::retry("the undo fails")),
                    Some(UndoAct::Panic(times)) if attempt <= *times => panic!("the undo panics"),
                    Some(UndoAct::FailUntil(gate)) if !lab.is_open(gate) => Err(StageError::retry("the fault is there")),
                    Some(UndoAct::Held(gate)) => {
                        lab.gate(gate).await;
                        Ok(())
                    }
                    Some(UndoAct::AddIfOwn(..)) if !is_own => Ok(()),
                    Some(UndoAct::Add(row, amount) | UndoAct::AddIfOwn(row, amount)) => {
                        let before = cx.get::<i64>("rows", row).await?.unwrap_or(0);
                        cx.put("rows", row, &(before + amount))?;
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }

            fn priority(&self) -> i16 {
                self.0.priority
            }

            fn limit(&self) -> Option<procession::LimitKey> {
                self.0.limit.as_deref().map(procession::LimitKey::from)
            }

            fn timeout(&self) -> Option<Duration> {
                self.0.timeout.map(Duration::from_millis)
            }

            fn retry() -> RetryPolicy {
                RetryPolicy::default().attempts($attempts)
            }

            fn retry_undo() -> RetryPolicy {
                RetryPolicy::default().attempts($undo)
            }
        }
    };
}

kind_of_plan! {
    /// A plan with three attempts.
    Planned, "planned", rollback: true, attempts: 3, undo_attempts: 3
}
kind_of_plan! {
    /// A plan with five attempts.
    Patient, "patient", rollback: true, attempts: 5, undo_attempts: 5
}
kind_of_plan! {
    /// A plan without rollback.
    Final, "final", rollback: false, attempts: 3, undo_attempts: 3
}
kind_of_plan! {
    /// A plan of a kind that tests give a limit.
    Limited, "limited", rollback: true, attempts: 3, undo_attempts: 3
}
kind_of_plan! {
    /// A plan with one attempt, of a kind that tests give a limit.
    Once, "once", rollback: true, attempts: 1, undo_attempts: 1
}

impl Plan {
    /// Gives what a stage does on this visit of it.
    fn act(&self, stage: u32) -> Option<Act> {
        let act = self.acts.get(stage as usize - 1)?.clone();
        let Act::Visits(acts) = act else { return Some(act) };
        let visits = self.value.iter().filter(|visited| **visited == stage).count();
        acts.get(visits.min(acts.len() - 1)).cloned()
    }

    fn call(&self, stage: u32, attempt: u32, undo: bool) -> Call {
        Call {
            name: self.name.clone(),
            stage,
            undo,
            attempt,
            value: self.value.clone(),
        }
    }
}

async fn perform<P>(
    act: Act,
    name: &str,
    stage: u32,
    cx: &mut StageContext<'_, P>,
    lab: &Lab,
) -> Result<Step<P>, StageError>
where
    P: Procedure<Stage = u32, Env = Lab, Output = i64>,
{
    let mut act = act;
    loop {
        act = match act {
            Act::Held(gate, then) => {
                lab.gate(&gate).await;
                *then
            }
            Act::Retry(times, _) if cx.attempt() <= times => {
                return Err(StageError::retry(format!("attempt {}", cx.attempt())));
            }
            Act::Panic(times, _) if cx.attempt() <= times => panic!("attempt {}", cx.attempt()),
            Act::Yield(times, _) if lab.yields(name, times) => return Ok(Step::Yield),
            Act::Retry(_, then) | Act::Panic(_, then) | Act::Yield(_, then) => *then,
            Act::Add(row, amount, then) => {
                let before = cx.get::<i64>("rows", &row).await?.unwrap_or(0);
                cx.put("rows", &row, &(before + amount))?;
                *then
            }
            Act::Seen(then) => {
                let seen = match (cx.signal(), cx.timed_out()) {
                    (Some(signal), _) => signal.payload::<i64>()?.to_string(),
                    (None, true) => "no signal".to_owned(),
                    (None, false) => "nothing".to_owned(),
                };
                lab.note(format!("{name}{stage} saw {seen}"));
                *then
            }
            Act::See(then) => {
                for child in cx.children() {
                    let output = child.output::<i64>()?;
                    let cause = child.cause.as_ref().map(|cause| cause.text.clone());
                    lab.note(format!(
                        "{name}{stage} saw {} {} {output:?} {cause:?}",
                        child.id.member, child.state
                    ));
                }
                *then
            }
            Act::Submit(plan, then) => {
                cx.submit(&Planned(*plan))?;
                *then
            }
            Act::Turns(turns, then) => {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                *then
            }
            last @ (Act::Next
            | Act::Goto(_)
            | Act::Done(_)
            | Act::DoneSignal
            | Act::Fail(_)
            | Act::SleepUntil(_)
            | Act::Sleep(_)
            | Act::Wait(..)
            | Act::Spawn(..)
            | Act::Visits(_)) => return finish(last, stage, cx),
        };
    }
}

fn finish<P>(act: Act, stage: u32, cx: &StageContext<'_, P>) -> Result<Step<P>, StageError>
where
    P: Procedure<Stage = u32, Env = Lab, Output = i64>,
{
    let then = stage + 1;
    let ms = |ms: u64| procession::Timestamp(ms * 1_000);
    Ok(match act {
        Act::Goto(stage) => Step::Next(stage),
        Act::Done(output) => Step::Done(output),
        Act::DoneSignal => match cx.signal() {
            Some(signal) => Step::Done(signal.payload::<i64>()?),
            None => Step::Done(-1),
        },
        Act::Fail(text) => return Err(StageError::fail(text)),
        Act::SleepUntil(until) => Step::Sleep { until: ms(until), then },
        Act::Sleep(time) => Step::Sleep {
            until: cx.now().after(Duration::from_millis(time)),
            then,
        },
        Act::Wait(event, timeout) => Step::Wait {
            event,
            timeout: timeout.map(Duration::from_millis),
            then,
        },
        Act::Spawn(plans, join, width) => {
            let mut children = Children::new().join(join).width(width);
            for plan in plans {
                let (compensated, detached) = (plan.compensated, plan.detached);
                if plan.without_rollback {
                    children = children.and(&Final(plan))?;
                    continue;
                }
                let child = Planned(plan);
                children = match (compensated, detached) {
                    (_, true) => children.and_detached(&child)?,
                    (true, false) => children.and_compensated(&child)?,
                    (false, false) => children.and(&child)?,
                };
            }
            Step::Spawn { children, then }
        }
        Act::Next
        | Act::Held(..)
        | Act::Retry(..)
        | Act::Panic(..)
        | Act::Yield(..)
        | Act::Add(..)
        | Act::Seen(..)
        | Act::See(..)
        | Act::Submit(..)
        | Act::Turns(..)
        | Act::Visits(_) => Step::Next(then),
    })
}
