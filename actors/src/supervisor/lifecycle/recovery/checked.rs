//! The stored data of a family, decoded and checked by itself: against the registered code, and independently of the
//! families read before it.

use std::collections::BTreeMap;

use procession_kernel::{Kind, KindRules, Members, ProcedureId, Record, Row, check_rows};

use super::Code;
use super::ranges::Stored;
use crate::journal::encode::StoredSignal;
use crate::journal::reader::{LabelEntries, StoredRow, decode_row, slices};
use crate::journal::{codec, keys};
use crate::supervisor::admission::requests::is_holder;

/// Bounds the members without code that the reason of one family names. In a wide family they are many, and alike.
const LISTED: usize = 16;

/// A family that was read.
pub(super) struct Checked {
    pub(super) family: u64,
    pub(super) found: Result<Sound, Faulty>,
}

/// A family that can be loaded, as far as its rows alone show.
pub(super) struct Sound {
    pub(super) rows: Members,
    pub(super) signals: Vec<Record>,
}

/// A family that cannot be loaded: the reason, and its rows that hold something.
pub(super) struct Faulty {
    pub(super) why: String,
    pub(super) holders: Vec<(ProcedureId, Row)>,
}

/// What families are checked against.
pub(super) struct Checker {
    pub(super) code: Code,
    pub(super) kinds: BTreeMap<Kind, KindRules>,
}

impl Checker {
    pub(super) fn check(&self, stored: &Stored) -> Checked {
        let rows = self.rows_of(stored);
        let found = rows.and_then(|rows| {
            let signals = stored.signals.iter().map(|(key, value)| signal_of(key, value));
            let signals = signals.collect::<Result<_, String>>()?;
            Ok(Sound { rows, signals })
        });
        Checked {
            family: stored.family,
            found: found.map_err(|why| faulty(why, &stored.rows)),
        }
    }

    fn rows_of(&self, stored: &Stored) -> Result<Members, String> {
        if stored.rows.is_empty() {
            return Err("its rows are missing".to_owned());
        }
        let mut rows = Vec::with_capacity(stored.rows.len());
        let labels = LabelEntries::of(slices(&stored.rows));
        let entries = stored.rows.iter().filter(|(key, _)| keys::parse_labels(key).is_none());
        for ((key, value), member) in entries.zip(0_u32..) {
            let mut row = row_of(ProcedureId::new(stored.family, member), key, value, &labels)?;
            // All rows of a kind share its name.
            if let Some((kind, _)) = self.kinds.get_key_value(&row.kind) {
                row.kind = kind.clone();
            }
            rows.push(Box::new(row));
        }
        check_rows(&rows)?;
        if self.code == Code::Registered {
            self.check_code(&rows)?;
        }
        Ok(rows)
    }

    /// Checks that all live procedures have code. The error lists the ones whose code is gone.
    fn check_code(&self, rows: &[Box<Row>]) -> Result<(), String> {
        let mut gone = Vec::new();
        let mut more = 0_usize;
        for row in rows.iter().filter(|row| !row.is_ended()) {
            let checked = match self.kinds.get(&row.kind) {
                Some(rules) => rules.check_version(&row.kind, row.version),
                None => Err(format!("no procedure of kind \"{}\" is registered", row.kind)),
            };
            match checked {
                Ok(()) => {}
                Err(why) if gone.len() < LISTED => gone.push(format!("{}: {why}", row.id)),
                Err(_) => more += 1,
            }
        }
        match (gone.is_empty(), more) {
            (true, _) => Ok(()),
            (false, 0) => Err(gone.join("; ")),
            (false, more) => Err(format!("{}; and {more} more", gone.join("; "))),
        }
    }
}

/// Collects the rows that hold something, as far as they can be read. Nobody knows what an unreadable row held, so
/// its permits and locks are not kept; the reason says so.
fn faulty(mut why: String, rows: &[(Vec<u8>, Vec<u8>)]) -> Faulty {
    let read = rows.iter().filter_map(|(key, value)| {
        let id = keys::parse_row(key)?;
        Some((id, decode_row(id, value).map(StoredRow::without_labels)))
    });
    let (readable, lost): (Vec<_>, Vec<_>) = read.partition(|(_, row)| row.is_ok());
    if let Some((id, _)) = lost.first() {
        why = format!("{why}; the locks and permits of {id} are unknown, and other procedures may take them");
    }
    let readable = readable.into_iter().filter_map(|(id, row)| Some((id, row.ok()?)));
    let holders = readable.filter(|(_, row)| is_holder(row)).collect();
    Faulty { why, holders }
}

/// Reads the row of a member. Its parent must have been born before it.
pub(crate) fn row_of(expected: ProcedureId, key: &[u8], value: &[u8], labels: &LabelEntries) -> Result<Row, String> {
    let id = keys::parse_row(key).ok_or("a row has a key that names no procedure")?;
    if id.member != expected.member {
        return Err(format!("member {} is missing", expected.member));
    }
    let row = decode_row(id, value).and_then(|row| labels.complete(row));
    let row = row.map_err(|error| format!("the row of {id}: {error}"))?;
    check_place(expected.family, &row)?;
    Ok(row)
}

fn check_place(family: u64, row: &Row) -> Result<(), String> {
    if row.id.family != family
        || (row.id.member == 0) != row.parent.is_none()
        || row.parent.is_some_and(|parent| parent >= row.id.member)
    {
        return Err(format!("{} is not below its parent", row.id));
    }
    Ok(())
}

/// Reads a signal, without its payload.
pub(crate) fn signal_of(key: &[u8], value: &[u8]) -> Result<Record, String> {
    let (id, number, _) = keys::parse_signal(key).ok_or("a signal has a key that names no signal")?;
    let stored: StoredSignal = codec::decode(value).map_err(|error| format!("signal {number} of {id}: {error}"))?;
    Ok(Record::Signal(
        id,
        number,
        stored.entry,
        procession_kernel::Blob::default(),
    ))
}
