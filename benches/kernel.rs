//! What the kernel's decisions cost: no clock, no I/O, no actors.
//!
//! Timed: deciding, applying, and taking the effects. Not timed: making the state
//! that a decision needs. The cost of a stage should not depend on how many
//! families live, and that of a child's end not on how many siblings it has.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "of many effects and records a saga needs a few"
)]

use std::cell::Cell;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use procession_kernel::{
    Birth, Blob, Commit, DispatchEffect, Effect, Epoch, Event, Gate, GraphNode, HistoryEntry, JoinPolicy, Kernel, Kind,
    KindRules, ProcedureId, Receipt, Record, RequestId, Rules, Seq, StageEnded, StageOutcome, Timestamp, UndoEnded,
};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000);
/// Stages of a saga; it fails at the last.
const SAGA: u32 = 5;
/// Nodes of a graph.
const NODES: u32 = 10_000;
/// Diamonds of a lattice, one below the other.
const DIAMONDS: u32 = 30;
/// A kind without rollback, so that a failure is an end.
const LEAF: &str = "leaf";

/// A kernel whose commits are on disk at once.
#[derive(Clone)]
struct Driver {
    kernel: Kernel,
    /// What a rollback reads.
    history: Vec<HistoryEntry>,
}

impl Driver {
    fn new(families: usize) -> Self {
        let mut leaf = KindRules::new(1);
        leaf.rollback = false;
        let rules = Rules {
            kinds: [(Kind::from("k"), KindRules::new(1)), (Kind::from(LEAF), leaf)].into(),
            ..Rules::default()
        };
        let mut driver = Self {
            kernel: Kernel::new(rules, Epoch(1), 0),
            history: Vec::new(),
        };
        for _ in 0..families {
            driver.run(Event::Submitted(RequestId(1), vec![birth().into()]));
        }
        driver
    }

    fn run(&mut self, event: Event) -> (Vec<Record>, Vec<Effect>) {
        let mut commit = Commit::new();
        let decision = self.kernel.decide(NOW, event);
        let (records, _) = self.kernel.apply(decision, &mut commit);
        let receipt = Receipt::new(Epoch(1), self.kernel.seq());
        (records, commit.release(&receipt).unwrap_or_default())
    }

    fn end_stage(&mut self, id: ProcedureId, outcome: StageOutcome) -> (Vec<Record>, Vec<Effect>) {
        let row = self.kernel.row(id);
        let run = row
            .and_then(|row| row.in_flight)
            .map_or(Seq(0), |in_flight| in_flight.run);
        let mut ended = StageEnded::new(id, run, Epoch(1), NOW, outcome);
        ended.payload = Some(value());
        self.run(Event::StageEnded(Box::new(ended)))
    }

    fn spawn(&mut self, parent: ProcedureId, children: usize) {
        self.spawn_all(parent, vec![birth(); children], JoinPolicy::default());
    }

    fn spawn_all(&mut self, parent: ProcedureId, births: Vec<Birth>, join: JoinPolicy) {
        self.end_stage(
            parent,
            StageOutcome::Spawn {
                births,
                join,
                width: 0,
                then: stage(),
            },
        );
    }

    /// Runs a saga from its submission until all of it is undone.
    fn saga(&mut self) -> usize {
        let (_, mut effects) = self.run(Event::Submitted(RequestId(1), vec![birth().into()]));
        let (mut ran, mut undone) = (0, 0);
        while let Some(effect) = effects.pop() {
            let (records, more) = match effect {
                Effect::Dispatch(DispatchEffect::Call(call)) if call.run().is_some() => {
                    ran += 1;
                    let outcome = if ran == SAGA {
                        StageOutcome::Fail("the last stage fails".to_owned())
                    } else {
                        StageOutcome::Next(stage())
                    };
                    self.end_stage(call.id, outcome)
                }
                Effect::Dispatch(DispatchEffect::LoadStack(scope)) => {
                    let stack = std::mem::take(&mut self.history);
                    self.run(Event::StackLoaded(scope, stack))
                }
                Effect::Dispatch(DispatchEffect::Call(call)) => {
                    let Some((scope, number)) = call.undone() else { continue };
                    undone += 1;
                    let ended = UndoEnded::new(scope, number, NOW, Ok(()));
                    self.run(Event::UndoEnded(Box::new(ended)))
                }
                _ => continue,
            };
            self.history
                .extend(records.into_iter().filter_map(|record| match record {
                    Record::History(entry) if undone == 0 => Some(*entry),
                    _ => None,
                }));
            effects.extend(more);
        }
        self.history.clear();
        undone
    }
}

fn stage() -> Blob {
    Blob::from(&b"\xc0"[..])
}

fn value() -> Blob {
    Blob::from(vec![7; 64])
}

fn birth() -> Birth {
    Birth::new(Kind::from("k"), 1, stage(), value())
}

/// A node that is set going when those before it have succeeded, or have ended in any way.
fn node(after: Vec<u32>, opens: JoinPolicy) -> Birth {
    let gate = Gate {
        after,
        opens,
        or_wait: false,
    };
    let graph = GraphNode {
        gate: Some(gate),
        ..GraphNode::default()
    };
    let mut birth = Birth::new(Kind::from(LEAF), 1, stage(), value());
    birth.graph = Some(Box::new(graph));
    birth
}

/// A first node, all others but one after it, and the last after these.
fn fan() -> Vec<Birth> {
    let first = Birth::new(Kind::from(LEAF), 1, stage(), value());
    let leaves = (1..NODES - 1).map(|_| node(vec![0], JoinPolicy::AllSucceeded));
    let last = node((1..NODES - 1).collect(), JoinPolicy::AllFinished);
    std::iter::once(first)
        .chain(leaves)
        .chain(std::iter::once(last))
        .collect()
}

/// Diamonds one below the other: so many ways lead through them that nobody may walk each.
fn lattice() -> Vec<Birth> {
    let mut nodes = vec![Birth::new(Kind::from(LEAF), 1, stage(), value())];
    for diamond in 0..DIAMONDS {
        let top = 3 * diamond;
        let below = |places: &[u32]| node(places.to_vec(), JoinPolicy::AllSucceeded);
        nodes.extend([below(&[top]), below(&[top]), below(&[top + 1, top + 2])]);
    }
    nodes
}

/// A stage that goes on to another, while so many families live.
fn stages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel/stage ended");
    group.throughput(Throughput::Elements(1));
    for families in [1, 1_000, 100_000] {
        group.bench_with_input(
            BenchmarkId::new("families", families),
            &families,
            |bencher, families| {
                let mut driver = Driver::new(*families);
                let mut family = 0;
                bencher.iter(|| {
                    family = family % (*families as u64) + 1;
                    driver.end_stage(ProcedureId::root(family), StageOutcome::Next(stage()))
                });
            },
        );
    }
    group.finish();
}

/// A family from its submission to its end with one stage.
fn lives(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel/submitted and done");
    group.throughput(Throughput::Elements(1));
    group.bench_function("one stage", |bencher| {
        let mut driver = Driver::new(1_000);
        let family = Cell::new(1_000);
        bencher.iter(|| {
            family.set(family.get() + 1);
            driver.run(Event::Submitted(RequestId(1), vec![birth().into()]));
            driver.end_stage(ProcedureId::root(family.get()), StageOutcome::Done(Blob::default()))
        });
    });
    group.finish();
}

/// Children: their birth in one commit, and the end of all of them, the last of which wakes the parent.
fn children(criterion: &mut Criterion) {
    let parent = ProcedureId::root(1);
    for (name, ends) in [("spawn", false), ("join", true)] {
        let mut group = criterion.benchmark_group(format!("kernel/{name}"));
        group.sample_size(10);
        for children in [10, 1_000, 10_000] {
            group.throughput(Throughput::Elements(children as u64));
            let born = || {
                let mut driver = Driver::new(1);
                if ends {
                    driver.spawn(parent, children);
                }
                driver
            };
            group.bench_function(BenchmarkId::new("children", children), |bencher| {
                bencher.iter_batched(
                    born,
                    |mut driver| {
                        if ends {
                            for child in 1..=u32::try_from(children).unwrap_or(u32::MAX) {
                                driver.end_stage(ProcedureId::new(1, child), StageOutcome::Done(Blob::default()));
                            }
                        } else {
                            driver.spawn(parent, children);
                        }
                        driver
                    },
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

/// A saga of five stages that fails at the fifth, and five undos.
fn sagas(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel/failed and undone");
    group.throughput(Throughput::Elements(1));
    group.bench_function("five stages", |bencher| {
        let mut driver = Driver::new(1_000);
        assert_eq!(
            driver.clone().saga(),
            5,
            "every stage is undone, the failed one included"
        );
        bencher.iter(|| driver.saga());
    });
    group.finish();
}

/// Graphs of children: one whose leaves succeed or fail one by one, and the birth of a lattice, which checks it.
fn graphs(criterion: &mut Criterion) {
    let parent = ProcedureId::root(1);
    let mut group = criterion.benchmark_group("kernel/graph");
    group.sample_size(10);
    group.throughput(Throughput::Elements(u64::from(NODES)));
    for (name, fails) in [("leaves succeed", false), ("leaves fail", true)] {
        let born = || {
            let mut driver = Driver::new(1);
            driver.spawn_all(parent, fan(), JoinPolicy::AllFinished);
            driver
        };
        group.bench_function(BenchmarkId::new(name, NODES), |bencher| {
            bencher.iter_batched(
                born,
                |mut driver| {
                    for node in 1..=NODES {
                        let is_leaf = node > 1 && node < NODES;
                        let outcome = if fails && is_leaf {
                            StageOutcome::Fail("boom".to_owned())
                        } else {
                            StageOutcome::Done(Blob::default())
                        };
                        driver.end_stage(ProcedureId::new(1, node), outcome);
                    }
                    assert!(driver.kernel.row(parent).is_some_and(|row| row.in_flight.is_some()));
                    driver
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
    criterion.bench_function(&format!("kernel/lattice of {DIAMONDS} diamonds"), |bencher| {
        bencher.iter_batched(
            || Driver::new(1),
            |mut driver| {
                driver.spawn_all(parent, lattice(), JoinPolicy::AllSucceeded);
                driver
            },
            BatchSize::SmallInput,
        );
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    stages(&mut criterion);
    lives(&mut criterion);
    children(&mut criterion);
    sagas(&mut criterion);
    graphs(&mut criterion);
    criterion.final_summary();
}
