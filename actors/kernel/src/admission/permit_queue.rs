//! Queues of waiters that lack only permits and have the same needs. If the first of a queue lacks a permit, all do, so
//! only the first depends on the limit.

use super::claim::{ClaimState, LimitIds, PendingRequest};
use super::hash_index::{self, HashIndex};
use super::limit::LimitId;
use super::queue_position::{PositionSet, QueuePosition};
use super::slab::Slab;
use crate::id::ClaimId;

/// The number of a permit queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PermitQueueId(u32);

/// A queue, and what its waiters have in common.
#[derive(Clone, Debug)]
struct PermitQueue {
    limits: LimitIds,
    kind: Option<LimitId>,
    within: Vec<ClaimId>,
    /// The only claim of this queue, if it already holds something: then no other claim is like it.
    alone: Option<ClaimId>,
    positions: PositionSet,
}

impl PermitQueue {
    fn is_of(&self, claim: &ClaimState, waiting: &PendingRequest) -> bool {
        self.limits.as_slice() == waiting.limits.as_slice()
            && self.kind == waiting.kind
            && self.within == claim.within
            && self.alone == alone(claim)
    }
}

fn alone(claim: &ClaimState) -> Option<ClaimId> {
    (!claim.is_empty_handed()).then_some(claim.id)
}

fn hash(limits: &LimitIds, kind: Option<LimitId>, within: &[ClaimId], alone: Option<ClaimId>) -> u32 {
    let limits = limits.iter().map(|limit| u64::from(limit.0));
    let kind = kind.map_or(u64::MAX, |kind| u64::from(kind.0));
    let claim_ids = within.iter().chain(&alone).map(|claim_id| claim_id.0);
    hash_index::of_numbers(limits.chain([kind]).chain(claim_ids))
}

/// All permit queues.
#[derive(Clone, Debug, Default)]
pub(super) struct PermitQueues {
    all: Slab<PermitQueue>,
    by_needs: HashIndex,
}

impl PermitQueues {
    fn find(&self, claim: &ClaimState, waiting: &PendingRequest) -> Option<u32> {
        let is = |number| self.all.get(number).is_some_and(|queue| queue.is_of(claim, waiting));
        let hash = hash(&waiting.limits, waiting.kind, &claim.within, alone(claim));
        self.by_needs.find(hash, is)
    }

    /// Adds a waiter to its queue.
    pub(super) fn join(&mut self, claim: &ClaimState, waiting: &PendingRequest) -> PermitQueueId {
        let number = self.find(claim, waiting).unwrap_or_else(|| {
            let queue = PermitQueue {
                limits: waiting.limits.clone(),
                kind: waiting.kind,
                within: claim.within.clone(),
                alone: alone(claim),
                positions: PositionSet::default(),
            };
            let hash = hash(&queue.limits, queue.kind, &queue.within, queue.alone);
            let number = self.all.add(queue);
            self.by_needs.insert(hash, number);
            number
        });
        if let Some(queue) = self.all.get_mut(number) {
            queue.positions.insert(waiting.position);
        }
        PermitQueueId(number)
    }

    /// Takes a waiter off its queue. Returns the next waiter if this was the first.
    pub(super) fn leave(
        &mut self,
        PermitQueueId(number): PermitQueueId,
        position: QueuePosition,
    ) -> Option<QueuePosition> {
        let queue = self.all.get_mut(number)?;
        let was_first = queue.positions.first() == Some(position);
        queue.positions.remove(position);
        let next = queue.positions.first();
        if next.is_none()
            && let Some(queue) = self.all.remove(number)
        {
            let hash = hash(&queue.limits, queue.kind, &queue.within, queue.alone);
            self.by_needs.remove(hash, number);
        }
        next.filter(|_| was_first)
    }

    /// Returns the first waiter of a queue.
    pub(super) fn first(&self, PermitQueueId(number): PermitQueueId) -> Option<QueuePosition> {
        self.all.get(number)?.positions.first()
    }

    /// Returns the first waiter that needs the same permits as this waiter.
    pub(super) fn first_like(&self, claim: &ClaimState, waiting: &PendingRequest) -> Option<QueuePosition> {
        self.all.get(self.find(claim, waiting)?)?.positions.first()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.len() == 0
    }
}
