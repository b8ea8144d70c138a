//! Results: how long they are kept, who takes note of them, and how they go as a whole.

use std::collections::BTreeSet;

use procession_kernel::{Event, EvictedFamily, Key, Label, LabelDigest, ProcedureId, Row, Timestamp};

use super::disk::Disk;
use super::play::Play;

impl Disk {
    /// The result of a family goes at this instant.
    pub(crate) fn due_at(&mut self, family: u64, due: Timestamp) {
        self.due.insert((due, family), None);
    }

    /// What was due at this instant is due no more.
    pub(crate) fn no_longer_due(&mut self, family: u64, due: Timestamp) -> Result<(), String> {
        let was_due = self.due.remove(&(due, family)).is_some();
        was_due
            .then_some(())
            .ok_or_else(|| format!("nothing of family {family} is due at {due:?}"))
    }

    /// A finished family is gone.
    pub(crate) fn evicted(&mut self, doomed: &EvictedFamily) -> Result<(), String> {
        self.no_longer_due(doomed.family, doomed.due)?;
        self.forget(doomed);
        match self.failures.contains_key(&doomed.family) {
            true => Err(format!(
                "family {} is evicted, and its failure stays listed",
                doomed.family
            )),
            false => Ok(()),
        }
    }

    fn forget(&mut self, doomed: &EvictedFamily) {
        for member in 0..doomed.members {
            let id = ProcedureId::new(doomed.family, member);
            self.rows.remove(&id);
            self.payloads.remove(&id);
        }
        if doomed.submitted {
            self.submitted.remove(&doomed.family);
        }
        self.first.remove(&doomed.family);
        self.again.remove(&ProcedureId::root(doomed.family));
        for number in 1..=doomed.history {
            self.history.remove(&(doomed.family, number));
        }
        for (member, _, number) in &doomed.signals {
            self.signals
                .remove(&(ProcedureId::new(doomed.family, *member), *number));
        }
        if doomed.failed.is_some() {
            self.failures.remove(&doomed.family);
        }
        for member in &doomed.labelled {
            self.label_entries.remove(&ProcedureId::new(doomed.family, *member));
        }
        for digest in &doomed.labels {
            self.labels.remove(&(*digest, doomed.family));
        }
        match (&doomed.key, doomed.key_until) {
            (Some(key), Some(until)) => {
                self.due.insert((until, doomed.family), Some(key.clone()));
            }
            (Some(key), None) => {
                self.keys.remove(key);
            }
            (None, _) => {}
        }
    }

    /// Lists what is due, each family with every key that it has.
    fn doomed(&self, now: Timestamp) -> Vec<EvictedFamily> {
        let due = self.due.iter().take_while(|((due, _), _)| *due <= now);
        due.map(|((due, family), key)| self.described(*due, *family, key.as_ref()))
            .collect()
    }

    fn described(&self, due: Timestamp, family: u64, key: Option<&Key>) -> EvictedFamily {
        let rows: Vec<&Row> = self.members(family).collect();
        let root_key = rows.first().and_then(|row| row.key.clone());
        let until = root_key.as_ref().and_then(|key| self.keys.get(key)?.until);
        let labels = rows.iter().flat_map(|row| row.labels.iter());
        let digests: BTreeSet<LabelDigest> = labels.map(Label::digest).collect();
        let signals = self.signals.iter().filter(|((id, _), _)| id.family == family);
        EvictedFamily {
            family,
            due,
            members: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            submitted: rows.first().is_some_and(|row| !row.as_submitted),
            history_from: rows.first().map_or(0, |row| row.history_from),
            history: rows.iter().map(|row| row.history).max().unwrap_or_default(),
            signals: signals
                .map(|((id, number), entry)| (id.member, entry.name.clone(), *number))
                .collect(),
            labels: digests.into_iter().collect(),
            labelled: rows.iter().filter_map(|row| row.labels.entry()).collect(),
            failed: self.failures.get(&family).copied(),
            key: key.cloned().or(root_key),
            key_until: until,
            raw: Vec::new(),
        }
    }

    /// Returns the root's rows of finished families.
    pub(crate) fn results(&self) -> Vec<&Row> {
        let families = self.due.iter().filter(|(_, key)| key.is_none());
        let roots = families.filter_map(|((_, family), _)| self.rows.get(&ProcedureId::root(*family)));
        roots.collect()
    }

    /// Names what is left of families that are gone.
    fn leavings(&self) -> Option<String> {
        let left = (self.rows.len(), self.history.len(), self.signals.len());
        let more = (
            self.payloads.len() + self.submitted.len(),
            self.keys.len(),
            self.due.len(),
            self.labels.len() + self.label_entries.len() + self.failures.len(),
        );
        (left != (0, 0, 0) || more != (0, 0, 0, 0))
            .then(|| format!("rows, history, signals {left:?}; payloads, keys, results due, labels {more:?}"))
    }
}

impl Play {
    /// Reads a result: as with an eviction, when all that was decided is on disk.
    pub(crate) fn result(&mut self) -> Option<Row> {
        if self.shell.pending() > 0 {
            return None;
        }
        let rows: Vec<Row> = self.shell.ahead.results().into_iter().cloned().collect();
        self.draw.pick(&rows)
    }

    /// Somebody takes note of a result.
    pub(crate) fn acknowledge(&mut self) -> Result<(), String> {
        let Some(row) = self.result() else { return Ok(()) };
        let request = self.shell.request_id();
        self.shell.decide(Event::Acknowledged(request, Box::new(row))).map(drop)
    }

    /// What is due goes.
    pub(crate) fn evict(&mut self) -> Result<(), String> {
        let doomed = self.shell.ahead.doomed(self.shell.now);
        if doomed.is_empty() || self.shell.pending() > 0 {
            return Ok(());
        }
        self.shell.decide(Event::EvictionDue(doomed)).map(drop)
    }

    /// When every result has been kept as long as it must be, nothing is left.
    pub(crate) fn forget_all(&mut self) -> Result<(), String> {
        while let Some((last, _)) = self.shell.ahead.due.keys().next_back().copied() {
            self.shell.move_to(self.shell.now.max(last))?;
            self.evict()?;
            self.shell.sync(usize::MAX)?;
        }
        match self.shell.ahead.leavings() {
            Some(left) => Err(format!("all have ended and gone, and these are left: {left}")),
            None => Ok(()),
        }
    }
}
