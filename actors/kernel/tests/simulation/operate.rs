//! What operators ask for: every verb, sometimes as a dry run, sometimes with a
//! key and then once more.

use std::time::Duration;

use procession_kernel::{
    Answer, Blob, BypassAs, BypassScope, Effect, Event, EventName, Key, Limit, LimitKey, OperatorRequest, PauseScope,
    ProcedureId, Refusal, RequestEffect, RequestId, RevealScope, Row, Seq, StoredTarget, Verb, WaitReason,
};

use super::draw::{GLOBAL, LIMITED, ROOM};
use super::play::Play;

impl Play {
    pub(crate) fn operate(&mut self) -> Result<(), String> {
        if self.draw.percent(10)
            && let Some((verb, by)) = self.draw.pick(&self.asked)
        {
            return self.request(verb, by);
        }
        let Some(verb) = self.verb() else { return Ok(()) };
        let mut by = operator();
        by.dry_run = self.draw.percent(20);
        if self.draw.percent(30) {
            by = by.key(format!("operator {}", self.draw.below(12)));
        }
        if self.draw.percent(10) {
            let revision = verb
                .target()
                .and_then(|id| self.shell.kernel.row(id))
                .map(|row| row.revision);
            by.expected = revision.or(Some(Seq(1)));
        }
        if by.key.is_some() && !by.dry_run {
            self.asked.push((verb.clone(), by.clone()));
        }
        self.request(verb, by)
    }

    /// An operator asks for an orderly stop, or only what it would do; of one that drains it is refused.
    pub(crate) fn ask_to_drain(&mut self) -> Result<(), String> {
        let drained = self.shell.kernel.is_draining();
        let mut by = operator();
        by.dry_run = self.draw.percent(20);
        let begins = !drained && !by.dry_run;
        self.request(Verb::Drain(Duration::from_secs(1)), by)?;
        if self.shell.kernel.is_draining() != (drained || begins) {
            return Err("a drain that was asked for began when it should not have, or did not begin".to_owned());
        }
        Ok(())
    }

    fn verb(&mut self) -> Option<Verb> {
        let any = |_: &Row| true;
        Some(match self.draw.below(24) {
            0..3 => {
                let id = self.member(any)?;
                Verb::Abort(if self.draw.percent(50) {
                    ProcedureId::root(id.family)
                } else {
                    id
                })
            }
            3..5 => Verb::Pause(match self.draw.below(6) {
                0 => PauseScope::All,
                1 => PauseScope::Kind(self.draw.kind()),
                _ => PauseScope::One(self.member(any)?),
            }),
            5..9 => self.resumption()?,
            // Some decide, and some of these where nobody asks.
            9..10 if self.shell.now.0.is_multiple_of(2_000_000) => {
                let asks = |row: &Row| row.wait.as_ref().is_some_and(|wait| wait.question().is_some());
                let id = self.member(asks).or_else(|| self.member(any))?;
                Verb::Decide(id, Blob::from(vec![9]))
            }
            9..10 => Verb::RetryNow(self.member(|row| row.wait.as_ref().is_some_and(may_retry))?),
            10..13 => Verb::Bypass(self.member(any)?, self.bypass_scope(), self.bypass_as()),
            13..14 => Verb::RetryUndo(self.broken()?),
            14..15 => Verb::SkipUndo(self.broken()?),
            15..16 => Verb::OverrideResult(self.ended()?, Blob::from(vec![7])),
            20..22 => Verb::Signal(self.member(any)?, self.draw.event(), Blob::default()),
            22..23 => Verb::AuditReveal(self.member(any)?, RevealScope::Family),
            23..24 => Verb::Acknowledge(self.result()?.id),
            16..18 => Verb::SetPriority(self.member(any)?, i16::try_from(self.draw.below(5)).unwrap_or(0)),
            _ => {
                let key = self.draw.pick(&[LIMITED, ROOM, GLOBAL])?;
                let limit = 1 + u32::try_from(self.draw.below(5)).unwrap_or(0);
                let allows = match self.draw.below(10) {
                    0..2 => Limit::from(None),
                    2..4 => Limit::per(limit, Duration::from_secs(1)),
                    _ => Limit::from(Some(limit)),
                };
                Verb::SetLimit(LimitKey::from(key), allows)
            }
        })
    }

    fn resumption(&mut self) -> Option<Verb> {
        let all: Vec<PauseScope> = self.shell.kernel.pauses().iter().cloned().collect();
        if let Some(what) = self.draw.pick(&all) {
            return Some(Verb::Resume(what));
        }
        let stopped =
            |row: &Row| row.rare().paused || matches!(row.wait, Some(WaitReason::Poison | WaitReason::RepeatLimit));
        Some(Verb::Resume(PauseScope::One(self.member(stopped)?)))
    }

    /// Draws one whose rollback has failed, or anybody.
    fn broken(&mut self) -> Option<ProcedureId> {
        let failed = |row: &Row| row.wait == Some(WaitReason::RollbackFailed);
        self.member(failed).or_else(|| self.member(|_| true))
    }

    fn ended(&mut self) -> Option<ProcedureId> {
        let rows = self.shell.kernel.families().values().flat_map(|family| &family.members);
        let ids: Vec<ProcedureId> = rows.filter(|row| row.is_ended()).map(|row| row.id).collect();
        self.draw.pick(&ids)
    }

    pub(crate) fn bypass_scope(&mut self) -> BypassScope {
        let all = [
            BypassScope::Alone,
            BypassScope::Descendants,
            BypassScope::Ancestors,
            BypassScope::Family,
        ];
        self.draw.pick(&all).unwrap_or_default()
    }

    pub(crate) fn bypass_as(&mut self) -> BypassAs {
        let all = [
            BypassAs::Success,
            BypassAs::Output(Blob::from(vec![8])),
            BypassAs::Failed,
        ];
        self.draw.pick(&all).unwrap_or_default()
    }

    /// Asks, and looks at what it did: a dry run leaves no trace, nor does a
    /// request that was done before with the same key.
    pub(crate) fn request(&mut self, verb: Verb, by: OperatorRequest) -> Result<(), String> {
        let done = by.key.as_ref().and_then(|key| self.done_with(key));
        let traceless = (by.dry_run || done.is_some()).then(|| self.shell.kernel.clone());
        let request = self.shell.request_id();
        let words = verb.to_string();
        let stored = self.stored(&verb);
        let effects = self
            .shell
            .decide_seen(Event::Requested(request, Box::new(verb), Box::new(by), stored))?;
        if traceless.is_some_and(|before| before != self.shell.kernel) {
            return Err(format!("it left a trace: {words}"));
        }
        let answer = answer_to(request, &effects).ok_or_else(|| format!("nobody answers: {words}"))?;
        match (done, answer) {
            (Some((number, before)), Answer::Operated(operated)) => {
                let repeated = before == words && operated.number == Some(number);
                repeated
                    .then_some(())
                    .ok_or_else(|| format!("not what was done before: {words}"))
            }
            (Some((_, before)), Answer::Refused(Refusal::NotNow(..) | Refusal::SignalConflict(..)))
                if before != words =>
            {
                Ok(())
            }
            (Some(_), answer) => Err(format!("{words} was done before, and is answered {answer:?}")),
            (None, Answer::Operated(_) | Answer::Refused(_)) => Ok(()),
            (None, answer) => Err(format!("{words} is answered {answer:?}")),
        }
    }

    /// Reads the row of a finished target, as the shell does right before the decision.
    fn stored(&self, verb: &Verb) -> StoredTarget {
        let (Verb::Acknowledge(id) | Verb::OverrideResult(id, _)) = verb else {
            return StoredTarget::None;
        };
        let row = self.shell.ahead.rows.get(id);
        match row.filter(|_| self.shell.kernel.row(*id).is_none()) {
            Some(row) => StoredTarget::Row(Box::new(row.clone())),
            None => StoredTarget::None,
        }
    }

    /// Returns what was done with a key, if that is known: number and words.
    fn done_with(&self, key: &Key) -> Option<(u64, String)> {
        let mut entries = self.shell.ahead.audit.values();
        let done = entries.find(|entry| entry.key.as_ref() == Some(key))?;
        Some((done.number, done.words.clone()))
    }

    pub(crate) fn broadcast(&mut self) -> Result<(), String> {
        let name: EventName = self.draw.event();
        let key = self
            .draw
            .percent(40)
            .then(|| Key::from(format!("broadcast {}", self.draw.below(4))));
        let repeated = key.as_ref().is_some_and(|key| self.done_with(key).is_some());
        let request = self.shell.request_id();
        let payload = Blob::default();
        let committed = self.shell.decide(Event::Broadcast {
            request,
            name,
            payload,
            key,
        })?;
        if repeated && committed {
            return Err("a broadcast that came twice took effect twice".to_owned());
        }
        Ok(())
    }
}

fn answer_to(request: RequestId, effects: &[Effect]) -> Option<Answer> {
    effects.iter().find_map(|effect| {
        let Effect::Requests(RequestEffect::Reply(to, answer)) = effect else {
            return None;
        };
        (*to == request).then(|| answer.clone())
    })
}

pub(crate) fn operator() -> OperatorRequest {
    OperatorRequest::new("sim", "because")
}

/// What `retry` sets going.
const fn may_retry(wait: &WaitReason) -> bool {
    matches!(
        wait,
        WaitReason::Backoff(..) | WaitReason::Poison | WaitReason::RollbackFailed | WaitReason::Gate
    )
}
