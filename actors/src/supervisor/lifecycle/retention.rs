//! Retention: evicts results that are due, a few families at a time, each as a whole.

use procession_kernel::{Blob, EventName, EvictedFamily, Key, ProcedureId, Record, Row, Timestamp};

use super::recovery::Loaded;
use super::wall::Wall;
use crate::clock::Clock;
use crate::error::{AskError, ReadError, StoreError};
use crate::journal::store::Scan;
use crate::journal::{Reader, Space, keys};
use crate::read::labels::digests_of;

/// Bounds the families that one commit evicts.
const FAMILIES_AT_ONCE: usize = 64;
/// Bounds the keys that one commit deletes, unless a single family has more.
const KEYS_AT_ONCE: u64 = 10_000;

/// When results fall due, and how far the wall clock is trusted for that.
pub(super) struct Retention {
    /// When the first result falls due, as far as it is known.
    next_due: Option<Timestamp>,
    /// A look at the results is under way.
    is_evicting: bool,
    wall: Wall,
}

/// The findings of one look at the results that are due. `None` if the engine failed before it could look.
pub(in crate::supervisor) type FoundDue = Option<Result<DueResults, ReadError>>;

/// What to do after a look at the results.
pub(in crate::supervisor) enum Eviction {
    /// Evict these families, which may be none.
    Families(Vec<EvictedFamily>),
    /// The store did not answer: look again after a delay.
    ReadAgain(StoreError),
    /// Nothing. Damaged results are looked at again with the next result, or at the next start.
    Nothing,
}

/// The findings of one look.
#[derive(Default)]
pub(in crate::supervisor) struct DueResults {
    doomed: Vec<EvictedFamily>,
    /// When to look again.
    next: Option<Timestamp>,
    /// Keys that are deleted with them.
    size: u64,
    /// Unreadable families: how many, and the first of them. They stay as they are, and block no other family.
    unreadable: u64,
    first: Option<(u64, ReadError)>,
}

impl Retention {
    pub(super) fn new(loaded: &Loaded) -> Self {
        Self {
            next_due: loaded.next_due,
            is_evicting: false,
            wall: Wall::new(loaded.last_look, loaded.kernel.rules()),
        }
    }

    pub(super) const fn wall(&mut self) -> &mut Wall {
        &mut self.wall
    }

    /// Records when a result falls due. Returns `true` if no other known result is due as early.
    pub(super) fn note_due(&mut self, due: Option<Timestamp>) -> bool {
        let is_first = due.is_some_and(|due| self.next_due.is_none_or(|next| due < next));
        if is_first {
            self.next_due = due;
        }
        is_first
    }

    /// Returns when to look at the results. Returns `None` while a look is under way, because its end arms the timer
    /// again.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let due = self.next_due.filter(|_| !self.is_evicting)?;
        Some(self.wall.goes_at(due))
    }

    pub(super) fn begin(&mut self, clock: &dyn Clock) -> Option<Timestamp> {
        let now = clock.now();
        let is_due = self.next_due.is_some_and(|due| due <= now);
        // If the clock was ahead, it is looked at each time: it may have been set back since.
        if self.is_evicting || (!is_due && self.wall.ahead().is_none()) {
            return None;
        }
        let until = self.wall.look(clock);
        if self.next_due.is_none_or(|due| due > until) {
            return None;
        }
        self.is_evicting = true;
        // This look may miss results recorded from here on. So their due times are kept apart, and the look's own
        // result is added.
        self.next_due = None;
        Some(until)
    }

    pub(super) fn end(&mut self, found: FoundDue) -> Eviction {
        self.is_evicting = false;
        match found {
            Some(Ok(DueResults { doomed, next, .. })) => {
                self.note_due(next);
                Eviction::Families(doomed)
            }
            Some(Err(ReadError::Store(why))) if why.may_pass() => Eviction::ReadAgain(why),
            Some(Err(why)) => {
                tracing::warn!(%why, "the order of eviction cannot be read, so nothing is evicted");
                Eviction::Nothing
            }
            None => Eviction::Nothing,
        }
    }
}

/// Returns when something that a record leaves behind falls due.
pub(in crate::supervisor) fn due_of(record: &Record) -> Option<Timestamp> {
    if let Record::FamilyEnded(_, at) | Record::DueChanged(_, _, at) = record {
        Some(*at)
    } else if let Record::Evicted(doomed) = record {
        doomed.key_until
    } else {
        None
    }
}

/// Looks for results that were due at `until`, once everything decided so far is on disk. A look that overtook a
/// commit would miss its results, and nothing would wake for them.
pub(in crate::supervisor) async fn find_due(
    settled: impl Future<Output = Result<(), AskError>>,
    reader: Reader,
    until: Timestamp,
) -> FoundDue {
    settled.await.ok()?;
    Some(find(&reader, until).await)
}

/// Looks at the results in order of their due times, until enough are found for one commit.
async fn find(reader: &Reader, now: Timestamp) -> Result<DueResults, ReadError> {
    let (mut found, mut from) = (DueResults::default(), Vec::new());
    loop {
        let scan = Scan {
            space: Space::Finished,
            from,
            to: Some(keys::first_failure().to_vec()),
            limit: FAMILIES_AT_ONCE + 1,
        };
        let entries = reader.scan(scan).await?;
        let is_all = entries.len() <= FAMILIES_AT_ONCE;
        let last = entries.last().map(|(key, _)| key.clone());
        for (key, kept_key) in entries {
            found.look_at(reader, now, &key, &kept_key).await?;
            if found.next.is_some() {
                break;
            }
        }
        match last.filter(|_| !is_all && found.next.is_none()) {
            Some(last) => from = [last.as_slice(), &[0]].concat(),
            None => break,
        }
    }
    if let Some((family, why)) = &found.first {
        let count = found.unreadable;
        tracing::warn!(count, family, %why, "finished families cannot be read, so they are not evicted");
    }
    Ok(found)
}

impl DueResults {
    async fn look_at(&mut self, reader: &Reader, now: Timestamp, key: &[u8], kept_key: &[u8]) -> Result<(), ReadError> {
        let Some((due, family)) = keys::parse_finished(key) else {
            return Ok(());
        };
        if due > now || self.doomed.len() == FAMILIES_AT_ONCE || self.size > KEYS_AT_ONCE {
            self.next = Some(due);
            return Ok(());
        }
        let doomed = if kept_key.is_empty() {
            match describe(reader, family, due).await {
                Ok(doomed) => doomed,
                Err(ReadError::Store(why)) if why.may_pass() => return Err(why.into()),
                Err(damage) => {
                    self.unreadable += 1;
                    self.first.get_or_insert((family, damage));
                    return Ok(());
                }
            }
        } else {
            key_alone(family, due, kept_key)
        };
        self.size += u64::from(doomed.members) * 3
            + u64::from(doomed.history.saturating_sub(doomed.history_from))
            + (doomed.labels.len() + doomed.labelled.len()) as u64;
        self.doomed.push(doomed);
        Ok(())
    }
}

/// Describes a family that has left only its key, because the key was to be kept longer.
fn key_alone(family: u64, due: Timestamp, key: &[u8]) -> EvictedFamily {
    EvictedFamily {
        family,
        due,
        members: 0,
        submitted: false,
        history_from: 0,
        history: 0,
        signals: Vec::new(),
        labels: Vec::new(),
        labelled: Vec::new(),
        failed: None,
        key: Some(Key::from(String::from_utf8_lossy(key).into_owned())),
        key_until: None,
        raw: Vec::new(),
    }
}

/// Lists every key of a finished family. If the index names a family that has not ended, or that is due later, the
/// index entry is wrong, and it alone is deleted.
async fn describe(reader: &Reader, family: u64, due: Timestamp) -> Result<EvictedFamily, ReadError> {
    let rows: Vec<Row> = reader.rows(family).await?;
    if rows
        .iter()
        .any(|row| !row.is_over() || row.due.is_some_and(|own| own > due))
    {
        tracing::warn!(family, %due, "a family is not due for eviction; its wrong index entry is deleted");
        let entry = key_alone(family, due, &[]);
        return Ok(EvictedFamily { key: None, ..entry });
    }
    let history = rows.iter().map(|row| row.history).max().unwrap_or_default();
    let root = rows.iter().find(|row| row.id == ProcedureId::root(family));
    let history_from = root.map_or(0, |row| row.history_from);
    // Rows may count more entries than there are. If the count exceeds what one commit deletes, the entries are
    // looked up.
    let raw = if u64::from(history.saturating_sub(history_from)) > KEYS_AT_ONCE {
        every_key(reader, family).await?
    } else {
        Vec::new()
    };
    let signals = reader.scan_prefix(Space::Signals, &keys::family(family)).await?;
    let key = root.and_then(|row| row.key.clone());
    let mut key_until = None;
    if let Some(key) = &key {
        let entry = reader.key_entry(key.as_str().as_bytes()).await?;
        key_until = entry.and_then(|entry| entry.until);
    }
    // A small value is in the history, and a root that changed its value with its last stage has left no other.
    let submitted = match root.filter(|root| !root.as_submitted) {
        Some(root) => reader.payload(root.id, keys::SUBMITTED).await?.is_some(),
        None => false,
    };
    Ok(EvictedFamily {
        family,
        due,
        members: u32::try_from(rows.len()).unwrap_or(u32::MAX),
        submitted,
        history_from,
        history: if raw.is_empty() { history } else { 0 },
        signals: signals
            .iter()
            .filter_map(|(key, _)| keys::parse_signal(key))
            .map(|(id, number, name)| (id.member, EventName::from(name), number))
            .collect(),
        labels: digests_of(&rows),
        labelled: rows
            .iter()
            .filter_map(|row| row.labels.entry().filter(|member| *member == row.id.member))
            .collect(),
        failed: root.filter(|root| root.state.is_failure()).and_then(|root| root.ended),
        key,
        key_until,
        raw,
    })
}

/// Lists the keys of a family's rows, values and history as they are on disk.
async fn every_key(reader: &Reader, family: u64) -> Result<Vec<(String, Blob)>, ReadError> {
    let mut all = Vec::new();
    for space in [Space::Procedures, Space::Payloads, Space::History] {
        let entries = reader.scan_prefix(space.clone(), &keys::family(family)).await?;
        let named = entries.into_iter().map(|(key, _)| (space.name(), Blob::from(key)));
        all.extend(named);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
