//! The contents of an export, read and checked before anything else. Whoever made the file, only entries that an
//! engine could have written reach the journal.

use std::collections::BTreeMap;

use procession_kernel::{
    Blob, HistoryEntry, Key, KeyEntry, Labels, NAMED_MAX, ProcedureId, Record, Row, RowLabels, SUBMITTED_ENTRY_LAST,
    SUBMITTED_IN_ENTRY_MAX, SubmittedValue, Timestamp, check_rows,
};

use super::fields::unknown_field;
use super::root;
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::keys::{self, OUTPUT, PAYLOAD, SUBMITTED};
use crate::journal::reader::LabelEntries;
use crate::journal::{Space, codec};
use crate::supervisor::lifecycle::recovery::{row_of, signal_of};

/// A family as its export holds it.
pub(super) struct Content {
    pub(super) family: u64,
    /// Rows, by member.
    pub(super) rows: Vec<Row>,
    /// Raw payloads, outputs, history and signals.
    pub(super) raw: Vec<(Space, Blob, Blob)>,
    pub(super) signals: Vec<Record>,
    pub(super) history: usize,
    pub(super) key: Option<(Key, Blob)>,
    pub(super) live: bool,
    /// It has failed, and nobody had acknowledged that when it was exported.
    pub(super) is_failure: bool,
}

/// Its entries by keyspace and key.
type Entries<'a> = BTreeMap<Space, BTreeMap<&'a [u8], &'a Blob>>;

impl Content {
    /// Checks an export against itself, and against what engines write.
    pub(super) fn of(export: &FamilyExport) -> Result<Self, String> {
        check_head(export)?;
        let family = export.family;
        let entries = sorted(export)?;
        let of = |space: &Space| entries.get(space).into_iter().flatten();
        let rows = read_rows(family, of(&Space::Procedures))?;
        for (key, _) in of(&Space::Payloads) {
            check_member(&rows, keys::parse_procedure(key))?;
        }
        check_values(&rows, &entries)?;
        for (key, value) in of(&Space::History) {
            check_history(&rows, key, value)?;
        }
        let mut signals = Vec::new();
        for (key, value) in of(&Space::Signals) {
            signals.push(read_signal(&rows, key, value)?);
        }
        let live = check_state(&rows)?;
        let key = read_key(&rows, of(&Space::Keys))?;
        check_index(&rows, live, &entries)?;
        let is_failure = of(&Space::Finished).any(|(key, _)| keys::parse_failure(key).is_some());
        let raw = [Space::Payloads, Space::History, Space::Signals];
        let raw = raw.into_iter().flat_map(|space| {
            let entries = entries.get(&space).into_iter().flatten();
            entries.map(move |(key, value)| (space.clone(), Blob::from(*key), (*value).clone()))
        });
        Ok(Self {
            family,
            raw: raw.collect(),
            history: of(&Space::History).count(),
            rows,
            signals,
            key,
            live,
            is_failure,
        })
    }
}

fn check_head(export: &FamilyExport) -> Result<(), String> {
    if export.format > FamilyExport::NEWEST_FORMAT {
        return Err(format!(
            "it has format {}, and this release reads up to {}; use the release that wrote it",
            export.format,
            FamilyExport::NEWEST_FORMAT
        ));
    }
    if !export.whole {
        return Err(
            "the family changed while it was read, so its members may be from different moments; pause it, or stop \
                    its engine, and export it again"
                .to_owned(),
        );
    }
    if let Some(why) = export.unreadable.first() {
        return Err(format!(
            "parts of it cannot be read: {why}; import an older export of it, from before the damage"
        ));
    }
    if export.family > NAMED_MAX {
        return Err(format!("no engine assigns a family the number {}", export.family));
    }
    let sizes = export.entries.iter().map(|entry| entry.key.len() + entry.value.len());
    let size: usize = sizes.sum();
    if size > EXPORT_MAX {
        return Err(format!("it has {size} bytes, over the limit of {EXPORT_MAX}"));
    }
    Ok(())
}

fn sorted(export: &FamilyExport) -> Result<Entries<'_>, String> {
    let mut entries = Entries::new();
    for entry in &export.entries {
        let space = Space::ENGINE.into_iter().find(|space| space.name() == entry.space);
        let space = space.ok_or_else(|| foreign(&entry.space))?;
        let key = entry.key.as_slice();
        if !is_of(export.family, &space, key)? {
            return Err(format!("an entry of \"{}\" is not of this family", entry.space));
        }
        let before = entries.entry(space).or_default().insert(key, &entry.value);
        if before.is_some() {
            return Err(format!("it has an entry of \"{}\" twice", entry.space));
        }
    }
    Ok(entries)
}

fn foreign(space: &str) -> String {
    let space = space.chars().take(64).flat_map(char::escape_debug).collect::<String>();
    format!("it has an entry of \"{space}\", which holds nothing of families")
}

/// Returns `true` if a key of this keyspace names this family, in the layout of such keys.
fn is_of(family: u64, space: &Space, key: &[u8]) -> Result<bool, String> {
    let begins = key.starts_with(&keys::family(family));
    match space {
        Space::Procedures => Ok(begins && (key.len() == 12 || keys::parse_labels(key).is_some())),
        Space::History => Ok(begins && key.len() == 12),
        Space::Payloads => Ok(begins && key.len() == 13 && matches!(key.last(), Some(&PAYLOAD | &OUTPUT | &SUBMITTED))),
        Space::Signals => Ok(begins && keys::parse_signal(key).is_some()),
        Space::Live => Ok(key == keys::family(family)),
        Space::Finished => {
            let named = keys::parse_finished(key).or_else(|| keys::parse_failure(key));
            Ok(key.len() == 16 && named.is_some_and(|(_, of)| of == family))
        }
        // The family is named in the value, not in the key.
        Space::Keys => Ok(true),
        Space::Meta | Space::Audit | Space::Archive | Space::User(_) => Err(foreign(&space.name())),
    }
}

fn read_rows<'a>(family: u64, entries: impl Iterator<Item = (&'a &'a [u8], &'a &'a Blob)>) -> Result<Vec<Row>, String> {
    let (labels, entries): (Vec<_>, Vec<_>) = entries.partition(|(key, _)| keys::parse_labels(key).is_some());
    let label_entries = LabelEntries::of(labels.iter().map(|(key, value)| (**key, value.as_slice())));
    let mut rows = Vec::new();
    for ((key, value), member) in entries.into_iter().zip(0_u32..) {
        let id = ProcedureId::new(family, member);
        let row = row_of(id, key, value.as_slice(), &label_entries)?;
        if row.revision.0 > NAMED_MAX {
            return Err(format!("the row of {id}: its commit number is impossible"));
        }
        if let Some(name) = unknown_field(value.as_slice()) {
            return Err(format!(
                "the row of {id} has a field \"{}\" that this release does not know; use the release that wrote it",
                name.escape_debug()
            ));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err("its root is missing".to_owned());
    }
    check_rows(&rows)?;
    for id in labels.iter().filter_map(|(key, _)| keys::parse_labels(key)) {
        let row = rows.get(id.member as usize);
        if row.and_then(|row| row.labels.entry()) != Some(id.member) {
            return Err(format!("it has labels of {id}, whose row does not name them"));
        }
    }
    // Older releases kept them in the row.
    for row in rows.iter_mut().filter(|row| row.labels.is_in_row()) {
        row.labels = RowLabels::in_entry(row.id.member, Labels::clone(&row.labels));
    }
    Ok(rows)
}

fn check_member(rows: &[Row], id: Option<ProcedureId>) -> Result<&Row, String> {
    let id = id.ok_or("a key names no procedure")?;
    let row = rows.get(id.member as usize);
    row.ok_or_else(|| format!("it has entries of {id}, whose row is missing"))
}

/// A procedure with something left to do must have a value.
fn check_values(rows: &[Row], entries: &Entries<'_>) -> Result<(), String> {
    let values = entries.get(&Space::Payloads);
    for row in rows.iter().filter(|row| !row.is_over()) {
        let key = keys::payload(row.id, PAYLOAD);
        if !values.is_some_and(|values| values.contains_key(&key[..])) {
            return Err(format!("the value of {} is missing", row.id));
        }
    }
    Ok(())
}

fn check_history(rows: &[Row], key: &[u8], value: &Blob) -> Result<(), String> {
    let number = keys::parse_procedure(key).map_or(0, |id| id.member);
    let entry: HistoryEntry =
        codec::decode(value.as_slice()).map_err(|error| format!("entry {number} of the history: {error}"))?;
    let newest = rows.iter().map(|row| row.history).max().unwrap_or_default();
    if number == 0 || number > newest {
        return Err(format!("entry {number} of the history is one to which no row has come"));
    }
    let is_too_large = |submitted: &SubmittedValue| submitted.value.len() > SUBMITTED_IN_ENTRY_MAX;
    if let Some(submitted) = &entry.submitted
        && (entry.member != 0 || number > SUBMITTED_ENTRY_LAST || is_too_large(submitted))
    {
        return Err(format!(
            "entry {number} of the history has the value with which the root was submitted, and may not: only the root's own \
             of the first {SUBMITTED_ENTRY_LAST} may, up to {SUBMITTED_IN_ENTRY_MAX} bytes"
        ));
    }
    match rows.get(entry.member as usize) {
        Some(_) => Ok(()),
        None => Err(format!("entry {number} of the history is of a member that is missing")),
    }
}

fn read_signal(rows: &[Row], key: &[u8], value: &Blob) -> Result<Record, String> {
    let (id, number, name) = keys::parse_signal(key).ok_or("a signal has a key that names no signal")?;
    let row = check_member(rows, Some(id))?;
    let signal = signal_of(key, value.as_slice())?;
    if let Record::Signal(_, _, entry, _) = &signal
        && entry.name.as_str() == name
        && number <= row.signals
    {
        return Ok(signal);
    }
    Err(format!("signal {number} of {id} is not the one that its key names"))
}

/// Returns `true` if the family has something left to do.
fn check_state(rows: &[Row]) -> Result<bool, String> {
    let live = rows.iter().any(|row| !row.is_over());
    let due = rows.first().and_then(|root| root.due);
    match (live, due) {
        (true, None) | (false, Some(_)) => Ok(live),
        (true, Some(_)) => Err("its result was to go at a time, and it has not ended".to_owned()),
        (false, None) => Err("all of it has ended, and no time is set for its result to go".to_owned()),
    }
}

/// Reads the entry of its idempotency key, which must stand for the root that was submitted with it.
fn read_key<'a>(
    rows: &[Row],
    mut entries: impl Iterator<Item = (&'a &'a [u8], &'a &'a Blob)>,
) -> Result<Option<(Key, Blob)>, String> {
    let Some(first) = rows.first() else { return Ok(None) };
    match (&first.key, entries.next(), entries.next()) {
        (None, None, _) => Ok(None),
        (Some(key), Some((name, value)), None) if key.as_str().as_bytes() == *name => {
            let entry: KeyEntry = codec::decode(value.as_slice())
                .map_err(|error| format!("what its idempotency key stands for: {error}"))?;
            if entry.id != root(first.id.family) {
                return Err(format!("its idempotency key stands for {}", entry.id));
            }
            Ok(Some((key.clone(), (*value).clone())))
        }
        (Some(_), None, _) => Err("what its idempotency key stands for is missing".to_owned()),
        (Some(_) | None, Some(_), _) => Err("it has an idempotency key that is not its own".to_owned()),
    }
}

/// The index entries are created anew; those in the export must not contradict them.
fn check_index(rows: &[Row], live: bool, entries: &Entries<'_>) -> Result<(), String> {
    let is_live = entries.get(&Space::Live).is_some_and(|entries| !entries.is_empty());
    let of_root = |instant: fn(&Row) -> Option<Timestamp>| rows.first().and_then(instant);
    let places = || entries.get(&Space::Finished).into_iter().flatten().map(|(key, _)| *key);
    let due: Vec<Timestamp> = places().filter_map(keys::parse_finished).map(|(at, _)| at).collect();
    let mut failed = places().filter_map(keys::parse_failure);
    let other = due.iter().any(|at| Some(*at) != of_root(|root| root.due))
        || failed.any(|(at, _)| live || Some(at) != of_root(|root| root.ended));
    if is_live != live || due.is_empty() != live || other {
        return Err("its rows and the index disagree about whether it lives".to_owned());
    }
    Ok(())
}
