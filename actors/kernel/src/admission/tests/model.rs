//! The rules of `admission` in the plainest form, compared with the real value. After each grant everything is computed
//! again from lists.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::*;
use crate::lock::LockNeed;

#[derive(Clone, Debug)]
struct Wish {
    needs: Needs,
    kind: Option<LimitKey>,
    priority: i16,
    arrival: u64,
    overtaken: u32,
}

impl Wish {
    fn has_max_overtakes(&self) -> bool {
        self.overtaken >= MAX_OVERTAKES
    }

    fn place(&self) -> (bool, Reverse<i16>, u64) {
        let may_be_overtaken = !self.has_max_overtakes();
        (
            may_be_overtaken,
            Reverse(if may_be_overtaken { self.priority } else { 0 }),
            self.arrival,
        )
    }
}

#[derive(Clone, Debug, Default)]
struct Party {
    limits: Vec<LimitKey>,
    locks: Vec<LockNeed>,
    within: Vec<ClaimId>,
    generation: u64,
    wish: Option<Wish>,
}

#[derive(Debug, Default)]
struct Model {
    limits: BTreeMap<LimitKey, u32>,
    parties: BTreeMap<ClaimId, Party>,
    arrivals: u64,
}

impl Model {
    fn party(&self, claim: ClaimId) -> Party {
        self.parties.get(&claim).cloned().unwrap_or_default()
    }

    fn wish(&self, claim: ClaimId) -> Wish {
        self.party(claim).wish.expect("it waits")
    }

    fn queue(&self) -> Vec<ClaimId> {
        let mut queue: Vec<ClaimId> = self.parties.keys().copied().collect();
        queue.retain(|claim| self.parties[claim].wish.is_some());
        queue.sort_by_key(|claim| self.wish(*claim).place());
        queue
    }

    fn kin(&self, claim: ClaimId) -> Vec<ClaimId> {
        [vec![claim], self.party(claim).within].concat()
    }

    fn has_lock_of(&self, asker: ClaimId, waiter: ClaimId) -> bool {
        let entering = self.party(waiter).within;
        self.kin(asker)
            .into_iter()
            .filter(|kin| *kin != waiter && !entering.contains(kin))
            .flat_map(|kin| self.party(kin).locks)
            .any(|lock| self.wish(waiter).needs.locks.iter().any(|need| need.conflicts(&lock)))
    }

    fn has_permit_of(&self, asker: ClaimId, waiter: ClaimId) -> bool {
        let wanted = self.wish(waiter).needs.limits;
        let mut held = self.kin(asker).into_iter().flat_map(|kin| self.party(kin).limits);
        held.any(|key| wanted.contains(&key))
    }

    fn holds_up(&self, waiter: ClaimId, lacks_lock: bool, asker: ClaimId) -> bool {
        let by_bound = self.wish(waiter).has_max_overtakes() && !self.has_permit_of(asker, waiter);
        (lacks_lock || by_bound) && !self.has_lock_of(asker, waiter)
    }

    fn spare(&self, key: &LimitKey) -> Option<u32> {
        let used = self.parties.values().filter(|party| party.limits.contains(key)).count();
        let limit = *self.limits.get(key)?;
        Some(limit.saturating_sub(u32::try_from(used).expect("few")))
    }

    /// Returns all waiting claims in order, and whether each lacks a lock, or a permit.
    fn evaluations(&self) -> Vec<(ClaimId, bool, bool)> {
        let mut found: Vec<(ClaimId, bool, bool)> = Vec::new();
        for claim in self.queue() {
            let (party, wish) = (self.party(claim), self.wish(claim));
            let lacks_lock = wish.needs.locks.iter().any(|need| {
                let strangers = self
                    .parties
                    .iter()
                    .filter(|(other, _)| **other != claim && !party.within.contains(other));
                let is_held = strangers
                    .flat_map(|(_, other)| &other.locks)
                    .any(|lock| lock.conflicts(need));
                let wants = |other: ClaimId| self.wish(other).needs.locks.iter().any(|lock| lock.conflicts(need));
                is_held
                    || found
                        .iter()
                        .any(|(other, lacks_lock, _)| wants(*other) && self.holds_up(*other, *lacks_lock, claim))
            });
            let lacks_permit = wish.needs.limits.iter().any(|key| {
                let own = |other: ClaimId| self.wish(other).kind.as_ref() == Some(key) && self.wants(other, key);
                let head = found.iter().find(|(other, ..)| own(*other)).map(|(other, ..)| *other);
                let guarded = found.iter().any(|(other, lacks_lock, _)| {
                    let guards = head == Some(*other) || self.wish(*other).has_max_overtakes();
                    guards && self.wants(*other, key) && self.holds_up(*other, *lacks_lock, claim)
                });
                self.spare(key).is_some_and(|spare| spare < if guarded { 2 } else { 1 })
            });
            found.push((claim, lacks_lock, lacks_permit));
        }
        found
    }

    fn wants(&self, claim: ClaimId, key: &LimitKey) -> bool {
        self.wish(claim).needs.limits.contains(key)
    }

    fn serve(&mut self) -> Vec<Claim> {
        let mut served = Vec::new();
        while let Some((claim, ..)) = self
            .evaluations()
            .into_iter()
            .find(|(_, lock, permit)| !lock && !permit)
        {
            self.grant(claim);
            let Party { generation, .. } = self.party(claim);
            served.push(Claim { id: claim, generation });
        }
        served
    }

    fn grant(&mut self, claim: ClaimId) {
        let wish = self.wish(claim);
        let mut overtaken = self.queue();
        overtaken.retain(|other| {
            let theirs = self.wish(*other);
            let enters = self.party(*other).within.contains(&claim);
            let wants = |lock: &LockNeed| theirs.needs.locks.iter().any(|need| need.conflicts(lock));
            let lock = !enters && wish.needs.locks.iter().any(wants);
            let permit = wish.needs.limits.iter().any(|key| self.leaves_none(claim, key, *other));
            let is_kin = self.has_lock_of(claim, *other) || self.has_permit_of(claim, *other);
            theirs.arrival < wish.arrival && (lock || permit) && !is_kin
        });
        for other in overtaken {
            let wish = self.parties.get_mut(&other).and_then(|party| party.wish.as_mut());
            let wish = wish.expect("it waits");
            wish.overtaken += 1;
            assert!(
                wish.overtaken <= MAX_OVERTAKES,
                "{other:?} is overtaken too often, by {claim:?}"
            );
        }
        let party = self.parties.get_mut(&claim).expect("it waits");
        party.wish = None;
        party.limits.extend(wish.needs.limits);
        party.locks.extend(wish.needs.locks);
    }

    /// Returns `true` if a grant leaves another waiter without a permit, if all before that waiter take one as well.
    fn leaves_none(&self, granted: ClaimId, key: &LimitKey, other: ClaimId) -> bool {
        let Some(spare) = self.spare(key) else { return false };
        let left = spare.saturating_sub(1) as usize;
        let mut queue = self.queue();
        queue.retain(|waiter| *waiter != granted && self.wants(*waiter, key));
        let place = queue.iter().position(|waiter| *waiter == other);
        let is_behind = place.is_some_and(|place| place >= left);
        is_behind && (left == 0 || !self.wish(other).has_max_overtakes())
    }

    fn enter(&mut self, request: &Request) {
        self.arrivals += 1;
        let party = self.parties.entry(request.claim.id).or_default();
        party.generation = request.claim.generation;
        party.within.clone_from(&request.within);
        let mut lacking = request.needs.clone();
        if let Some(wish) = &party.wish {
            lacking.limits = [&wish.needs.limits[..], &lacking.limits].concat();
            lacking.locks = [&wish.needs.locks[..], &lacking.locks].concat();
        }
        let (limits, locks) = (party.limits.clone(), party.locks.clone());
        let mut seen = Vec::new();
        lacking.limits.retain(|key| {
            let is_new = !limits.contains(key) && !seen.contains(key);
            seen.push(key.clone());
            is_new
        });
        let mut seen = Vec::new();
        lacking.locks.retain(|lock| {
            let is_new = !locks.contains(lock) && !seen.contains(lock);
            seen.push(lock.clone());
            is_new
        });
        match &mut party.wish {
            Some(wish) => {
                wish.needs = lacking;
                wish.kind = wish.kind.clone().or(request.kind.clone());
            }
            None if lacking.is_empty() => {}
            None => {
                party.wish = Some(Wish {
                    needs: lacking,
                    kind: request.kind.clone(),
                    priority: request.priority,
                    arrival: self.arrivals,
                    overtaken: 0,
                });
            }
        }
    }

    fn give_back(&mut self, claim: ClaimId, needs: &Needs) {
        if let Some(party) = self.parties.get_mut(&claim) {
            party.limits.retain(|key| !needs.limits.contains(key));
            party.locks.retain(|lock| !needs.locks.contains(lock));
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Request(Request),
    GiveBack(ClaimId, Needs),
    Keep(ClaimId, Needs),
    Exchange(Needs, Request),
    Cancel(ClaimId),
    Release(ClaimId),
    Limit(LimitKey, Option<u32>),
    Priority(ClaimId, i16),
}

const LIMITS: [&str; 3] = ["k", "l", "all"];
const PATHS: [&str; 7] = ["a", "a/b", "a/b/c", "a/d", "e", "e/f", "/"];
/// Claims 1 to 4 are roots; the others are their children and grandchildren.
const PARENTS: [&[u64]; 12] = [&[], &[], &[], &[], &[], &[1], &[1], &[2], &[5, 1], &[5, 1], &[], &[]];

fn needs() -> impl Strategy<Value = Needs> {
    let limits = prop::collection::vec(prop::sample::select(&LIMITS[..]), 0..3);
    let lock = (prop::sample::select(&PATHS[..]), prop::bool::weighted(0.4));
    (limits, prop::collection::vec(lock, 0..3)).prop_map(|(limits, locks)| Needs {
        limits: limits.into_iter().map(LimitKey::from).collect(),
        locks: locks
            .into_iter()
            .map(|(path, shared)| {
                if shared {
                    LockNeed::shared(path)
                } else {
                    LockNeed::exclusive(path)
                }
            })
            .collect(),
    })
}

fn claim() -> impl Strategy<Value = ClaimId> {
    (1_u64..12).prop_map(ClaimId)
}

fn request() -> impl Strategy<Value = Request> {
    let draws = (claim(), 1_u64..4, needs(), any::<bool>(), 0_i16..3);
    draws.prop_map(|(id, generation, needs, is_kind, priority)| {
        let kind = needs.limits.first().filter(|_| is_kind).cloned();
        let parents = PARENTS[usize::try_from(id.0).expect("small")];
        Request {
            claim: Claim { id, generation },
            needs,
            kind,
            priority,
            within: parents.iter().copied().map(ClaimId).collect(),
        }
    })
}

fn change() -> impl Strategy<Value = Change> {
    let limit = (prop::sample::select(&LIMITS[..]), prop::option::weighted(0.8, 0_u32..4));
    prop_oneof![
        10 => request().prop_map(Change::Request),
        3 => (claim(), needs()).prop_map(|(claim, needs)| Change::GiveBack(claim, needs)),
        2 => (claim(), needs()).prop_map(|(claim, needs)| Change::Keep(claim, needs)),
        3 => (needs(), request()).prop_map(|(needs, request)| Change::Exchange(needs, request)),
        1 => claim().prop_map(Change::Cancel),
        6 => claim().prop_map(Change::Release),
        1 => limit.prop_map(|(key, limit)| Change::Limit(key.into(), limit)),
        1 => (claim(), 0_i16..3).prop_map(|(claim, priority)| Change::Priority(claim, priority)),
    ]
}

/// Makes the change to both. Returns the claims that each served, in order.
fn make(change: &Change, real: &mut Admissions, model: &mut Model) -> (Vec<Claim>, Vec<Claim>) {
    match change.clone() {
        Change::Request(request) => {
            model.enter(&request);
            let waited = real.is_waiting(request.claim.id);
            let held = real.holds_all(request.claim.id, &request.needs);
            let (grant, served) = real.request(request.clone());
            let mut expected = model.serve();
            let is_served = expected.contains(&request.claim) || (held && !waited);
            assert_eq!(grant == Grant::Granted, is_served);
            expected.retain(|other| *other != request.claim);
            (served, expected)
        }
        Change::GiveBack(claim, needs) => {
            model.give_back(claim, &needs);
            (real.give_back(claim, &needs), model.serve())
        }
        Change::Keep(claim, needs) => {
            if let Some(party) = model.parties.get_mut(&claim) {
                party.wish = None;
                party.limits.retain(|key| needs.limits.contains(key));
                party.locks.retain(|lock| needs.locks.contains(lock));
            }
            (real.keep(claim, &needs), model.serve())
        }
        Change::Exchange(give, request) => {
            model.give_back(request.claim.id, &give);
            model.enter(&request);
            let (_, served) = real.exchange(&give, request.clone());
            let mut expected = model.serve();
            expected.retain(|other| *other != request.claim);
            (served, expected)
        }
        Change::Cancel(claim) => {
            if let Some(party) = model.parties.get_mut(&claim) {
                party.wish = None;
            }
            (real.cancel(claim), model.serve())
        }
        Change::Release(claim) => {
            model.parties.remove(&claim);
            (real.release(claim), model.serve())
        }
        Change::Limit(key, limit) => {
            model.limits.remove(&key);
            model.limits.extend(limit.map(|limit| (key.clone(), limit)));
            (real.set_limit(key, limit), model.serve())
        }
        Change::Priority(claim, priority) => {
            if let Some(wish) = model.parties.get_mut(&claim).and_then(|party| party.wish.as_mut()) {
                wish.priority = priority;
            }
            (real.set_priority(claim, priority), model.serve())
        }
    }
}

fn check(real: &Admissions, model: &Model) {
    assert!(real.tree.is_sound());
    assert_eq!(real.waiting().collect::<Vec<_>>(), model.queue());
    for (claim, lacks_lock, lacks_permit) in model.evaluations() {
        assert_eq!(real.overtaken(claim), model.wish(claim).overtaken, "{claim:?}");
        let state = real.waiting_of(claim).map(|waiting| waiting.state);
        let expected = if lacks_lock {
            claim::WaitState::LacksLock
        } else {
            claim::WaitState::LacksPermit
        };
        assert_eq!(state, Some(expected), "{claim:?}");
        let blockers = real.blockers(claim);
        let is_lock = |blocker: &&Blocker| matches!(blocker.lacking, Lacking::Lock(_));
        assert_eq!(blockers.iter().filter(is_lock).count() > 0, lacks_lock);
        assert_eq!(blockers.iter().any(|blocker| !is_lock(&blocker)), lacks_permit);
        for blocker in blockers {
            // Only the operator can lift a limit that is zero or was lowered.
            let is_zero = |key: &LimitKey| model.limits.get(key) == Some(&0);
            let by_nobody = matches!(&blocker.lacking, Lacking::Permit(key) if is_zero(key));
            assert!(by_nobody || !blocker.by.is_empty(), "{blocker:?}");
        }
    }
    for (claim, party) in &model.parties {
        let mut held = real.held(*claim);
        let (mut limits, mut locks) = (party.limits.clone(), party.locks.clone());
        limits.sort_unstable();
        locks.sort_unstable();
        held.locks.sort_unstable();
        assert_eq!((held.limits, held.locks), (limits, locks), "{claim:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn the_value_does_what_the_plain_rules_say(changes in prop::collection::vec(change(), 1..80)) {
        let limits = [("k", 2), ("l", 1), ("all", 3)].map(|(key, limit)| (LimitKey::from(key), limit));
        let mut model = Model { limits: limits.clone().into(), ..Model::default() };
        let mut real = Admissions::new(limits.map(|(key, limit)| (key, Some(limit))));
        for change in changes {
            let (served, expected) = make(&change, &mut real, &mut model);
            assert_eq!(served, expected, "after {change:?}");
            check(&real, &model);
        }
        for claim in (1..12).map(ClaimId) {
            real.release(claim);
        }
        assert!(real.is_empty(), "nothing is left");
        assert!(real.usage().iter().all(|usage| (usage.used, usage.waiting) == (0, 0)));
    }
}
