//! What may happen next, drawn at random; and the calm after it, in which
//! everything must come to its end.

use procession_kernel::{
    Admission, Advance, Birth, Blob, Event, JoinRuling, Key, KeyEntry, LimitKey, Operator, ProcedureId, StageEnded,
    StageOutcome, Submission, Undo, UndoEnded, UserWrite, WaitReason,
};

use super::check;
use super::draw::{Draw, LIMITED, stage};
use super::shell::Shell;

/// Rounds of calm after which whatever still moves is taken for a loop.
const CALM_MAX: usize = 20_000;

/// One simulated history of an engine and its crashes.
pub(crate) struct Play {
    pub(crate) shell: Shell,
    draw: Draw,
    /// Crashes come often, and meet the same stages again.
    stormy: bool,
    /// Reports that were given already, and may come once more.
    old: Vec<Event>,
}

fn operator() -> Operator {
    Operator {
        who: "sim".to_owned(),
        why: "because".to_owned(),
    }
}

impl Play {
    /// Begins with a seed.
    pub(crate) fn new(seed: u64) -> Result<Self, String> {
        Ok(Self {
            shell: Shell::new()?,
            draw: Draw::new(seed),
            stormy: seed.is_multiple_of(4),
            old: Vec::new(),
        })
    }

    /// Lets one thing happen.
    pub(crate) fn step(&mut self) -> Result<(), String> {
        if self.stormy && self.draw.percent(12) {
            return self.crash();
        }
        match self.draw.below(100) {
            0..8 if self.shell.kernel.families().len() < 6 => self.submit(),
            8..38 => self.report_one(),
            38..46 => self.undo_one(),
            46..52 => self.load_one(),
            52..56 => self.rule_one(),
            56..60 => self.time_passes(),
            60..64 => self.signal(),
            64..67 => self.abort(),
            67..71 => self.grant(),
            71..72 => self.set_limit(),
            72..74 => self.old_again(),
            74..78 => self.operate(),
            78..79 => self.crash(),
            79..80 if self.draw.percent(20) => self.drain(),
            _ => {
                let commits = 1 + self.draw.place(self.shell.pending());
                self.shell.sync(commits)
            }
        }
    }

    // Requests.

    fn submit(&mut self) -> Result<(), String> {
        let births: Vec<Birth> = (0..=self.draw.below(2)).map(|_| self.draw.birth()).collect();
        let ticket = self.shell.ticket();
        let (tickets, admissions) = self.shell.admit(&births.iter().collect::<Vec<_>>());
        let submissions = births
            .into_iter()
            .zip(admissions)
            .map(|(birth, admission)| self.submission(birth, admission));
        let submissions = submissions.collect();
        self.shell.decide_births(tickets, Event::Submitted(ticket, submissions))
    }

    fn submission(&mut self, birth: Birth, admission: Admission) -> Submission {
        if !self.draw.percent(30) {
            return Submission {
                birth,
                key: None,
                known: None,
                admission,
            };
        }
        let key = Key::from(format!("key {}", self.draw.below(20)));
        let digest = u128::from(self.draw.below(2));
        let known: Option<KeyEntry> = self.shell.ahead.keys.get(&key).cloned();
        Submission {
            birth,
            key: Some((key, digest)),
            known,
            admission,
        }
    }

    fn signal(&mut self) -> Result<(), String> {
        let Some(id) = self.member(|_| true) else { return Ok(()) };
        let ticket = self.shell.ticket();
        let key = self
            .draw
            .percent(30)
            .then(|| Key::from(format!("signal {}", self.draw.below(3))));
        let name = self.draw.event();
        self.shell
            .decide(Event::Signalled {
                ticket,
                id,
                name,
                payload: Blob::default(),
                key,
            })
            .map(drop)
    }

    fn abort(&mut self) -> Result<(), String> {
        let Some(id) = self.member(|_| true) else { return Ok(()) };
        let id = if self.draw.percent(50) {
            ProcedureId::root(id.family)
        } else {
            id
        };
        let ticket = self.shell.ticket();
        self.shell
            .decide(Event::AbortRequested(ticket, id, operator()))
            .map(drop)
    }

    fn set_limit(&mut self) -> Result<(), String> {
        let limit = self
            .draw
            .percent(80)
            .then(|| 1 + u32::try_from(self.draw.below(3)).unwrap_or(0));
        let ticket = self.shell.ticket();
        self.shell
            .decide(Event::LimitSet(ticket, LimitKey::from(LIMITED), limit))
            .map(drop)
    }

    fn operate(&mut self) -> Result<(), String> {
        let waits =
            |row: &procession_kernel::Row| matches!(row.wait, Some(WaitReason::RollbackFailed | WaitReason::Poison));
        let Some(id) = self.member(waits).or_else(|| self.member(|_| true)) else {
            return Ok(());
        };
        let ticket = self.shell.ticket();
        let event = match self.draw.below(3) {
            0 => Event::UndoRetryRequested(ticket, id, operator()),
            1 => Event::UndoSkipRequested(ticket, id, operator()),
            _ => Event::ResumeRequested(ticket, id, operator()),
        };
        self.shell.decide(event).map(drop)
    }

    /// Draws a live member of which this holds.
    fn member(&mut self, holds: impl Fn(&procession_kernel::Row) -> bool) -> Option<ProcedureId> {
        let rows = self.shell.kernel.families().values().flat_map(|family| &family.members);
        let ids: Vec<ProcedureId> = rows
            .filter(|row| !row.is_ended() && holds(row))
            .map(|row| row.id)
            .collect();
        self.draw.pick(&ids)
    }

    // Reports.

    fn report_one(&mut self) -> Result<(), String> {
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

    fn report(&mut self, advance: &Advance, mut outcome: StageOutcome) -> Result<(), String> {
        let submits: Vec<Birth> = (0..self.draw.below(100) / 97).map(|_| self.draw.birth()).collect();
        let detached: Vec<Birth> = match &outcome {
            StageOutcome::Spawn { births, .. } => births.iter().filter(|birth| birth.detached).cloned().collect(),
            _ => Vec::new(),
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

    fn undo_one(&mut self) -> Result<(), String> {
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

    fn undone(&mut self, undo: &Undo, outcome: Result<(), String>) -> Result<(), String> {
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

    fn load_one(&mut self) -> Result<(), String> {
        let Some(scope) = self.shell.loads.pop() else {
            return Ok(());
        };
        let entries = self.shell.stack(scope.family);
        self.shell.decide(Event::StackLoaded(scope, entries)).map(drop)
    }

    fn rule_one(&mut self) -> Result<(), String> {
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
    fn old_again(&mut self) -> Result<(), String> {
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

    fn grant(&mut self) -> Result<(), String> {
        let Some(id) = self.shell.grants.pop_front() else {
            return Ok(());
        };
        self.shell.decide(Event::Granted(id)).map(drop)
    }

    fn time_passes(&mut self) -> Result<(), String> {
        if let Some(next) = self.shell.kernel.next_deadline() {
            self.shell.now = self.shell.now.max(next);
        }
        for _ in 0..64 {
            let Some(id) = self.shell.kernel.due(self.shell.now) else {
                return Ok(());
            };
            self.shell.decide(Event::TimerDue(id))?;
        }
        Err("64 timers are due at one instant: one fires on and on".to_owned())
    }

    // Ends of engines.

    fn crash(&mut self) -> Result<(), String> {
        let reached = self.draw.place(self.shell.pending() + 1);
        self.shell.crash(reached)
    }

    /// An orderly stop: what reports within the deadline is taken, the rest is left.
    fn drain(&mut self) -> Result<(), String> {
        self.shell.decide(Event::DrainBegan)?;
        for _ in 0..self.draw.below(20) {
            match self.draw.below(4) {
                0 => self.undo_one()?,
                1 => self.time_passes()?,
                2 => self.signal()?,
                _ => self.report_one()?,
            }
            self.shell.sync(1)?;
        }
        let ticket = self.shell.ticket();
        self.shell.decide(Event::DrainEnded(ticket))?;
        self.shell.sync(usize::MAX)?;
        self.shell.crash(0)
    }

    /// No more faults, no more requests but those of a helpful operator:
    /// every family must come to its end.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.shell.log.push("--- calm".to_owned());
        for _ in 0..CALM_MAX {
            self.shell.sync(usize::MAX)?;
            if !self.calm_step()? {
                check::at_rest(&self.shell.kernel)?;
                if self.shell.permits_left() {
                    return Err("a permit is left over".to_owned());
                }
                return Ok(());
            }
        }
        Err(format!(
            "it does not come to rest: {:?}",
            check::at_rest(&self.shell.kernel)
        ))
    }

    fn calm_step(&mut self) -> Result<bool, String> {
        if let Some((out, advance)) = self.shell.running.pop_first() {
            let outcome = if out.1.0 % 3 == 0 {
                StageOutcome::Next(stage(9))
            } else {
                StageOutcome::Done(Blob::default())
            };
            self.report(&advance, outcome)?;
        } else if let Some(undo) = self.shell.undos.pop() {
            self.undone(&undo, Ok(()))?;
        } else if !self.shell.loads.is_empty() {
            self.load_one()?;
        } else if let Some((parent, first, seen)) = self.shell.judges.pop() {
            self.shell.decide(Event::JoinRuled {
                parent,
                first,
                seen,
                ruling: JoinRuling::Met,
            })?;
        } else if !self.shell.grants.is_empty() {
            self.grant()?;
        } else if self.shell.kernel.next_deadline().is_some() {
            self.time_passes()?;
        } else {
            return self.helped();
        }
        Ok(true)
    }

    /// What waits for somebody outside gets it.
    fn helped(&mut self) -> Result<bool, String> {
        let rows = self.shell.kernel.families().values().flat_map(|family| &family.members);
        let waits: Vec<_> = rows.filter_map(|row| Some((row.id, row.wait.clone()?))).collect();
        for (id, wait) in waits {
            let ticket = self.shell.ticket();
            let event = match wait {
                WaitReason::Event(name, _) => Event::Signalled {
                    ticket,
                    id,
                    name,
                    payload: Blob::default(),
                    key: None,
                },
                WaitReason::RollbackFailed if id.family % 2 == 0 => Event::UndoSkipRequested(ticket, id, operator()),
                WaitReason::RollbackFailed => Event::UndoRetryRequested(ticket, id, operator()),
                WaitReason::Poison => Event::ResumeRequested(ticket, id, operator()),
                WaitReason::Width
                | WaitReason::Permit(_)
                | WaitReason::Children
                | WaitReason::Timer(_)
                | WaitReason::Backoff(..)
                | WaitReason::Queue
                | WaitReason::Suspect
                | WaitReason::Quarantined => continue,
            };
            self.shell.decide(event)?;
            return Ok(true);
        }
        Ok(false)
    }
}
