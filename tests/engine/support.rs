//! Procedures as data, the log of what their bodies did, and short ways to run them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use procession::testkit::FaultPlan;
use procession::testkit::{Enumeration, Run, Trouble, World, enumerate};
use procession::{
    Builder, Children, Handle, JoinPolicy, Procedure, ProcedureError, ProcedureId, RetryPolicy, StageContext,
    StageError, Step,
};
use serde::{Deserialize, Serialize};

/// What a test gives.
pub type Tested = Result<(), Trouble>;

/// What one stage of a [`Plan`] does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    /// Goes on with the next stage.
    Next,
    /// Goes on with this stage.
    Goto(u32),
    /// Succeeds with this output.
    Done(i64),
    /// Succeeds with the payload of the signal that woke it, or with -1 after a time-out.
    DoneSignal,
    /// Fails for good.
    Fail(String),
    /// Asks for another attempt this often, then does the other.
    Retry(u32, Box<Act>),
    /// Panics this often, then does the other.
    Panic(u32, Box<Act>),
    /// Yields as often as the lab says is left for this name, then does the other.
    Yield(u32, Box<Act>),
    /// Sleeps until this instant, in ms.
    SleepUntil(u64),
    /// Sleeps this long, in ms.
    Sleep(u64),
    /// Waits for an event, at most so many ms.
    Wait(String, Option<u64>),
    /// Spawns these.
    Spawn(Vec<Plan>, JoinPolicy, u32),
    /// Waits, in its body, until the lab opens this gate; then does the other.
    Held(String, Box<Act>),
    /// Adds to the row of this name in the user keyspace `rows`; then does the other.
    Add(String, i64, Box<Act>),
    /// Notes what woke the stage, as `a2 saw 7`, `a2 saw no signal` or `a2 saw nothing`; then does the other.
    Seen(Box<Act>),
    /// Notes how the children stand that this stage sees; then does the other.
    See(Box<Act>),
    /// Submits this family through the context; then does the other.
    Submit(Box<Plan>, Box<Act>),
    /// Lets others have this many turns first; then does the other.
    Turns(u32, Box<Act>),
    /// Does the first on the first visit of this stage, and so on; the last on all others.
    Visits(Vec<Act>),
}

/// What an undo does; without a word it succeeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum UndoAct {
    /// Fails this often.
    Fail(u32),
    /// Panics this often.
    Panic(u32),
    /// Fails as long as the lab's gate of this name is shut.
    FailUntil(String),
    /// Takes from the row of this name.
    Add(String, i64),
    /// Waits, in its body, until the lab opens this gate.
    Held(String),
    /// Takes from the row of this name, if the stage is the last that the value holds.
    AddIfOwn(String, i64),
}

/// A procedure as data: stage `n`, counted from 1, does `acts[n - 1]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Its name in the log.
    pub name: String,
    /// What each stage does.
    pub acts: Vec<Act>,
    /// What undos do, by stage.
    #[serde(default)]
    pub undos: BTreeMap<u32, UndoAct>,
    /// Spawned as a child, it is undone though it succeeded.
    #[serde(default)]
    pub compensated: bool,
    /// Spawned, it is a family of its own.
    #[serde(default)]
    pub detached: bool,
    /// Stages pushed by each execution, popped by each undo: the value that is stored.
    #[serde(default)]
    pub value: Vec<u32>,
    /// Attempts of a stage and of an undo are the kind's; here only the priority.
    #[serde(default)]
    pub priority: i16,
    /// A limit of which it takes a permit besides its kind's own.
    #[serde(default)]
    pub limit: Option<String>,
    /// The whole time that it may take, in ms.
    #[serde(default)]
    pub timeout: Option<u64>,
    /// Spawned as a child, it is of the kind without rollback.
    #[serde(default)]
    pub without_rollback: bool,
}

/// Makes a plan.
pub fn plan(name: &str, acts: impl Into<Vec<Act>>) -> Plan {
    Plan {
        name: name.to_owned(),
        acts: acts.into(),
        undos: BTreeMap::new(),
        compensated: false,
        detached: false,
        value: Vec::new(),
        priority: 0,
        limit: None,
        timeout: None,
        without_rollback: false,
    }
}

/// A chain of `k` stages that succeeds.
pub fn chain(name: &str, k: usize) -> Plan {
    let mut acts = vec![Act::Next; k - 1];
    acts.push(Act::Done(7));
    plan(name, acts)
}

/// A chain of `k` stages that fails in the last.
pub fn failing(name: &str, k: usize) -> Plan {
    let mut acts = vec![Act::Next; k - 1];
    acts.push(Act::Fail("boom".to_owned()));
    plan(name, acts)
}

/// Spawns these and waits for all.
pub fn spawn(children: impl Into<Vec<Plan>>) -> Act {
    Act::Spawn(children.into(), JoinPolicy::AllSucceeded, 0)
}

impl Plan {
    /// Lets an undo do this.
    pub fn undo(mut self, stage: u32, act: UndoAct) -> Self {
        self.undos.insert(stage, act);
        self
    }

    /// Is undone though it succeeded.
    pub fn compensated(mut self) -> Self {
        self.compensated = true;
        self
    }

    /// Cannot be undone.
    pub fn without_rollback(mut self) -> Self {
        self.without_rollback = true;
        self
    }

    /// Is a family of its own.
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Takes a permit of this limit as well.
    pub fn limit(mut self, key: &str) -> Self {
        self.limit = Some(key.to_owned());
        self
    }

    /// Has this many ms in all.
    pub fn timeout(mut self, ms: u64) -> Self {
        self.timeout = Some(ms);
        self
    }

    /// Goes before others.
    pub fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }
}

/// One call of a body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The plan's name.
    pub name: String,
    /// The stage, from 1.
    pub stage: u32,
    /// An undo.
    pub undo: bool,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The stored value that it saw.
    pub value: Vec<u32>,
}

impl Call {
    /// Reads as in the scenarios: `a1`, or `a1'` for an undo.
    pub fn short(&self) -> String {
        format!("{}{}{}", self.name, self.stage, if self.undo { "'" } else { "" })
    }
}

#[derive(Default)]
struct Notes {
    calls: Vec<Call>,
    open: BTreeSet<String>,
    yielded: BTreeMap<String, u32>,
    outcomes: Vec<String>,
    id: BTreeMap<String, ProcedureId>,
}

/// What lies outside the engine and survives its crashes.
#[derive(Clone, Default)]
pub struct Lab(Arc<Mutex<Notes>>);

impl Lab {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives all calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.notes().calls.clone()
    }

    /// Gives all calls as one line: `r1 s1 t1 t1' s1' r1'`.
    pub fn line(&self) -> String {
        let calls: Vec<String> = self.calls().iter().map(Call::short).collect();
        calls.join(" ")
    }

    /// Counts the calls with this short name.
    pub fn count(&self, short: &str) -> usize {
        self.calls().iter().filter(|call| call.short() == short).count()
    }

    /// Tells whether a body with this short name has begun.
    pub fn has(&self, short: &str) -> bool {
        self.count(short) > 0
    }

    /// Opens a gate, for good.
    pub fn open(&self, gate: &str) {
        self.notes().open.insert(gate.to_owned());
    }

    /// Tells whether a gate is open.
    pub fn is_open(&self, gate: &str) -> bool {
        self.notes().open.contains(gate)
    }

    /// Notes something that must be the same after every crash.
    pub fn note(&self, text: impl Into<String>) {
        self.notes().outcomes.push(text.into());
    }

    /// Gives the notes.
    pub fn noted(&self) -> Vec<String> {
        self.notes().outcomes.clone()
    }

    /// Gives the id of the newest procedure with this name that ran a body.
    pub fn id(&self, name: &str) -> Option<ProcedureId> {
        self.notes().id.get(name).copied()
    }

    /// Every committed attempt appears at least once, at most once more for each crash, and nothing else appears.
    pub fn compare(&self, crashed: &Self, crashes: usize) -> Tested {
        let count = |lab: &Self| {
            let mut counts: BTreeMap<Call, usize> = BTreeMap::new();
            for call in lab.calls() {
                *counts.entry(call).or_default() += 1;
            }
            counts
        };
        let (plain, found) = (count(self), count(crashed));
        let names = |counts: &BTreeMap<Call, usize>| counts.keys().cloned().collect::<Vec<_>>();
        if names(&plain) != names(&found) {
            return Err(format!(
                "other bodies ran.\n expected {}\n    found {}",
                self.line(),
                crashed.line()
            )
            .into());
        }
        for (call, times) in &found {
            let expected = plain.get(call).copied().unwrap_or_default();
            if *times < expected || *times > expected + crashes {
                return Err(format!(
                    "{} ran {times} times; {expected} are expected with {crashes} crashes",
                    call.short()
                )
                .into());
            }
        }
        Ok(())
    }

    /// Waits until a gate is open.
    pub async fn gate(&self, gate: &str) {
        while !self.is_open(gate) {
            tokio::task::yield_now().await;
        }
    }

    /// Tells whether a body of this name is still to yield, of so many times.
    pub fn yields(&self, name: &str, times: u32) -> bool {
        let mut notes = self.notes();
        let yielded = notes.yielded.entry(name.to_owned()).or_default();
        *yielded += 1;
        *yielded <= times
    }

    /// Logs that a body has begun.
    pub fn called(&self, id: ProcedureId, call: Call) {
        let mut notes = self.notes();
        notes.id.insert(call.name.clone(), id);
        notes.calls.push(call);
    }
}

macro_rules! kind_of_plan {
    ($(#[$doc:meta])* $name:ident, $kind:literal, rollback: $rollback:literal, attempts: $attempts:literal, undo_attempts: $undo:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Plan);

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

/// Registers every kind of plan.
pub fn kinds(lab: &Lab, builder: Builder) -> Builder {
    builder
        .register::<Planned>(lab.clone())
        .register::<Patient>(lab.clone())
        .register::<Final>(lab.clone())
        .register::<Limited>(lab.clone())
        .register::<Once>(lab.clone())
}

/// Runs one life without faults in a new world.
pub fn live<T>(lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
    live_in(&World::new(), lab, drive)
}

/// Runs one life without faults in this world.
pub fn live_in<T>(world: &World, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
    world
        .run(FaultPlan::none(), |builder| kinds(lab, builder), drive)?
        .done()
}

/// Submits a plan with a key, and waits for its end, letting time pass where it must.
pub async fn end<P: Procedure>(
    run: &Run,
    procedure: P,
    key: &str,
) -> Result<Result<P::Output, ProcedureError>, Trouble> {
    let handle: Handle<P> = run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??;
    run.wait(handle.outcome()).await
}

/// Enumerates the crashes of one plan that is submitted and awaited.
pub fn enumerate_plan(submit: &Plan) -> Result<(Enumeration, Lab), Trouble> {
    let labs: Mutex<Option<Lab>> = Mutex::new(None);
    let done = enumerate(
        Lab::default,
        kinds,
        async |_: &Lab, run: &Run| {
            // How it ends is compared by the final world.
            end(run, Planned(submit.clone()), "the plan").await?.ok();
            Ok(())
        },
        &["rows"],
        |plain, crashed, crashes| {
            labs.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert_with(|| plain.clone());
            plain.compare(crashed, crashes)
        },
    )?;
    let lab = labs
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .unwrap_or_default();
    Ok((done, lab))
}

use std::future::IntoFuture;
