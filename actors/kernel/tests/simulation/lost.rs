//! Wakes that get lost: a grant that nobody hears of, a timer that is not armed.
//! The health check finds each of them, once, and nothing else.

use procession_kernel::{Event, Grant, ProcedureId, Record, Row};

use super::claims;
use super::desk::Word;
use super::play::Play;

impl Play {
    /// The limiter's next word is never heard; if it granted something, a health check makes up for it.
    pub(crate) fn lose_word(&mut self) -> Result<(), String> {
        self.shell.sync(usize::MAX)?;
        // Who has got on meanwhile gives it back when it comes; the health check is for those who wait.
        let waits = |id: &ProcedureId| {
            let kernel = &self.shell.kernel;
            kernel.waits_for_admission(*id) && !kernel.is_stopped(*id)
        };
        let desk = &self.shell.desk;
        let granted: Vec<ProcedureId> = match desk.words.front() {
            Some(Word::Answers(answers, served)) if served.is_empty() => answers
                .iter()
                .filter(|(_, grant)| *grant == Grant::Granted)
                .filter_map(|(claim, _)| desk.accept(*claim))
                .collect(),
            Some(Word::Served(served)) => served.iter().filter_map(|claim| desk.accept(*claim)).collect(),
            Some(Word::Ahead(_) | Word::Answers(..)) | None => Vec::new(),
        };
        if granted.is_empty() || !granted.iter().all(waits) || self.shell.desk.words.len() > 1 {
            return Ok(());
        }
        let word = self.shell.desk.words.pop_front();
        self.shell.log.push(format!("--- lost: {word:?}"));
        let (granted, unknown) = claims::lost(&self.shell.kernel, &self.shell.desk);
        let lost = granted.len() + unknown.len();
        self.find(Event::HealthCheckDue { granted, unknown }, lost)
    }

    /// A timer is not armed; a health check arms it again.
    pub(crate) fn lose_timer(&mut self) -> Result<(), String> {
        let sleepers: Vec<ProcedureId> = {
            let rows = self.shell.kernel.families().values().flat_map(|family| &family.members);
            let sleeps = |row: &Row| !row.is_ended() && row.wait.as_ref().is_some_and(|wait| wait.deadline().is_some());
            rows.filter(|row| sleeps(row) && !self.shell.kernel.is_stopped(row.id))
                .map(|row| row.id)
                .collect()
        };
        let Some(id) = self.draw.pick(&sleepers) else {
            return Ok(());
        };
        let due = self.shell.kernel.next_deadline();
        self.shell.kernel.evolve(&Record::Disarmed(id));
        self.shell.log.push(format!("--- lost: the timers of {id}"));
        let (granted, unknown) = (Vec::new(), Vec::new());
        self.find(Event::HealthCheckDue { granted, unknown }, 1)?;
        if self.shell.kernel.next_deadline() == due {
            return Ok(());
        }
        Err(format!("the timers of {id} were found, and are not armed as before"))
    }

    fn find(&mut self, check: Event, lost: usize) -> Result<(), String> {
        self.shell.lost += lost as u64;
        self.shell.decide(check)?;
        self.nothing_found()
    }
}
