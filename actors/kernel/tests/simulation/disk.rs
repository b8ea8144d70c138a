//! The store as maps: durable records folded in, and a kernel built from them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use procession_kernel::{
    AuditEntry, Blob, Broadcast, Epoch, Family, HistoryEntry, Kernel, Key, KeyEntry, Label, LabelDigest, Labels, Limit,
    LimitKey, LockNeed, PauseScope, ProcedureId, ProcedureState, RateWindow, Record, Row, Rules, Seq, SignalEntry,
    Timestamp,
};

use super::draw::{PAYLOAD, limits};
use super::failure_streaks;
use super::owed::Owed;

/// Everything that is on disk.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) rows: BTreeMap<ProcedureId, Row>,
    pub(crate) history: BTreeMap<(u64, u32), HistoryEntry>,
    pub(crate) signals: BTreeMap<(ProcedureId, u32), SignalEntry>,
    /// Values, each with its length.
    pub(crate) payloads: BTreeMap<ProcedureId, usize>,
    /// First values of roots that are kept beside the newest, by family, each with its length.
    pub(crate) submitted: BTreeMap<u64, usize>,
    /// Lengths of the values that roots were submitted with, save roots that were born with children.
    pub(crate) first: BTreeMap<u64, usize>,
    /// Roots that ran again, and what runs them.
    pub(crate) again: BTreeMap<ProcedureId, ProcedureId>,
    /// The locks that each visit's newest attempt was set going under.
    pub(crate) ran_under: BTreeMap<(ProcedureId, u32), Vec<LockNeed>>,
    live: BTreeSet<u64>,
    ended: BTreeSet<u64>,
    pub(crate) keys: BTreeMap<Key, KeyEntry>,
    /// The entries of labels.
    pub(crate) label_entries: BTreeMap<ProcedureId, Labels>,
    /// The index of labels: families by digest.
    pub(crate) labels: BTreeSet<(LabelDigest, u64)>,
    /// Failures that nobody has acknowledged: when each family ended.
    pub(crate) failures: BTreeMap<u64, Timestamp>,
    /// Finished families by the instant at which their result goes; or a key that outlives one.
    pub(crate) due: BTreeMap<(Timestamp, u64), Option<Key>>,
    limits: BTreeMap<LimitKey, Limit>,
    windows: BTreeMap<LimitKey, RateWindow>,
    pauses: BTreeSet<PauseScope>,
    broadcasts: BTreeMap<Seq, Broadcast>,
    pub(crate) owed: Owed,
    pub(crate) audit: BTreeMap<u64, AuditEntry>,
    reserved: u64,
    /// Number of the newest commit.
    head: Seq,
    pub(crate) epoch: u64,
    deaths: u32,
    stopped: u64,
}

impl Disk {
    /// Folds a durable commit in.
    pub(crate) fn commit(&mut self, seq: Seq, records: &[Record]) -> Result<(), String> {
        self.head = self.head.max(seq);
        records.iter().try_for_each(|record| self.fold(record))
    }

    /// Folds a durable record in, and refuses what no store may ever be told.
    fn fold(&mut self, record: &Record) -> Result<(), String> {
        match record {
            Record::Row(row) => {
                if self.ended.contains(&row.id.family) {
                    return Err(format!("{} is written after its family has ended", row.id));
                }
                self.says_its_size(row)?;
                self.keeps_its_labels(row)?;
                let newest = self.history.get(&(row.id.family, row.history));
                failure_streaks::check(self.rows.get(&row.id), row, newest)?;
                if row.in_flight.is_some() {
                    self.ran_under.insert((row.id, row.visit), row.locks.to_vec());
                }
                if row.id.is_root() && row.as_submitted && !self.rows.contains_key(&row.id) {
                    let size = self.payloads.get(&row.id).copied();
                    self.first.extend(size.map(|size| (row.id.family, size)));
                }
                self.rows.insert(row.id, (**row).clone());
                self.owed.follow(row, is_stopped(&self.rows, row.id))?;
            }
            Record::FinishedRow(row) => {
                self.says_its_size(row)?;
                self.keeps_its_labels(row)?;
                self.rows.insert(row.id, (**row).clone());
            }
            Record::Payload(id, value) => {
                self.payloads.insert(*id, value.len());
            }
            Record::Submitted(id, _, value) => self.first_kept(*id, value)?,
            Record::History(entry) => self.history_put(entry)?,
            Record::HistoryDropped(family, number) => {
                let dropped = self.history.remove(&(*family, *number));
                let dropped =
                    dropped.ok_or_else(|| format!("entry {number} of family {family} is dropped, and is not there"))?;
                if dropped.submitted.is_some() {
                    return Err(format!(
                        "entry {number} of family {family} is dropped with the root's first value"
                    ));
                }
            }
            Record::Signal(id, number, entry, _) => {
                self.signals.insert((*id, *number), entry.clone());
            }
            Record::SignalDropped(id, number, _) => {
                let dropped = self.signals.remove(&(*id, *number));
                dropped.ok_or_else(|| format!("signal {number} of {id} is dropped, and is not there"))?;
            }
            Record::Key(key, entry) => {
                if self.keys.insert(key.clone(), entry.clone()).is_some() {
                    return Err(format!("the key {key} is given twice"));
                }
            }
            Record::Labels(id, labels) => {
                if labels.is_empty() || self.label_entries.insert(*id, labels.clone()).is_some() {
                    return Err(format!("{id} is given labels twice, or none"));
                }
            }
            Record::Labelled(family, labels) => {
                self.labels.extend(labels.iter().map(|label| (label.digest(), *family)));
            }
            Record::FamilyBegan(family) => {
                if !self.live.insert(*family) || self.ended.contains(family) {
                    return Err(format!("family {family} begins twice"));
                }
            }
            Record::FamilyEnded(family, due) => {
                if !self.live.remove(family) || !self.ended.insert(*family) {
                    return Err(format!("family {family} ends twice"));
                }
                self.due_at(*family, *due);
            }
            Record::FailureListed(entry) => {
                let root = self.rows.get(&ProcedureId::root(entry.family));
                let is_failed = root.is_some_and(|root| {
                    root.ended == Some(entry.ended)
                        && root.state != ProcedureState::Success
                        && root.rare().mark.is_none()
                });
                if !is_failed || self.failures.insert(entry.family, entry.ended).is_some() {
                    return Err(format!("family {} is listed as a failure, and is none", entry.family));
                }
            }
            Record::FailureClosed(family, ended) => {
                if self.failures.remove(family).is_some_and(|listed| listed != *ended) {
                    return Err(format!(
                        "the failure of family {family} is taken off at another instant"
                    ));
                }
            }
            Record::DueChanged(family, old, new) => {
                self.no_longer_due(*family, *old)?;
                self.due_at(*family, *new);
            }
            Record::Evicted(doomed) => self.evicted(doomed)?,
            Record::KeyExpired(key, due, family) => {
                self.no_longer_due(*family, *due)?;
                self.keys.remove(key);
            }
            Record::Limit(key, value) => {
                self.limits.insert(key.clone(), *value);
            }
            Record::RateWindow(key, window) if window.is_empty() => drop(self.windows.remove(key)),
            Record::RateWindow(key, window) => drop(self.windows.insert(key.clone(), (**window).clone())),
            Record::Broadcast(seq, broadcast) => {
                self.broadcasts.insert(*seq, (**broadcast).clone());
                let live = self.live.iter().flat_map(|family| {
                    let (first, last) = (ProcedureId::new(*family, 0), ProcedureId::new(*family, u32::MAX));
                    self.rows.range(first..=last).map(|(_, row)| row)
                });
                self.owed.begin(*seq, broadcast, live);
            }
            Record::BroadcastOver(seq) => {
                let over = self.broadcasts.remove(seq);
                over.ok_or_else(|| format!("the broadcast of {seq} is over, and is not there"))?;
                let rows = &self.rows;
                self.owed.end(*seq, |id| is_stopped(rows, id))?;
            }
            Record::Pause(what, true) => {
                self.pauses.insert(what.clone());
            }
            Record::Pause(what, false) => {
                self.pauses.remove(what);
            }
            Record::Audit(entry) => {
                if self.audit.insert(entry.number, (**entry).clone()).is_some() {
                    return Err(format!("entry {} of the audit is written twice", entry.number));
                }
            }
            Record::AuditDropped(number) => {
                self.audit.remove(number);
            }
            Record::FamiliesReserved(below) => self.reserved = self.reserved.max(*below),
            Record::Started(epoch, deaths) => (self.epoch, self.deaths) = (epoch.0, *deaths),
            Record::Stopped(epoch) => self.stopped = epoch.0,
            Record::Output(..) | Record::Archived(..) | Record::User(_) => {}
            Record::StackAsked(_)
            | Record::StackHeld(..)
            | Record::StackPopped(_)
            | Record::UndoOut(..)
            | Record::GateUnmeetable(..)
            | Record::WakeFound(_)
            | Record::Late(_)
            | Record::Disarmed(_)
            | Record::Draining => return Err(format!("{record:?} is not for the disk")),
        }
        Ok(())
    }

    /// A row says how large its value is from a quarter of the bound on, and only then.
    fn says_its_size(&self, row: &Row) -> Result<(), String> {
        let size = self.payloads.get(&row.id).copied();
        let size = size.ok_or_else(|| format!("{} has a row and no payload", row.id))?;
        let noted = row.rare().payload_size.as_ref().map(|noted| noted.bytes as usize);
        let expected = Some(size).filter(|size| 4 * size >= PAYLOAD);
        if noted != expected {
            return Err(format!("{} says {noted:?} of its value of {size} bytes", row.id));
        }
        Ok(())
    }

    /// Labels are those of the birth for good, and the index has each of them by the time a row has.
    fn keeps_its_labels(&self, row: &Row) -> Result<(), String> {
        let old = self.rows.get(&row.id);
        if old.is_some_and(|old| old.labels != row.labels) {
            return Err(format!("{} has got other labels", row.id));
        }
        let entry = row.labels.entry().map(|member| ProcedureId::new(row.id.family, member));
        let stored = entry.and_then(|id| self.label_entries.get(&id));
        if stored.cloned().unwrap_or_default() != *row.labels {
            return Err(format!("{} names an entry with the labels {stored:?}", row.id));
        }
        let missing = row
            .labels
            .iter()
            .find(|label| !self.labels.contains(&(label.digest(), row.id.family)));
        missing.map_or(Ok(()), |label| Err(format!("{} is not indexed by {label}", row.id)))
    }

    /// The index of labels has what the rows have, and nothing else.
    pub(crate) fn index_agrees(&self) -> Result<(), String> {
        let labels = |row: &Row| -> Vec<(LabelDigest, u64)> {
            let digests = row.labels.iter().map(Label::digest);
            digests.map(|digest| (digest, row.id.family)).collect()
        };
        let of_rows: BTreeSet<(LabelDigest, u64)> = self.rows.values().flat_map(labels).collect();
        if of_rows != self.labels {
            return Err(format!(
                "the index has {:?}, and the rows have {of_rows:?}",
                self.labels
            ));
        }
        Ok(())
    }

    /// Only a root has a first value, and it is kept once: under a key of its own, or in the history.
    fn first_kept(&mut self, id: ProcedureId, value: &Blob) -> Result<(), String> {
        if !id.is_root() || self.submitted.insert(id.family, value.len()).is_some() {
            return Err(format!("the first value of {id} is kept twice, or it is no root"));
        }
        Ok(())
    }

    /// Numbers are dense, an entry is overwritten only to stand no more where its
    /// undo leaves none, and nothing is undone twice.
    fn history_put(&mut self, entry: &HistoryEntry) -> Result<(), String> {
        let key = (entry.family, entry.number);
        match self.history.get(&key) {
            Some(old) => {
                // What a stage that was passed over said of its locks is written where it is needed.
                let fallen = HistoryEntry {
                    stands: false,
                    locks: old.locks.clone().or_else(|| entry.locks.clone()),
                    ..old.clone()
                };
                if !old.stands || *entry != fallen || (entry.locks.is_none() && entry.submitted.is_none()) {
                    return Err(format!("entry {key:?} is overwritten by {entry:?}"));
                }
            }
            None => {
                let newest = self
                    .of_family(entry.family)
                    .map(|entry| entry.number)
                    .max()
                    .unwrap_or(0);
                if entry.number <= newest {
                    return Err(format!("entry {key:?} comes after entry {newest}"));
                }
                if let Some(submitted) = &entry.submitted {
                    self.first_kept(ProcedureId::new(entry.family, entry.member), &submitted.value)?;
                }
            }
        }
        if entry.ending.takes_off() {
            let twice = self
                .of_family(entry.family)
                .any(|old| old.ending.takes_off() && (old.member, old.visit) == (entry.member, entry.visit));
            if twice {
                return Err(format!(
                    "visit {} of member {} is undone twice",
                    entry.visit, entry.member
                ));
            }
        }
        self.history.insert(key, entry.clone());
        Ok(())
    }

    /// Returns the history of a family, oldest first.
    pub(crate) fn of_family(&self, family: u64) -> impl Iterator<Item = &HistoryEntry> {
        self.history
            .range((family, 0)..=(family, u32::MAX))
            .map(|(_, entry)| entry)
    }

    /// Returns the rows of a family.
    pub(crate) fn members(&self, family: u64) -> impl Iterator<Item = &Row> {
        let (first, last) = (ProcedureId::new(family, 0), ProcedureId::new(family, u32::MAX));
        self.rows.range(first..=last).map(|(_, row)| row)
    }

    /// Returns the rows of all live families.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Row> {
        self.live.iter().flat_map(|family| self.members(*family))
    }

    /// Returns `true` if the start of this epoch is on disk.
    pub(crate) const fn has_started(&self, epoch: Epoch) -> bool {
        self.epoch >= epoch.0
    }

    /// Builds the kernel of the next epoch; it has not decided its start yet.
    pub(crate) fn load(&self, rules: Rules) -> Kernel {
        let died = self.epoch > 0 && self.stopped != self.epoch;
        let mut kernel = Kernel::new(rules, Epoch(self.epoch + 1), self.deaths + u32::from(died));
        kernel.continue_from(self.reserved.max(1));
        // As a start does: a broadcast's commit has a number that no row may show.
        kernel.continue_after(self.head);
        for (key, value) in &self.limits {
            kernel.evolve(&Record::Limit(key.clone(), *value));
        }
        for (key, window) in &self.windows {
            kernel.evolve(&Record::RateWindow(key.clone(), Box::new(window.clone())));
        }
        kernel.set_limits(limits());
        for what in &self.pauses {
            kernel.evolve(&Record::Pause(what.clone(), true));
        }
        for (seq, broadcast) in &self.broadcasts {
            kernel.evolve(&Record::Broadcast(*seq, Box::new(broadcast.clone())));
        }
        for entry in self.audit.values() {
            kernel.evolve(&Record::Audit(Box::new(entry.clone())));
        }
        self.live
            .iter()
            .for_each(|family| self.load_family(*family, &mut kernel));
        kernel
    }

    fn load_family(&self, family: u64, kernel: &mut Kernel) {
        kernel.evolve(&Record::FamilyBegan(family));
        for row in self.members(family) {
            kernel.evolve(&Record::Row(Box::new(row.clone())));
        }
        let (first, last) = (
            (ProcedureId::root(family), 0),
            (ProcedureId::new(family, u32::MAX), u32::MAX),
        );
        for ((id, number), entry) in self.signals.range(first..=last) {
            kernel.evolve(&Record::Signal(*id, *number, entry.clone(), Blob::default()));
        }
    }

    /// Tells how a living kernel differs from one built from here.
    pub(crate) fn compare(&self, living: &Kernel) -> Result<(), String> {
        let loaded = self.load(living.rules().clone());
        if self.live.last().is_some_and(|newest| *newest >= self.reserved) {
            return Err("a family has a number that was not reserved".to_owned());
        }
        let numbers = |kernel: &Kernel| kernel.families().keys().collect::<Vec<_>>();
        if numbers(&loaded) != numbers(living) {
            return Err(format!(
                "memory has families {:?}, the disk {:?}",
                numbers(living),
                numbers(&loaded)
            ));
        }
        if loaded.in_flight() != living.in_flight()
            || loaded.limits() != living.limits()
            || loaded.rates() != living.rates()
        {
            return Err("memory and disk differ in stages that are out, in limits, or in rates".to_owned());
        }
        if loaded.pauses() != living.pauses() || loaded.audited() != living.audited() {
            return Err("memory and disk differ in pauses, or in the audit".to_owned());
        }
        let all = living.families();
        all.iter()
            .try_for_each(|(number, family)| same(number, &family, &loaded))
    }

    /// Tells how these families differ from those built from here. Far less work than to look at all.
    pub(crate) fn compare_some(&self, living: &Kernel, families: &BTreeSet<u64>) -> Result<(), String> {
        let mut loaded = Kernel::new(living.rules().clone(), Epoch(self.epoch), self.deaths);
        for number in families.intersection(&self.live) {
            self.load_family(*number, &mut loaded);
        }
        for number in families {
            match living.families().get(number) {
                Some(family) => same(*number, family, &loaded)?,
                None if self.live.contains(number) => return Err(format!("only the disk has family {number}")),
                None => {}
            }
        }
        Ok(())
    }
}

fn same(number: u64, memory: &Family, loaded: &Kernel) -> Result<(), String> {
    // Which scopes roll back is not stored.
    let stored = if memory.scopes.is_empty() {
        Cow::Borrowed(memory)
    } else {
        let scopes = BTreeMap::new();
        Cow::Owned(Family {
            scopes,
            ..memory.clone()
        })
    };
    let disk = loaded.families().get(&number);
    if disk != Some(&*stored) {
        return Err(format!(
            "family {number} differs.\n memory {stored:#?}\n   disk {disk:#?}"
        ));
    }
    Ok(())
}

/// Tells whether a member has ended, or a failure at or above it stops it.
fn is_stopped(rows: &BTreeMap<ProcedureId, Row>, id: ProcedureId) -> bool {
    let parent = |row: &&Row| rows.get(&ProcedureId::new(id.family, row.parent?));
    let mut above = std::iter::successors(rows.get(&id), parent);
    above.any(|row| row.is_ended() || row.is_failing())
}
