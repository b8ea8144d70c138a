//! Reports of stages, undos, stacks and join rules, drawn at random; some of them twice.

use procession_kernel::{
    Advance, Birth, Blob, Event, JoinRuling, Key, StageEnded, StageOutcome, Undo, UndoEnded, UserWrite,
};

use super::play::Play;

impl Play {
    pub(crate) fn report_one(&mut self) -> Result<(), String> {
        let outs: Vec<_> = self.shell.running.keys().copied().collect();
        let Some(out) = self.draw.pick(&outs) else {
            return Ok(());
        };
        let Some(advance) = self.shell.running.remove(&out) else {
            return Ok(());
        };
        let outcome = self.draw.outcome(self.shell.now);
        self.report(&advance, outcome)
    }

    pub(crate) fn report(&mut self, advance: &Advance, mut outcome: StageOutcome) -> Result<(), String> {
        let submits: Vec<Birth> = (0..self.draw.below(100) / 97).map(|_| self.draw.birth()).collect();
        let detached: Vec<Birth> = if let StageOutcome::Spawn { births, .. } = &outcome {
            births.iter().filter(|birth| birth.detached).cloned().collect()
        } else {
            Vec::new()
        };
        let roots: Vec<&Birth> = submits.iter().chain(&detached).collect();
        let (tickets, admissions) = self.shell.admit(&roots);
        let mut admissions = admissions.into_iter();
        let submitted = submits.iter().cloned().zip(admissions.by_ref()).collect();
        if let StageOutcome::Spawn {
            admissions: of_detached,
            ..
        } = &mut outcome
        {
            *of_detached = admissions.collect();
        }
        let write = UserWrite {
            space: Key::from("rows"),
            key: vec![1],
            value: None,
        };
        let report = Event::StageEnded(Box::new(StageEnded {
            id: advance.id,
            run: advance.run,
            epoch: self.shell.kernel.epoch(),
            begun: self.shell.now,
            ended: self.shell.now,
            outcome,
            payload: self.draw.percent(30).then(|| Blob::from(vec![2])),
            writes: vec![write],
            submitted,
        }));
        self.remember(&report);
        self.shell.decide_births(tickets, report)
    }

    pub(crate) fn undo_one(&mut self) -> Result<(), String> {
        if self.shell.undos.is_empty() {
            return Ok(());
        }
        let undo = self.shell.undos.remove(self.draw.place(self.shell.undos.len()));
        let outcome = if self.draw.percent(70) {
            Ok(())
        } else {
            Err("stuck".to_owned())
        };
        self.undone(&undo, outcome)
    }

    pub(crate) fn undone(&mut self, undo: &Undo, outcome: Result<(), String>) -> Result<(), String> {
        let report = Event::UndoEnded(Box::new(UndoEnded {
            scope: undo.scope,
            number: undo.number,
            begun: self.shell.now,
            ended: self.shell.now,
            outcome,
            payload: None,
            writes: Vec::new(),
        }));
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
        let (parent, first, seen) = self.shell.judges.remove(self.draw.place(self.shell.judges.len()));
        let ruling = match self.draw.below(4) {
            0 => JoinRuling::Unmeetable("no".to_owned()),
            1 => JoinRuling::Met,
            _ => JoinRuling::Pending,
        };
        self.shell
            .decide(Event::JoinRuled {
                parent,
                first,
                seen,
                ruling,
            })
            .map(drop)
    }

    /// A report that was given before, in this life or an earlier one, comes again, and must change nothing.
    pub(crate) fn old_again(&mut self) -> Result<(), String> {
        let Some(event) = self.draw.pick(&self.old) else {
            return Ok(());
        };
        let late = self.shell.kernel.late();
        if self.shell.decide(event)? || self.shell.kernel.late() != late + 1 {
            return Err("a report that came twice changed something, or was not counted".to_owned());
        }
        Ok(())
    }

    /// A yielded stage is out under its old number: it may report again.
    fn remember(&mut self, event: &Event) {
        if let Event::StageEnded(report) = event
            && report.outcome != StageOutcome::Yield
        {
            self.old.push(event.clone());
        }
    }
}
