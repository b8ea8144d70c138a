//! The live families of a start: each is checked, and taken into the kernel or
//! set aside. Where reads may block, the next are read meanwhile.

use std::sync::mpsc;
use std::thread;

use procession_kernel::{HistoryEntry, Kernel, ProcedureId, Record, Row, check_rows};

use super::ranges::{Stored, read_live};
use super::{Code, Loaded, scan};
use crate::error::{StartError, StoreError};
use crate::journal::encode::StoredSignal;
use crate::journal::reader::decode_row;
use crate::journal::{JournalStore, Space, codec, keys};

/// Members of one family whose code is gone that its reason names; of a wide family they are many, and alike.
const LISTED: usize = 16;

/// Groups of families that are read ahead: enough that neither side waits for
/// the other at each, few enough that they take no memory to speak of.
const AHEAD: usize = 4;

/// Reads the live families in their order.
pub(super) async fn read_families(store: &dyn JournalStore, loaded: &mut Loaded) -> Result<(), StartError> {
    let mut failing = Vec::new();
    if store.reads_block() {
        failing = read_beside(store, loaded)?;
    } else {
        let mut all = Vec::new();
        let take = |some: Vec<Stored>| {
            all.extend(some);
            true
        };
        read_live(store, take).await?;
        failing.extend(all.iter().filter_map(|stored| take_family(loaded, stored)));
    }
    for family in failing {
        let stack = read_stack(store, family).await?;
        loaded.stacks.insert(family, stack);
    }
    Ok(())
}

/// Has a thread of its own read, while this one decodes what was read.
fn read_beside(store: &dyn JournalStore, loaded: &mut Loaded) -> Result<Vec<u64>, StartError> {
    let (give, given) = mpsc::sync_channel(AHEAD);
    let read = move || futures::executor::block_on(read_live(store, |some| give.send(some).is_ok()));
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("procession-start".to_owned());
        let reading = thread
            .spawn_scoped(scope, read)
            .map_err(|error| StartError::Thread(error.to_string()))?;
        let mut failing = Vec::new();
        for some in given {
            failing.extend(some.iter().filter_map(|stored| take_family(loaded, stored)));
        }
        let read = reading
            .join()
            .map_err(|_| StartError::Thread("reading the live rows panicked".to_owned()))?;
        read.map(|()| failing).map_err(StartError::from)
    })
}

/// Takes a family in, or sets it aside. Gives its number if it rolls back.
fn take_family(loaded: &mut Loaded, stored: &Stored) -> Option<u64> {
    let family = stored.family;
    if !loaded.kernel.can_have_begun(family) {
        quarantine(loaded, stored, "no engine gave it its number".to_owned());
        return None;
    }
    loaded.kernel.evolve(&Record::FamilyBegan(family));
    let checked = check_family(loaded, family, &stored.rows);
    let taken = checked.and_then(|rows| take_rows(loaded, family, rows, &check_signals(&stored.signals)?));
    match taken {
        Err(why) => {
            loaded.kernel.forget(family);
            quarantine(loaded, stored, why);
            None
        }
        Ok(rolls_back) => {
            loaded.kernel.freeze(family);
            rolls_back.then_some(family)
        }
    }
}

fn quarantine(loaded: &mut Loaded, stored: &Stored, why: String) {
    let family = stored.family;
    tracing::warn!(family, why, "the family is quarantined");
    loaded.report.quarantined.push((family, why));
    loaded.quarantined_holders.extend(holders(&stored.rows));
}

/// Builds a family, and checks what came of its rows. Tells whether some of it rolls back.
fn take_rows(loaded: &mut Loaded, family: u64, rows: Vec<Row>, signals: &[Record]) -> Result<bool, String> {
    let unfinished = rows.iter().filter(|row| !row.is_ended()).count();
    let rolls_back = rows.iter().any(Row::is_failing);
    for row in rows {
        loaded.kernel.take_up(Box::new(row));
    }
    for signal in signals {
        loaded.kernel.evolve(signal);
    }
    loaded.kernel.check_family(family)?;
    loaded.report.families += 1;
    loaded.report.procedures += unfinished;
    Ok(rolls_back)
}

/// Entries that cannot be read are missed when the rollback needs them: the family parks there.
async fn read_stack(store: &dyn JournalStore, family: u64) -> Result<Vec<HistoryEntry>, StoreError> {
    let prefix = keys::family(family).to_vec();
    let to = keys::after_prefix(&prefix);
    let history = scan(store, Space::History, prefix, to, usize::MAX).await?;
    Ok(decode_history(&history).unwrap_or_else(|error| {
        tracing::warn!(family, %error, "its history is damaged");
        Vec::new()
    }))
}

/// Gives the rows that hold something, as far as they can be read.
fn holders(rows: &[(Vec<u8>, Vec<u8>)]) -> impl Iterator<Item = (ProcedureId, Row)> {
    rows.iter()
        .filter_map(|(key, value)| {
            let id = keys::parse_procedure(key)?;
            Some((id, decode_row(id, value).ok()?))
        })
        .filter(|(_, row)| row.holds || !row.locked.is_empty())
}

fn check_family(loaded: &Loaded, family: u64, entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<Row>, String> {
    if entries.is_empty() {
        return Err("its rows are missing".to_owned());
    }
    let mut rows = Vec::with_capacity(entries.len());
    for ((key, value), expected) in entries.iter().zip(0_u32..) {
        let mut row = row_of(ProcedureId::new(family, expected), key, value)?;
        // All of a kind share its name.
        if let Some((kind, _)) = loaded.kernel.rules().kinds.get_key_value(&row.kind) {
            row.kind = kind.clone();
        }
        rows.push(row);
    }
    check_rows(&rows)?;
    if let Some(row) = rows.iter().find(|row| !loaded.kernel.can_have_committed(row.revision)) {
        return Err(format!("the row of {}: no engine made its commit", row.id));
    }
    if loaded.code == Code::Registered {
        check_code(&loaded.kernel, &rows)?;
    }
    Ok(rows)
}

/// Reads the row of a member, which must hang below one that was born before it.
pub(crate) fn row_of(expected: ProcedureId, key: &[u8], value: &[u8]) -> Result<Row, String> {
    let id = keys::parse_procedure(key).ok_or("a row has a key that names no procedure")?;
    if id.member != expected.member {
        return Err(format!("member {} is missing", expected.member));
    }
    let row = decode_row(id, value).map_err(|error| format!("the row of {id}: {error}"))?;
    check_place(expected.family, &row)?;
    Ok(row)
}

fn check_place(family: u64, row: &Row) -> Result<(), String> {
    if row.id.family != family
        || (row.id.member == 0) != row.parent.is_none()
        || row.parent.is_some_and(|parent| parent >= row.id.member)
    {
        return Err(format!("{} does not hang below its parent", row.id));
    }
    Ok(())
}

/// Lists the live procedures whose code is gone.
fn check_code(kernel: &Kernel, rows: &[Row]) -> Result<(), String> {
    let mut gone = Vec::new();
    let mut more = 0_usize;
    for row in rows.iter().filter(|row| !row.is_ended()) {
        let checked = match kernel.rules().kinds.get(&row.kind) {
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

fn check_signals(entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<Record>, String> {
    entries.iter().map(|(key, value)| signal_of(key, value)).collect()
}

/// Reads a signal, without its payload.
pub(crate) fn signal_of(key: &[u8], value: &[u8]) -> Result<Record, String> {
    let (id, number, _) = keys::parse_signal(key).ok_or("a signal has a key that names none")?;
    let stored: StoredSignal = codec::decode(value).map_err(|error| format!("signal {number} of {id}: {error}"))?;
    Ok(Record::Signal(
        id,
        number,
        stored.entry,
        procession_kernel::Blob::default(),
    ))
}

fn decode_history(entries: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<HistoryEntry>, crate::error::CodecError> {
    let known = entries
        .iter()
        .filter_map(|(key, value)| Some((keys::parse_procedure(key)?, value)));
    known
        .map(|(id, value)| {
            let mut entry: HistoryEntry = codec::decode(value)?;
            entry.family = id.family;
            entry.number = id.member;
            Ok(entry)
        })
        .collect()
}
