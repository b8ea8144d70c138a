//! Revival: reads the inputs that a call of user code needs. Examples are the value of a parked procedure, its
//! children's outcomes, or a signal. A bounded number of reads is under way. Calls are made in the order in which they
//! were decided, whichever read ends first.
//!
//! Reads that fall due together are done as one job: the read itself takes far less time than handing it to another
//! thread.

mod inputs;

use std::collections::VecDeque;

use actix::prelude::*;
use procession_kernel::{Kernel, ProcedureId, Seq, StageCall};
use rustc_hash::FxHashSet;

pub(super) use self::inputs::{CallInputs, InputRequest};
use crate::error::ReadError;
use crate::journal::Reader;

/// Groups of reads under way: half of the reader's places, so that queries get their turn.
const GROUPS: usize = 4;
/// The number of reads in one group. It is large enough that the hand-over costs each read little, and small enough
/// that the first read does not wait long for the last.
const GROUP: usize = 128;

/// The capacity that an empty queue keeps.
const KEPT: usize = 4 * GROUPS * GROUP;

/// A call whose read has not begun.
enum Queued {
    /// The stage that this commit started, and how many may follow it in its run. The rest is in the procedure's row, and
    /// taken from there when its read begins: a start may queue a million of these.
    Stage(ProcedureId, Seq, u32),
    /// Any other call, or a stage call that brings its value.
    Call(Box<StageCall>),
}

impl Queued {
    fn of(call: Box<StageCall>) -> Self {
        match call.run() {
            Some(run) if call.payload.is_none() => Self::Stage(call.id, run, call.ahead),
            Some(_) | None => Self::Call(call),
        }
    }

    const fn id(&self) -> ProcedureId {
        match self {
            Self::Stage(id, ..) => *id,
            Self::Call(call) => call.id,
        }
    }

    /// Returns the call if it is still out; a call that was stopped meanwhile needs no read.
    fn call(self, kernel: &Kernel) -> Option<StageCall> {
        match self {
            Self::Stage(id, run, ahead) => {
                let mut calls = kernel.calls_of(id).into_iter();
                let call = calls.find(|call| call.run() == Some(run))?;
                Some(StageCall { ahead, ..call })
            }
            Self::Call(call) => Some(*call),
        }
    }
}

/// Calls whose inputs were read, each with its inputs.
pub(in crate::supervisor) type Group = Vec<(StageCall, Result<CallInputs, ReadError>)>;

/// A group that was read. It is passed back to [`Revival::end`].
pub(in crate::supervisor) struct GroupRead {
    number: u64,
    group: Group,
}

/// A group whose read has begun.
enum Begun {
    /// The group is being read for these procedures.
    Reading(Vec<ProcedureId>),
    /// The group has been read, and waits for an earlier group.
    Ready(Group),
}

#[derive(Default)]
pub(super) struct Revival {
    queue: VecDeque<Queued>,
    under_way: VecDeque<Begun>,
    /// The number of groups that have left the front of `under_way`.
    gone: u64,
    message: ReadsDueState,
}

/// Whether a [`ReadsDue`] is under way. The first group begins only once all calls that fall due now are
/// queued, so that they share it.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum ReadsDueState {
    #[default]
    None,
    /// The caller must send itself a [`ReadsDue`].
    Wanted,
    Sent,
}

/// All calls that fell due together are queued, so their reads may begin.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::supervisor) struct ReadsDue;

impl Revival {
    /// Drops the calls whose reads have not begun.
    pub(super) fn clear(&mut self) {
        self.queue = VecDeque::new();
    }

    /// Returns how many calls wait for a read or are being read for, approximately.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.under_way.len() * GROUP
    }

    /// Reserves room for the calls of a start, because a long queue is copied when it grows.
    pub(super) fn reserve(&mut self, number: usize) {
        self.queue.reserve(number);
    }

    /// Queues a call for its read.
    pub(super) fn enqueue(&mut self, call: Box<StageCall>) {
        self.queue.push_back(Queued::of(call));
        if self.message == ReadsDueState::None {
            self.message = ReadsDueState::Wanted;
        }
    }

    /// Returns `true`, once, if the caller must send itself a [`ReadsDue`].
    pub(super) fn take_reads_due(&mut self) -> bool {
        let is_wanted = self.message == ReadsDueState::Wanted;
        if is_wanted {
            self.message = ReadsDueState::Sent;
        }
        is_wanted
    }

    /// Notes that the [`ReadsDue`] has arrived.
    pub(super) fn reads_due(&mut self) {
        self.message = ReadsDueState::None;
    }

    /// Takes the next group and its number, unless enough groups are under way. Names the calls that are not out any more,
    /// and need no read.
    pub(super) fn begin(
        &mut self,
        kernel: &Kernel,
        mut stopped: impl FnMut(ProcedureId),
    ) -> Option<(u64, Vec<StageCall>)> {
        if self.queue.is_empty() || self.under_way.len() >= GROUPS {
            return None;
        }
        let group = self.queue.drain(..self.queue.len().min(GROUP));
        let mut calls = Vec::with_capacity(group.len());
        for queued in group {
            let id = queued.id();
            match queued.call(kernel) {
                Some(call) => calls.push(call),
                None => stopped(id),
            }
        }
        if self.queue.is_empty() {
            // A start or a broadcast may have filled the queue far beyond its usual size.
            self.queue.shrink_to(KEPT);
        }
        let number = self.gone + self.under_way.len() as u64;
        self.under_way
            .push_back(Begun::Reading(calls.iter().map(|call| call.id).collect()));
        Some((number, calls))
    }

    /// Reads a group that was begun.
    pub(super) async fn read(
        reader: Reader,
        number: u64,
        group: Vec<StageCall>,
        requests: Vec<InputRequest>,
    ) -> GroupRead {
        let found = inputs::read(&reader, requests).await;
        let group = group.into_iter().zip(found).collect();
        GroupRead { number, group }
    }

    /// Notes that a group was read.
    pub(super) fn end(&mut self, read: GroupRead) {
        let GroupRead { number, group } = read;
        let place = usize::try_from(number - self.gone).ok();
        if let Some(place) = place.and_then(|place| self.under_way.get_mut(place)) {
            *place = Begun::Ready(group);
        }
    }

    /// Returns the ids of all procedures with a pending read, in one pass; callers check many ids at once.
    pub(super) fn waiting(&self) -> FxHashSet<ProcedureId> {
        let mut waiting: FxHashSet<ProcedureId> = self.queue.iter().map(Queued::id).collect();
        for begun in &self.under_way {
            match begun {
                Begun::Reading(ids) => waiting.extend(ids),
                Begun::Ready(group) => waiting.extend(group.iter().map(|(call, _)| call.id)),
            }
        }
        waiting
    }

    /// Takes the oldest group under way, if it has been read.
    pub(super) fn next_ready(&mut self) -> Option<Group> {
        match self.under_way.pop_front()? {
            Begun::Ready(group) => {
                self.gone += 1;
                Some(group)
            }
            reading @ Begun::Reading(_) => {
                self.under_way.push_front(reading);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
