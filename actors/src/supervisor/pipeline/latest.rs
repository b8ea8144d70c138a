//! Followers of the latest rows. A user interface does not need every version of a row. A follower sends a request once
//! it has shown the last message. It then receives each row that has changed since, once. So a busy engine copies a row
//! for a follower as often as the follower looks, not as often as the row changes.
//!
//! Ids are noted when a commit is decided. Rows are copied when a follower asks, and sent once everything that they
//! show is on disk.

use std::collections::VecDeque;

use actix::prelude::*;
use procession_kernel::{Kernel, ProcedureId, Record, Row, Seq};
use rustc_hash::FxHashSet;

use crate::view::{LatestFeed, LatestRows};

/// The maximum number of ended roots' rows kept for a follower that has not asked. The first are kept. A busy engine ends
/// ten thousand roots a second, and copies of all their rows drive its own rows out of the processor's cache.
const ROOTS_KEPT: usize = 1_000;
/// The maximum number of ended procedures' rows kept for a follower that has not asked, children included. The newest are
/// kept.
const ENDED_KEPT: usize = 10_000;
/// The maximum number of ids noted for a follower that has not asked. If there are more, it must read everything again.
const NOTED_MAX: usize = 1_000_000;

/// The followers.
#[derive(Default)]
pub(super) struct LatestSubscribers(Vec<Follower>);

struct Follower {
    to: Recipient<LatestFeed>,
    /// Where the follower begins, until that commit is on disk.
    from: Option<Seq>,
    /// `true` if it has asked and was not answered yet.
    asks: bool,
    /// The newest commit that the follower was told of.
    seen: Seq,
    noted: Noted,
    /// Rows as of a commit that is not on disk yet.
    copied: Option<Box<LatestRows>>,
}

/// What has changed since the last answer.
#[derive(Default)]
struct Noted {
    live: FxHashSet<ProcedureId>,
    ended: VecDeque<Row>,
    /// How many of them are roots.
    roots: usize,
    untold: Vec<ProcedureId>,
    gone: Vec<u64>,
    is_lost: bool,
}

impl LatestSubscribers {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Drops followers that are gone.
    pub(super) fn drop_gone(&mut self) {
        self.0.retain(|follower| follower.to.connected());
    }

    /// Adds a follower that begins after the newest commit.
    pub(super) fn add(&mut self, to: Recipient<LatestFeed>, kernel: &Kernel, durable: Seq) {
        self.0.push(Follower {
            to,
            from: Some(kernel.seq()),
            asks: false,
            seen: kernel.seq(),
            noted: Noted::default(),
            copied: None,
        });
        self.reached(kernel, durable);
    }

    /// Records a follower's request: it has shown the last message.
    pub(super) fn asked(&mut self, who: &Recipient<LatestFeed>, kernel: &Kernel, durable: Seq) {
        for follower in self.0.iter_mut().filter(|follower| follower.to == *who) {
            follower.asks = true;
        }
        self.reached(kernel, durable);
    }

    /// Notes what a record of a commit changes.
    pub(super) fn note(&mut self, record: &Record) {
        for follower in &mut self.0 {
            follower.noted.take(record);
        }
    }

    /// Answers the followers that have asked with what is on disk now.
    pub(super) fn reached(&mut self, kernel: &Kernel, durable: Seq) {
        self.0.retain_mut(|follower| follower.tell(kernel, durable));
    }
}

impl Follower {
    /// Returns `false` if the follower is gone.
    fn tell(&mut self, kernel: &Kernel, durable: Seq) -> bool {
        if !self.to.connected() {
            return false;
        }
        if let Some(from) = self.from {
            if from <= durable && self.sent(LatestFeed::From(from)) {
                self.from = None;
            }
            return true;
        }
        if self.asks && self.copied.is_none() && self.seen < kernel.seq() {
            self.copied = Some(Box::new(self.noted.copy(kernel)));
        }
        if let Some(rows) = self.copied.take_if(|copied| copied.seq <= durable) {
            let (seq, from) = (rows.seq, self.seen);
            let newest = if rows.is_lost {
                LatestFeed::Lagged(from)
            } else {
                LatestFeed::Rows(rows)
            };
            if self.sent(newest) {
                (self.asks, self.seen) = (false, seq);
            } else {
                self.noted.is_lost = true;
            }
        }
        true
    }

    /// Sends a message; returns `false` if that failed. At most one message per follower is out, so only a mailbox
    /// without any capacity is full. The caller then tries again later.
    fn sent(&self, newest: LatestFeed) -> bool {
        self.to.try_send(newest).is_ok()
    }
}

impl Noted {
    fn take(&mut self, record: &Record) {
        if let Record::Row(row) | Record::FinishedRow(row) = record {
            self.take_row(row);
        } else if let Record::Evicted(doomed) = record {
            self.gone.push(doomed.family);
        }
        if self.live.len() + self.untold.len() + self.gone.len() > NOTED_MAX {
            *self = Self {
                is_lost: true,
                ..Self::default()
            };
        }
    }

    fn take_row(&mut self, row: &Row) {
        if row.ended.is_none() {
            self.live.insert(row.id);
            return;
        }
        // The row is kept here, because the family may have left the kernel by the time the follower asks.
        self.live.remove(&row.id);
        if row.id.is_root() {
            if self.roots == ROOTS_KEPT {
                self.untold.push(row.id);
                return;
            }
            self.roots += 1;
        }
        self.ended.push_back(row.clone());
        if self.ended.len() > ENDED_KEPT
            && let Some(oldest) = self.ended.pop_front()
        {
            self.roots -= usize::from(oldest.id.is_root());
            self.untold.push(oldest.id);
        }
    }

    /// Copies all rows that have changed, in their current state.
    fn copy(&mut self, kernel: &Kernel) -> LatestRows {
        let mut noted = std::mem::take(self);
        if noted.is_lost {
            // The follower reads everything again, so no row is copied.
            noted.live.clear();
            noted.ended.clear();
        }
        // Rows of families that ended and were evicted since must not reappear.
        let gone: FxHashSet<u64> = noted.gone.iter().copied().collect();
        noted.ended.retain(|row| !gone.contains(&row.id.family));
        let live = noted.live.into_iter().filter_map(|id| kernel.row(id).cloned());
        LatestRows {
            epoch: kernel.epoch(),
            seq: kernel.seq(),
            rows: live.chain(noted.ended).collect(),
            untold: noted.untold,
            gone: noted.gone,
            is_lost: noted.is_lost,
        }
    }
}

#[cfg(test)]
mod tests;
