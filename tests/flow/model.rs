//! Drawn sets against a model of what sets are. The model knows the graph, the strategies, and what was ordered; it knows
//! nothing of rows, gates or commits. After each order all states are compared.
//!
//! A failing seed prints the command that replays it.

#![expect(
    clippy::indexing_slicing,
    reason = "places are those of the model's own lists, and a wrong one fails the test"
)]

mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession::flow::{Node, NodeContext, NodeState, OnError, Processed, Processor, Set, SetHandle, When};
use procession::operate::OperatorRequest;
use procession::procedure::{ChildOutcome, JoinVerdict, RetryPolicy};
use procession::testkit::{Ended, FaultPlan, Run, Trouble, World};
use procession::{Builder, StageError};
use serde::{Deserialize, Serialize};

use crate::kit::{Tested, by, seeds};

/// Seeds of every run, from 1 on.
const SEEDS: u64 = 400;

/// What a node that is called is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Succeed,
    Fail,
    Retry,
}

/// The model: one page.
#[derive(Clone, Debug)]
struct Model {
    nodes: Vec<Modelled>,
    /// No node begins any more.
    is_stopping: bool,
}

#[derive(Clone, Debug)]
struct Modelled {
    parents: Vec<usize>,
    when: When,
    on_error: OnError,
    attempts: u32,
    failed: u32,
    fact: Fact,
}

/// What has happened to a node, its parents aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    Born,
    Runs,
    Asks,
    Ended(NodeState),
}

impl Model {
    fn states(&self) -> Vec<NodeState> {
        let mut states: Vec<NodeState> = Vec::new();
        for node in &self.nodes {
            let state = match node.fact {
                Fact::Runs => NodeState::Running,
                Fact::Asks => NodeState::Pending,
                Fact::Ended(state) => state,
                Fact::Born if node.is_stuck(&states) => NodeState::Pending,
                Fact::Born => NodeState::Wait,
            };
            states.push(state);
        }
        states
    }

    /// Lets everything begin that may, and ends what has nothing left to do.
    fn settle(&mut self) {
        let begins = |model: &Self, node: &Modelled| !model.is_stopping && node.fact == Fact::Born;
        let states = self.states();
        for place in 0..self.nodes.len() {
            let node = &self.nodes[place];
            if begins(self, node) && node.may_begin(&states) {
                self.nodes[place].fact = Fact::Runs;
            }
        }
        if self.is_stopping && self.nodes.iter().all(|node| node.fact != Fact::Runs) {
            for node in self
                .nodes
                .iter_mut()
                .filter(|node| !matches!(node.fact, Fact::Ended(_)))
            {
                node.fact = Fact::Ended(NodeState::Cancelled);
            }
        }
    }

    fn obey(&mut self, place: usize, order: Order) {
        let stopping = self.is_stopping;
        let node = &mut self.nodes[place];
        node.fact = match order {
            Order::Succeed => Fact::Ended(NodeState::Success),
            Order::Retry if stopping && node.failed + 1 < node.attempts => Fact::Ended(NodeState::Error),
            Order::Retry if node.failed + 1 < node.attempts => {
                node.failed += 1;
                Fact::Runs
            }
            // What it would ask nobody hears any more.
            Order::Retry | Order::Fail if node.on_error == OnError::Pend && stopping => {
                Fact::Ended(NodeState::Cancelled)
            }
            Order::Retry | Order::Fail if node.on_error == OnError::Pend => Fact::Asks,
            Order::Retry | Order::Fail => Fact::Ended(NodeState::Error),
        };
        self.ended(place);
    }

    /// Carries a person's decision out.
    fn decide(&mut self, place: usize, verdict: Verdict) {
        let node = &mut self.nodes[place];
        (node.failed, node.fact) = match verdict {
            Verdict::Retry => (0, Fact::Runs),
            Verdict::Succeed => (0, Fact::Ended(NodeState::Success)),
            Verdict::Fail => (0, Fact::Ended(NodeState::Error)),
        };
        self.ended(place);
    }

    fn ended(&mut self, place: usize) {
        let node = &self.nodes[place];
        self.is_stopping |= node.on_error == OnError::Stop && node.fact == Fact::Ended(NodeState::Error);
        self.settle();
    }
}

impl Modelled {
    fn count(&self, states: &[NodeState], wanted: &[NodeState]) -> usize {
        self.looked_at()
            .filter(|parent| wanted.contains(&states[*parent]))
            .count()
    }

    fn looked_at(&self) -> impl Iterator<Item = usize> {
        let named = |parent: &usize| match &self.when {
            When::Named(names) => names.contains(&name(*parent)),
            _ => true,
        };
        self.parents.iter().copied().filter(named)
    }

    fn may_begin(&self, states: &[NodeState]) -> bool {
        let (of, succeeded) = (self.looked_at().count(), self.count(states, &[NodeState::Success]));
        let failed = self.count(states, &[NodeState::Error, NodeState::Cancelled]);
        self.parents.is_empty()
            || match self.when {
                When::AllFinished => succeeded + failed == of,
                When::AtLeast(least) => succeeded >= least as usize,
                When::Custom => failed > 0 || succeeded == of,
                _ => succeeded == of,
            }
    }

    fn is_stuck(&self, states: &[NodeState]) -> bool {
        let (of, succeeded) = (self.looked_at().count(), self.count(states, &[NodeState::Success]));
        let failed = self.count(states, &[NodeState::Error, NodeState::Cancelled]);
        let pending = self.count(states, &[NodeState::Pending]);
        !self.parents.is_empty()
            && match self.when {
                When::AllFinished => pending > 0,
                When::AtLeast(least) => of - failed - pending < least as usize,
                When::Custom => succeeded + failed + pending == of,
                _ => failed + pending > 0,
            }
    }
}

fn name(place: usize) -> String {
    format!("n{place}")
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Retry,
    Succeed,
    Fail,
}

/// What nodes are told, outside of the engine.
#[derive(Clone, Default)]
struct Orders(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    orders: BTreeMap<String, Order>,
    called: BTreeSet<String>,
}

impl Orders {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Serialize, Deserialize)]
struct Obeys;

impl Processor for Obeys {
    const NAME: &'static str = "obeys";
    type Env = Orders;
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, orders: &Orders) -> Result<Processed<()>, StageError> {
        orders.told().called.insert(cx.name().to_owned());
        loop {
            let order = orders.told().orders.remove(cx.name());
            match order {
                None => tokio::task::yield_now().await,
                Some(Order::Succeed) => return Ok(Processed::Done(())),
                Some(Order::Fail) => return Err(StageError::fail("it fails")),
                Some(Order::Retry) => return Err(StageError::retry("not now")),
            }
        }
    }

    fn judge(&self, parents: &[ChildOutcome]) -> JoinVerdict {
        let failed = parents.iter().any(ChildOutcome::failed);
        if failed || parents.iter().all(ChildOutcome::succeeded) {
            JoinVerdict::Met
        } else {
            JoinVerdict::Pending
        }
    }
}

/// Numbers from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let drawn = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16;
        usize::try_from(drawn % below.max(1) as u64).unwrap_or_default()
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn drawn(draw: &mut Draw) -> Model {
    let mut nodes = Vec::new();
    for place in 0..2 + draw.below(11) {
        let parents: Vec<usize> = (0..place).filter(|_| draw.percent(35)).collect();
        let when = match draw.below(6) {
            _ if parents.is_empty() => When::AllSucceeded,
            0 => When::AllFinished,
            1 => When::AtLeast(u32::try_from(1 + draw.below(parents.len())).unwrap_or(1)),
            2 => {
                let mut named: Vec<String> = parents.iter().copied().filter(|_| draw.percent(60)).map(name).collect();
                if named.is_empty() {
                    named.extend(parents.first().copied().map(name));
                }
                When::Named(named)
            }
            3 => When::Custom,
            _ => When::AllSucceeded,
        };
        nodes.push(Modelled {
            parents,
            when,
            on_error: [OnError::Pend, OnError::Pend, OnError::Continue, OnError::Stop][draw.below(4)],
            attempts: u32::try_from(1 + draw.below(3)).unwrap_or(1),
            failed: 0,
            fact: Fact::Born,
        });
    }
    Model {
        nodes,
        is_stopping: false,
    }
}

fn built(model: &Model) -> Result<Set, Trouble> {
    let mut set = Set::builder("drawn");
    for (place, node) in model.nodes.iter().enumerate() {
        let retry = RetryPolicy::default()
            .attempts(node.attempts)
            .base(std::time::Duration::ZERO);
        set.add(
            Node::new(name(place), Obeys)
                .after(node.parents.iter().copied().map(name))
                .when(node.when.clone())
                .on_error(node.on_error)
                .retry(retry),
        );
    }
    Ok(set.build()?)
}

/// One drawn set on its way.
struct Story {
    draw: Draw,
    graph: Set,
    model: Model,
    orders: Orders,
    steps: usize,
    seen: BTreeMap<String, NodeState>,
    arrows: BTreeSet<(NodeState, NodeState)>,
}

impl Story {
    /// Compares all states with the model's.
    async fn compare(&mut self, run: &Run, set: &SetHandle, bypassed: Option<usize>) -> Tested {
        run.settle().await;
        let nodes = set.nodes(0, 1_000).await?.items;
        let found: Vec<NodeState> = nodes.iter().map(|node| node.state).collect();
        let expected = self.model.states();
        if found != expected {
            return Err(format!(
                "states are {found:?}, and the model has {expected:?}: {:#?}",
                self.model
            )
            .into());
        }
        let status = set.status().await?;
        let running = found.iter().filter(|state| **state == NodeState::Running).count();
        assert_eq!(
            (status.counts.total() as usize, status.counts.running as usize),
            (found.len(), running)
        );
        for (place, node) in nodes.iter().enumerate() {
            let before = self
                .seen
                .insert(node.name.clone(), node.state)
                .unwrap_or(NodeState::Wait);
            if before != node.state && bypassed != Some(place) {
                self.arrows.insert((before, node.state));
            }
        }
        Ok(())
    }

    /// Sends a notification to one node, or decides about one. Returns `false` if nothing was left to do.
    async fn step(&mut self, run: &Run, set: &SetHandle) -> Result<bool, Trouble> {
        self.steps += 1;
        let states = self.model.states();
        let all =
            |wanted: NodeState| -> Vec<usize> { (0..states.len()).filter(|place| states[*place] == wanted).collect() };
        let (running, pending) = (all(NodeState::Running), all(NodeState::Pending));
        let decides = !pending.is_empty() && !self.model.is_stopping && (running.is_empty() || self.draw.percent(25));
        let mut bypassed = None;
        if decides {
            let place = pending[self.draw.below(pending.len())];
            let verdict = [Verdict::Retry, Verdict::Retry, Verdict::Succeed, Verdict::Fail][self.draw.below(4)];
            match verdict {
                Verdict::Retry => drop(set.retry(&name(place), by()).await?),
                Verdict::Succeed => drop(set.succeed::<Obeys>(&name(place), &(), by()).await?),
                Verdict::Fail => drop(set.fail(&name(place), by()).await?),
            }
            bypassed = (!matches!(verdict, Verdict::Retry)).then_some(place);
            self.model.decide(place, verdict);
        } else if let Some(place) = running.get(self.draw.below(running.len())).copied() {
            let order = [Order::Succeed, Order::Succeed, Order::Fail, Order::Retry][self.draw.below(4)];
            self.orders.told().orders.insert(name(place), order);
            self.model.obey(place, order);
        } else {
            return Ok(false);
        }
        if !self.model.is_stopping && self.draw.percent(2) {
            run.settle().await;
            run.executor
                .abort(set.id(), OperatorRequest::new("ann", "enough"))
                .await
                .ok();
            let is_over = self.model.nodes.iter().all(|node| matches!(node.fact, Fact::Ended(_)));
            self.model.is_stopping = !is_over;
            self.model.settle();
        }
        self.compare(run, set, bypassed).await?;
        Ok(true)
    }

    /// Goes on until nothing is left. If it may be killed, it may say that it is to be.
    async fn live(&mut self, run: &Run, may_die: bool) -> Result<bool, Trouble> {
        let start = run.executor.start_set(self.graph.clone()).key("the set");
        let set = run.wait(start).await??;
        self.model.settle();
        self.compare(run, &set, None).await?;
        while self.step(run, &set).await? {
            assert!(self.steps < 10_000, "it does not come to its end");
            if may_die && self.draw.percent(5) {
                return Ok(false);
            }
        }
        let called = self.orders.told().called.clone();
        for (place, node) in self.model.nodes.iter().enumerate() {
            let ended = matches!(node.fact, Fact::Ended(_));
            assert!(ended, "{place} has not ended");
        }
        let uncalled = self
            .model
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.fact == Fact::Ended(NodeState::Cancelled));
        // Cancelled nodes were never called, unless they asked, or were to.
        for (place, node) in uncalled {
            assert!(
                !called.contains(&name(place)) || node.on_error == OnError::Pend,
                "{place} was called"
            );
        }
        assert!(run.executor.status(set.id()).await?.ended.is_some());
        Ok(true)
    }
}

fn runs(seed: u64) -> Result<BTreeSet<(NodeState, NodeState)>, Trouble> {
    let mut draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let model = drawn(&mut draw);
    let mut story = Story {
        draw,
        graph: built(&model)?,
        model,
        orders: Orders::default(),
        steps: 0,
        seen: BTreeMap::new(),
        arrows: BTreeSet::new(),
    };
    let world = World::new();
    let set_up = |orders: &Orders, builder: Builder| builder.processor::<Obeys>(orders.clone());
    // Killed between two steps, while calls are out, and at most once: a second time would put these in doubt.
    for may_die in [true, false] {
        let orders = story.orders.clone();
        let ended = world.run(
            FaultPlan::none(),
            |builder| set_up(&orders, builder),
            async |run: &Run| {
                if !story.live(run, may_die).await? {
                    run.store.crash();
                    std::future::pending::<()>().await;
                }
                Ok(())
            },
        )?;
        if let Ended::Done(()) = ended {
            break;
        }
    }
    Ok(story.arrows)
}

#[test]
fn f_063_drawn_sets_are_as_the_model_says() -> Tested {
    let mut arrows = BTreeSet::new();
    for seed in seeds(SEEDS) {
        let replay = format!("SEED={seed} cargo test --all-features --test flow f_063_drawn");
        arrows.extend(runs(seed).map_err(|why| format!("{why}\nagain: {replay}"))?);
    }
    legal(&arrows)
}

/// Every change of a state that was seen, decisions that end a node aside, is an arrow of the page.
fn legal(arrows: &BTreeSet<(NodeState, NodeState)>) -> Tested {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/flows.md"))?;
    for (from, to) in arrows {
        let row = page.lines().find(|line| line.starts_with(&format!("| {from} |")));
        let row = row.ok_or_else(|| format!("docs/flows.md has no state {from}"))?;
        let becomes = row.split('|').nth(3).unwrap_or_default();
        if !becomes.contains(&to.to_string()) {
            return Err(format!("{from} became {to}, and docs/flows.md has only {becomes}").into());
        }
    }
    Ok(())
}
