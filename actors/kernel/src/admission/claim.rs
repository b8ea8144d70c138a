//! What one ticket holds and what it waits for.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Needs, PATIENCE};
use crate::id::{LimitKey, Ticket};
use crate::lock::LockNeed;

/// A place in the order of service.
///
/// The order of the fields is the order of service: those whose patience has
/// run out, then by priority, then by arrival. Arrivals are never repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seat {
    is_patient: bool,
    priority: Reverse<i16>,
    pub(super) arrival: u64,
    pub(super) ticket: Ticket,
}

impl Seat {
    /// Gives the place of one who came at `arrival` and was passed that often.
    pub(super) fn new(ticket: Ticket, priority: i16, arrival: u64, passed: u32) -> Self {
        let is_patient = passed < PATIENCE;
        Self {
            is_patient,
            priority: Reverse(if is_patient { priority } else { 0 }),
            arrival,
            ticket,
        }
    }

    /// Tells whether it was passed so often that nobody may pass it any more.
    pub(super) fn is_out_of_patience(self) -> bool {
        !self.is_patient
    }
}

/// What a waiter lacked when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not looked at in this place.
    Unseen,
    /// At least one lock: it keeps its place on each path.
    LacksLock,
    /// Permits alone: every lock is free for it, and it reserves none.
    LacksPermit,
}

/// What must change before a waiter is worth another look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nothing: another of its line watches for it, or it is about to be looked at.
    Nothing,
    /// This ticket: a holder, or a waiter before it.
    Ticket(Ticket),
    /// The room in this limit.
    Limit(LimitKey),
}

/// Those who lack permits alone and are alike: if the first of them lacks one, all do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    limits: Vec<LimitKey>,
    kind: Option<LimitKey>,
    within: Vec<Ticket>,
    /// One who holds something already is like nobody else.
    alone: Option<Ticket>,
}

/// What a ticket waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) seat: Seat,
    /// What it asked for and does not hold.
    pub(super) needs: Needs,
    pub(super) kind: Option<LimitKey>,
    pub(super) priority: i16,
    pub(super) passed: u32,
    pub(super) standing: Standing,
    pub(super) watch: Watch,
}

impl Waiting {
    /// Tells whether its place on a path may count against those behind it.
    pub(super) fn reserves_locks(&self) -> bool {
        match self.standing {
            Standing::LacksLock => true,
            Standing::LacksPermit => self.seat.is_out_of_patience(),
            Standing::Unseen => false,
        }
    }
}

/// A ticket that holds something, or waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) limits: BTreeSet<LimitKey>,
    pub(super) locks: BTreeSet<LockNeed>,
    /// Tickets of its ancestors, nearest first.
    pub(super) within: Vec<Ticket>,
    pub(super) waiting: Option<Waiting>,
}

impl Claim {
    /// Tells whether it holds nothing.
    pub(super) fn is_empty_handed(&self) -> bool {
        self.limits.is_empty() && self.locks.is_empty()
    }

    /// Gives those parts of the needs that it does not hold, each once, in their order.
    pub(super) fn lacking(&self, needs: &Needs) -> Needs {
        let mut lacking = Needs::default();
        for key in &needs.limits {
            if !self.limits.contains(key) && !lacking.limits.contains(key) {
                lacking.limits.push(key.clone());
            }
        }
        for lock in &needs.locks {
            if !self.locks.contains(lock) && !lacking.locks.contains(lock) {
                lacking.locks.push(lock.clone());
            }
        }
        lacking
    }

    /// Gives the line in which it waits for permits.
    pub(super) fn line(&self, waiting: &Waiting) -> Line {
        Line {
            limits: waiting.needs.limits.clone(),
            kind: waiting.kind.clone(),
            within: self.within.clone(),
            alone: (!self.is_empty_handed()).then_some(waiting.seat.ticket),
        }
    }
}
