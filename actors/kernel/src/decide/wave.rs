//! Broadcasts with more waiters than one commit should hold: their own commit stores them, and commits
//! after it wake all who waited then, so many at a time, first waiter first.
//!
//! Whatever else is to happen to one of them before its turn (its time is up, a signal comes) finds it
//! woken: it was woken by the broadcast's commit, and only its row does not say so yet. A failure stops
//! it where it is: it runs no more, as one that the broadcast has not found.

use super::draft::Draft;
use crate::effect::Refusal;
use crate::id::{Blob, EventName, ProcedureId, Seq};
use crate::record::Record;
use crate::waiters::Broadcast;

/// Broadcasts that may be under way at once: each keeps its payload in memory, so all of them
/// together stay below 256 MiB.
const WAVES: usize = 256;
/// Bytes of payloads that one commit stores at most: each of those that it wakes has its own copy.
const CHUNK_BYTES: usize = 4 << 20;

impl Draft<'_> {
    /// Wakes all who wait for an event, in this commit if they are few; gives how many they are.
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
            let text = format!("{WAVES} broadcasts still wake their waiters, which is the limit; send again later");
            return Err(Refusal::NotNow(text));
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
            self.deliver(*id, name.clone(), payload.clone(), None);
        }
        woken.len()
    }

    /// How many of those who wait for an event, and belong to no wave, run no more.
    fn stopping(&self, name: &EventName) -> usize {
        let waiters = &self.kernel.waiters;
        let families = waiters.failing().filter_map(|number| self.family(number));
        let members = families.flat_map(|family| &family.members);
        let stopping = members.filter(|row| !row.is_ended() && row.waits_for(name) && self.is_stopping(row));
        stopping.filter(|row| waiters.wave_of(row).is_none()).count()
    }

    /// How many of its waiters one commit wakes.
    fn chunk_of(&self, payload: &Blob) -> usize {
        let by_bytes = CHUNK_BYTES / payload.len().max(1);
        self.kernel.rules.bounds.wave.min(by_bytes).max(1)
    }

    /// Wakes the next of those who wait for a broadcast that is under way.
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
                self.deliver(id, broadcast.name.clone(), broadcast.payload.clone(), None);
            }
        }
        if is_last && !waiters.is_kept(seq) {
            self.close_with(Record::BroadcastOver(seq));
        }
    }

    /// Wakes one whom a broadcast under way is to wake, before its turn. Tells whether there was one.
    pub(super) fn wake_by_wave(&mut self, id: ProcedureId) -> bool {
        let Some(row) = self.row(id).filter(|row| !self.is_stopping(row)) else {
            return false;
        };
        let Some((_, broadcast)) = self.kernel.waiters.wave_of(row) else {
            return false;
        };
        self.deliver(id, broadcast.name.clone(), broadcast.payload.clone(), None);
        true
    }
}
