//! Broadcasts with more waiters than one commit should hold. Their own commit stores them; later commits wake all
//! waiters of that moment, a chunk at a time, first waiter first.
//!
//! Any other event for a waiter before its turn, such as a timer or a signal, finds it woken: the broadcast's commit
//! woke it, and only its row does not say so yet. A failure stops a waiter where it is. It runs no more stages, as if
//! the broadcast had not found it.

use super::draft::Draft;
use crate::effect::{NotNow, Refusal};
use crate::id::{Blob, EventName, ProcedureId, Seq};
use crate::record::Record;
use crate::wait::SentSignal;
use crate::waiters::Broadcast;

/// Largest number of broadcasts under way. Each keeps its payload in memory, so together they stay below 256 MiB.
const WAVES: usize = 256;
/// Bytes of payloads that one commit stores at most, since each woken waiter gets its own copy.
const CHUNK_BYTES: usize = 4 << 20;

impl Draft<'_> {
    /// Wakes all waiters of an event, in this commit if they are few. Returns how many there are.
    pub(super) fn wake_all(&mut self, name: &EventName, payload: &Blob) -> Result<usize, Refusal> {
        let waiters = &self.kernel.waiters;
        let all = waiters.unclaimed(name);
        if waiters.newest(name).is_none() && all <= self.chunk_of(payload) {
            return Ok(self.wake_now(name, payload));
        }
        let woken = all.saturating_sub(self.stopping(name));
        if woken == 0 {
            return Ok(0);
        }
        if waiters.waves() >= WAVES {
            let text =
                format!("{WAVES} broadcasts are still waking their waiters, which is the limit; send again later");
            return Err(Refusal::NotNow(NotNow::Full, text));
        }
        let broadcast = Broadcast {
            name: name.clone(),
            payload: payload.clone(),
        };
        self.record(Record::Broadcast(self.seq, Box::new(broadcast)));
        Ok(woken)
    }

    fn wake_now(&mut self, name: &EventName, payload: &Blob) -> usize {
        let waiting = self.kernel.waiters.of(name).filter(|id| !self.is_stopped(*id));
        let mut woken: Vec<_> = waiting
            .filter_map(|id| self.row(id).map(|row| (row.since, id)))
            .collect();
        woken.sort_unstable();
        for (_, id) in &woken {
            self.deliver(wake(*id, name, payload));
        }
        woken.len()
    }

    /// Counts the waiters of an event that belong to no wave and are stopped by a failure.
    fn stopping(&self, name: &EventName) -> usize {
        let waiters = &self.kernel.waiters;
        let families = waiters.failing().filter_map(|number| self.family(number));
        let members = families.flat_map(|family| &family.members);
        let stopping = members.filter(|row| !row.is_ended() && row.waits_for(name) && self.is_stopping(row));
        stopping.filter(|row| waiters.wave_of(row).is_none()).count()
    }

    /// Returns how many waiters one commit wakes.
    fn chunk_of(&self, payload: &Blob) -> usize {
        let by_bytes = CHUNK_BYTES / payload.len().max(1);
        self.kernel.rules.bounds.wave.min(by_bytes).max(1)
    }

    /// Wakes the next waiters of a broadcast under way.
    pub(super) fn wave_due(&mut self, seq: Seq) {
        if self.kernel.draining {
            return;
        }
        let waiters = &self.kernel.waiters;
        let Some(payload) = waiters.payload(seq) else { return };
        let Some((broadcast, chunk, is_last)) = waiters.chunk(seq, self.chunk_of(payload)) else {
            return;
        };
        for id in chunk {
            if self.is_stopped(id) {
                self.change(id, |row| row.waits_after = seq);
            } else {
                self.deliver(wake(id, &broadcast.name, &broadcast.payload));
            }
        }
        if is_last && !waiters.is_kept(seq) {
            self.close_with(Record::BroadcastOver(seq));
        }
    }

    /// Delivers a broadcast under way to a waiter before its turn. Returns `true` if there was one to deliver.
    pub(super) fn wake_by_wave(&mut self, id: ProcedureId) -> bool {
        let Some(row) = self.row(id).filter(|row| !self.is_stopping(row)) else {
            return false;
        };
        let Some((_, broadcast)) = self.kernel.waiters.wave_of(row) else {
            return false;
        };
        self.deliver(wake(id, &broadcast.name, &broadcast.payload));
        true
    }
}

/// Returns the signal by which a broadcast wakes one waiter.
fn wake(to: ProcedureId, name: &EventName, payload: &Blob) -> SentSignal {
    SentSignal {
        to,
        name: name.clone(),
        payload: payload.clone(),
        key: None,
        last: false,
    }
}
