//! Procedures as data: what each stage and each undo of a plan does.

use std::collections::BTreeMap;

use procession::limits::{LockNeed, LockPath};
use procession::procedure::{ChildPermits, JoinPolicy};
use serde::{Deserialize, Serialize};

/// What one stage of a [`Plan`] does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Act {
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
    /// Notes this text in its history entry; then does the other.
    Note(String, Box<Act>),
    /// Declares that nothing is to be undone; then does the other.
    NothingToUndo(Box<Act>),
    /// Asks a person this, for at most this time in milliseconds.
    Ask(String, Option<u64>),
    /// Notes what answer the stage got, as `a2 got Some(7)`, or that its time was up; then does the other.
    Got(Box<Act>),
    /// Succeeds with the answer of a person, with -1 if the time was up, with -2 without one.
    DoneAnswer,
    /// Spawns these with this width, keeps places of those that ask, and waits for all.
    SpawnKeeping(Vec<Plan>, u32),
    /// Fails for good, and keeps what the stage did.
    GiveUp(String),
    /// Asks for another attempt this often, then does the other.
    Retry(u32, Box<Act>),
    /// Asks for further attempts: after each of these delays in ms, or after the kind's backoff where none is chosen.
    /// Then does the other.
    RetryAfter(Vec<Option<u64>>, Box<Act>),
    /// Awaits for ever within this many milliseconds, this often; then takes the other action.
    Hang(u32, u64, Box<Act>),
    /// Notes how often its attempt was cut off, as `a2 repeated 1`; then does the other.
    Repeated(Box<Act>),
    /// Fails for good this often, then does the other: for stages that fail no more.
    FailFirst(u32, Box<Act>),
    /// Panics this often, then does the other.
    Panic(u32, Box<Act>),
    /// Yields as often as the lab says is left for this name, then does the other.
    Yield(u32, Box<Act>),
    /// Sleeps until this instant, in ms.
    SleepUntil(u64),
    /// Sleeps this long, in ms.
    Sleep(u64),
    /// Sleeps this long, in ms, and runs this stage again.
    SleepAgain(u64),
    /// Waits for an event, at most so many ms.
    Wait(String, Option<u64>),
    /// Spawns these.
    Spawn(Vec<Plan>, JoinPolicy, u32),
    /// Spawns these on those permits, and waits for all.
    SpawnOn(ChildPermits, Vec<Plan>),
    /// Waits, in its body, until the lab opens this gate; then does the other.
    Held(String, Box<Act>),
    /// Adds to the row of this name in the user keyspace `rows`; then does the other.
    Add(String, i64, Box<Act>),
    /// Adds to the row named after its procedure's id in the user keyspace `rows`; then does the other.
    AddOwn(i64, Box<Act>),
    /// Notes what woke the stage, as `a2 saw 7`, `a2 saw no signal` or `a2 saw nothing`; then does the other.
    Seen(Box<Act>),
    /// Notes how the siblings stand that come before it, and this member; then does the other.
    Before(u32, Box<Act>),
    /// Notes what it is told that reads the output of this member as a text; then does the other.
    Mistyped(u32, Box<Act>),
    /// Notes how the children stand that this stage sees; then does the other.
    See(Box<Act>),
    /// Notes who holds this path, as `a1 sees t of a`; then does the other.
    Owners(String, Box<Act>),
    /// Submits this family through the context; then does the other.
    Submit(Box<Plan>, Box<Act>),
    /// Sends this event to itself (0), to the root of its family (1), or to the root of the family before (2) in its
    /// first two attempts; then does the other.
    Signal(u32, String, Box<Act>),
    /// Submits this family through the context, born with these children; then does the other.
    SubmitWith(Box<Plan>, Vec<Plan>, Box<Act>),
    /// Submits this family through the context, born with these children, and ending with this output; then does the
    /// other.
    SubmitEnding(Box<Plan>, Vec<Plan>, i64, Box<Act>),
    /// Lets others have this many turns first; then does the other.
    Turns(u32, Box<Act>),
    /// Adds this as a child; then does the other.
    AddChild(Box<Plan>, Box<Act>),
    /// Notes whether it is told that its own time is up, as `a2 is told true`; then does the other.
    Told(Box<Act>),
    /// Does the first on the first visit of this stage, and so on; the last on all others.
    Visits(Vec<Act>),
}

impl Act {
    /// Returns `true` if it needs nothing but the report of its stage.
    pub(crate) fn is_pure(&self) -> bool {
        match self {
            Self::Next
            | Self::Goto(_)
            | Self::Done(_)
            | Self::DoneSignal
            | Self::Fail(_)
            | Self::Ask(..)
            | Self::DoneAnswer
            | Self::SpawnKeeping(..)
            | Self::GiveUp(_)
            | Self::SleepUntil(_)
            | Self::Sleep(_)
            | Self::SleepAgain(_)
            | Self::Wait(..)
            | Self::Spawn(..)
            | Self::SpawnOn(..) => true,
            Self::AddChild(plan, then) => !plan.tidies && !plan.without_rollback && then.is_pure(),
            Self::Note(_, then)
            | Self::NothingToUndo(then)
            | Self::Retry(_, then)
            | Self::FailFirst(_, then)
            | Self::Panic(_, then)
            | Self::Yield(_, then)
            | Self::Submit(_, then)
            | Self::Signal(_, _, then)
            | Self::SubmitWith(_, _, then)
            | Self::SubmitEnding(_, _, _, then)
            | Self::Turns(_, then) => then.is_pure(),
            Self::Visits(acts) => acts.iter().all(Self::is_pure),
            Self::Got(_)
            | Self::RetryAfter(..)
            | Self::Hang(..)
            | Self::Repeated(_)
            | Self::Held(..)
            | Self::Add(..)
            | Self::AddOwn(..)
            | Self::Seen(_)
            | Self::Before(..)
            | Self::Mistyped(..)
            | Self::See(_)
            | Self::Owners(..)
            | Self::Told(_) => false,
        }
    }
}

/// What an undo does; without a word it succeeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum UndoAct {
    /// Fails this often.
    Fail(u32),
    /// Fails this often, and chooses this many milliseconds until the next attempt.
    FailAfter(u32, u64),
    /// Panics this often.
    Panic(u32),
    /// Reports to the lab what its stage noted, as `a2' read Some("x")`, and notes `undone` itself.
    ReadNote,
    /// Fails as long as the lab's gate of this name is shut.
    FailUntil(String),
    /// Fails in its first attempt, and panics in the others, as long as the lab's gate of this name is shut.
    FailThenPanicUntil(String),
    /// Takes from the row of this name.
    Add(String, i64),
    /// Takes from the row named after its procedure's id.
    AddOwn(i64),
    /// Waits, in its body, until the lab opens this gate.
    Held(String),
    /// Takes from the row of this name, if the stage is the last that the value holds.
    AddIfOwn(String, i64),
}

/// A procedure as data, as small as may be where thousands are one payload: stage `n`, counted from 1, does `acts[n - 1]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Its name in the log.
    pub(crate) name: String,
    /// What each stage does.
    pub(crate) acts: Vec<Act>,
    /// What undos do, by stage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) undos: BTreeMap<u32, UndoAct>,
    /// Spawned as a child, it is undone though it succeeded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) compensated: bool,
    /// Spawned, it is a family of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) detached: bool,
    /// Stages pushed by each execution, popped by each undo: the value that is stored.
    #[serde(default)]
    pub(crate) value: Vec<u32>,
    /// Attempts of a stage and of an undo are the kind's; here only the priority.
    #[serde(default)]
    pub(crate) priority: i16,
    /// A limit of which it takes a permit besides its kind's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<String>,
    /// Locks that it needs, by stage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) locks: BTreeMap<u32, Vec<LockNeed>>,
    /// Limits whose permits its stages need, by stage.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) stage_limits: BTreeMap<u32, Vec<String>>,
    /// Spawned as a child, it holds its locks for life.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) holding: bool,
    /// The whole time that it may take, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,
    /// Spawned as a child, it is of the kind without rollback.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) without_rollback: bool,
    /// The stage that does not support rollback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) one_way: Option<u32>,
    /// It is told when its own time is up, and does not fail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) told: bool,
    /// Added as a child, it is compensated, and of the kind that cleans up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tidies: bool,
    /// Spawned as a child without a node, it is of the kind that keeps values behind stages.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) kept: bool,
    /// Listed with a node, it is of the kind that tests give a limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) limited: bool,
    /// Spawned as a child, what its list says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Box<Node>>,
    /// Its cleanup waits for the gate of its name with a `~`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) tidies_late: bool,
}

/// What a list says about a child besides the child itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Node {
    /// Its name in the list; its name in the log goes with it.
    pub(crate) name: Option<String>,
    /// Places of the siblings before it.
    pub(crate) after: Vec<u32>,
    /// When its gate opens.
    pub(crate) opens: Option<JoinPolicy>,
    /// It waits for an operator when it can no longer begin.
    pub(crate) or_wait: bool,
    /// Its failure fails its parent.
    pub(crate) vital: bool,
}

/// Makes a plan.
pub(crate) fn plan(name: &str, acts: impl Into<Vec<Act>>) -> Plan {
    Plan {
        name: name.to_owned(),
        acts: acts.into(),
        undos: BTreeMap::new(),
        compensated: false,
        detached: false,
        value: Vec::new(),
        priority: 0,
        limit: None,
        locks: BTreeMap::new(),
        stage_limits: BTreeMap::new(),
        holding: false,
        timeout: None,
        without_rollback: false,
        one_way: None,
        told: false,
        tidies: false,
        kept: false,
        limited: false,
        node: None,
        tidies_late: false,
    }
}

/// A chain of `k` stages that succeeds.
pub(crate) fn chain(name: &str, k: usize) -> Plan {
    let mut acts = vec![Act::Next; k - 1];
    acts.push(Act::Done(7));
    plan(name, acts)
}

/// A chain of `k` stages that fails in the last.
pub(crate) fn failing(name: &str, k: usize) -> Plan {
    let mut acts = vec![Act::Next; k - 1];
    acts.push(Act::Fail("boom".to_owned()));
    plan(name, acts)
}

/// Spawns these and waits for all.
pub(crate) fn spawn(children: impl Into<Vec<Plan>>) -> Act {
    Act::Spawn(children.into(), JoinPolicy::AllSucceeded, 0)
}

impl Plan {
    /// Lets an undo do this.
    pub(crate) fn undo(mut self, stage: u32, act: UndoAct) -> Self {
        self.undos.insert(stage, act);
        self
    }

    /// Is undone though it succeeded.
    pub(crate) fn compensated(mut self) -> Self {
        self.compensated = true;
        self
    }

    /// Cannot be undone.
    pub(crate) fn without_rollback(mut self) -> Self {
        self.without_rollback = true;
        self
    }

    fn node(mut self, change: impl FnOnce(&mut Node)) -> Self {
        change(self.node.get_or_insert_default());
        self
    }

    /// Is listed with this name.
    pub(crate) fn named(self, name: &str) -> Self {
        self.node(|node| node.name = Some(name.to_owned()))
    }

    /// Is listed after the siblings at these places.
    pub(crate) fn after(self, places: impl Into<Vec<u32>>) -> Self {
        self.node(|node| node.after = places.into())
    }

    /// Begins by this policy.
    pub(crate) fn opens(self, policy: JoinPolicy) -> Self {
        self.node(|node| node.opens = Some(policy))
    }

    /// Waits for an operator when it can no longer begin.
    pub(crate) fn or_wait(self) -> Self {
        self.node(|node| node.or_wait = true)
    }

    /// Fails its parent when it fails.
    pub(crate) fn vital(self) -> Self {
        self.node(|node| node.vital = true)
    }

    /// Is a family of its own.
    pub(crate) fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Takes a permit of this limit as well.
    pub(crate) fn limit(mut self, key: &str) -> Self {
        self.limit = Some(key.to_owned());
        self
    }

    /// Needs these locks in each of its stages.
    pub(crate) fn locks(mut self, needs: impl Into<Vec<LockNeed>>) -> Self {
        let needs = needs.into();
        let stages = (1_u32..).take(self.acts.len());
        self.locks = stages.map(|stage| (stage, needs.clone())).collect();
        self
    }

    /// Needs this path exclusive in this stage, besides what it needs in all.
    pub(crate) fn exclusive_in(mut self, stage: u32, path: &str) -> Self {
        self.locks
            .entry(stage)
            .or_default()
            .push(LockNeed::exclusive(LockPath::parse(path)));
        self
    }

    /// Needs a permit of this limit in this stage.
    pub(crate) fn limited_in(mut self, stage: u32, limit: &str) -> Self {
        self.stage_limits.entry(stage).or_default().push(limit.to_owned());
        self
    }

    /// Needs this path exclusive in each of its stages.
    pub(crate) fn exclusive(self, path: &str) -> Self {
        self.locks([LockNeed::exclusive(LockPath::parse(path))])
    }

    /// Holds its locks for life, where it is a child.
    pub(crate) fn holding(mut self) -> Self {
        self.holding = true;
        self
    }

    /// Has this many ms in all.
    pub(crate) fn timeout(mut self, ms: u64) -> Self {
        self.timeout = Some(ms);
        self
    }

    /// Cannot go back from this stage on.
    pub(crate) fn one_way(mut self, stage: u32) -> Self {
        self.one_way = Some(stage);
        self
    }

    /// Is told when its own time is up.
    pub(crate) fn told(mut self) -> Self {
        self.told = true;
        self
    }

    /// Goes before others.
    pub(crate) fn priority(mut self, priority: i16) -> Self {
        self.priority = priority;
        self
    }
}
