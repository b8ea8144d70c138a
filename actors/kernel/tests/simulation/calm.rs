//! The calm after the storm: no faults, a helpful operator, and everything must come to its end.

use procession_kernel::{
    Blob, BypassScope, Event, JoinRuling, PauseScope, ProcedureId, Row, SentSignal, Seq, StageOutcome, Verb,
    WaitReason, WakeSource,
};

use super::draw::{SIGNALS, stage};
use super::operate::operator;
use super::play::Play;
use super::queues::waits;
use super::{check, claims};

/// Rounds of calm after which whatever still moves is taken for a loop.
const CALM_MAX: usize = 20_000;

impl Play {
    /// No more faults, no more requests but those of a helpful operator:
    /// every family must come to its end.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.shell.log.push("--- calm".to_owned());
        for _ in 0..CALM_MAX {
            self.shell.sync(usize::MAX)?;
            if self.calm_step()? {
                continue;
            }
            check::at_rest(&self.shell.kernel)?;
            self.shell.all_are_answered()?;
            if !self.shell.desk.is_idle() {
                return Err(format!("a permit or a lock is left over: {:?}", self.shell.desk));
            }
            return self.forget_all();
        }
        Err(format!(
            "it does not come to rest: {:?}",
            check::at_rest(&self.shell.kernel)
        ))
    }

    fn calm_step(&mut self) -> Result<bool, String> {
        if let Some((out, call)) = self.shell.running.pop_first() {
            let outcome = if out.1.0 % 3 == 0 {
                StageOutcome::Next(stage(9))
            } else {
                StageOutcome::Done(Blob::default())
            };
            self.report(out, Some(call), outcome)?;
        } else if let Some(undo) = self.shell.undos.pop() {
            self.undone(undo, Ok(()))?;
        } else if !self.shell.loads.is_empty() {
            self.load_one()?;
        } else if !self.shell.cleanups.is_empty() {
            self.clean_up_one()?;
        } else if let Some(judge) = self.shell.judges.pop() {
            self.shell.decide(judge.rules(JoinRuling::Met))?;
        } else if !self.shell.desk.words.is_empty() {
            self.shell.hear()?;
        } else if self.shell.kernel.next_wave(Seq(0)).is_some() {
            self.wake_some()?;
        } else if self.shell.kernel.next_deadline().is_some() {
            self.time_passes()?;
        } else if let Some(at) = self.shell.desk.admissions.wanted_at() {
            self.shell.move_to(self.shell.now.max(at))?;
        } else {
            claims::told(&self.shell.kernel, &self.shell.desk)?;
            self.check_health()?;
            return self.helped();
        }
        Ok(true)
    }

    /// What waits for somebody outside gets it.
    fn helped(&mut self) -> Result<bool, String> {
        if let Some(what) = self.shell.kernel.pauses().first().cloned() {
            self.request(Verb::Resume(what), operator())?;
            return Ok(true);
        }
        let rows = self.shell.kernel.families().values().flat_map(|family| &family.members);
        // One that has ended may still hold back what lies below it.
        let live = rows.filter(|row| !row.is_ended() || row.rare().paused);
        let live: Vec<Row> = live.map(|row| (**row).clone()).collect();
        for row in &live {
            if self.help(row)? {
                return Ok(true);
            }
        }
        self.untie(&live)
    }

    fn help(&mut self, row: &Row) -> Result<bool, String> {
        let id = row.id;
        if row.rare().paused {
            self.request(Verb::Resume(PauseScope::One(id)), operator())?;
            return Ok(true);
        }
        let verb = match &row.wait {
            Some(WaitReason::Event(name, _)) if !check::is_stopped(&self.shell.kernel, row) => {
                let (request, name) = (self.shell.request_id(), name.clone());
                let family = self.shell.kernel.families().get(&id.family);
                let is_full = family.is_some_and(|family| family.signals.waiting(id.member) >= SIGNALS);
                if row.rare().closed.contains(&name) || is_full {
                    // It takes no signal of this name, and a broadcast needs no place among them.
                    let (payload, key) = (Blob::default(), None);
                    self.shell.decide(Event::Broadcast {
                        request,
                        name,
                        payload,
                        key,
                    })?;
                    return Ok(true);
                }
                let signal = SentSignal {
                    to: id,
                    name,
                    payload: Blob::default(),
                    key: None,
                    last: false,
                };
                self.shell.decide(Event::Signalled(request, vec![signal]))?;
                return Ok(true);
            }
            Some(WaitReason::Decision(_)) if check::is_stopped(&self.shell.kernel, row) => return Ok(false),
            Some(WaitReason::Decision(_)) if id.family.is_multiple_of(2) => Verb::RetryNow(id),
            Some(WaitReason::Decision(_)) => Verb::Decide(id, Blob::from(vec![9])),
            Some(WaitReason::RollbackFailed) if !self.is_outermost(id) => return Ok(false),
            Some(WaitReason::RollbackFailed) if id.family.is_multiple_of(2) => Verb::SkipUndo(id),
            Some(WaitReason::RollbackFailed) => Verb::RetryUndo(id),
            Some(WaitReason::Poison | WaitReason::RepeatLimit) if !check::is_stopped(&self.shell.kernel, row) => {
                Verb::Resume(PauseScope::One(id))
            }
            // A gate that can no longer open; the others open, or end their children, by themselves.
            Some(WaitReason::Gate) if !check::is_stopped(&self.shell.kernel, row) && self.is_shut(id) => {
                match id.member % 3 {
                    0 => Verb::Bypass(id, BypassScope::Alone, self.bypass_as()),
                    _ => Verb::RetryNow(id),
                }
            }
            Some(_) | None => return Ok(false),
        };
        self.request(verb, operator())?;
        Ok(true)
    }

    fn is_shut(&self, id: ProcedureId) -> bool {
        self.shell.kernel.wake_source_of(id) == WakeSource::Operator(WaitReason::Gate)
    }

    fn is_outermost(&self, id: ProcedureId) -> bool {
        let family = self.shell.kernel.families().get(&id.family);
        family.and_then(|family| family.scope_of(id.member)) == Some(id)
    }

    /// Nothing moves any more: some wait for each other's locks and permits. The
    /// operator bypasses a whole family of them.
    fn untie(&mut self, live: &[Row]) -> Result<bool, String> {
        check::rollbacks_wait(&self.shell.kernel)?;
        check::undos_meet_no_permits(&self.shell.kernel)?;
        let Some(stuck) = live.iter().find(|row| waits(row)) else {
            return Ok(false);
        };
        self.deadlocks += 1;
        let outcome = self.bypass_as();
        self.request(Verb::Bypass(stuck.id, BypassScope::Family, outcome), operator())?;
        Ok(true)
    }
}
