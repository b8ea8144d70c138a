//! Permits per limit, first come first served: the value that the limiter holds.
//!
//! A request names every limit it needs and gets them together or not at all.
//! Within one limit a later request never overtakes an earlier one of the same
//! priority; one limit that is full never delays another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::id::{LimitKey, Ticket};

/// What a request is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It holds everything it asked for.
    Granted,
    /// It waits, and holds nothing.
    Queued,
}

/// One limit as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// Its name.
    pub key: LimitKey,
    /// Its capacity; none is unlimited.
    pub limit: Option<u32>,
    /// Permits that are out.
    pub used: u32,
    /// Requests that wait.
    pub waiting: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pool {
    limit: Option<u32>,
    used: u32,
    /// In the order in which they are served: priority, then arrival.
    waiting: BTreeSet<(Reverse<i16>, u64)>,
}

impl Pool {
    fn has_room(&self) -> bool {
        self.limit.is_none_or(|limit| self.used < limit)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    limits: Vec<LimitKey>,
    place: (Reverse<i16>, u64),
    granted: bool,
}

/// All limits and all requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    pools: BTreeMap<LimitKey, Pool>,
    requests: BTreeMap<Ticket, Request>,
    by_arrival: BTreeMap<u64, Ticket>,
    arrivals: u64,
}

impl Permits {
    /// Makes the limits given; all others are unlimited.
    #[must_use]
    pub fn new(limits: impl IntoIterator<Item = (LimitKey, Option<u32>)>) -> Self {
        let pools = limits
            .into_iter()
            .map(|(key, limit)| {
                (
                    key,
                    Pool {
                        limit,
                        ..Pool::default()
                    },
                )
            })
            .collect();
        Self {
            pools,
            ..Self::default()
        }
    }

    /// Asks for one permit of each limit.
    pub fn request(&mut self, ticket: Ticket, limits: Vec<LimitKey>, priority: i16) -> Grant {
        let place = self.enter(ticket, limits, priority);
        if self.is_served(place) {
            self.grant(ticket);
            Grant::Granted
        } else {
            Grant::Queued
        }
    }

    /// Gives a recorded holder its permits back, also beyond the capacity.
    pub fn restore(&mut self, ticket: Ticket, limits: Vec<LimitKey>, priority: i16) {
        self.enter(ticket, limits, priority);
        self.grant(ticket);
    }

    /// Gives back what a request holds, or takes it off the queue. Gives those
    /// that are served thereby, in order.
    pub fn release(&mut self, ticket: Ticket) -> Vec<Ticket> {
        let Some(request) = self.requests.remove(&ticket) else {
            return Vec::new();
        };
        self.by_arrival.remove(&request.place.1);
        for key in &request.limits {
            if let Some(pool) = self.pools.get_mut(key) {
                if request.granted {
                    pool.used -= 1;
                } else {
                    pool.waiting.remove(&request.place);
                }
            }
        }
        self.serve(&request.limits)
    }

    /// Changes a capacity. Raising serves exactly the difference; lowering takes nothing back.
    pub fn set_limit(&mut self, key: LimitKey, limit: Option<u32>) -> Vec<Ticket> {
        self.pools.entry(key.clone()).or_default().limit = limit;
        self.serve(&[key])
    }

    /// Tells whether a limit of this name was ever set.
    #[must_use]
    pub fn knows(&self, key: &LimitKey) -> bool {
        self.pools.contains_key(key)
    }

    /// Gives every limit as it stands.
    #[must_use]
    pub fn usage(&self) -> Vec<LimitUse> {
        self.pools
            .iter()
            .map(|(key, pool)| LimitUse {
                key: key.clone(),
                limit: pool.limit,
                used: pool.used,
                waiting: pool.waiting.len(),
            })
            .collect()
    }

    fn enter(&mut self, ticket: Ticket, mut limits: Vec<LimitKey>, priority: i16) -> (Reverse<i16>, u64) {
        // A procedure that names its kind's own limit needs one permit of it, not two.
        limits.sort_unstable();
        limits.dedup();
        self.arrivals += 1;
        let place = (Reverse(priority), self.arrivals);
        for key in &limits {
            self.pools.entry(key.clone()).or_default().waiting.insert(place);
        }
        self.by_arrival.insert(place.1, ticket);
        self.requests.insert(
            ticket,
            Request {
                limits,
                place,
                granted: false,
            },
        );
        place
    }

    /// Tells whether every limit of the request has room and nobody before it.
    fn is_served(&self, place: (Reverse<i16>, u64)) -> bool {
        let Some(request) = self
            .by_arrival
            .get(&place.1)
            .and_then(|ticket| self.requests.get(ticket))
        else {
            return false;
        };
        request.limits.iter().all(|key| {
            self.pools
                .get(key)
                .is_some_and(|pool| pool.has_room() && pool.waiting.first() == Some(&place))
        })
    }

    fn grant(&mut self, ticket: Ticket) {
        let Some(request) = self.requests.get_mut(&ticket) else {
            return;
        };
        request.granted = true;
        for key in &request.limits {
            if let Some(pool) = self.pools.get_mut(key) {
                pool.waiting.remove(&request.place);
                pool.used += 1;
            }
        }
    }

    /// Serves the heads of these limits, and of those that they free, until none can be.
    fn serve(&mut self, limits: &[LimitKey]) -> Vec<Ticket> {
        let mut served = Vec::new();
        let mut look: Vec<LimitKey> = limits.to_vec();
        while let Some(key) = look.pop() {
            let head = self.pools.get(&key).and_then(|pool| pool.waiting.first().copied());
            let Some(place) = head.filter(|place| self.is_served(*place)) else {
                continue;
            };
            let Some(ticket) = self.by_arrival.get(&place.1).copied() else {
                continue;
            };
            self.grant(ticket);
            served.push(ticket);
            if let Some(request) = self.requests.get(&ticket) {
                look.extend(request.limits.iter().cloned());
            }
        }
        served
    }
}

#[cfg(test)]
mod tests;
