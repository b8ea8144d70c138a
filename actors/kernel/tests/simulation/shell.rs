//! Everything around the kernel that may be late, lost or doubled: the store,
//! the stages and undos that are out, the limiter, the clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use procession_kernel::{
    AdmissionEffect, Answer, Claim, Commit, DispatchEffect, Effect, Epoch, Event, HistoryEntry, JoinRuling, Kernel,
    LifecycleEffect, ProcedureId, Receipt, Record, RequestEffect, RequestId, Scope, Seq, StageCall, StageOutcome,
    StageTask, Timestamp, WaitReason,
};

use super::desk::Desk;
use super::disk::Disk;
use super::draw::{limits, rules};
use super::{AHEAD, again, check, claims, graph};

/// A commit on its way to the disk, and what waits for it.
struct Pending {
    records: Vec<Record>,
    effects: Vec<Effect>,
    seq: Seq,
}

/// A rule that is out, and how many ended ones it saw.
#[derive(Clone, Copy)]
pub(crate) enum Judge {
    /// Of a parent, for the list that begins with this child.
    Join(ProcedureId, u32, u32),
    /// Of a child at its gate.
    Gate(ProcedureId, u32),
}

impl Judge {
    /// Returns what it reports.
    pub(crate) fn rules(self, ruling: JoinRuling) -> Event {
        match self {
            Self::Join(parent, first, seen) => Event::JoinRuled {
                parent,
                first,
                seen,
                ruling,
            },
            Self::Gate(id, seen) => Event::GateRuled { id, seen, ruling },
        }
    }
}

/// One engine, and what survives it.
pub(crate) struct Shell {
    pub(crate) kernel: Kernel,
    pub(crate) now: Timestamp,
    /// What is on disk.
    disk: Disk,
    /// What will be, once everything decided is.
    pub(crate) ahead: Disk,
    pending: VecDeque<Pending>,
    durable: Seq,
    pub(crate) running: BTreeMap<(ProcedureId, Seq), StageCall>,
    /// Undos that are out: scope and number of the entry.
    pub(crate) undos: Vec<(ProcedureId, u32)>,
    /// Rules that are out.
    pub(crate) judges: Vec<Judge>,
    pub(crate) loads: Vec<ProcedureId>,
    /// Those whose code is to clean up.
    pub(crate) cleanups: Vec<ProcedureId>,
    pub(crate) desk: Desk,
    /// Reports that were decided on, and may come once more.
    pub(crate) old: Vec<Event>,
    next_request: u64,
    pub(crate) answered: BTreeMap<RequestId, Answer>,
    /// Requests of this life.
    asked: BTreeSet<RequestId>,
    /// How many lives ended while an attempt was out: the procedure, its visit, its failed attempts.
    cut_off: BTreeMap<(ProcedureId, u32, u32), u32>,
    /// Wakes that were lost on purpose in this life.
    pub(crate) lost: u64,
    /// Why procedures waited, in short: what the histories have covered.
    pub(crate) waits: BTreeSet<String>,
    /// What happened, for whoever looks for the fault.
    pub(crate) log: Vec<String>,
}

impl Shell {
    /// Starts an engine on an empty disk.
    pub(crate) fn new(speculation: bool) -> Result<Self, String> {
        let mut shell = Self {
            kernel: Kernel::new(rules(speculation), Epoch(1), 0),
            now: Timestamp(0),
            disk: Disk::default(),
            ahead: Disk::default(),
            pending: VecDeque::new(),
            durable: Seq(0),
            running: BTreeMap::new(),
            undos: Vec::new(),
            judges: Vec::new(),
            loads: Vec::new(),
            cleanups: Vec::new(),
            desk: Desk::default(),
            old: Vec::new(),
            next_request: 0,
            answered: BTreeMap::new(),
            asked: BTreeSet::new(),
            cut_off: BTreeMap::new(),
            lost: 0,
            waits: BTreeSet::new(),
            log: Vec::new(),
        };
        shell.kernel.set_limits(limits());
        shell.start()?;
        Ok(shell)
    }

    /// Begins the next life from what is on disk.
    fn start(&mut self) -> Result<(), String> {
        // A life whose start was not on disk has called nobody.
        let called = self.disk.has_started(self.kernel.epoch());
        for row in self.disk.live().filter(|row| called && row.in_flight.is_some()) {
            *self.cut_off.entry((row.id, row.visit, row.attempt)).or_default() += 1;
        }
        self.ahead = self.disk.clone();
        self.kernel = self.disk.load(rules(self.kernel.rules().speculation));
        self.pending.clear();
        self.durable = self.kernel.seq();
        self.running.clear();
        self.undos.clear();
        self.judges.clear();
        self.loads.clear();
        self.cleanups.clear();
        self.asked.clear();
        self.lost = 0;
        self.restore()?;
        self.decide(Event::Recovered)?;
        Ok(())
    }

    /// Everything in memory is gone; this many of the pending commits had reached the disk.
    pub(crate) fn crash(&mut self, reached: usize) -> Result<(), String> {
        self.log.push(format!(
            "--- crash, {reached} of {} pending had reached the disk",
            self.pending.len()
        ));
        for pending in self.pending.drain(..).take(reached) {
            self.disk.commit(pending.seq, &pending.records)?;
        }
        self.disk.index_agrees()?;
        self.start()
    }

    /// Returns how many commits are on their way.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Decides, checks and applies an event. Tells whether it left anything for the disk.
    pub(crate) fn decide(&mut self, event: Event) -> Result<bool, String> {
        let seq = self.kernel.seq();
        self.decide_seen(event)?;
        Ok(self.kernel.seq() != seq)
    }

    /// Does so, and returns the effects that will leave.
    pub(crate) fn decide_seen(&mut self, event: Event) -> Result<Vec<Effect>, String> {
        self.log.push(format!("{event:?}"));
        self.remember(&event);
        let told = graph::Told::by(&event);
        let wave = if let Event::WaveDue(seq) = &event {
            Some(*seq)
        } else {
            None
        };
        let decision = self.kernel.decide(self.now, event);
        let records = decision.records().to_vec();
        check::before(&self.kernel, &records)?;
        graph::gates(&self.kernel, &records, &told)?;
        if let Some(seq) = wave {
            self.ahead.owed.are_owed(seq, &records)?;
        }
        let found = records.iter().filter(|record| matches!(record, Record::WakeFound(_)));
        if self.kernel.found() + found.count() as u64 > self.lost {
            return Err(format!("wakes were lost: {records:?}"));
        }
        for record in &records {
            if let Record::Row(row) = record
                && let Some(wait) = &row.wait
            {
                let name = format!("{wait:?}");
                self.waits.insert(name.split('(').next().unwrap_or_default().to_owned());
                if *wait == WaitReason::Poison {
                    // It runs again only by an operator, who has looked.
                    self.cut_off.remove(&(row.id, row.visit, row.attempt));
                }
            }
        }
        let started = check::started(&self.kernel, &records);
        let mut commit = Commit::new();
        let (durable, immediate) = self.kernel.apply(decision, &mut commit);
        self.ahead.commit(commit.seq(), &durable)?;
        check::after(&self.kernel, &self.ahead, &records)?;
        self.waits.extend(again::submitted(&mut self.ahead, &records)?);
        let rows = self.kernel.families().values().flat_map(|family| &family.members);
        claims::conflicts(rows.map(|row| &**row))?;
        check::may_start(&self.kernel, &started)?;
        // The limiter hears of it at once, the disk later. Some of the calls that need not wait do.
        immediate
            .admission
            .into_iter()
            .try_for_each(|effect| self.admit(effect))?;
        let mut early = Vec::new();
        for call in immediate.calls {
            if call.get().visit.is_multiple_of(3) {
                commit.defer(call);
            } else {
                early.push(call.into_call());
            }
        }
        let seq = commit.seq();
        let effects = self.released(commit)?;
        for call in early {
            check::goes_on(&effects, &call)?;
            self.waits.insert(AHEAD.to_owned());
            self.call(*call)?;
        }
        for effect in &effects {
            if let Some(call) = effect.call()
                && let Some(undone) = call.undone()
            {
                check::undo(&self.kernel, &self.ahead, call, undone)?;
            }
        }
        self.pending.push_back(Pending {
            records: durable,
            effects: effects.clone(),
            seq,
        });
        if seq <= self.durable && self.pending.len() == 1 {
            self.sync(1)?;
        }
        Ok(effects)
    }

    /// Opens a commit to check what will leave it, and that no receipt older than its own opens it. The effects still
    /// wait for [`Self::sync`].
    fn released(&self, commit: Commit) -> Result<Vec<Effect>, String> {
        let (epoch, seq) = (self.kernel.epoch(), commit.seq());
        let mut commit = commit;
        for older in [self.durable, Seq(seq.0.saturating_sub(1))] {
            if older < seq {
                commit = match commit.release(&Receipt::new(epoch, older)) {
                    Err(commit) => commit,
                    Ok(effects) => return Err(format!("{effects:?} left without a receipt")),
                };
            }
        }
        commit
            .release(&Receipt::new(epoch, seq))
            .map_err(|_| "a proved commit is not released".to_owned())
    }

    /// A yielded stage is out under its old number: it may report again.
    fn remember(&mut self, event: &Event) {
        self.asked.extend(asker(event));
        if let Event::StageEnded(report) = event
            && report.outcome != StageOutcome::Yield
        {
            self.old.push(event.clone());
        }
    }

    /// Brings this many of the pending commits to the disk, and lets their effects go.
    pub(crate) fn sync(&mut self, commits: usize) -> Result<(), String> {
        for _ in 0..commits {
            let Some(pending) = self.pending.pop_front() else {
                return Ok(());
            };
            self.disk.commit(pending.seq, &pending.records)?;
            claims::conflicts(self.disk.live())?;
            self.durable = pending.seq;
            check::calls_are_not_stopped(&pending.effects)?;
            pending.effects.into_iter().try_for_each(|effect| self.act(effect))?;
        }
        Ok(())
    }

    fn act(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::Dispatch(effect) => self.dispatch(effect),
            Effect::Requests(effect) => self.answer(effect),
            Effect::Lifecycle(LifecycleEffect::ArmTimer) => Ok(()),
        }
    }

    fn dispatch(&mut self, effect: DispatchEffect) -> Result<(), String> {
        match effect {
            DispatchEffect::Call(call) => return self.call(*call),
            DispatchEffect::LoadStack(scope) => self.loads.push(scope),
            DispatchEffect::Stop(_) => {}
        }
        Ok(())
    }

    fn call(&mut self, call: StageCall) -> Result<(), String> {
        match &call.task {
            StageTask::Execute { run, repeated, .. } => {
                let (id, run) = (call.id, *run);
                let cut_off = self.cut_off.get(&(id, call.visit, call.attempt - 1)).copied();
                if *repeated != cut_off.unwrap_or_default() {
                    return Err(format!("{call:?} was cut off {cut_off:?} times"));
                }
                let in_flight = self.kernel.row(id).and_then(|row| row.in_flight);
                // An operator may have ended it meanwhile; then its report is late.
                if in_flight.is_some_and(|in_flight| in_flight.run != run) {
                    return Err(format!("{call:?} is not what the row says: {in_flight:?}"));
                }
                if let Some(twice) = self.running.insert((id, run), call) {
                    return Err(format!("{twice:?} is out twice"));
                }
            }
            StageTask::Undo { scope, number, .. } => self.undos.push((*scope, *number)),
            StageTask::Join(round) => {
                let rows = self.disk.members(call.id.family);
                let seen = rows
                    .filter(|row| round.contains(row.id.member) && row.is_ended())
                    .count();
                let seen = u32::try_from(seen).unwrap_or(0);
                self.judges.push(Judge::Join(call.id, round.first, seen));
            }
            StageTask::Gate => {
                let rows = self.disk.members(call.id.family);
                let seen = rows.filter(|row| call.before.contains(&row.id) && row.is_ended());
                let seen = u32::try_from(seen.count()).unwrap_or(0);
                if seen == 0 {
                    return Err(format!("{call:?} asks about siblings of which none has ended"));
                }
                self.judges.push(Judge::Gate(call.id, seen));
            }
            StageTask::CleanUp => self.cleanups.push(call.id),
        }
        Ok(())
    }

    fn admit(&mut self, effect: AdmissionEffect) -> Result<(), String> {
        self.log.push(format!("  {effect:?}"));
        match effect {
            AdmissionEffect::Bind(claim, id) => {
                self.desk.bind(Claim::first(claim), id);
                Ok(())
            }
            AdmissionEffect::Ask(id) => self.ask(id),
            AdmissionEffect::Release(id) => self.release(id),
            AdmissionEffect::GiveBack(id, needs) => self.change(id, |limiter, claim| limiter.give_back(claim, &needs)),
            AdmissionEffect::Cancel(id) => self.change(id, |limiter, claim| limiter.cancel(claim)),
            AdmissionEffect::Keep(id, needs) => self.change(id, |limiter, claim| limiter.keep(claim, &needs)),
            AdmissionEffect::SetPriority(id, priority) => {
                self.change(id, |limiter, claim| limiter.set_priority(claim, priority))
            }
            AdmissionEffect::SetLimit(key, limit) => self.capacity(key, limit),
            // No family of the histories is quarantined, so none is discharged.
            AdmissionEffect::ReleaseFamily(_) => Ok(()),
        }
    }

    fn answer(&mut self, effect: RequestEffect) -> Result<(), String> {
        match effect {
            RequestEffect::Reply(request, answer) => {
                if self.answered.insert(request, answer).is_some() {
                    return Err(format!("{request:?} is answered twice"));
                }
            }
            RequestEffect::Ended(ended) => {
                let row = self.ahead.rows.get(&ended.id);
                if !row.is_some_and(|row| row.is_ended()) {
                    return Err(format!("{ended:?} is told, and its row says otherwise"));
                }
            }
            RequestEffect::Operated(_) | RequestEffect::Discharged(_) => {}
        }
        Ok(())
    }

    /// Tells whether no message is on its way to the limiter or from it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.pending.is_empty() && self.desk.words.is_empty()
    }

    /// Returns the history of a family as the store has it now.
    pub(crate) fn stack(&self, family: u64) -> Vec<HistoryEntry> {
        self.disk.of_family(family).cloned().collect()
    }

    /// Returns the number of the next request.
    pub(crate) const fn request_id(&mut self) -> RequestId {
        self.next_request += 1;
        RequestId(self.next_request)
    }

    /// Checks that every request of this life has been answered, with nothing on its way.
    pub(crate) fn all_are_answered(&self) -> Result<(), String> {
        match self.asked.iter().find(|request| !self.answered.contains_key(request)) {
            Some(request) => Err(format!("{request:?} was never answered")),
            None => Ok(()),
        }
    }

    /// With every commit on disk, each stage and undo that counts as out is out.
    pub(crate) fn what_is_out(&self) -> Result<(), String> {
        for family in self.kernel.families().values() {
            for row in &family.members {
                if let Some(in_flight) = row.in_flight
                    && !self.running.contains_key(&(row.id, in_flight.run))
                {
                    return Err(format!("a stage of {} counts as out, and nobody runs it", row.id));
                }
            }
            for (member, scope) in &family.scopes {
                let Some(id) = family.row(*member).map(|row| row.id) else {
                    continue;
                };
                // One within another that rolls back is left to that.
                let is_outermost = family.scope_of(*member) == Some(id);
                let is_out = match scope {
                    Scope::Loading => self.loads.contains(&id),
                    Scope::Held { out: true, .. } => self.undos.iter().any(|(scope, _)| *scope == id),
                    Scope::Held { out: false, .. } => true,
                };
                if is_outermost && !is_out {
                    return Err(format!("the rollback of {id} counts as under way: {scope:?}"));
                }
            }
        }
        Ok(())
    }
}

/// Returns who must be answered.
fn asker(event: &Event) -> Option<RequestId> {
    match event {
        Event::Submitted(request, _)
        | Event::Signalled(request, _)
        | Event::Broadcast { request, .. }
        | Event::Written(request, _)
        | Event::Requested(request, ..)
        | Event::Acknowledged(request, _)
        | Event::DrainEnded(request) => Some(*request),
        Event::StageEnded(_)
        | Event::UndoEnded(_)
        | Event::StackLoaded(..)
        | Event::JoinRuled { .. }
        | Event::GateRuled { .. }
        | Event::TimerDue(_)
        | Event::Granted(_)
        | Event::EvictionDue(_)
        | Event::WaveDue(_)
        | Event::CleanedUp(_)
        | Event::HealthCheckDue { .. }
        | Event::DrainBegan
        | Event::ClockSetBack
        | Event::FamilyForgotten
        | Event::Recovered => None,
    }
}
