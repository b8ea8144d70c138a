//! What may happen next, drawn at random.

use procession_kernel::{
    Admission, Birth, Blob, Event, Key, KeyEntry, LimitKey, Operator, ProcedureId, Submission, WaitReason,
};

use super::draw::{Draw, LIMITED};
use super::shell::Shell;

/// One simulated history of an engine and its crashes.
pub(crate) struct Play {
    pub(crate) shell: Shell,
    pub(crate) draw: Draw,
    /// Crashes come often, and meet the same stages again.
    stormy: bool,
    /// Reports that were given already, and may come once more.
    pub(crate) old: Vec<Event>,
}

pub(crate) fn operator() -> Operator {
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

    pub(crate) fn grant(&mut self) -> Result<(), String> {
        let Some(id) = self.shell.grants.pop_front() else {
            return Ok(());
        };
        self.shell.decide(Event::Granted(id)).map(drop)
    }

    pub(crate) fn time_passes(&mut self) -> Result<(), String> {
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
}
