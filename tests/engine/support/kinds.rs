//! Kinds that run plans: they differ in attempts, rollback and limits alone.

use std::cell::Cell;
use std::time::Duration;

use procession::errors::CodecError;
use procession::limits::LockNeed;
use procession::procedure::{Child, Hold, OnTimeout, PureContext, RetryPolicy, Signal, Timestamp};
use procession::{Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::lab::{Call, Lab};
use super::plan::{Act, Node, Plan, UndoAct};

macro_rules! kind_of_plan {
    ($(#[$doc:meta])* $name:ident, $kind:literal, rollback: $rollback:literal, attempts: $attempts:literal, undo_attempts: $undo:literal
        $(, jitter: $jitter:literal)? $(, with: { $($more:tt)* })?) => {
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
            $($($more)*)?

            fn first(&self) -> u32 {
                1
            }

            fn is_pure(&self, stage: &u32) -> bool {
                is_pure_here() && self.0.act(*stage).is_some_and(|act| act.is_pure())
            }

            fn compute(&mut self, stage: u32, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
                let (id, attempt, lab) = (cx.id(), cx.attempt(), cx.env().clone());
                lab.called(id, self.0.call(stage, attempt, false));
                let _inside = lab.enters(&self.0.name, false, &self.0.needs(stage));
                let act = self.0.act(stage);
                let act = act.ok_or_else(|| StageError::fail(format!("there is no stage {stage}")))?;
                self.0.value.push(stage);
                compute(act, &self.0.name, stage, cx, &lab)
            }

            async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
                let (id, attempt, lab) = (cx.id(), cx.attempt(), cx.env().clone());
                lab.called(id, self.0.call(stage, attempt, false));
                let _inside = lab.enters(&self.0.name, false, &self.0.needs(stage));
                let act = self.0.act(stage);
                let act = act.ok_or_else(|| StageError::fail(format!("there is no stage {stage}")))?;
                // What fails or yields after this leaves no trace of it.
                self.0.value.push(stage);
                perform(act, &self.0.name, stage, cx, &lab).await
            }

            async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
                let (id, attempt, lab) = (cx.id(), cx.attempt(), cx.env().clone());
                lab.called(id, self.0.call(stage, attempt, true));
                let _inside = lab.enters(&self.0.name, true, &self.0.needs(stage));
                let is_own = self.0.value.last() == Some(&stage);
                if is_own {
                    self.0.value.pop();
                }
                match self.0.undos.get(&stage) {
                    Some(UndoAct::Fail(times)) if attempt <= *times => Err(StageError::retry("the undo fails")),
                    Some(UndoAct::FailAfter(times, ms)) if attempt <= *times => {
                        Err(StageError::retry_after(Duration::from_millis(*ms), "the undo fails"))
                    }
                    Some(UndoAct::Panic(times)) if attempt <= *times => panic!("the undo panics"),
                    Some(UndoAct::FailUntil(gate)) if !lab.is_open(gate) => Err(StageError::retry("the fault is there")),
                    Some(UndoAct::FailThenPanicUntil(gate)) if !lab.is_open(gate) => match attempt {
                        1 => Err(StageError::retry("the undo fails")),
                        _ => panic!("the undo panics"),
                    },
                    Some(UndoAct::Held(gate)) => {
                        lab.gate(gate).await;
                        Ok(())
                    }
                    Some(UndoAct::ReadNote) => {
                        let read = cx.noted::<String>()?;
                        lab.note(format!("{}{stage}' read {read:?}", self.0.name));
                        cx.note(&"undone")?;
                        Ok(())
                    }
                    Some(UndoAct::AddIfOwn(..)) if !is_own => Ok(()),
                    Some(UndoAct::Add(row, amount) | UndoAct::AddIfOwn(row, amount)) => {
                        let before = cx.get::<i64>("rows", row).await?.unwrap_or(0);
                        cx.put("rows", row, &(before + amount))?;
                        Ok(())
                    }
                    Some(UndoAct::AddOwn(amount)) => {
                        let row = id.to_string();
                        let before = cx.get::<i64>("rows", &row).await?.unwrap_or(0);
                        cx.put("rows", &row, &(before + amount))?;
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }

            fn priority(&self) -> i16 {
                self.0.priority
            }

            fn limit(&self) -> Option<procession::limits::LimitKey> {
                self.0.limit.as_deref().map(procession::limits::LimitKey::from)
            }

            fn locks(&self, stage: &u32) -> Vec<LockNeed> {
                self.0.needs(*stage)
            }

            fn limits(&self, stage: &u32) -> Vec<procession::limits::LimitKey> {
                let named = self.0.stage_limits.get(stage).into_iter().flatten();
                named.map(|limit| procession::limits::LimitKey::from(limit.as_str())).collect()
            }

            fn timeout(&self) -> Option<Duration> {
                self.0.timeout.map(Duration::from_millis)
            }

            fn on_timeout(&self) -> OnTimeout {
                if self.0.told { OnTimeout::Execute } else { OnTimeout::Fail }
            }

            fn rollback_supported(&self, stage: &u32) -> bool {
                self.0.one_way != Some(*stage)
            }

            fn retry() -> RetryPolicy {
                RetryPolicy::default().attempts($attempts)$(.jitter($jitter))?
            }

            fn retry_undo() -> RetryPolicy {
                RetryPolicy::default().attempts($undo)$(.jitter($jitter))?
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
kind_of_plan! {
    /// A plan that holds its locks from the first grant to its end.
    Holding, "holding", rollback: true, attempts: 3, undo_attempts: 3, with: {
        const HOLD_LOCKS: bool = true;
    }
}
kind_of_plan! {
    /// A plan that gives its permits back whenever it is parked.
    Active, "active", rollback: true, attempts: 3, undo_attempts: 3, with: {
        const HOLD: Hold = Hold::WhileActive;
    }
}
kind_of_plan! {
    /// A plan whose stages run five times in a row at most.
    Circling, "circling", rollback: true, attempts: 3, undo_attempts: 3, with: {
        const REPEAT_LIMIT: Option<u32> = Some(5);
    }
}
kind_of_plan! {
    /// A plan whose backoffs are lengthened by up to a half.
    Jittery, "jittery", rollback: true, attempts: 5, undo_attempts: 5, jitter: 500
}
kind_of_plan! {
    /// A plan whose history has the values behind its stages, save large ones.
    Kept, "kept", rollback: true, attempts: 3, undo_attempts: 3, with: {
        const KEEP_VALUES: usize = 500;
    }
}
kind_of_plan! {
    /// A plan that cleans up after its end, which the log shows as stage 0 of its name with a `~`.
    /// It waits, in its body, until the gate of that name is shut no more.
    Tidy, "tidy", rollback: true, attempts: 3, undo_attempts: 3, with: {
        fn hooks() -> procession::procedure::Hooks<Self> {
            procession::procedure::Hooks::<Self>::new().completion_cleanup(async |tidy, lab| {
                let (plan, name) = (&tidy.0, format!("{}~", tidy.0.name));
                let call = Call { name: name.clone(), stage: 0, undo: false, attempt: 1, value: plan.value.clone() };
                lab.called(procession::ProcedureId::root(0), call);
                if plan.tidies_late {
                    lab.gate(&name).await;
                }
            })
        }
    }
}

thread_local! {
    static PURE: Cell<bool> = const { Cell::new(false) };
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// As [`purely`], with stages that run several in one call. A run that ends before a stage which fails has its other stages
/// run once more, so what [`Lab::compare`] counts without a crash may be more than what was committed.
pub(crate) fn in_runs<R>(work: impl FnOnce() -> R) -> R {
    let _reset = Reset(&RUNS, RUNS.replace(true));
    purely(work)
}

/// Returns `true` on such a thread.
pub(crate) fn has_runs_here() -> bool {
    RUNS.get()
}

/// Sets a flag of this thread back.
struct Reset(&'static std::thread::LocalKey<Cell<bool>>, bool);

impl Drop for Reset {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// On this thread, for as long as `work` runs, stages of plans are pure where they need nothing but their report.
pub(crate) fn purely<R>(work: impl FnOnce() -> R) -> R {
    let _reset = Reset(&PURE, PURE.replace(true));
    work()
}

/// Returns `true` on such a thread.
pub(crate) fn is_pure_here() -> bool {
    PURE.get()
}

impl Plan {
    /// Returns what a stage does on this visit of it.
    fn act(&self, stage: u32) -> Option<Act> {
        let act = self.acts.get(stage as usize - 1)?.clone();
        let Act::Visits(acts) = act else { return Some(act) };
        let visits = self.value.iter().filter(|visited| **visited == stage).count();
        acts.get(visits.min(acts.len() - 1)).cloned()
    }

    fn needs(&self, stage: u32) -> Vec<LockNeed> {
        self.locks.get(&stage).cloned().unwrap_or_default()
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

/// What the last act of a stage reads from its context, whichever type that has.
macro_rules! told {
    ($cx:ident) => {
        Told {
            signal: $cx.signal(),
            answer: $cx.answer(),
            timed_out: $cx.timed_out(),
            now: $cx.now(),
        }
    };
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
            Act::RetryAfter(delays, then) => match delays.get(cx.attempt() as usize - 1) {
                Some(delay) => {
                    let text = format!("attempt {}", cx.attempt());
                    return Err(match delay {
                        Some(ms) => StageError::retry_after(Duration::from_millis(*ms), text),
                        None => StageError::retry(text),
                    });
                }
                None => *then,
            },
            Act::Hang(times, ms, then) => {
                if cx.attempt() <= times {
                    cx.within(Duration::from_millis(ms), std::future::pending::<()>())
                        .await?;
                }
                *then
            }
            Act::Got(then) => {
                let got = match (cx.answer::<i64>()?, cx.timed_out()) {
                    (answer, false) => format!("{answer:?}"),
                    (_, true) => "no answer in time".to_owned(),
                };
                lab.note(format!("{name}{stage} got {got}"));
                *then
            }
            Act::Note(text, then) => {
                cx.note(&text)?;
                *then
            }
            Act::NothingToUndo(then) => {
                cx.nothing_to_undo();
                *then
            }
            Act::Repeated(then) => {
                lab.note(format!("{name}{stage} repeated {}", cx.repeated()));
                *then
            }
            Act::FailFirst(times, _) if cx.attempt() <= times => {
                return Err(StageError::fail(format!("attempt {}", cx.attempt())));
            }
            Act::Panic(times, _) if cx.attempt() <= times => panic!("attempt {}", cx.attempt()),
            Act::Yield(times, _) if lab.yields(name, times) => return Ok(Step::Yield),
            Act::Retry(_, then) | Act::FailFirst(_, then) | Act::Panic(_, then) | Act::Yield(_, then) => *then,
            Act::Add(row, amount, then) => {
                let before = cx.get::<i64>("rows", &row).await?.unwrap_or(0);
                cx.put("rows", &row, &(before + amount))?;
                *then
            }
            Act::AddOwn(amount, then) => {
                let row = cx.id().to_string();
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
            Act::Before(other, then) => {
                let family = cx.id().family;
                let before = cx.before().to_vec();
                for id in before.into_iter().chain([ProcedureId::new(family, other)]) {
                    let seen = match cx.outcome(id).await? {
                        Some(outcome) => format!("{} {:?}", outcome.state, outcome.output::<i64>()?),
                        None => "nothing".to_owned(),
                    };
                    lab.note(format!("{name}{stage} saw {} {seen}", id.member));
                }
                *then
            }
            Act::Mistyped(member, then) => {
                let id = ProcedureId::new(cx.id().family, member);
                if let Some(outcome) = cx.outcome(id).await? {
                    let told = outcome.output::<String>().map_err(|error| error.to_string());
                    lab.note(format!("{name}{stage} is told {told:?}"));
                }
                *then
            }
            Act::Owners(path, then) => {
                let owners = lab
                    .owners(&path)
                    .await
                    .map_err(|why| StageError::fail(why.to_string()))?;
                lab.note(format!("{name}{stage} sees {path} of {owners}"));
                *then
            }
            Act::Submit(plan, then) => {
                cx.submit(&Planned(*plan))?;
                *then
            }
            Act::Signal(to, event, then) => {
                let to = receiver(cx.id(), to);
                // A receiver that has ended refuses each attempt, and one without return would try for ever.
                if cx.attempt() <= 2 {
                    cx.send_signal(to, event, &1_i64)?;
                }
                *then
            }
            Act::SubmitWith(plan, children, then) => {
                cx.submit_with(&Planned(*plan), listed(children)?)?;
                *then
            }
            Act::SubmitEnding(plan, children, output, then) => {
                cx.submit_ending_with(&Planned(*plan), listed(children)?, &output)?;
                *then
            }
            Act::AddChild(plan, then) => {
                add_child(*plan, cx)?;
                *then
            }
            Act::Told(then) => {
                lab.note(format!("{name}{stage} is told {}", cx.out_of_time()));
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
            | Act::GiveUp(_)
            | Act::Ask(..)
            | Act::DoneAnswer
            | Act::SpawnKeeping(..)
            | Act::SleepUntil(_)
            | Act::Sleep(_)
            | Act::SleepAgain(_)
            | Act::Wait(..)
            | Act::Spawn(..)
            | Act::SpawnOn(..)
            | Act::Visits(_)) => {
                return finish(last, stage, told!(cx));
            }
        };
    }
}

/// Does what needs nothing but the stage's report.
fn compute<P>(act: Act, name: &str, stage: u32, cx: &mut PureContext<'_, P>, lab: &Lab) -> Result<Step<P>, StageError>
where
    P: Procedure<Stage = u32, Env = Lab, Output = i64>,
{
    let mut act = act;
    loop {
        act = match act {
            Act::Retry(times, _) if cx.attempt() <= times => {
                return Err(StageError::retry(format!("attempt {}", cx.attempt())));
            }
            Act::FailFirst(times, _) if cx.attempt() <= times => {
                return Err(StageError::fail(format!("attempt {}", cx.attempt())));
            }
            Act::Panic(times, _) if cx.attempt() <= times => panic!("attempt {}", cx.attempt()),
            Act::Yield(times, _) if lab.yields(name, times) => return Ok(Step::Yield),
            Act::Retry(_, then) | Act::FailFirst(_, then) | Act::Panic(_, then) | Act::Yield(_, then) => *then,
            Act::Note(text, then) => {
                cx.note(&text)?;
                *then
            }
            Act::NothingToUndo(then) => {
                cx.nothing_to_undo();
                *then
            }
            Act::Submit(plan, then) => {
                cx.submit(&Planned(*plan))?;
                *then
            }
            Act::SubmitWith(plan, children, then) => {
                cx.submit_with(&Planned(*plan), listed(children)?)?;
                *then
            }
            Act::SubmitEnding(plan, children, output, then) => {
                cx.submit_ending_with(&Planned(*plan), listed(children)?, &output)?;
                *then
            }
            Act::Signal(to, event, then) => {
                if cx.attempt() <= 2 {
                    cx.send_signal(receiver(cx.id(), to), event, &1_i64)?;
                }
                *then
            }
            // Others have their turn anyway.
            Act::Turns(_, then) => *then,
            Act::AddChild(plan, then) => {
                match plan.compensated {
                    true => cx.add_compensated_child(&Planned(*plan))?,
                    false => cx.add_child(&Planned(*plan))?,
                }
                *then
            }
            last => {
                return finish(last, stage, told!(cx));
            }
        };
    }
}

/// Returns who is sent a signal: itself (0), the root of its family (1), or the root of the family before (2).
fn receiver(own: ProcedureId, to: u32) -> ProcedureId {
    match to {
        0 => own,
        1 => ProcedureId::root(own.family),
        _ => ProcedureId::root(own.family.saturating_sub(1)),
    }
}

/// What the last act of a stage may ask for.
struct Told<'a> {
    signal: Option<&'a Signal>,
    answer: Result<Option<i64>, CodecError>,
    timed_out: bool,
    now: Timestamp,
}

fn finish<P>(act: Act, stage: u32, cx: Told<'_>) -> Result<Step<P>, StageError>
where
    P: Procedure<Stage = u32, Env = Lab, Output = i64>,
{
    let then = stage + 1;
    let ms = |ms: u64| procession::procedure::Timestamp(ms * 1_000);
    Ok(match act {
        Act::Goto(stage) => Step::Next(stage),
        Act::Done(output) => Step::Done(output),
        Act::DoneSignal => match cx.signal {
            Some(signal) => Step::Done(signal.payload::<i64>()?),
            None => Step::Done(-1),
        },
        Act::Fail(text) => return Err(StageError::fail(text)),
        Act::GiveUp(text) => Step::Fail(text),
        Act::Ask(question, timeout) => Step::Ask {
            question,
            timeout: timeout.map(Duration::from_millis),
            then,
        },
        Act::DoneAnswer => match cx.answer? {
            Some(answer) => Step::Done(answer),
            None if cx.timed_out => Step::Done(-1),
            None => Step::Done(-2),
        },
        Act::SpawnKeeping(plans, width) => Step::Spawn {
            children: listed(plans)?.width(width).keep_places(),
            then,
        },
        Act::SleepUntil(until) => Step::Sleep { until: ms(until), then },
        Act::Sleep(time) => Step::Sleep {
            until: cx.now.after(Duration::from_millis(time)),
            then,
        },
        Act::SleepAgain(time) => Step::Sleep {
            until: cx.now.after(Duration::from_millis(time)),
            then: stage,
        },
        Act::Wait(event, timeout) => Step::Wait {
            event,
            timeout: timeout.map(Duration::from_millis),
            then,
        },
        Act::Spawn(plans, join, width) => Step::Spawn {
            children: listed(plans)?.join(join).width(width),
            then,
        },
        Act::SpawnOn(permits, plans) => Step::Spawn {
            children: listed(plans)?.permits(permits),
            then,
        },
        Act::Next
        | Act::Held(..)
        | Act::Retry(..)
        | Act::RetryAfter(..)
        | Act::Hang(..)
        | Act::Repeated(..)
        | Act::Note(..)
        | Act::Got(..)
        | Act::NothingToUndo(..)
        | Act::FailFirst(..)
        | Act::Panic(..)
        | Act::Yield(..)
        | Act::Add(..)
        | Act::AddOwn(..)
        | Act::Seen(..)
        | Act::See(..)
        | Act::Mistyped(..)
        | Act::Before(..)
        | Act::Owners(..)
        | Act::Submit(..)
        | Act::Signal(..)
        | Act::SubmitWith(..)
        | Act::SubmitEnding(..)
        | Act::AddChild(..)
        | Act::Told(..)
        | Act::Turns(..)
        | Act::Visits(_) => Step::Next(then),
    })
}

/// Lists these as children.
pub(crate) fn listed(plans: Vec<Plan>) -> Result<Children, StageError> {
    let mut children = Children::new();
    for plan in plans {
        children = if let Some(node) = plan.node.clone() {
            children.child(child_of(plan, *node)?)
        } else if plan.without_rollback {
            children.and(&Final(plan))?
        } else if plan.holding {
            listed_as(children, plan, Holding)?
        } else if plan.kept {
            listed_as(children, plan, Kept)?
        } else {
            listed_as(children, plan, Planned)?
        };
    }
    Ok(children.inherit_labels())
}

fn child_of(plan: Plan, node: Node) -> Result<Child, StageError> {
    let compensated = plan.compensated;
    let mut child = if plan.without_rollback {
        Child::new(&Final(plan))?
    } else if plan.limited {
        Child::new(&Limited(plan))?
    } else {
        Child::new(&Planned(plan))?
    };
    child = child.after(node.after);
    if let Some(name) = node.name {
        child = child.named(name);
    }
    if let Some(policy) = node.opens {
        child = child.opens(policy);
    }
    if node.or_wait {
        child = child.or_wait();
    }
    if node.vital {
        child = child.vital();
    }
    Ok(if compensated { child.compensated() } else { child })
}

fn listed_as<P: Procedure>(children: Children, plan: Plan, kind: impl Fn(Plan) -> P) -> Result<Children, StageError> {
    let (compensated, detached) = (plan.compensated, plan.detached);
    let child = kind(plan);
    Ok(match (compensated, detached) {
        (_, true) => children.and_detached(&child)?,
        (true, false) => children.and_compensated(&child)?,
        (false, false) => children.and(&child)?,
    })
}

fn add_child<P: Procedure>(plan: Plan, cx: &mut StageContext<'_, P>) -> Result<(), StageError> {
    if plan.tidies {
        cx.add_compensated_child(&Tidy(plan))?;
    } else if plan.compensated {
        cx.add_compensated_child(&Planned(plan))?;
    } else if plan.without_rollback {
        cx.add_child(&Final(plan))?;
    } else {
        cx.add_child(&Planned(plan))?;
    }
    Ok(())
}
