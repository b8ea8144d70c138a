//! Retention of results, and what a stopping engine leaves behind.

use super::draft::Draft;
use crate::effect::{Answer, NotNow, Refusal};
use crate::failure::is_failure;
use crate::id::{ProcedureId, RequestId};
use crate::lifecycle::ProcedureState;
use crate::record::{EvictedFamily, Record};
use crate::row::{InFlight, Row};

impl Draft<'_> {
    /// Records that a caller has the result.
    pub(super) fn acknowledged(&mut self, request: RequestId, row: Row) {
        self.take_note_of(row);
        self.reply(request, Answer::Done);
    }

    /// Lets a success go sooner, and takes a failure off the list; its result stays as long as that of any failure.
    pub(super) fn take_note_of(&mut self, mut row: Row) {
        if let Some(ended) = row.ended.filter(|_| is_failure(&row)) {
            self.record(Record::FailureClosed(row.id.family, ended));
            return;
        }
        let rules = &self.kernel.rules;
        let own = self
            .rules_of(&row.kind)
            .and_then(|rules| rules.keep_after_acknowledgement);
        let due = self.now.after(own.unwrap_or(rules.keep_after_acknowledgement));
        if let Some(old) = row.due.filter(|old| *old > due) {
            self.record(Record::DueChanged(row.id.family, old, due));
            row.due = Some(due);
            row.revision = self.seq;
            // The family is no longer in memory, so the row only goes to disk.
            self.record(Record::FinishedRow(Box::new(row)));
        }
    }

    pub(super) fn eviction_due(&mut self, doomed: Vec<EvictedFamily>) {
        for mut family in doomed {
            match (family.members, &family.key) {
                // Only the key of the family is left.
                (0, Some(key)) => self.record(Record::KeyExpired(key.clone(), family.due, family.family)),
                _ => {
                    family.key_until = family.key_until.filter(|until| *until > self.now);
                    self.record(Record::Evicted(Box::new(family)));
                }
            }
        }
    }

    pub(super) fn drain_began(&mut self) {
        self.record(Record::Draining);
    }

    pub(super) fn drain_by_request(&mut self) -> Result<(), Refusal> {
        if self.kernel.draining {
            return Err(Refusal::NotNow(
                NotNow::Draining,
                "the engine is already draining".to_owned(),
            ));
        }
        self.record(Record::Draining);
        Ok(())
    }

    /// Ends a drain. Stages that still run lose their death counts: the next start runs them, and counts nothing from
    /// before against them. Their code is still told that the attempt was cut off.
    pub(super) fn drain_ended(&mut self, request: RequestId) {
        let out: Vec<ProcedureId> = self
            .kernel
            .families
            .awake()
            .filter(|family| family.in_flight > 0)
            .flat_map(|family| &family.members)
            .filter(|row| row.in_flight.is_some())
            .map(|row| row.id)
            .collect();
        for id in out {
            let (now, deaths) = (self.now, self.kernel.deaths);
            self.change(id, |row| {
                row.repeated = row.repeated_at(deaths).saturating_add(1);
                if let Some(in_flight) = &mut row.in_flight {
                    in_flight.deaths = InFlight::UNCOUNTED;
                    in_flight.alone = false;
                    in_flight.counted_from = Some(deaths);
                }
                if row.state != ProcedureState::Failed {
                    row.since = now;
                }
            });
        }
        self.record(Record::Stopped(self.kernel.epoch));
        self.reply(request, Answer::Done);
    }
}
