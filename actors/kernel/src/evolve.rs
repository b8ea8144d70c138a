//! The only writer of the kernel's state, both live and at recovery. It folds records into the state, decides nothing,
//! and cannot fail.

use crate::families::arms;
use crate::family::{Family, Scope, deadlines};
use crate::id::{LimitKey, ProcedureId, Seq, Timestamp};
use crate::kernel::Kernel;
use crate::latch::{Latch, LatchState};
use crate::limit::Limit;
use crate::record::Record;
use crate::row::Row;
use crate::wait::{SignalEntry, WaitReason};

impl Kernel {
    /// Folds one record into the state.
    pub fn evolve(&mut self, record: &Record) {
        match record {
            Record::Row(row) => self.row_put(row.clone()),
            Record::Signal(id, number, entry, _) => self.signal_put(*id, *number, entry),
            Record::SignalDropped(id, number, _) => {
                if let Some(family) = self.families.get_mut(id.family) {
                    family.signals.remove(id.member, *number);
                }
            }
            Record::Key(key, entry) => {
                self.keys.insert(key.clone(), entry.clone());
            }
            Record::FamilyBegan(family) => {
                self.next_family = self.next_family.max(family + 1);
                self.families.get_or_begin(*family);
            }
            Record::FamilyEnded(family, _) => drop(self.family_ended(*family)),
            Record::Evicted(doomed) => {
                if let (Some(key), None) = (&doomed.key, doomed.key_until) {
                    self.keys.remove(key);
                }
            }
            Record::KeyExpired(key, ..) => {
                self.keys.remove(key);
            }
            Record::Audit(entry) => {
                self.next_audit = self.next_audit.max(entry.number + 1);
                self.audits.push_back(entry.number);
                if let Some(key) = &entry.key {
                    self.requests.insert(key.clone(), (**entry).clone());
                }
            }
            Record::AuditDropped(number) => {
                self.audits.retain(|kept| kept != number);
                self.requests.retain(|_, entry| entry.number != *number);
            }
            Record::Broadcast(seq, broadcast) => self.waiters.begin(*seq, broadcast),
            Record::BroadcastOver(seq) => self.waiters.end(*seq),
            Record::Pause(what, paused) => {
                if *paused {
                    self.pauses.insert(what.clone());
                } else {
                    self.pauses.remove(what);
                }
            }
            Record::User(write) => self.note_space(&write.space),
            Record::WakeFound(_) => self.found += 1,
            Record::Limit(key, limit) => {
                self.rates.set(key, *limit);
                self.limits.insert(key.clone(), *limit);
            }
            Record::RateWindow(key, window) => self.rates.put_window(key, window),
            Record::FamiliesReserved(below) => self.reserved = self.reserved.max(*below),
            Record::StackAsked(scope) => self.scope_put(*scope, Scope::Loading),
            Record::StackHeld(scope, stack, not_undone) => {
                let (stack, not_undone) = (stack.clone(), not_undone.clone());
                self.scope_put(
                    *scope,
                    Scope::Held {
                        stack,
                        not_undone,
                        out: true,
                    },
                );
            }
            Record::StackPopped(scope) => {
                if let Some(Scope::Held { stack, out, .. }) = self.scope_mut(*scope) {
                    stack.pop();
                    *out = false;
                }
            }
            Record::UndoOut(scope, is_out) => {
                if let Some(Scope::Held { out, .. }) = self.scope_mut(*scope) {
                    *out = *is_out;
                }
            }
            Record::GateUnmeetable(id, why) => {
                if let Some(family) = self.families.get_mut(id.family) {
                    family.gates.ruled(id.member, why.clone());
                }
            }
            Record::Late(_) => self.late += 1,
            Record::Disarmed(id) => {
                let own = self.row(*id).map_or([None, None], deadlines);
                // A live procedure whose timer goes missing is a lost wake, which the health check repairs. Only
                // stopped procedures may therefore be subtracted from `armed`.
                if self.is_stopped(*id) && self.disarmed.insert(*id) {
                    self.armed -= own_arms(self.row(*id));
                }
                for deadline in own.into_iter().flatten() {
                    self.timers.remove(&(deadline, *id));
                }
            }
            Record::Draining => self.draining = true,
            Record::Payload(..)
            | Record::Submitted(..)
            | Record::History(_)
            | Record::Labels(..)
            | Record::Labelled(..)
            | Record::FinishedRow(_)
            | Record::Output(..)
            | Record::HistoryDropped(..)
            | Record::FailureListed(_)
            | Record::FailureClosed(..)
            | Record::DueChanged(..)
            | Record::Archived(..)
            | Record::Started(..)
            | Record::Stopped(_) => {}
        }
    }

    /// Continues where an earlier engine left off: family numbers from here on are new.
    pub fn continue_from(&mut self, reserved: u64) {
        self.reserved = self.reserved.max(reserved);
        self.next_family = self.next_family.max(reserved);
    }

    /// Sets what limits allow that are not stored: those that the program sets when it starts.
    pub fn set_limits(&mut self, limits: impl IntoIterator<Item = (LimitKey, Limit)>) {
        for (key, limit) in limits {
            if !self.limits.contains_key(&key) {
                self.rates.set(&key, limit);
            }
        }
    }

    /// Continues the commit numbers, so that a revision names one commit of the store, whichever engine made it.
    pub fn continue_after(&mut self, seq: Seq) {
        self.seq = self.seq.max(seq);
    }

    /// Quarantines a family that cannot be loaded, as if it did not exist. A broadcast that should wake it is kept
    /// until the next start, which may be able to load the family.
    pub fn forget(&mut self, family: u64) {
        if let Some(family) = self.families.get(&family) {
            family.members.iter().for_each(|row| self.waiters.keep_for(row));
        }
        drop(self.family_ended(family));
    }

    /// Keeps every broadcast under way until the next start, even if no known waiter is left. An unreadable family may
    /// contain waiters.
    pub fn keep_broadcasts(&mut self) {
        self.waiters.keep();
    }

    pub(crate) fn row_put(&mut self, row: Box<Row>) {
        // Commits continue above every number written in a row. Otherwise a stage could be started under a number that
        // an earlier engine had already used, and a late report would match it.
        self.seq = self.seq.max(row.revision);
        let family = self.families.get_or_begin(row.id.family);
        let old = family.row(row.id.member);
        let was_in_flight = old.is_some_and(|old| old.in_flight.is_some());
        // A procedure that only goes from stage to stage is in none of the lists.
        if old.is_some_and(is_listed) || is_listed(&row) {
            self.waiters.follow(old, Some(&row));
            if let Some(asked) = old.and_then(asks_since) {
                self.asking.remove(&asked);
            }
            self.asking.extend(asks_since(&row));
            let were_armed = if self.disarmed.remove(&row.id) {
                0
            } else {
                own_arms(old)
            };
            self.armed = self.armed + own_arms(Some(&row)) - were_armed;
            for deadline in old.map_or([None, None], deadlines).into_iter().flatten() {
                self.timers.remove(&(deadline, row.id));
            }
            for deadline in deadlines(&row).into_iter().flatten() {
                self.timers.insert((deadline, row.id));
            }
            if row.in_flight.is_some_and(|in_flight| in_flight.alone) {
                self.alone = Some(row.id);
            } else if self.alone == Some(row.id) {
                self.alone = None;
            }
            if row.wait == Some(WaitReason::Suspect) {
                self.suspects.insert(row.id);
            } else {
                self.suspects.remove(&row.id);
            }
        }
        match (was_in_flight, row.in_flight.is_some()) {
            (false, true) => {
                self.in_flight += 1;
                family.in_flight += 1;
            }
            (true, false) => {
                self.in_flight -= 1;
                family.in_flight -= 1;
            }
            (true, true) | (false, false) => {}
        }
        family.put(row);
    }

    /// Removes a family together with its timers and counts, and returns it.
    pub(crate) fn family_ended(&mut self, number: u64) -> Option<Box<Family>> {
        let family = self.families.remove(number)?;
        for row in &family.members {
            for deadline in deadlines(row).into_iter().flatten() {
                self.timers.remove(&(deadline, row.id));
            }
            self.waiters.follow(Some(row), None);
            if let Some(asked) = asks_since(row) {
                self.asking.remove(&asked);
            }
            self.armed -= if self.disarmed.remove(&row.id) {
                0
            } else {
                own_arms(Some(row))
            };
            self.suspects.remove(&row.id);
            self.in_flight -= usize::from(row.in_flight.is_some());
            if self.alone == Some(row.id) {
                self.alone = None;
            }
        }
        Some(family)
    }

    fn signal_put(&mut self, id: ProcedureId, number: u32, entry: &SignalEntry) {
        if let Some(family) = self.families.get_mut(id.family) {
            family.signals.insert(id.member, number, entry.clone());
        }
    }

    fn scope_put(&mut self, scope: ProcedureId, state: Scope) {
        if let Some(family) = self.families.get_mut(scope.family) {
            family.scopes.insert(scope.member, state);
        }
    }

    fn scope_mut(&mut self, scope: ProcedureId) -> Option<&mut Scope> {
        self.families.get_mut(scope.family)?.scopes.get_mut(&scope.member)
    }
}

/// Returns `true` if one of the kernel's lists may name a procedure because of this row: it waits, has a deadline, fails, or
/// runs alone.
fn is_listed(row: &Row) -> bool {
    row.wait.is_some()
        || row.deadline.is_some()
        || row.is_failing()
        || row.in_flight.is_some_and(|in_flight| in_flight.alone)
}

fn asks_since(row: &Row) -> Option<(Timestamp, ProcedureId)> {
    let asks = !row.is_ended() && row.wait.as_ref().is_some_and(|wait| wait.question().is_some());
    asks.then_some((row.since, row.id))
}

fn own_arms(row: Option<&Row>) -> usize {
    row.map_or(0, |row| arms(row).count())
}

impl Family {
    fn put(&mut self, row: Box<Row>) {
        let old = self.row(row.id.member);
        let old_standing = old.map(LatchState::of);
        let old_live = old.is_some_and(|old| !old.is_over());
        match (old_live, row.is_over()) {
            (true, true) => self.live -= 1,
            (false, false) => self.live += 1,
            (true, false) | (false, true) => {}
        }
        // A member's row names its newest history entry, so a start learns the numbers from the rows alone.
        self.history = self.history.max(row.history);
        let standing = LatchState::of(&row);
        if old_standing != Some(standing) {
            self.count_child(&row, old_standing);
        }
        self.latches_follow(&row);
        if row.is_ended() {
            self.scopes.remove(&row.id.member);
        }
        if old_standing != Some(standing) && !self.gates.is_empty() {
            self.gates.moved(&self.members, row.id.member, old_standing, standing);
        }
        if !self.gates.is_empty() || row.closed_gate().is_some() {
            self.gates.put(&self.members, &row);
        }
        if row.wait == Some(WaitReason::Width) {
            self.held.insert(row.id.member);
        } else {
            self.held.remove(&row.id.member);
        }
        match self.members.get_mut(row.id.member as usize) {
            Some(place) => *place = row,
            None => self.born(row),
        }
    }

    fn count_child(&mut self, row: &Row, from: Option<LatchState>) {
        let Some(round) = self.round_of(row).cloned() else {
            return;
        };
        if let Some(latch) = self.latches.get_mut(&round.first) {
            latch.count(&round, row.id.member, from, LatchState::of(row));
        }
    }

    /// Keeps exactly the latches of the lists that the parent's row names.
    fn latches_follow(&mut self, row: &Row) {
        let old = self.row(row.id.member).map(|old| &*old.rounds).unwrap_or_default();
        if old.is_empty() && row.rounds.is_empty() {
            return;
        }
        let gone: Vec<u32> = old
            .iter()
            .filter(|round| !row.rounds.contains(round))
            .map(|round| round.first)
            .collect();
        for first in gone {
            self.latches.remove(&first);
        }
        for round in &row.rounds {
            self.latches.entry(round.first).or_insert_with(|| Latch::new(round));
        }
    }
}
