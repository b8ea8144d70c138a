//! Permits under random requests, releases and changes of limits, beside a
//! plain list of who asked for what; and what a grant costs in a long queue.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;
#[expect(
    clippy::disallowed_types,
    reason = "the cost of a grant is measured here, outside the kernel"
)]
use std::time::Instant;

use procession_kernel::{Grant, LimitKey, Permits, Ticket};

const NAMES: [&str; 4] = ["kind", "server", "other", "all"];

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

    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        let sides = from.len() as u64;
        if sides == 0 {
            None
        } else {
            usize::try_from(self.roll(sides))
                .ok()
                .and_then(|index| from.get(index).copied())
        }
    }
}

#[derive(Clone)]
struct Asked {
    limits: Vec<LimitKey>,
    place: (Reverse<i16>, u64),
    granted: bool,
}

/// The plain list: every request in the order in which it came.
#[derive(Default)]
struct Model {
    limits: BTreeMap<LimitKey, Option<u32>>,
    asked: BTreeMap<Ticket, Asked>,
    arrivals: u64,
}

impl Model {
    fn used(&self, key: &LimitKey) -> u32 {
        let holders = self
            .asked
            .values()
            .filter(|asked| asked.granted && asked.limits.contains(key));
        u32::try_from(holders.count()).unwrap_or(u32::MAX)
    }

    fn is_full(&self, key: &LimitKey) -> bool {
        self.limits
            .get(key)
            .copied()
            .flatten()
            .is_some_and(|limit| self.used(key) >= limit)
    }

    /// Gives one who waits for this limit and goes before the place.
    fn before(&self, key: &LimitKey, place: (Reverse<i16>, u64)) -> Option<Ticket> {
        let waits = |asked: &&Asked| !asked.granted && asked.place < place && asked.limits.contains(key);
        self.asked
            .iter()
            .find(|(_, asked)| waits(asked))
            .map(|(ticket, _)| *ticket)
    }

    fn enter(&mut self, ticket: Ticket, limits: Vec<LimitKey>, priority: i16) {
        self.arrivals += 1;
        self.asked.insert(
            ticket,
            Asked {
                limits,
                place: (Reverse(priority), self.arrivals),
                granted: false,
            },
        );
    }

    /// Somebody was served: it must have waited, have room everywhere, and nobody before it.
    fn grant(&mut self, ticket: Ticket, seed: u64) {
        let asked = self.asked.get(&ticket).cloned().filter(|asked| !asked.granted);
        assert!(asked.is_some(), "seed {seed}: {ticket:?} was served, and did not wait");
        let Some(asked) = asked else { return };
        for key in &asked.limits {
            assert!(
                !self.is_full(key),
                "seed {seed}: {ticket:?} was granted {key:?} above its limit"
            );
            let before = self.before(key, asked.place);
            assert_eq!(
                before, None,
                "seed {seed}: {ticket:?} overtook one who waits for {key:?}"
            );
        }
        self.asked.entry(ticket).and_modify(|asked| asked.granted = true);
    }

    fn check(&self, permits: &Permits, seed: u64) {
        for (ticket, asked) in self.asked.iter().filter(|(_, asked)| !asked.granted) {
            let could = asked
                .limits
                .iter()
                .all(|key| !self.is_full(key) && self.before(key, asked.place).is_none());
            assert!(!could, "seed {seed}: {ticket:?} waits for nothing and nobody");
        }
        for usage in permits.usage() {
            let waiting = self
                .asked
                .values()
                .filter(|asked| !asked.granted && asked.limits.contains(&usage.key))
                .count();
            assert_eq!(
                (usage.used, usage.waiting),
                (self.used(&usage.key), waiting),
                "seed {seed}: {:?} is counted otherwise than its holders",
                usage.key
            );
        }
    }
}

/// One run: two hundred random changes, each checked.
fn run(seed: u64) {
    let (mut dice, mut model) = (Dice(seed), Model::default());
    for name in NAMES {
        let limit = u32::try_from(dice.roll(5)).ok().filter(|limit| *limit > 0);
        model.limits.insert(LimitKey::from(name), limit);
    }
    let mut permits = Permits::new(model.limits.clone());
    for number in 1..=200 {
        match dice.roll(10) {
            0..=4 => request(&mut dice, &mut model, &mut permits, Ticket(number), seed),
            5..=8 => release(&mut dice, &mut model, &mut permits, seed),
            _ => change(&mut dice, &mut model, &mut permits, seed),
        }
        model.check(&permits, seed);
    }
    // Without limits and with everybody gone, nothing is left of anything.
    while let Some(ticket) = model.asked.keys().next().copied() {
        give_back(&mut model, &mut permits, ticket, seed);
        model.check(&permits, seed);
    }
    assert!(
        permits
            .usage()
            .iter()
            .all(|usage| usage.used == 0 && usage.waiting == 0),
        "seed {seed}"
    );
}

fn request(dice: &mut Dice, model: &mut Model, permits: &mut Permits, ticket: Ticket, seed: u64) {
    let mut limits: Vec<LimitKey> = NAMES
        .iter()
        .filter(|_| dice.roll(2) == 0)
        .map(|name| LimitKey::from(*name))
        .collect();
    if dice.roll(2) == 0 {
        limits.reverse();
    }
    let priority = i16::try_from(dice.roll(3)).unwrap_or_default();
    model.enter(ticket, limits.clone(), priority);
    if permits.request(ticket, limits, priority) == Grant::Granted {
        model.grant(ticket, seed);
    }
}

fn release(dice: &mut Dice, model: &mut Model, permits: &mut Permits, seed: u64) {
    let tickets: Vec<Ticket> = model.asked.keys().copied().collect();
    if let Some(ticket) = dice.pick(&tickets) {
        give_back(model, permits, ticket, seed);
    }
}

fn give_back(model: &mut Model, permits: &mut Permits, ticket: Ticket, seed: u64) {
    let served = permits.release(ticket);
    model.asked.remove(&ticket);
    for served in served {
        model.grant(served, seed);
    }
    // Whoever gives back twice gives nothing back.
    let usage = permits.usage();
    assert_eq!(
        permits.release(ticket),
        [],
        "seed {seed}: {ticket:?} was given back twice"
    );
    assert_eq!(permits.usage(), usage, "seed {seed}");
}

fn change(dice: &mut Dice, model: &mut Model, permits: &mut Permits, seed: u64) {
    let Some(name) = dice.pick(&NAMES) else { return };
    let limit = u32::try_from(dice.roll(6)).ok().filter(|limit| *limit > 0);
    model.limits.insert(LimitKey::from(name), limit);
    for served in permits.set_limit(LimitKey::from(name), limit) {
        model.grant(served, seed);
    }
}

#[test]
fn random_requests_are_served_in_order_and_within_the_limits() {
    for seed in 0..100 {
        run(seed);
    }
}

#[test]
fn a_limit_named_twice_is_taken_once() {
    let key = LimitKey::from("kind");
    let mut permits = Permits::new([(key.clone(), Some(2))]);
    let twice = || vec![key.clone(), key.clone()];
    assert_eq!(permits.request(Ticket(1), twice(), 0), Grant::Granted);
    assert_eq!(permits.request(Ticket(2), twice(), 0), Grant::Granted);
    assert_eq!(permits.request(Ticket(3), twice(), 0), Grant::Queued);
    assert_eq!(
        permits.usage().first().map(|usage| (usage.used, usage.waiting)),
        Some((2, 1))
    );
    assert_eq!(permits.release(Ticket(1)), [Ticket(3)]);
    assert_eq!(
        permits.usage().first().map(|usage| (usage.used, usage.waiting)),
        Some((2, 0))
    );
}

#[expect(clippy::disallowed_types, reason = "as above")]
/// Gives the median time of one release with the grant that follows, `waiting` being queued.
fn grant_time(waiting: u64) -> Duration {
    const ROUNDS: u64 = 2_000;
    let key = LimitKey::from("kind");
    let mut permits = Permits::new([(key.clone(), Some(1))]);
    for ticket in 0..=waiting {
        permits.request(Ticket(ticket), vec![key.clone()], 0);
    }
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|ticket| {
            let begun = Instant::now();
            let served = permits.release(Ticket(ticket));
            let took = begun.elapsed();
            assert_eq!(served, [Ticket(ticket + 1)]);
            // The queue keeps its length.
            permits.request(Ticket(waiting + 1 + ticket), vec![key.clone()], 0);
            took
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// From 10 to 100,000 waiting: were each looked at, it would be 10,000 times as long.
#[test]
fn a_grant_costs_the_same_in_a_long_queue() {
    let (short, long) = (grant_time(10), grant_time(100_000));
    assert!(long < short * 30, "{short:?} with 10 waiting, {long:?} with 100,000");
}
