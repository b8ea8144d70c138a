//! Drawn streams against a model of what streams are: a line of nodes, one of them in hand.

use std::time::Duration;

use procession::flow::{AppendError, Node, NodeState, OnError, Stream, StreamState, When};
use procession::operate::OperatorRequest;
use procession::procedure::RetryPolicy;
use procession::testkit::{Ended, FaultPlan, Run, Trouble, World};

use super::{Draw, Fact, Obeys, Order, Orders, Verdict, name};
use crate::kit::{Tested, by, seeds};

/// Seeds of every run, from 1 on.
const SEEDS: u64 = 200;
/// Steps after which a stream is told to finish.
const STEPS: usize = 25;

/// The model: one page.
#[derive(Clone, Debug, Default)]
struct Model {
    nodes: Vec<Modelled>,
    is_sealed: bool,
    /// Cancelled, and the node in hand runs.
    is_stopping: bool,
    is_over: bool,
}

#[derive(Clone, Debug)]
struct Modelled {
    when: When,
    on_error: OnError,
    attempts: u32,
    failed: u32,
    fact: Fact,
}

impl Model {
    /// The first node that has not ended, if it has begun.
    fn in_hand(&self) -> Option<usize> {
        let is_in_hand = |node: &Modelled| matches!(node.fact, Fact::Runs | Fact::Asks);
        self.nodes.iter().position(is_in_hand)
    }

    fn states(&self) -> Vec<NodeState> {
        let state = |node: &Modelled| match node.fact {
            Fact::Ended(state) => state,
            Fact::Runs | Fact::Asks | Fact::Born if self.is_over => NodeState::Cancelled,
            Fact::Runs => NodeState::Running,
            Fact::Asks => NodeState::Pending,
            Fact::Born => NodeState::Wait,
        };
        self.nodes.iter().map(state).collect()
    }

    fn state(&self) -> StreamState {
        match self.in_hand().map(|place| self.nodes[place].fact) {
            _ if self.is_over => StreamState::Finish,
            Some(Fact::Asks) => StreamState::Pending,
            Some(_) | None => StreamState::Running,
        }
    }

    /// Takes the next node, unless one is in hand; ends once nothing is left that it may take.
    fn settle(&mut self) {
        if self.is_over || self.in_hand().is_some() {
            return;
        }
        let next = self.nodes.iter().position(|node| node.fact == Fact::Born);
        match next {
            _ if self.is_stopping => self.is_over = true,
            None => self.is_over = self.is_sealed,
            Some(place) => {
                let before = place.checked_sub(1).map(|before| self.nodes[before].fact);
                let is_lost = before == Some(Fact::Ended(NodeState::Error));
                let node = &mut self.nodes[place];
                let may_begin = !is_lost || node.when == When::AllFinished;
                node.fact = if may_begin { Fact::Runs } else { Fact::Asks };
            }
        }
    }

    fn obey(&mut self, place: usize, order: Order) {
        let is_stopping = self.is_stopping;
        let node = &mut self.nodes[place];
        let again = node.failed + 1 < node.attempts;
        node.fact = match order {
            Order::Succeed => Fact::Ended(NodeState::Success),
            // It is not tried again, and has no end of its own.
            Order::Retry if again && is_stopping => Fact::Ended(NodeState::Cancelled),
            Order::Retry if again => {
                node.failed += 1;
                Fact::Runs
            }
            Order::Retry | Order::Fail if node.on_error == OnError::Pend && is_stopping => {
                Fact::Ended(NodeState::Cancelled)
            }
            Order::Retry | Order::Fail if node.on_error == OnError::Pend => Fact::Asks,
            Order::Retry | Order::Fail => Fact::Ended(NodeState::Error),
        };
        self.ended(place);
    }

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
        self.is_over |= node.on_error == OnError::Stop && node.fact == Fact::Ended(NodeState::Error);
        self.settle();
    }

    fn cancel(&mut self) {
        let runs = self.in_hand().is_some_and(|place| self.nodes[place].fact == Fact::Runs);
        (self.is_stopping, self.is_over) = (runs, !runs);
    }
}

fn built(place: usize, node: &Modelled) -> Node {
    let retry = RetryPolicy::default().attempts(node.attempts).base(Duration::ZERO);
    Node::new(name(place), Obeys)
        .when(node.when.clone())
        .on_error(node.on_error)
        .retry(retry)
}

/// One drawn stream on its way.
struct Story {
    draw: Draw,
    model: Model,
    orders: Orders,
    steps: usize,
}

impl Story {
    async fn compare(&self, run: &Run, stream: &Stream) -> Tested {
        run.settle().await;
        let status = stream.status().await?;
        let records = stream.records(None, 1_000).await?.items;
        let waiting = stream.waiting(0, 1_000).await?.items;
        let mut found: Vec<(String, NodeState)> = Vec::new();
        found.extend(records.iter().rev().map(|record| (record.name.clone(), record.state)));
        found.extend(status.in_hand.iter().map(|node| (node.name.clone(), node.state)));
        found.extend(waiting.iter().map(|node| (node.name.clone(), node.state)));
        let states = self.model.states().into_iter().enumerate();
        let expected: Vec<_> = states.map(|(place, state)| (name(place), state)).collect();
        if (&found, status.state) != (&expected, self.model.state()) {
            let model = (&expected, self.model.state());
            return Err(format!("{:?} {found:?}, and the model has {model:?}", status.state).into());
        }
        assert_eq!(status.ended as usize, records.len(), "{status:?}");
        let ends = self.model.is_over || self.model.is_sealed;
        assert_eq!(status.sealed, ends, "{status:?}");
        if !self.model.is_over {
            assert_eq!(status.waiting as usize, waiting.len());
        }
        Ok(())
    }

    /// Appends, orders, decides, finishes or cancels.
    async fn step(&mut self, run: &Run, stream: &Stream) -> Tested {
        self.steps += 1;
        let in_hand = self.model.in_hand();
        let asks = in_hand.filter(|place| self.model.nodes[*place].fact == Fact::Asks);
        match self.draw.below(100) {
            0..30 if self.steps < STEPS => self.append(stream).await?,
            30..33 if self.steps > STEPS / 2 && !self.model.is_stopping => {
                run.settle().await;
                let id = stream.open().await?;
                run.executor.abort(id, OperatorRequest::new("ann", "enough")).await?;
                self.model.cancel();
            }
            33..36 => self.finish(stream).await?,
            _ if self.steps > STEPS && !self.model.is_sealed && !self.model.is_stopping => self.finish(stream).await?,
            _ => match (in_hand, asks) {
                (_, Some(place)) if !self.model.is_stopping => self.decide(place, stream).await?,
                (Some(place), None) => {
                    let order = [Order::Succeed, Order::Succeed, Order::Fail, Order::Retry][self.draw.below(4)];
                    self.orders.told().orders.insert(name(place), order);
                    self.model.obey(place, order);
                }
                _ => {}
            },
        }
        self.compare(run, stream).await
    }

    async fn append(&mut self, stream: &Stream) -> Tested {
        let place = self.model.nodes.len();
        let nodes: Vec<Modelled> = (0..1 + self.draw.below(3)).map(|_| drawn(&mut self.draw)).collect();
        let built = nodes.iter().zip(place..).map(|(node, place)| built(place, node));
        match stream.append_all(built).await {
            Ok(places) => assert_eq!(places.len(), nodes.len()),
            Err(AppendError::Finished { .. }) if self.model.is_sealed || self.model.is_over => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        assert!(!self.model.is_sealed && !self.model.is_over, "it takes no more");
        self.model.nodes.extend(nodes);
        self.model.settle();
        Ok(())
    }

    async fn finish(&mut self, stream: &Stream) -> Tested {
        stream.finish().await?;
        self.model.is_sealed = true;
        self.model.settle();
        Ok(())
    }

    async fn decide(&mut self, place: usize, stream: &Stream) -> Tested {
        let verdict = [Verdict::Retry, Verdict::Retry, Verdict::Succeed, Verdict::Fail][self.draw.below(4)];
        match verdict {
            Verdict::Retry => drop(stream.retry(by()).await?),
            Verdict::Succeed => drop(stream.succeed::<Obeys>(&(), by()).await?),
            Verdict::Fail => drop(stream.fail(by()).await?),
        }
        self.model.decide(place, verdict);
        Ok(())
    }

    /// Goes on until it has ended. If it may be killed, it may say that it is to be.
    async fn live(&mut self, run: &Run, may_die: bool) -> Result<bool, Trouble> {
        let stream = run.executor.stream("drawn", "stream")?;
        stream.open().await?;
        self.compare(run, &stream).await?;
        while !self.model.is_over {
            self.step(run, &stream).await?;
            assert!(self.steps < 10_000, "it does not come to its end");
            if may_die && self.draw.percent(5) {
                return Ok(false);
            }
        }
        let root = run.executor.status(stream.open().await?).await?;
        assert!(root.ended.is_some());
        Ok(true)
    }
}

fn drawn(draw: &mut Draw) -> Modelled {
    Modelled {
        when: [When::AllSucceeded, When::AllSucceeded, When::AllFinished][draw.below(3)].clone(),
        on_error: [
            OnError::Pend,
            OnError::Pend,
            OnError::Continue,
            OnError::Continue,
            OnError::Stop,
        ][draw.below(5)],
        attempts: u32::try_from(1 + draw.below(3)).unwrap_or(1),
        failed: 0,
        fact: Fact::Born,
    }
}

fn runs(seed: u64) -> Tested {
    let mut story = Story {
        draw: Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
        model: Model::default(),
        orders: Orders::default(),
        steps: 0,
    };
    let world = World::new();
    // Killed between two steps, while a call may be out, and at most once: a second time would put it in doubt.
    for may_die in [true, false] {
        let orders = story.orders.clone();
        let ended = world.run(
            FaultPlan::none(),
            |builder| builder.processor::<Obeys>(orders.clone()).streams(),
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
    Ok(())
}

#[test]
fn f_063_drawn_streams_are_as_the_model_says() -> Tested {
    for seed in seeds(SEEDS) {
        let replay = format!("SEED={seed} cargo test --all-features --test flow f_063_drawn_streams");
        runs(seed).map_err(|why| format!("{why}\nagain: {replay}"))?;
    }
    Ok(())
}
