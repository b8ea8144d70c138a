//! Ten thousand requests at once, on a hundred paths and some limits: all are
//! served, nobody is overtaken too often, and nothing is left.

use std::collections::BTreeSet;
use std::time::Duration;
#[expect(
    clippy::disallowed_types,
    reason = "the cost of a grant is measured here, outside the kernel"
)]
use std::time::Instant;

use procession_kernel::{
    Admissions, Claim, ClaimId, Grant, LimitKey, LockNeed, LockPath, MAX_OVERTAKES, Needs, Request,
};

/// A small generator of its own, so that a seed always gives the same run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// One of a hundred paths: four namespaces, with six tables each of three regions.
    fn path(&mut self) -> LockPath {
        let number = self.roll(100);
        let (namespace, table, region) = (number % 4, number / 4 % 6, number / 24);
        let text = match region {
            _ if number >= 96 => format!("ns{namespace}"),
            0 => format!("ns{namespace}/t{table}"),
            _ => format!("ns{namespace}/t{table}/r{region}"),
        };
        LockPath::parse(text)
    }

    fn request(&mut self, number: u64) -> Request {
        let kind = LimitKey::from(format!("kind{}", self.roll(5)));
        let mut limits = vec![kind.clone()];
        if self.roll(2) == 0 {
            limits.push(LimitKey::from(format!("server{}", self.roll(20))));
        }
        limits.push(LimitKey::from("all"));
        let locks = (0..=self.roll(3)).map(|_| match self.roll(2) {
            0 => LockNeed::shared(self.path()),
            _ => LockNeed::exclusive(self.path()),
        });
        let needs = Needs {
            locks: locks.collect(),
            limits,
        };
        Request {
            claim: Claim::first(ClaimId(number)),
            needs,
            kind: Some(kind),
            priority: i16::try_from(self.roll(5)).unwrap_or_default(),
            within: Vec::new(),
        }
    }
}

fn limits() -> Vec<(LimitKey, Option<u32>)> {
    let kinds = (0..5).map(|kind| (LimitKey::from(format!("kind{kind}")), Some(10 + kind)));
    let servers = (0..20).map(|server| (LimitKey::from(format!("server{server}")), Some(2)));
    let all = (LimitKey::from("all"), Some(30));
    kinds.chain(servers).chain([all]).collect()
}

/// Everybody asks; one who runs at random ends, until all have. Returns the order of service.
fn run(seed: u64, requests: u64) -> Vec<Claim> {
    let mut dice = Dice(seed);
    let mut admissions = Admissions::new(limits());
    let (mut running, mut order) = (BTreeSet::new(), Vec::new());
    let mut most = 0;
    for number in 0..requests {
        let (grant, served) = admissions.request(dice.request(number));
        order.extend(served.iter().copied());
        running.extend(served);
        if grant == Grant::Granted {
            let claim = Claim::first(ClaimId(number));
            order.push(claim);
            running.insert(claim);
        }
        if dice.roll(3) == 0 {
            end_one(&mut dice, &mut admissions, &mut running, &mut order);
        }
    }
    while !running.is_empty() {
        end_one(&mut dice, &mut admissions, &mut running, &mut order);
        let overtaken = admissions.waiting().take(50).map(|claim| admissions.overtaken(claim));
        most = overtaken.max().unwrap_or_default().max(most);
    }
    assert!(most <= MAX_OVERTAKES, "seed {seed}: one was overtaken {most} times");
    assert_eq!(
        admissions.waiting().count(),
        0,
        "seed {seed}: some still wait, and nobody runs"
    );
    assert!(admissions.locks().is_empty(), "seed {seed}");
    assert!(
        admissions
            .usage()
            .iter()
            .all(|limit| (limit.used, limit.waiting) == (0, 0)),
        "seed {seed}"
    );
    order
}

fn end_one(dice: &mut Dice, admissions: &mut Admissions, running: &mut BTreeSet<Claim>, order: &mut Vec<Claim>) {
    let place = usize::try_from(dice.roll(running.len().max(1) as u64)).unwrap_or_default();
    if let Some(claim) = running.iter().nth(place).copied() {
        running.remove(&claim);
        let served = admissions.release(claim.id);
        order.extend(served.iter().copied());
        running.extend(served);
    }
}

#[test]
fn all_of_ten_thousand_are_served() {
    const REQUESTS: u64 = 10_000;
    let mut order = run(1, REQUESTS);
    order.sort_unstable();
    let all: Vec<Claim> = (0..REQUESTS).map(|number| Claim::first(ClaimId(number))).collect();
    assert!(order == all, "each is served once");
}

#[test]
fn the_same_requests_are_served_in_the_same_order() {
    assert_eq!(run(7, 500), run(7, 500));
}

#[expect(clippy::disallowed_types, reason = "as above")]
/// Returns the median time of one release with the grant that follows, `waiting` being queued.
fn grant_time(waiting: u64, needs: &Needs) -> Duration {
    const ROUNDS: u64 = 2_000;
    let mut admissions = Admissions::new([(LimitKey::from("kind"), Some(1))]);
    let request = |number| Request {
        claim: Claim::first(ClaimId(number)),
        needs: needs.clone(),
        kind: None,
        priority: 0,
        within: Vec::new(),
    };
    for number in 0..=waiting {
        admissions.request(request(number));
    }
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|number| {
            let begun = Instant::now();
            let served = admissions.release(ClaimId(number));
            let took = begun.elapsed();
            assert_eq!(served, [Claim::first(ClaimId(number + 1))]);
            // The queue keeps its length.
            admissions.request(request(waiting + 1 + number));
            took
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// From 10 to 30,000 waiting: were each looked at, it would be 3,000 times as long.
#[test]
fn a_grant_costs_the_same_in_a_long_queue() {
    let permit = Needs {
        limits: vec!["kind".into()],
        locks: Vec::new(),
    };
    let lock = Needs {
        limits: Vec::new(),
        locks: vec![LockNeed::exclusive("ns/table/region")],
    };
    for needs in [permit, lock] {
        let (short, long) = (grant_time(10, &needs), grant_time(30_000, &needs));
        assert!(long < short * 30, "{short:?} with 10 waiting, {long:?} with 30,000");
    }
}
