//! What the limiter's value costs while many wait: a pair is one release, which
//! serves the next in line, and one request, which goes to the end of it.
//!
//! Timed: pairs, with the copy of what is asked for that a request takes along.
//! Not timed: filling the queue, making the names. A pair should take less than
//! 0.5 us, and as long with 100,000 waiting as with 10.

use criterion::{BenchmarkId, Criterion, Throughput};
use procession_kernel::{Admissions, Claim, ClaimId, Grant, LimitKey, LockNeed, LockPath, Needs, Request};

const WAITING: [u64; 4] = [10, 1_000, 10_000, 100_000];
/// Paths of the case with many locks.
const PATHS: u64 = 64;

/// What the one with this number needs.
type Ask = fn(u64) -> Needs;

/// A queue of constant length: whoever is served is the next to release.
struct Line {
    admissions: Admissions,
    /// What they need, one after another.
    needs: Vec<Needs>,
    next: u64,
    holding: Vec<Claim>,
}

impl Line {
    fn new(waiting: u64, needs: Ask) -> Self {
        let mut line = Self {
            admissions: Admissions::new([(LimitKey::from("one"), Some(1))]),
            needs: all(needs),
            next: 0,
            holding: Vec::new(),
        };
        while line.next < waiting || line.holding.is_empty() {
            line.ask();
        }
        line
    }

    fn ask(&mut self) {
        let claim = Claim::first(ClaimId(self.next));
        let number = usize::try_from(self.next % PATHS).unwrap_or_default();
        let (grant, served) = self.admissions.request(Request {
            claim,
            needs: self.needs.get(number).cloned().unwrap_or_default(),
            kind: None,
            priority: 0,
            within: Vec::new(),
        });
        self.next += 1;
        if grant == Grant::Granted {
            self.holding.push(claim);
        }
        self.holding.extend(served);
    }

    fn pair(&mut self) {
        if let Some(claim) = self.holding.pop() {
            let served = self.admissions.release(claim.id);
            self.holding.extend(served);
        }
        self.ask();
    }
}

fn all(needs: Ask) -> Vec<Needs> {
    (0..PATHS).map(needs).collect()
}

fn permit(_: u64) -> Needs {
    Needs {
        limits: vec![LimitKey::from("one")],
        locks: Vec::new(),
    }
}

fn one_lock(_: u64) -> Needs {
    Needs {
        limits: Vec::new(),
        locks: vec![LockNeed::exclusive("bench/one")],
    }
}

fn many_locks(number: u64) -> Needs {
    Needs {
        limits: Vec::new(),
        locks: vec![LockNeed::exclusive(LockPath::parse(format!("bench/{number}")))],
    }
}

fn both(number: u64) -> Needs {
    Needs {
        limits: vec![LimitKey::from("wide")],
        locks: many_locks(number).locks,
    }
}

/// Needs nothing that anybody waits for, whoever waits for the permit.
fn free(number: u64) -> Needs {
    Needs {
        limits: vec![LimitKey::from("free")],
        locks: vec![LockNeed::exclusive(LockPath::parse(format!("free/{number}")))],
    }
}

fn pairs(criterion: &mut Criterion) {
    let cases: [(&str, Ask); 4] = [
        ("one permit", permit),
        ("one lock", one_lock),
        ("64 locks", many_locks),
        ("64 locks and a permit", both),
    ];
    for (name, needs) in cases {
        let mut group = criterion.benchmark_group(format!("limiter/{name}"));
        group.throughput(Throughput::Elements(1)).sample_size(20);
        for waiting in WAITING {
            group.bench_with_input(BenchmarkId::from_parameter(waiting), &waiting, |bencher, waiting| {
                let mut line = Line::new(*waiting, needs);
                bencher.iter(|| line.pair());
            });
        }
        group.finish();
    }
}

/// Requests that get all at once, while others wait for something else.
fn beside(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("limiter/granted beside a queue");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for waiting in WAITING {
        group.bench_with_input(BenchmarkId::from_parameter(waiting), &waiting, |bencher, waiting| {
            let mut line = Line::new(*waiting, permit);
            line.needs = all(free);
            line.holding.clear();
            bencher.iter(|| {
                line.ask();
                if let Some(claim) = line.holding.pop() {
                    line.admissions.release(claim.id);
                }
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    pairs(&mut criterion);
    beside(&mut criterion);
    criterion.final_summary();
}
