//! Reports of stages, undos, stacks and join rules, drawn at random; some of them twice.

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, EarlierStage, EndSignal, Event, EventName, JoinRuling, Key, NextStageNeeds, ProcedureId, SentSignal,
    Seq, StageCall, StageEffects, StageEnded, StageOutcome, Submission, Timestamp, UndoEnded, UserWrite,
};

use super::RUN;
use super::draw::{NOTE, delay_at, stage};
use super::graph;
use super::play::Play;

/// A note, now and then; rarely one that is too large.
fn note_at(now: Timestamp, id: ProcedureId) -> Option<Blob> {
    let chosen = now.0 / 1_000_000 + id.family + u64::from(id.member);
    match chosen % 32 {
        0 => Some(Blob::from(vec![0; NOTE + 1])),
        1..8 => Some(Blob::from(vec![1; NOTE])),
        _ => None,
    }
}

impl Play {
    pub(crate) fn report_one(&mut self) -> Result<(), String> {
        let outs: Vec<_> = self.shell.running.keys().copied().collect();
        let Some(out) = self.draw.pick(&outs) else {
            return Ok(());
        };
        let call = self.shell.running.remove(&out);
        let mut outcome = if self.windy && self.draw.percent(50) {
            let timeout = self.draw.percent(30).then(|| Duration::from_secs(self.draw.below(10)));
            StageOutcome::Wait(self.draw.event(), timeout, stage(1 + self.draw.below(200)))
        } else {
            self.draw.outcome(self.shell.now)
        };
        if self.graphs {
            graph::add(&mut outcome, out.1.0 ^ out.0.family << 20, self.custom);
        }
        self.report(out, call, outcome)
    }

    /// Reports a stage; or a run, if its call allows one.
    pub(crate) fn report(
        &mut self,
        (id, run): (ProcedureId, Seq),
        call: Option<StageCall>,
        outcome: StageOutcome,
    ) -> Result<(), String> {
        let earlier = self.earlier(call.map_or(0, |call| call.ahead));
        let write = UserWrite {
            space: Key::from("rows"),
            key: vec![1],
            value: None,
        };
        let (epoch, now) = (self.shell.kernel.epoch(), self.shell.now);
        let report = StageEnded {
            payload: self.draw.percent(30).then(|| self.draw.value()),
            replaced: self.value_of(id),
            effects: StageEffects {
                writes: vec![write],
                submitted: self.submissions(id),
                signals: self.signals(),
                children: self.collected(&outcome),
            }
            .boxed(),
            next_needs: self.next_needs(&outcome),
            earlier,
            // By the time and the id alone, so that nothing else is drawn otherwise than without them.
            keep_places: now.0.is_multiple_of(2_000_000),
            note: note_at(now, id),
            nothing_to_undo: (now.0 / 1_000_000 + u64::from(id.member)).is_multiple_of(5),
            ..StageEnded::new(id, run, epoch, now, outcome)
        };
        self.shell.report(report)
    }

    /// Draws the stages of a run before its last one, at most so many.
    fn earlier(&mut self, most: u32) -> Vec<EarlierStage> {
        let mut earlier = Vec::new();
        while earlier.len() < most as usize && self.draw.percent(60) {
            self.shell.waits.insert(RUN.to_owned());
            earlier.push(EarlierStage {
                begun: self.shell.now,
                ended: self.shell.now,
                next: stage(1 + self.draw.below(200)),
                nothing_to_undo: self.draw.percent(20),
            });
        }
        earlier
    }

    /// Returns the value that a report replaces, if it brings another.
    fn value_of(&self, id: ProcedureId) -> Option<Blob> {
        let size = self.shell.ahead.payloads.get(&id);
        size.map(|size| Blob::from(vec![0; *size]))
    }

    /// Draws a submission of a stage. Every other one tells the stage's procedure when it has ended, by the time and the
    /// id alone, as above.
    fn submissions(&mut self, id: ProcedureId) -> Vec<Submission> {
        let tells = (self.shell.now.0 / 1_000_000 + u64::from(id.member)).is_multiple_of(2);
        let end_signal = tells.then(|| {
            let (name, payload) = (EventName::from("go"), Blob::default());
            Box::new(EndSignal { to: id, name, payload })
        });
        let births = self.births(3).into_iter();
        let told = births.map(|birth| Birth {
            end_signal: end_signal.clone(),
            ..birth
        });
        told.map(Submission::from).collect()
    }

    /// Draws one birth, this often in a hundred.
    fn births(&mut self, percent: u64) -> Vec<Birth> {
        (0..u64::from(self.draw.percent(percent)))
            .map(|_| self.draw.birth())
            .collect()
    }

    /// Signals to members of any family, the sender among them; some have ended, and some are full.
    fn signals(&mut self) -> Vec<SentSignal> {
        let mut signals = Vec::new();
        while signals.len() < 4 && self.draw.percent(25) {
            if let Some(to) = self.member(|_| true) {
                signals.push(self.draw.signal(to));
            }
        }
        signals
    }

    /// Children that were collected one by one; where they are not allowed, too.
    fn collected(&mut self, outcome: &StageOutcome) -> Vec<Birth> {
        let waits_for_them = matches!(
            outcome,
            StageOutcome::Next(_) | StageOutcome::Done(_) | StageOutcome::Spawn { .. }
        );
        self.births(if waits_for_them { 12 } else { 1 })
    }

    fn next_needs(&mut self, outcome: &StageOutcome) -> NextStageNeeds {
        if matches!(outcome, StageOutcome::Done(_) | StageOutcome::GiveUp(_)) {
            return NextStageNeeds::default();
        }
        self.draw.next_needs()
    }

    pub(crate) fn undo_one(&mut self) -> Result<(), String> {
        if self.shell.undos.is_empty() {
            return Ok(());
        }
        let undo = self.shell.undos.remove(self.draw.place(self.shell.undos.len()));
        let outcome = if self.draw.percent(70) {
            Ok(())
        } else {
            Err(format!("stuck at {}", self.shell.now.0))
        };
        self.undone(undo, outcome)
    }

    pub(crate) fn undone(
        &mut self,
        (scope, number): (ProcedureId, u32),
        outcome: Result<(), String>,
    ) -> Result<(), String> {
        let chosen = outcome.is_err() && self.shell.now.0.is_multiple_of(3);
        let entry = self.shell.ahead.history.get(&(scope.family, number));
        let member = entry.map(|entry| ProcedureId::new(scope.family, entry.member));
        let report = UndoEnded {
            retry_after: chosen.then(|| delay_at(self.shell.now)),
            payload: self.draw.percent(20).then(|| self.draw.value()),
            replaced: member.and_then(|member| self.value_of(member)),
            // Undos fail with one text alone here, so none fails for its note.
            note: note_at(self.shell.now, scope).filter(|note| note.len() <= NOTE),
            ..UndoEnded::new(scope, number, self.shell.now, outcome)
        };
        let report = Event::UndoEnded(Box::new(report));
        self.shell.decide(report).map(drop)
    }

    pub(crate) fn load_one(&mut self) -> Result<(), String> {
        let Some(scope) = self.shell.loads.pop() else {
            return Ok(());
        };
        let entries = self.shell.stack(scope.family);
        self.shell.decide(Event::StackLoaded(scope, entries)).map(drop)
    }

    pub(crate) fn rule_one(&mut self) -> Result<(), String> {
        if self.shell.judges.is_empty() {
            return Ok(());
        }
        let judge = self.shell.judges.remove(self.draw.place(self.shell.judges.len()));
        let ruling = match self.draw.below(4) {
            0 => JoinRuling::Unmeetable("no".to_owned()),
            1 => JoinRuling::Met,
            _ => JoinRuling::Pending,
        };
        self.shell.decide(judge.rules(ruling)).map(drop)
    }

    pub(crate) fn clean_up_one(&mut self) -> Result<(), String> {
        match self.shell.cleanups.pop() {
            Some(id) => self.shell.decide(Event::CleanedUp(id)).map(drop),
            None => Ok(()),
        }
    }

    /// A report that was given before, in this life or an earlier one, comes again, and must change nothing.
    pub(crate) fn old_again(&mut self) -> Result<(), String> {
        let Some(event) = self.draw.pick(&self.shell.old) else {
            return Ok(());
        };
        let late = self.shell.kernel.late();
        if self.shell.decide(event)? || self.shell.kernel.late() != late + 1 {
            return Err("a report that came twice changed something, or was not counted".to_owned());
        }
        Ok(())
    }
}
