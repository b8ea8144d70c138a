//! The procedures of the trial, and what each of them must leave behind. Every
//! stage counts itself within its own commit, and notes that it began.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::errors::ProcedureError;
use procession::procedure::RetryPolicy;
use procession::{Builder, Children, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// Keyspace in which each stage counts its commits.
pub(crate) const COUNTS: &str = "counts";
/// Keyspace in which each family counts its undos.
pub(crate) const ORDER: &str = "order";
/// Keyspace in which each undo leaves its place in the order.
pub(crate) const UNDONE: &str = "undone";
/// What a waiter waits for.
pub(crate) const GO: &str = "go";

/// What a procedure does in its three stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// One after the other; the second needs two attempts.
    Chain,
    /// The third fails, and all is undone.
    Saga,
    /// Two children are born, and waited for.
    Family,
    /// Waits for a signal.
    Waiter,
    /// Two children end, then it fails, and they are compensated.
    Broken,
}

/// Returns the role of a submission.
pub(crate) fn role_of(number: u64) -> Role {
    match number % 5 {
        0 => Role::Chain,
        1 => Role::Saga,
        2 => Role::Family,
        3 => Role::Waiter,
        _ => Role::Broken,
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Piece {
    name: String,
    role: Role,
    /// Takes up room.
    filler: String,
}

impl Piece {
    pub(crate) fn new(number: u64, filler: usize) -> Self {
        let (name, role) = (name_of(number), role_of(number));
        let filler = "x".repeat(filler);
        Self { name, role, filler }
    }

    fn child(&self, number: u32) -> Self {
        Self {
            name: format!("{}.{number}", self.name),
            role: Role::Chain,
            filler: String::new(),
        }
    }

    /// The name of its root: undos of one family count together.
    fn family(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }

    async fn perform(&self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match (self.role, stage) {
            (Role::Chain, 2) if cx.attempt() == 1 => Err(StageError::retry("the first attempt fails")),
            (Role::Saga, 3) | (Role::Broken, 2) => Err(StageError::fail("it fails on purpose")),
            (Role::Family, 1) => {
                let children = Children::of(&[self.child(1), self.child(2)])?;
                Ok(Step::Spawn { children, then: 2 })
            }
            (Role::Broken, 1) => {
                let children = Children::new().and_compensated(&self.child(1))?;
                let children = children.and_compensated(&self.child(2))?;
                Ok(Step::Spawn { children, then: 2 })
            }
            (Role::Waiter, 1) => Ok(Step::Wait {
                event: GO.to_owned(),
                timeout: None,
                then: 2,
            }),
            (Role::Chain | Role::Family | Role::Waiter | Role::Broken, 3) => Ok(Step::Done(self.name.clone())),
            (Role::Chain | Role::Saga | Role::Family | Role::Waiter | Role::Broken, _) => Ok(Step::Next(stage + 1)),
        }
    }
}

impl Procedure for Piece {
    const KIND: &'static str = "piece";
    type Stage = u32;
    type Env = Seen;
    type Output = String;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().note(Call::of(&self.name, stage, false))?;
        let key = format!("{}/{stage}", self.name);
        let before: Option<u32> = cx.get(COUNTS, &key).await?;
        cx.put(COUNTS, &key, &(before.unwrap_or(0) + 1))?;
        self.perform(stage, cx).await
    }

    async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.env().note(Call::of(&self.name, stage, true))?;
        let place: Option<u32> = cx.get(ORDER, self.family()).await?;
        let place = place.unwrap_or(0);
        cx.put(ORDER, self.family(), &(place + 1))?;
        cx.put(UNDONE, format!("{}/{stage}", self.name), &place)?;
        Ok(())
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().base(Duration::from_millis(1)).attempts(20)
    }

    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default().base(Duration::from_millis(1)).attempts(20)
    }
}

/// A call of user code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) stage: u32,
    pub(crate) undo: bool,
}

impl Call {
    fn of(name: &str, stage: u32, undo: bool) -> Self {
        let name = name.to_owned();
        Self { name, stage, undo }
    }

    /// Reads what was noted of one, without the word for it.
    pub(crate) fn read(rest: &str, undo: bool) -> Option<Self> {
        let (name, stage) = rest.split_once(' ')?;
        Some(Self::of(name, stage.parse().ok()?, undo))
    }
}

/// Where calls are noted: in a ledger, and in memory for who judges.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    ledger: Option<Arc<File>>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Seen {
    pub(crate) fn in_ledger(path: &Path) -> Outcome<Self> {
        let ledger = File::options().create(true).append(true).open(path)?;
        Ok(Self {
            ledger: Some(Arc::new(ledger)),
            calls: Arc::default(),
        })
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, call: Call) -> std::io::Result<()> {
        if let Some(mut ledger) = self.ledger.as_deref() {
            let word = if call.undo { "undoing" } else { "begun" };
            ledger.write_all(format!("{word} {} {}\n", call.name, call.stage).as_bytes())?;
        }
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        Ok(())
    }
}

pub(crate) fn name_of(number: u64) -> String {
    format!("p{number}")
}

/// How long results stay: longer than a trial of every case takes, as all of them begin with the same journal.
const RESULTS: Duration = Duration::from_hours(7 * 24);

/// The engine as each process of the trial sets it up.
pub(crate) fn engine(journal: &Path, seen: Seen) -> Builder {
    let builder = Executor::builder(journal).register::<Piece>(seen);
    builder.workers(1).retention(RESULTS, RESULTS).keep_failures(RESULTS)
}

/// Says how one ended, in a line; an error says what should not be.
pub(crate) fn told(outcome: Result<String, ProcedureError>) -> Result<String, String> {
    match outcome {
        Ok(name) => Ok(format!("done {name}")),
        Err(ProcedureError::RolledBack { not_undone, .. }) if not_undone.is_empty() => Ok("rolled back".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// How a submission must end, in the words of [`told`].
pub(crate) fn end_of(number: u64) -> String {
    match role_of(number) {
        Role::Saga | Role::Broken => "rolled back".to_owned(),
        Role::Chain | Role::Family | Role::Waiter => format!("done {}", name_of(number)),
    }
}

/// The stages of a submission and of its children that are committed in the end.
pub(crate) fn stages_of(number: u64) -> Vec<String> {
    let name = name_of(number);
    let of = |name: &str, count: u32| -> Vec<String> { (1..=count).map(|stage| format!("{name}/{stage}")).collect() };
    let children = || [of(&format!("{name}.1"), 3), of(&format!("{name}.2"), 3)].concat();
    match role_of(number) {
        Role::Chain | Role::Waiter => of(&name, 3),
        Role::Saga => of(&name, 2),
        Role::Family => [of(&name, 3), children()].concat(),
        Role::Broken => [of(&name, 1), children()].concat(),
    }
}

/// Chains of undos of a submission, each in the order in which its members must be undone.
pub(crate) fn undos_of(number: u64) -> Vec<Vec<String>> {
    let name = name_of(number);
    let stage = |name: &str, stage: u32| format!("{name}/{stage}");
    match role_of(number) {
        Role::Chain | Role::Waiter | Role::Family => Vec::new(),
        Role::Saga => vec![vec![stage(&name, 3), stage(&name, 2), stage(&name, 1)]],
        Role::Broken => {
            let of_child = |child: u32| {
                let child = format!("{name}.{child}");
                let own = [3, 2, 1].map(|number| stage(&child, number));
                let mut chain = vec![stage(&name, 2)];
                chain.extend(own);
                chain.push(stage(&name, 1));
                chain
            };
            vec![of_child(1), of_child(2)]
        }
    }
}
