//! The kernel, with the changes of one decision laid over it.

mod small_map;
mod tally;

use std::cell::Cell;

use small_map::SmallMap;
use tally::Tally;

use super::signal::Sent;
use crate::decision::Decision;
use crate::effect::{
    AdmissionEffect, Answer, DispatchEffect, Effect, Immediate, LifecycleEffect, Refusal, RequestEffect,
    SpeculativeCall, StageCall,
};
use crate::event::Birth;
use crate::family::Family;
use crate::history::HistoryEntry;
use crate::id::{Blob, Kind, LimitKey, ProcedureId, RequestId, Seq, Timestamp};
use crate::kernel::{Kernel, KindRules};
use crate::label::{Labels, RowLabels};
use crate::latch::Latch;
use crate::lifecycle::ProcedureState;
use crate::outstanding::stage_of;
use crate::rate_window::RateWindow;
use crate::record::{Record, UserWrite};
use crate::row::{InFlight, Round, Row};
use crate::seldom::{Empty, Seldom};
use crate::wait::{PauseScope, WaitReason, Wake};

/// How many family numbers one reservation covers. One record is written per that many submissions, and a crash loses
/// at most that many numbers.
const RESERVATION: u64 = 1024;

pub(crate) struct Draft<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) now: Timestamp,
    /// The commit number of this decision, if it leaves anything for the disk.
    pub(super) seq: Seq,
    /// The family looked up last. Nearly all lookups of a decision are for the same one.
    at_hand: Cell<Option<(u64, &'a Family)>>,
    rows: SmallMap<ProcedureId, Box<Row>>,
    /// The newest history number of each family that gets entries.
    history: SmallMap<u64, u32>,
    records: Vec<Record>,
    /// Total size of the values and outputs among the records.
    value_bytes: usize,
    /// Records that must follow the rows.
    closing: Vec<Record>,
    admission: Vec<AdmissionEffect>,
    calls: Vec<SpeculativeCall>,
    effects: Vec<Effect>,
    next_family: u64,
    pub(super) next_suspect_taken: bool,
    /// The signal that the reporting stage has consumed.
    consumed: Option<u32>,
    /// The procedure whose stage reports, if its actor has the value as this decision leaves it.
    reporter: Option<ProcedureId>,
    /// What few decisions need. Creating and dropping its parts would cost each stage.
    rare: Seldom<Rare>,
}

/// What few decisions need: those on lists of children, rollbacks, rates, labels, pauses and signals.
#[derive(Default)]
struct Rare {
    /// The lists of children that this decision counts, by the id of their first child.
    tallies: SmallMap<ProcedureId, Tally>,
    /// Children whose gates this decision opens and that the width holds back. The kernel does not know them yet.
    held: SmallMap<ProcedureId, ()>,
    /// The scopes whose rollback this decision begins, and whether their first undo is out.
    rollbacks: SmallMap<ProcedureId, bool>,
    /// The windows of rates that this decision counts begins in.
    windows: Vec<(LimitKey, RateWindow)>,
    /// The labels that were recorded last, and their family.
    labelled: Option<(u64, Labels)>,
    /// The pause that an operator lifts in this very decision.
    resumed: Option<PauseScope>,
    /// The signals that this decision has sent.
    sent: Sent,
}

impl Empty for Rare {
    const EMPTY: &'static Self = &Self {
        tallies: SmallMap::new(),
        held: SmallMap::new(),
        rollbacks: SmallMap::new(),
        windows: Vec::new(),
        labelled: None,
        resumed: None,
        sent: Sent::new(),
    };
}

impl<'a> Draft<'a> {
    pub(crate) fn new(kernel: &'a Kernel, now: Timestamp) -> Self {
        Self {
            kernel,
            now,
            seq: kernel.seq.next(),
            at_hand: Cell::new(None),
            rows: SmallMap::new(),
            history: SmallMap::new(),
            records: Vec::new(),
            value_bytes: 0,
            closing: Vec::new(),
            admission: Vec::new(),
            calls: Vec::new(),
            effects: Vec::new(),
            next_family: kernel.next_family,
            next_suspect_taken: false,
            consumed: None,
            reporter: None,
            rare: Seldom::default(),
        }
    }

    /// Takes the room that the lists of the decision before had. In place, because moving a draft costs each stage.
    pub(super) fn take_room(&mut self) {
        (self.records, self.effects) = self.kernel.spare.take();
    }

    /// Returns the decision. The draft is empty afterwards; it is borrowed because moving it costs each stage.
    pub(super) fn finish(&mut self) -> Decision {
        if self.next_family > self.kernel.reserved {
            let below = self.next_family + RESERVATION;
            self.records.push(Record::FamiliesReserved(below));
        }
        self.record_windows();
        let rows = std::mem::take(&mut self.rows);
        rows.each_value(|row| self.finish_row(row));
        self.records.append(&mut self.closing);
        let immediate = Immediate {
            admission: std::mem::take(&mut self.admission),
            calls: std::mem::take(&mut self.calls),
        };
        let (records, effects) = (std::mem::take(&mut self.records), std::mem::take(&mut self.effects));
        Decision::new(self.now, records, self.value_bytes, immediate, effects)
    }

    fn finish_row(&mut self, mut row: Box<Row>) {
        row.revision = self.seq;
        row.settle_rare();
        let before = self.row_before(row.id);
        row.waits_after = self.waits_after(&row, before);
        // An invariant of the engine: nothing may be committed from a broken state.
        assert!(
            before.is_none_or(|old| old.state.may_become(row.state)),
            "an illegal transition of {}",
            row.id
        );
        self.records.push(Record::Row(row));
    }

    /// Returns the number that a waiter's row keeps of the moment in which its wait began.
    ///
    /// For an event it is the newest broadcast under way, because a procedure that begins to wait belongs to none of
    /// those. For a permit or a lock it is this commit: a start queues up in this order, whatever the clock did.
    fn waits_after(&self, row: &Row, before: Option<&Row>) -> Seq {
        match &row.wait {
            Some(wait @ WaitReason::Event(name, _)) => match before {
                Some(old) if old.wait.as_ref() == Some(wait) => row.waits_after,
                Some(_) | None => self.kernel.waiters.newest(name).unwrap_or_default(),
            },
            Some(wait) if wait.is_admission() => match before {
                Some(old) if old.wait.as_ref().is_some_and(WaitReason::is_admission) => row.waits_after,
                Some(_) | None => self.seq,
            },
            Some(_) | None => Seq::default(),
        }
    }

    // What few decisions need.

    /// Returns the signals that this decision has sent.
    pub(super) fn sent(&self) -> &Sent {
        &self.rare.sent
    }

    pub(super) fn sent_mut(&mut self) -> &mut Sent {
        &mut self.rare.sent
    }

    /// Returns the windows of rates that this decision counts begins in.
    pub(super) fn windows_mut(&mut self) -> &mut Vec<(LimitKey, RateWindow)> {
        &mut self.rare.windows
    }

    /// Takes these windows, if there are any.
    pub(super) fn take_windows(&mut self) -> Vec<(LimitKey, RateWindow)> {
        let rare = self.rare.if_any();
        rare.map(|rare| std::mem::take(&mut rare.windows)).unwrap_or_default()
    }

    /// Notes the pause that an operator lifts in this very decision.
    pub(super) fn resumed(&mut self, what: PauseScope) {
        self.rare.resumed = Some(what);
    }

    // Reading.

    pub(super) fn family(&self, number: u64) -> Option<&'a Family> {
        if let Some((known, family)) = self.at_hand.get()
            && known == number
        {
            return Some(family);
        }
        let family = self.kernel.families.get(&number)?;
        self.at_hand.set(Some((number, family)));
        Some(family)
    }

    /// Returns the rules of a kind, if it is registered.
    pub(super) fn rules_of(&self, kind: &Kind) -> Option<&'a KindRules> {
        self.kernel.kind(kind)
    }

    /// Returns the row as it was before this decision.
    pub(super) fn row_before(&self, id: ProcedureId) -> Option<&'a Row> {
        self.family(id.family)?.row(id.member)
    }

    /// Returns the row if this decision has changed it.
    pub(super) fn row_after(&self, id: ProcedureId) -> Option<&Row> {
        self.rows.get(id).map(|row| &**row)
    }

    /// Returns the row as this decision has it so far.
    pub(super) fn row(&self, id: ProcedureId) -> Option<&Row> {
        self.row_after(id).or_else(|| self.row_before(id))
    }

    /// Returns `true` if this decision leaves a member of the family that has not ended. Changed rows are visited only
    /// if they are enough to end the whole family, so that each of many ends in one decision costs the same.
    pub(super) fn has_live_members(&self, family: u64) -> bool {
        let mut live = self.family(family).map_or(0, |family| family.live);
        if live as usize > self.rows.len() {
            return true;
        }
        let of_family = ProcedureId::root(family)..=ProcedureId::new(family, u32::MAX);
        for (id, row) in self.rows.range(of_family) {
            let before = self.row_before(*id).is_some_and(|old| !old.is_over());
            match (before, row.is_over()) {
                (true, true) => live = live.saturating_sub(1),
                (false, false) => live += 1,
                (true, false) | (false, true) => {}
            }
        }
        live > 0
    }

    /// Returns `true` if more stages of a family are out than this decision changes rows, so that it must leave one out.
    /// It saves the search for one among many members.
    pub(super) fn leaves_stages_out(&self, family: &Family) -> bool {
        family.in_flight as usize > self.rows.len()
    }

    pub(super) fn parent(&self, row: &Row) -> Option<ProcedureId> {
        row.parent.map(|parent| ProcedureId::new(row.id.family, parent))
    }

    /// Returns the outermost failing member at or above this one, including changes of this decision. A member past
    /// its point of no return shields its descendants, which then roll back on their own.
    pub(crate) fn scope_of(&self, id: ProcedureId) -> Option<ProcedureId> {
        let mut scope = None;
        let mut at = self.row(id);
        while let Some(row) = at {
            if row.is_failing() {
                scope = Some(row.id);
            }
            if row.is_past_return() {
                break;
            }
            at = self.parent(row).and_then(|parent| self.row(parent));
        }
        scope
    }

    /// Returns `true` if a failure at or above a member stops it. A member past its point of no return shields itself
    /// and its descendants: it may end first.
    pub(crate) fn is_stopping(&self, row: &Row) -> bool {
        let mut at = Some(row);
        while let Some(row) = at {
            if row.is_failing() {
                return true;
            }
            if row.is_past_return() {
                return false;
            }
            at = self.parent(row).and_then(|parent| self.row(parent));
        }
        false
    }

    pub(super) fn is_stopped(&self, id: ProcedureId) -> bool {
        self.row(id).is_some_and(|row| self.is_stopping(row))
    }

    /// Returns `true` if an operator has paused a procedure, an ancestor, its kind, or everything.
    pub(crate) fn is_paused(&self, row: &Row) -> bool {
        let holds = |what: &PauseScope| self.kernel.pauses.contains(what) && self.rare.resumed.as_ref() != Some(what);
        if !self.kernel.pauses.is_empty() && (holds(&PauseScope::All) || holds(&PauseScope::Kind(row.kind.clone()))) {
            return true;
        }
        let mut at = Some(row);
        while let Some(row) = at {
            if row.rare().paused {
                return true;
            }
            at = self.parent(row).and_then(|parent| self.row(parent));
        }
        false
    }

    /// Returns `true` if this decision leaves anything for the disk.
    pub(super) fn leaves_records(&self) -> bool {
        !self.rows.is_empty() || self.records.iter().chain(&self.closing).any(Record::is_durable)
    }

    /// Counts the members of families that this decision deletes.
    pub(super) fn evicted_members(&self) -> u32 {
        let mut members = 0;
        for record in &self.records {
            if let Record::Evicted(doomed) = record {
                members += doomed.members;
            }
        }
        members
    }

    /// Returns the rows that this decision changes, each with its previous state.
    pub(super) fn changes(&self) -> impl Iterator<Item = (Option<&Row>, &Row)> {
        self.rows.iter().map(|(id, row)| (self.row_before(*id), &**row))
    }

    /// Returns the rows of a family that this decision changes, up to this member.
    pub(super) fn changed_rows(&self, family: u64, upto: u32) -> impl Iterator<Item = &Row> {
        let of_family = ProcedureId::root(family)..=ProcedureId::new(family, upto);
        self.rows.range(of_family).map(|(_, row)| &**row)
    }

    /// Returns `true` if the actor of a procedure has the value as this decision leaves it, and goes on.
    pub(super) fn goes_on_with_actor(&self, id: ProcedureId) -> bool {
        self.reporter == Some(id) && !self.effects.iter().any(|effect| stops(effect, id))
    }

    /// Returns what this decision tells the limiter so far.
    pub(super) fn told_to_limiter(&self) -> &[AdmissionEffect] {
        &self.admission
    }

    // Writing.

    /// Discards everything that this decision would do, after a dry run.
    pub(super) fn forget(&mut self) {
        self.rows.clear();
        self.rare = Seldom::default();
        self.records.clear();
        self.value_bytes = 0;
        self.closing.clear();
        self.admission.clear();
        self.calls.clear();
        self.effects.clear();
        self.next_family = self.kernel.next_family;
    }

    /// Takes a row out for changes; the caller puts it back.
    pub(super) fn take(&mut self, id: ProcedureId) -> Option<Box<Row>> {
        match self.rows.remove(id) {
            Some(row) => Some(row),
            None => self.family(id.family)?.members.get(id.member as usize).cloned(),
        }
    }

    pub(super) fn put(&mut self, row: Box<Row>) {
        self.recount(&row);
        self.rows.insert(row.id, row);
    }

    /// Returns the counts of a list of children, with every move that this decision has made so far.
    pub(super) fn latch(&mut self, family: u64, round: &Round) -> Latch {
        let first = ProcedureId::new(family, round.first);
        if let Some(tally) = self.rare.tallies.get(first) {
            return tally.latch().clone();
        }
        let known = self.family(family).and_then(|family| family.latches.get(&round.first));
        let mut tally = Tally::new(round.clone(), known.cloned());
        let last = ProcedureId::new(family, round.first.saturating_add(round.count.saturating_sub(1)));
        if round.count > 0 {
            for (id, row) in self.rows.range(first..=last) {
                tally.follow(self.row_before(*id), row);
            }
        }
        let latch = tally.latch().clone();
        self.rare.tallies.insert(first, tally);
        latch
    }

    /// Adds a child to those that the width holds back.
    pub(super) fn held_by_width(&mut self, id: ProcedureId) {
        self.rare.held.insert(id, ());
    }

    /// Returns the first child of a list that the width holds back since this decision.
    pub(super) fn first_held(&self, family: u64, round: &Round) -> Option<ProcedureId> {
        let first = ProcedureId::new(family, round.first);
        let last = ProcedureId::new(family, round.first.saturating_add(round.count.checked_sub(1)?));
        self.rare.held.range(first..=last).next().map(|(id, ())| *id)
    }

    /// Removes a child from those that the width holds back.
    pub(super) fn no_longer_held(&mut self, id: ProcedureId) {
        if let Some(rare) = self.rare.if_any() {
            rare.held.remove(id);
        }
    }

    /// Counts the change of one row, if the list of this child is counted.
    fn recount(&mut self, row: &Row) {
        if row.parent.is_none() || self.rare.tallies.is_empty() {
            return;
        }
        let before = self.row_before(row.id);
        let upto = ProcedureId::root(row.id.family)..=row.id;
        let tally = self.rare.tallies.last_mut(upto);
        if let Some(tally) = tally.filter(|tally| tally.contains(row.id.member)) {
            tally.follow(before, row);
        }
    }

    pub(super) fn change(&mut self, id: ProcedureId, change: impl FnOnce(&mut Row)) {
        if let Some(mut row) = self.take(id) {
            change(&mut row);
            self.put(row);
        }
    }

    /// Reserves space for many records, because growing a long list copies it.
    pub(super) fn expect_records(&mut self, number: usize) {
        self.records.reserve(number);
    }

    /// Reserves space for many effects.
    pub(super) fn expect_effects(&mut self, number: usize) {
        self.effects.reserve(number);
    }

    pub(super) fn record(&mut self, record: Record) {
        self.value_bytes += record.value_bytes();
        self.records.push(record);
    }

    /// Returns the scopes whose undo reports in this very decision.
    pub(super) fn reported_scopes(&self) -> Vec<ProcedureId> {
        let mut scopes = Vec::new();
        for record in &self.closing {
            if let Record::StackPopped(scope) | Record::UndoOut(scope, false) = record {
                scopes.push(*scope);
            }
        }
        scopes
    }

    /// Notes that this decision begins the rollback of a scope, and whether the first undo is out.
    pub(super) fn rollback_begun(&mut self, scope: ProcedureId, undo_out: bool) {
        self.rare.rollbacks.insert(scope, undo_out);
    }

    /// Returns `true` if this decision already begins the rollback of this scope: several moves of its members may lead
    /// to it.
    pub(super) fn begins_rollback(&self, scope: ProcedureId) -> bool {
        self.rare.rollbacks.get(scope).is_some()
    }

    /// Returns the scopes of a family whose first undo this very decision sends out, by member.
    pub(super) fn begun_undos(&self, family: u64) -> impl Iterator<Item = u32> {
        let of_family = ProcedureId::root(family)..=ProcedureId::new(family, u32::MAX);
        let begun = self.rare.rollbacks.range(of_family).filter(|(_, out)| **out);
        begun.map(|(scope, _)| scope.member)
    }

    /// Returns `true` if this decision already ends the family: several members may end in it.
    pub(super) fn ends_family(&self, number: u64) -> bool {
        let ends = |record: &Record| matches!(record, Record::FamilyEnded(family, _) if *family == number);
        self.closing.iter().any(ends)
    }

    /// Adds a record that must be applied after the rows.
    pub(super) fn close_with(&mut self, record: Record) {
        self.closing.push(record);
    }

    /// Notes that the actor of the procedure that reports has the value as this decision leaves it.
    pub(super) fn value_is_with_actor(&mut self, id: ProcedureId) {
        self.reporter = Some(id);
    }

    /// Keeps the actor of the procedure that reports, if it has its value: its undo follows at once. Otherwise the actor
    /// is stopped as decided, and the undo revives the procedure from the store.
    pub(super) fn keep_reporter(&mut self, id: ProcedureId) {
        if self.reporter == Some(id) {
            self.effects.retain(|effect| !stops(effect, id));
        }
    }

    pub(super) fn effect(&mut self, effect: impl Into<Effect>) {
        self.effects.push(effect.into());
    }

    /// Lets the call that was issued last, if it belongs to this procedure, run this many further stages.
    pub(super) fn let_run(&mut self, id: ProcedureId, stages: u32) {
        if let Some(Effect::Dispatch(DispatchEffect::Call(call))) = self.effects.last_mut()
            && call.id == id
        {
            call.ahead = stages;
        }
    }

    /// Issues a call that need not wait for the receipt.
    pub(super) fn speculate(&mut self, call: StageCall) {
        self.calls.push(SpeculativeCall::new(call));
    }

    /// Tells the limiter something, as soon as the decision is made.
    pub(super) fn tell_limiter(&mut self, effect: AdmissionEffect) {
        self.admission.push(effect);
    }

    /// Requests admission for a procedure.
    pub(super) fn request(&mut self, id: ProcedureId) {
        self.tell_limiter(AdmissionEffect::Ask(id));
    }

    pub(super) fn reply(&mut self, request: RequestId, answer: Answer) {
        self.effect(RequestEffect::Reply(request, answer));
    }

    pub(super) fn refuse(&mut self, request: RequestId, refusal: Refusal) {
        self.reply(request, Answer::Refused(refusal));
    }

    #[cold]
    pub(super) fn late(&mut self, id: ProcedureId) {
        self.records.push(Record::Late(id));
    }

    pub(super) fn write_user(&mut self, writes: Vec<UserWrite>) {
        self.records.extend(writes.into_iter().map(Record::User));
    }

    pub(super) fn next_history(&mut self, family: u64) -> u32 {
        let newest = self.history.get(family).copied();
        let newest = newest.unwrap_or_else(|| self.family(family).map_or(0, |family| family.history));
        self.history.insert(family, newest + 1);
        newest + 1
    }

    /// Returns how many history entries this decision adds to a family.
    pub(super) fn entries_added(&self, family: u64) -> usize {
        let before = self.family(family).map_or(0, |family| family.history);
        let newest = self.history.get(family).copied().unwrap_or(before);
        newest.saturating_sub(before) as usize
    }

    /// Returns the history entries that this decision adds to a family, oldest first.
    pub(super) fn added_entries(&self, family: u64) -> Vec<HistoryEntry> {
        let before = self.family(family).map_or(0, |family| family.history);
        let mut added = Vec::new();
        for record in &self.records {
            if let Record::History(entry) = record
                && entry.family == family
                && entry.number > before
            {
                added.push((**entry).clone());
            }
        }
        added
    }

    /// Returns the history entry that this decision has added to a family last.
    pub(super) fn newest_added_entry(&self, family: u64) -> Option<&HistoryEntry> {
        let newest = *self.history.get(family)?;
        self.records.iter().rev().find_map(|record| {
            let Record::History(entry) = record else { return None };
            (entry.family == family && entry.number == newest).then_some(&**entry)
        })
    }

    pub(super) fn next_family(&mut self) -> u64 {
        let number = self.next_family;
        self.next_family += 1;
        number
    }

    // Starting and parking.

    /// Lets the next stage of a procedure run after the commit, unless something holds it back: a drain, a pause, a
    /// missing lock or permit, or its repeat limit.
    pub(super) fn set_going(&mut self, row: &mut Row, payload: Option<Blob>) {
        if self.waits_at_repeat_limit(row) {
            // Counting restarts when an operator lets the procedure go on.
            row.same_stage = 0;
            self.park(row, ProcedureState::Runnable, WaitReason::RepeatLimit);
            return;
        }
        row.ready = match &row.wait {
            Some(WaitReason::Suspect) => row.ready,
            Some(wait) if wait.is_admission() => Some(row.ready.unwrap_or(row.since)),
            Some(_) | None => None,
        };
        row.since = self.now;
        row.in_flight = None;
        let goes = !self.kernel.draining && !self.is_paused(row) && row.is_admitted();
        row.state = match row.state {
            ProcedureState::Failed => ProcedureState::Failed,
            ProcedureState::Initializing if !goes => ProcedureState::Initializing,
            ProcedureState::Initializing
            | ProcedureState::Runnable
            | ProcedureState::Waiting
            | ProcedureState::WaitingTimeout
            | ProcedureState::RolledBack
            | ProcedureState::Success => ProcedureState::Runnable,
        };
        if goes {
            self.start(row, payload);
        } else {
            self.hold_back(row);
        }
    }

    /// Marks a stage as out, and issues its call. The mark is on disk before user code runs, because effects wait for
    /// the receipt; only a [speculative](SpeculativeCall) call may overtake it.
    fn start(&mut self, row: &mut Row, payload: Option<Blob>) {
        self.give_back_other_locks(row);
        row.wait = None;
        if row.out_of_time {
            row.deadline = None;
        }
        row.in_flight = Some(InFlight {
            run: self.seq,
            deaths: self.kernel.deaths,
            alone: false,
            counted_from: None,
        });
        if row.next_is_no_return.is_some() && row.rare().past_no_return.is_none() {
            row.rare_mut().past_no_return = row.next_is_no_return.clone();
        }
        self.advance_soon(row, payload);
    }

    fn hold_back(&mut self, row: &mut Row) {
        if row.wait == Some(WaitReason::Suspect) {
            // A suspect stays in doubt, and keeps what it holds.
        } else if self.kernel.draining {
            row.wait = Some(WaitReason::Queue);
        } else if self.is_paused(row) {
            row.wait = Some(WaitReason::Paused);
            self.give_back(row, false);
        } else {
            self.give_back(row, false);
            row.wait = Some(lacking(row));
            self.request(row.id);
        }
        self.effect(DispatchEffect::Stop(row.id));
    }

    /// Issues the call of the stage that the row says is out.
    pub(super) fn advance(&mut self, row: &Row, payload: Option<Blob>) {
        if let Some(call) = stage_of(row, self.kernel.deaths, payload) {
            self.effect(DispatchEffect::call(call));
        }
    }

    /// Parks a procedure: it gives up its actor and waits for `reason`.
    pub(super) fn park(&mut self, row: &mut Row, state: ProcedureState, reason: WaitReason) {
        self.give_back(row, false);
        self.park_holding(row, state, reason);
    }

    /// Parks a procedure that keeps its permits because its children run on them.
    pub(super) fn park_holding(&mut self, row: &mut Row, state: ProcedureState, reason: WaitReason) {
        self.give_back(row, true);
        row.state = state;
        row.since = self.now;
        row.ready = None;
        row.in_flight = None;
        if reason.deadline().is_some() {
            self.effect(LifecycleEffect::ArmTimer);
        }
        row.wait = Some(reason);
        self.effect(DispatchEffect::Stop(row.id));
    }

    /// Returns the labels of a newborn member for its row, and records them in an entry of its own.
    pub(super) fn store_labels(&mut self, id: ProcedureId, labels: Labels) -> RowLabels {
        if labels.is_empty() {
            return RowLabels::default();
        }
        self.record(Record::Labels(id, labels.clone()));
        RowLabels::in_entry(id.member, labels)
    }

    /// Records labels that a newborn member brings into the index of its family.
    pub(super) fn labelled(&mut self, family: u64, labels: &Labels) {
        // Children of one list often have the same labels of their own.
        if labels.is_empty() {
            return;
        }
        let known = self.rare.labelled.as_ref();
        if !known.is_some_and(|(of, last)| *of == family && last == labels) {
            self.rare.labelled = Some((family, labels.clone()));
            self.record(Record::Labelled(family, labels.clone()));
        }
    }

    /// Creates the row of a newborn procedure, without labels.
    pub(super) fn born(&mut self, id: ProcedureId, birth: &Birth) -> Box<Row> {
        let admission = &birth.admission;
        let granted = admission.is_granted();
        if let Some(claim) = admission.asked {
            self.tell_limiter(AdmissionEffect::Bind(claim, id));
        }
        // One text for all rows of a kind: less memory, and they are compared by address.
        let kind = self.kernel.kinds.get(&birth.kind).map_or(&birth.kind, |(kind, _)| kind);
        let mut row = Box::new(Row {
            revision: self.seq,
            on_failure: birth.on_failure,
            wait: admission.lacking.clone().map(WaitReason::from),
            limits: admission.limits.clone().into(),
            holds: granted && !admission.limits.is_empty(),
            hold: birth.hold,
            locks: birth.next_needs.locks.clone().into(),
            locks_for_life: birth.locks_for_life,
            next_is_no_return: birth.next_needs.next_is_no_return.as_deref().map(Box::from),
            expected: birth.next_needs.expected,
            is_pure: birth.next_needs.is_pure,
            priority: birth.priority,
            rare: birth.rare(),
            deadline: birth.timeout.map(|timeout| self.now.after(timeout)),
            ..Row::new(id, kind.clone(), birth.version, birth.stage.clone(), self.now)
        });
        row.name_stage_limits(&birth.next_needs.limits);
        if granted {
            row.stage_permits = !row.stage_limits.is_empty();
            row.lock_all(&birth.next_needs.locks, self.now);
            self.begin_in(&admission.limits);
            self.begin_in(&row.stage_limits);
        }
        row.note_size(birth.payload.len(), self.kernel.rules.bounds.payload, |_| None);
        row
    }

    /// Returns the oldest signal of this name that is kept for the reporting procedure, except the one that its stage
    /// has just consumed.
    pub(super) fn pending_signal(&self, id: ProcedureId, name: &str) -> Option<u32> {
        let kept = self.family(id.family)?.pending_signal(id.member, name, self.consumed);
        kept.or_else(|| self.sent().own(name))
    }

    /// Consumes the signal that the stage saw. Every commit after which the stage does not run again does this.
    pub(super) fn consume_wake(&mut self, row: &mut Row) {
        if let Some(Wake::Signal(name, number)) = row.wake.take() {
            self.consumed = Some(number);
            let entry = self
                .family(row.id.family)
                .and_then(|family| family.signals.get(row.id.member, number))
                .cloned();
            let most = self.keys_remembered(row);
            match entry {
                Some(mut entry) if entry.key.is_some() && most > 0 => {
                    entry.consumed = true;
                    entry.sent = None;
                    self.key_remembered(row.id, most);
                    self.record(Record::Signal(row.id, number, entry, Blob::default()));
                }
                Some(_) | None => self.record(Record::SignalDropped(row.id, number, name)),
            }
        }
    }
}

/// Returns `true` if the effect stops the actor of this procedure.
fn stops(effect: &Effect, id: ProcedureId) -> bool {
    matches!(effect, Effect::Dispatch(DispatchEffect::Stop(of)) if *of == id)
}

/// Returns one thing that the row lacks. Only the limiter knows which of them will be available last.
fn lacking(row: &Row) -> WaitReason {
    match (row.lacking_locks().next(), row.lacking_limits().next()) {
        (Some(need), _) => WaitReason::Lock(need.path.clone()),
        (None, Some(limit)) => WaitReason::Permit(limit.clone()),
        (None, None) => WaitReason::Queue,
    }
}
