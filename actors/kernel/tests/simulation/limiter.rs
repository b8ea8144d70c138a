//! Admission as the real shell does it: the limiter is asked ahead of a decision
//! where that is known, and what it says is heard later, in the order in which
//! it was said.

use std::collections::BTreeSet;

use procession_kernel::{
    Admission, Birth, Claim, ClaimId, Event, Grant, Hold, Lacking, LimitKey, OperatorRequest, ProcedureId, Request,
    Row, StageEnded, StageOutcome, StoredTarget, Submission, Verb,
};

use super::desk::{Ahead, Word, needs, own_of};
use super::draw::limits_of;
use super::shell::Shell;

impl Shell {
    /// Asks for those that are born as roots, and decides once the limiter has spoken.
    pub(crate) fn submit(&mut self, mut submissions: Vec<Submission>) -> Result<(), String> {
        let (mut asked, mut served) = (BTreeSet::new(), Vec::new());
        if !self.kernel.is_draining() {
            for submission in &mut submissions {
                self.demand_of_new(submission, &mut asked, &mut served)?;
            }
        }
        let event = Event::Submitted(self.request_id(), submissions);
        self.decide_ahead(event, asked, None, served)
    }

    /// Asks for the root that an operator submits, unless it is only a plan, and decides once the limiter has spoken.
    pub(crate) fn submit_by(&mut self, verb: Verb, by: OperatorRequest, stored: StoredTarget) -> Result<(), String> {
        let (mut asked, mut served) = (BTreeSet::new(), Vec::new());
        let (mut stored, is_new) = (stored, !by.dry_run && !self.kernel.is_draining());
        if let Some(submission) = stored.submission().filter(|_| is_new) {
            self.demand_of_new(submission, &mut asked, &mut served)?;
        }
        let event = Event::Requested(self.request_id(), Box::new(verb), Box::new(by), stored);
        self.decide_ahead(event, asked, None, served)
    }

    /// One whose key is known submits nothing, and asks for nothing.
    fn demand_of_new(
        &mut self,
        submission: &mut Submission,
        asked: &mut BTreeSet<ClaimId>,
        served: &mut Vec<Claim>,
    ) -> Result<(), String> {
        let key = submission.key.as_ref();
        let known = key.is_some_and(|asked| self.kernel.key(&asked.key).is_some());
        if submission.known.is_some() || known {
            return Ok(());
        }
        self.demand_of_root(&mut submission.birth, asked, served)
    }

    /// Asks for the next stage and for those that are born, and decides once the limiter has spoken.
    pub(crate) fn report(&mut self, mut report: StageEnded) -> Result<(), String> {
        let (mut asked, mut served) = (BTreeSet::new(), Vec::new());
        let exchange = self.exchange(&mut report, &mut served)?;
        let parent = report.id;
        let mut width = u32::MAX;
        if let StageOutcome::Spawn { width: most, .. } = &report.outcome
            && *most > 0
        {
            width = *most;
        }
        let mut children = 0;
        let mut births: Vec<Birth> = births_of(&mut report).map(|birth| birth.clone()).collect();
        for birth in &mut births {
            if birth.detached {
                self.demand(birth, None, true, &mut asked, &mut served)?;
            } else {
                // One behind a gate asks once it opens, and takes no place in the width.
                let asks = !birth.is_gated() && children < width;
                self.demand(birth, Some(parent), asks, &mut asked, &mut served)?;
                children += u32::from(!birth.is_gated());
            }
        }
        for (place, birth) in births_of(&mut report).zip(births) {
            *place = birth;
        }
        self.decide_ahead(Event::StageEnded(Box::new(report)), asked, exchange, served)
    }

    /// A root with children asks when it goes on; of its children those ask that begin at once.
    fn demand_of_root(
        &mut self,
        birth: &mut Birth,
        asked: &mut BTreeSet<ClaimId>,
        served: &mut Vec<Claim>,
    ) -> Result<(), String> {
        let Some(mut brood) = birth.brood.take() else {
            return self.demand(birth, None, true, asked, served);
        };
        self.demand(birth, None, false, asked, served)?;
        let width = if brood.width == 0 { u32::MAX } else { brood.width };
        let mut begun = 0;
        for child in &mut brood.children {
            let is_counted = !child.detached && !child.is_gated();
            let asks = child.detached || (is_counted && begun < width);
            let parent = (!child.detached).then_some(ProcedureId::root(0));
            self.demand(child, parent, asks, asked, served)?;
            begun += u32::from(is_counted);
        }
        birth.brood = Some(brood);
        Ok(())
    }

    fn decide_ahead(
        &mut self,
        event: Event,
        asked: BTreeSet<ClaimId>,
        exchange: Option<(Claim, ProcedureId)>,
        served: Vec<Claim>,
    ) -> Result<(), String> {
        if asked.is_empty() && exchange.is_none() {
            return self.decide(event).map(drop);
        }
        let ahead = Ahead {
            event,
            asked,
            exchange,
            served,
        };
        self.desk.words.push_back(Word::Ahead(Box::new(ahead)));
        Ok(())
    }

    fn demand(
        &mut self,
        birth: &mut Birth,
        parent: Option<ProcedureId>,
        asks: bool,
        asked: &mut BTreeSet<ClaimId>,
        served: &mut Vec<Claim>,
    ) -> Result<(), String> {
        let limits = limits_of(birth, parent.is_some());
        if limits.is_empty() && birth.next_needs.is_empty() {
            return Ok(());
        }
        birth.admission.limits.clone_from(&limits);
        if !asks {
            return Ok(());
        }
        let claim = self.desk.new_claim();
        asked.insert(claim);
        birth.admission.asked = Some(claim);
        let request = Request {
            claim: Claim::first(claim),
            kind: own_of(&birth.kind, &limits),
            needs: needs(with(limits, &birth.next_needs.limits), birth.next_needs.locks.clone()),
            priority: birth.priority,
            within: parent.map(|parent| self.within(parent)).unwrap_or_default(),
        };
        let (grant, others) = self.desk.work(|limiter| limiter.request(request))?;
        birth.admission.lacking = lacking(grant);
        served.extend(others);
        Ok(())
    }

    /// The next stage needs locks and would run at once: what the last one held is given back for them.
    fn exchange(
        &mut self,
        report: &mut StageEnded,
        served: &mut Vec<Claim>,
    ) -> Result<Option<(Claim, ProcedureId)>, String> {
        let next = matches!(report.outcome, StageOutcome::Next(_)) && report.children().is_empty();
        let id = report.id;
        if !next || report.next_needs.is_empty() || !self.kernel.goes_on(id, report.run) {
            return Ok(None);
        }
        let Some(row) = self.kernel.row(id).cloned() else {
            return Ok(None);
        };
        let more = report.next_needs.locks.iter().filter(|need| !row.locked.contains(need));
        let (gives, locks) = if row.locks_for_life {
            (Vec::new(), more.cloned().collect())
        } else {
            (row.locked.to_vec(), report.next_needs.locks.clone())
        };
        if locks.is_empty() && report.next_needs.limits.is_empty() {
            return Ok(None);
        }
        let permits = if row.holds && row.hold == Hold::WhileActive {
            row.limits.to_vec()
        } else {
            Vec::new()
        };
        let claim = self.desk.renew(id);
        let request = Request {
            claim,
            kind: own_of(&row.kind, &permits),
            needs: needs(with(permits.clone(), &report.next_needs.limits), locks),
            priority: row.priority,
            within: self.within_above(id),
        };
        let of_stage: &[LimitKey] = if row.stage_permits { &row.stage_limits } else { &[] };
        let gives = needs(with(permits.clone(), of_stage), gives);
        let (grant, others) = self.desk.work(|limiter| limiter.exchange(&gives, request))?;
        served.extend(others);
        report.admission = Some(Admission {
            limits: permits,
            asked: Some(claim.id),
            lacking: lacking(grant),
        });
        Ok(Some((claim, id)))
    }

    /// Hears the oldest word of the limiter.
    pub(crate) fn hear(&mut self) -> Result<(), String> {
        match self.desk.words.pop_front() {
            None => Ok(()),
            Some(Word::Ahead(ahead)) => self.hear_ahead(*ahead),
            Some(Word::Answers(answers, served)) => {
                let granted = answers.into_iter().filter(|(_, grant)| *grant == Grant::Granted);
                self.granted(granted.map(|(claim, _)| claim))?;
                self.granted(served)
            }
            Some(Word::Served(served)) => self.granted(served),
        }
    }

    fn hear_ahead(&mut self, ahead: Ahead) -> Result<(), String> {
        let mut unbound = ahead.asked;
        self.decide(ahead.event)?;
        // The decision has bound the claims of the procedures that it created.
        unbound.retain(|claim| self.desk.procedure(*claim).is_none());
        if let Some((claim, id)) = ahead.exchange {
            if self.kernel.row(id).is_none_or(Row::is_ended) {
                unbound.insert(claim.id);
            } else if self.desk.claim(id).is_none() {
                self.desk.bind(claim, id);
            }
        }
        for claim in unbound {
            self.desk.tell(|limiter| limiter.release(claim))?;
        }
        self.granted(ahead.served)
    }

    /// Decides the grants of each procedure's newest request, and drops those of older ones.
    fn granted(&mut self, claims: impl IntoIterator<Item = Claim>) -> Result<(), String> {
        for claim in claims {
            if let Some(id) = self.desk.accept(claim) {
                self.decide(Event::Granted(id))?;
            }
        }
        Ok(())
    }
}

fn with(mut limits: Vec<LimitKey>, more: &[LimitKey]) -> Vec<LimitKey> {
    limits.extend(more.iter().cloned());
    limits
}

fn births_of(report: &mut StageEnded) -> impl Iterator<Item = &mut Birth> {
    let mut spawned: &mut [Birth] = &mut [];
    if let StageOutcome::Spawn { births, .. } = &mut report.outcome {
        spawned = births;
    }
    let (submitted, added): (&mut [Submission], &mut [Birth]) = match &mut report.effects {
        Some(effects) => (&mut effects.submitted, &mut effects.children),
        None => (&mut [], &mut []),
    };
    let submitted = submitted.iter_mut().map(|submission| detached(&mut submission.birth));
    submitted.chain(spawned.iter_mut()).chain(added.iter_mut())
}

fn detached(birth: &mut Birth) -> &mut Birth {
    birth.detached = true;
    birth
}

fn lacking(grant: Grant) -> Option<Lacking> {
    match grant {
        Grant::Granted => None,
        Grant::Queued(lacking) => Some(lacking),
    }
}
