//! A processor that does what its data says, what is outside of the engine, and short ways to run a set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use procession::flow::{Node, NodeContext, ParentError, Processed, Processor, Set, SetHandle, SetState};
use procession::operate::OperatorRequest;
use procession::procedure::{ChildOutcome, JoinVerdict, RetryPolicy, Token};
use procession::status::ListFilter;
use procession::testkit::{Enumeration, FaultPlan, Run, Trouble, World, enumerate};
use procession::{Builder, StageError};
use serde::{Deserialize, Serialize};

pub(crate) type Tested = Result<(), Trouble>;

/// Keyspace in which nodes count their commits.
pub(crate) const ROWS: &str = "rows";

/// What a node does when it is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Act {
    Done(i64),
    /// Fails for good.
    Fail,
    /// Asks for another attempt, each time.
    Retry,
    /// Asks for another attempt in its first ones.
    RetryUpTo(u32),
    /// Fails for good as long as a gate is shut.
    FailUntil(String),
    /// Waits for a gate.
    Held(String, Box<Act>),
    Panic,
    /// Parks; once it is called again it is done, and notes what ended its wait.
    Park(Option<Duration>),
    /// Notes what it sees of its parents.
    See(i64),
    /// Is never done.
    Never,
}

/// What a node's own strategy says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Rule {
    #[default]
    AllSucceeded,
    /// Met by one failure, or by successes alone.
    OneFailed,
    NotYet,
    Panics,
}

/// A processor that does what its data says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) act: Act,
    #[serde(default)]
    pub(crate) rule: Rule,
}

impl Processor for Work {
    const NAME: &'static str = "work";
    type Env = Lab;
    type Output = i64;

    async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<i64>, StageError> {
        lab.called(cx);
        // Whatever is written here counts only if the attempt is committed as a success.
        let times = cx.get::<u32>(ROWS, cx.name()).await?.unwrap_or_default();
        let name = cx.name().to_owned();
        cx.put(ROWS, name, &(times + 1))?;
        work(&self.act, cx, lab).await
    }

    fn judge(&self, parents: &[ChildOutcome]) -> JoinVerdict {
        let names = parents.iter().map(|parent| parent.name.clone().unwrap_or_default());
        let asked = Asked {
            parents: names.collect(),
            ended: parents.iter().filter(|parent| parent.has_ended()).count(),
            thread: thread::current().id(),
        };
        ASKED.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        let failed = parents.iter().filter(|parent| parent.failed()).count();
        let succeeded = parents.iter().filter(|parent| parent.succeeded()).count();
        match self.rule {
            Rule::AllSucceeded if succeeded == parents.len() => JoinVerdict::Met,
            Rule::OneFailed if failed > 0 || succeeded == parents.len() => JoinVerdict::Met,
            Rule::AllSucceeded | Rule::OneFailed | Rule::NotYet => JoinVerdict::Pending,
            Rule::Panics => panic!("the rule is wrong"),
        }
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(1)
    }
}

async fn work(act: &Act, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<i64>, StageError> {
    match act {
        Act::Done(output) => Ok(Processed::Done(*output)),
        Act::Fail => Err(StageError::fail("it fails")),
        Act::Retry => Err(StageError::retry("not now")),
        Act::RetryUpTo(attempts) if cx.attempt() <= *attempts => Err(StageError::retry("not now")),
        Act::RetryUpTo(_) => Ok(Processed::Done(1)),
        Act::FailUntil(gate) if lab.is_open(gate) => Ok(Processed::Done(1)),
        Act::FailUntil(_) => Err(StageError::fail("it fails")),
        Act::Held(gate, act) => {
            lab.gate(gate).await;
            Box::pin(work(act, cx, lab)).await
        }
        Act::Panic => panic!("out of paper"),
        Act::Park(timeout) => {
            if let Some(payload) = cx.notified::<String>()? {
                lab.note(format!("{} was told {payload}", cx.name()));
            } else if cx.timed_out() {
                lab.note(format!("{} was told nothing", cx.name()));
            } else {
                return Ok(Processed::Park { timeout: *timeout });
            }
            Ok(Processed::Done(1))
        }
        Act::See(output) => {
            for parent in cx.parents().await? {
                let left = match parent.output::<i64>().await {
                    Ok(output) => output.to_string(),
                    Err(ParentError::NoOutput { cause, .. }) => cause.unwrap_or_else(|| "no".to_owned()),
                    Err(error) => return Err(error.into()),
                };
                lab.note(format!("{} saw {} {} {left}", cx.name(), parent.name(), parent.state()));
            }
            Ok(Processed::Done(*output))
        }
        Act::Never => std::future::pending().await,
    }
}

/// A processor whose output has as many bytes as its data says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bulky(pub(crate) usize);

impl Processor for Bulky {
    const NAME: &'static str = "bulky";
    type Env = Lab;
    type Output = String;

    async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<String>, StageError> {
        lab.called(cx);
        Ok(Processed::Done("x".repeat(self.0)))
    }
}

/// One question to a strategy.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) parents: Vec<String>,
    pub(crate) ended: usize,
    pub(crate) thread: ThreadId,
}

static ASKED: Mutex<Vec<Asked>> = Mutex::new(Vec::new());

/// Returns the questions about these parents.
pub(crate) fn asked_about(parents: &[&str]) -> Vec<Asked> {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.iter().filter(|asked| asked.parents == parents).cloned().collect()
}

/// One call of a processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) name: String,
    pub(crate) place: u32,
    pub(crate) attempt: u32,
    pub(crate) repeated: u32,
    pub(crate) token: Token,
    /// In seconds of the engine's clock.
    pub(crate) at: u64,
}

#[derive(Default)]
struct Notes {
    calls: Vec<Called>,
    open: BTreeSet<String>,
    notes: Vec<String>,
    /// Calls that are held open now, and the most at any time.
    inside: usize,
    most: usize,
}

/// What is outside of the engine and survives its crashes.
#[derive(Clone, Default)]
pub(crate) struct Lab(Arc<Mutex<Notes>>);

/// A call that is held open.
struct Inside(Lab);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.notes().inside -= 1;
    }
}

impl Lab {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn called(&self, cx: &NodeContext<'_>) {
        let called = Called {
            name: cx.name().to_owned(),
            place: cx.place(),
            attempt: cx.attempt(),
            repeated: cx.repeated(),
            token: cx.token(),
            at: cx.now().0 / 1_000_000,
        };
        self.notes().calls.push(called);
    }

    pub(crate) fn calls(&self) -> Vec<Called> {
        self.notes().calls.clone()
    }

    /// Returns the names of all nodes that were called, in order: `a b c d`.
    pub(crate) fn line(&self) -> String {
        let names: Vec<String> = self.calls().into_iter().map(|called| called.name).collect();
        names.join(" ")
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.notes().calls.iter().filter(|called| called.name == name).count()
    }

    pub(crate) fn note(&self, text: String) {
        self.notes().notes.push(text);
    }

    pub(crate) fn noted(&self) -> Vec<String> {
        self.notes().notes.clone()
    }

    pub(crate) fn open(&self, gate: &str) {
        self.notes().open.insert(gate.to_owned());
    }

    pub(crate) fn is_open(&self, gate: &str) -> bool {
        self.notes().open.contains(gate)
    }

    /// Returns the most calls that were held open at once.
    pub(crate) fn most(&self) -> usize {
        self.notes().most
    }

    async fn gate(&self, gate: &str) {
        {
            let mut notes = self.notes();
            notes.inside += 1;
            notes.most = notes.most.max(notes.inside);
        }
        let _inside = Inside(self.clone());
        while !self.is_open(gate) {
            tokio::task::yield_now().await;
        }
    }

    /// Whatever was called without a crash was called with crashes: at most once more for each of them, and with fresh
    /// attempts after two, when somebody has decided about it.
    pub(crate) fn compare(&self, crashed: &Self, crashes: usize) -> Tested {
        let count = |lab: &Self| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for called in lab.calls() {
                *counts.entry(called.name).or_default() += 1;
            }
            counts
        };
        let (plain, found) = (count(self), count(crashed));
        let fits = |(name, times): (&String, &usize)| {
            let expected = plain.get(name).copied().unwrap_or_default();
            let most = if crashes < 2 {
                expected + crashes
            } else {
                expected * (crashes + 1)
            };
            (expected..=most).contains(times)
        };
        if plain.keys().ne(found.keys()) || !found.iter().all(fits) {
            return Err(format!("other calls: expected {}, found {}", self.line(), crashed.line()).into());
        }
        Ok(())
    }
}

/// Registers the processors.
pub(crate) fn kinds(lab: &Lab, builder: Builder) -> Builder {
    let builder = builder.processor::<Work>(lab.clone()).processor::<Bulky>(lab.clone());
    builder.streams()
}

pub(crate) fn node(name: &str, act: Act) -> Node {
    let rule = Rule::default();
    Node::new(name, Work { act, rule })
}

/// A node with a strategy of its own.
pub(crate) fn ruled(name: &str, act: Act, rule: Rule) -> Node {
    Node::new(name, Work { act, rule })
}

/// A node that is done, with the number 1.
pub(crate) fn done(name: &str) -> Node {
    node(name, Act::Done(1))
}

pub(crate) fn failing(name: &str) -> Node {
    node(name, Act::Fail)
}

pub(crate) fn held(name: &str) -> Node {
    held_then(name, Act::Done(1))
}

/// A node that waits for the gate of its name.
pub(crate) fn held_then(name: &str, act: Act) -> Node {
    node(name, Act::Held(name.to_owned(), Box::new(act)))
}

pub(crate) fn set(nodes: impl IntoIterator<Item = Node>) -> Result<Set, Trouble> {
    let mut set = Set::builder("a set");
    for node in nodes {
        set.add(node);
    }
    Ok(set.build()?)
}

pub(crate) fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a test")
}

/// Starts a set with a key: the same one after every restart.
pub(crate) async fn start(run: &Run, set: Set) -> Result<SetHandle, Trouble> {
    Ok(run.wait(run.executor.start_set(set).key("the set")).await??)
}

/// Returns how all nodes stand when everything is at rest: `a SUCCESS, b PENDING`.
pub(crate) async fn states(run: &Run, set: &SetHandle) -> Result<String, Trouble> {
    run.settle().await;
    let nodes = run.wait(set.nodes(0, 1_000)).await??;
    let shown: Vec<String> = nodes
        .items
        .iter()
        .map(|node| format!("{} {}", node.name, node.state))
        .collect();
    Ok(shown.join(", "))
}

/// Returns how the set stands when everything is at rest.
pub(crate) async fn state(run: &Run, set: &SetHandle) -> Result<SetState, Trouble> {
    run.settle().await;
    Ok(run.wait(set.status()).await??.state)
}

/// Runs one life without faults in a new world.
pub(crate) fn live<T>(lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
    live_in(&World::new(), lab, drive)
}

/// Runs one life without faults in this world.
pub(crate) fn live_in<T>(
    world: &World,
    lab: &Lab,
    drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    world
        .run(FaultPlan::none(), |builder| kinds(lab, builder), drive)?
        .done()
}

/// Starts a set and drives it, crashed at every commit, before, after and torn, and again in each recovery. Returns what
/// the crash-free run did.
pub(crate) fn enumerate_set(
    nodes: impl Fn() -> Vec<Node>,
    drive: impl AsyncFn(&Lab, &Run, &SetHandle) -> Tested,
) -> Result<(Enumeration, Lab), Trouble> {
    enumerate_in(kinds, nodes, drive)
}

/// The same with an engine that is set up so.
pub(crate) fn enumerate_in(
    set_up: impl Fn(&Lab, Builder) -> Builder,
    nodes: impl Fn() -> Vec<Node>,
    drive: impl AsyncFn(&Lab, &Run, &SetHandle) -> Tested,
) -> Result<(Enumeration, Lab), Trouble> {
    let first: Mutex<Option<Lab>> = Mutex::new(None);
    let done = enumerate(
        Lab::default,
        set_up,
        async |lab: &Lab, run: &Run| {
            let handle = start(run, set(nodes())?).await?;
            settle_doubts(run).await?;
            drive(lab, run, &handle).await?;
            // Readings agree with each other once nothing moves.
            run.settle().await;
            let (status, nodes) = (handle.status().await?, handle.nodes(0, 1_000).await?);
            assert_eq!(status.counts.total() as usize, nodes.items.len());
            let goes_on = status.counts.ready + status.counts.running > 0;
            assert!(
                goes_on || status.counts.wait == 0,
                "a node waits for nothing: {nodes:?}"
            );
            Ok(())
        },
        &[ROWS],
        |plain, crashed, crashes| {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| plain.clone());
            plain.compare(crashed, crashes)
        },
    )?;
    let lab = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((done, lab.unwrap_or_default()))
}

/// Retries whatever asks because the engine died twice while it was out, as a person would who has looked.
pub(crate) async fn settle_doubts(run: &Run) -> Tested {
    loop {
        run.settle().await;
        let live = ListFilter {
            live_only: true,
            ..ListFilter::default()
        };
        let page = run.executor.list(live, None, 1_000).await?;
        let in_doubt = |question: &String| question.starts_with("in doubt");
        let asks = page
            .items
            .into_iter()
            .find(|status| status.question.as_ref().is_some_and(in_doubt));
        let Some(asks) = asks else { return Ok(()) };
        let by = OperatorRequest::new("kim", "it is safe");
        run.wait(run.executor.retry_now(asks.id, by)).await??;
    }
}

/// Waits for the end of a set, and returns its counts as text: `4 SUCCESS, 1 ERROR`.
pub(crate) async fn ended(run: &Run, set: &SetHandle) -> Result<String, Trouble> {
    let ended = run.wait(set.outcome()).await?;
    let counts = match ended {
        Ok(counts) => counts,
        Err(procession::flow::SetError::Stopped { .. }) => set.status().await?.counts,
        Err(error) => return Err(error.into()),
    };
    Ok(shown(&counts))
}

fn shown(counts: &procession::flow::Counts) -> String {
    let all = [
        (counts.wait, "WAIT"),
        (counts.ready, "READY"),
        (counts.running, "RUNNING"),
        (counts.pending, "PENDING"),
        (counts.success, "SUCCESS"),
        (counts.error, "ERROR"),
        (counts.cancelled, "CANCELLED"),
    ];
    let shown = all.iter().filter(|(count, _)| *count > 0);
    shown
        .map(|(count, state)| format!("{count} {state}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The seeds to try: the one that `SEED` names, or as many as `SEEDS` says.
pub(crate) fn seeds(otherwise: u64) -> std::ops::RangeInclusive<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    number("SEED").map_or_else(|| 1..=number("SEEDS").unwrap_or(otherwise), |seed| seed..=seed)
}
