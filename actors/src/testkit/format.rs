//! The formats on disk, for tests that compare them with files of earlier releases: records as writes, and decoded
//! values.

use procession_kernel::{
    AuditEntry, Blob, Broadcast, Epoch, FailureEntry, HistoryEntry, KeyEntry, Labels, Limit, PauseScope, ProcedureId,
    RateWindow, Record, Row, SignalEntry,
};

use crate::error::CodecError;
use crate::journal::encode::{self, Started, StoredSignal};
use crate::journal::reader::{LabelEntries, StoredRow, decode_labels, decode_row, slices};
use crate::journal::store::Entries;
use crate::journal::{Batch, codec, keys, rewritten_commit};
use crate::read::failures::failure_of;
use crate::view::ListFilter;

/// Returns the writes of these records, in order.
///
/// # Errors
///
/// [`CodecError`] if a value cannot be encoded.
pub fn writes(records: &[Record]) -> Result<Batch, CodecError> {
    let mut batch = Batch::new(Epoch(1));
    records
        .iter()
        .try_for_each(|record| encode::write(&mut batch, record))?;
    Ok(batch)
}

/// Decodes a commit as the embedded store keeps it until a checkpoint, and encodes it again; `None` if this release
/// cannot.
#[must_use]
pub fn commit(bytes: &[u8]) -> Option<Vec<u8>> {
    rewritten_commit(bytes)
}

/// Decodes all rows among these entries of `procedures`, with their labels.
///
/// # Errors
///
/// [`CodecError`] if a row cannot be read, or its labels are not among the entries.
pub fn rows(entries: &Entries) -> Result<Vec<Row>, CodecError> {
    let labels = LabelEntries::of(slices(entries));
    let rows = entries
        .iter()
        .filter_map(|(key, value)| Some((keys::parse_row(key)?, value)));
    rows.map(|(id, value)| labels.complete(decode_row(id, value)?))
        .collect()
}

/// Decodes a row. Labels that have an entry of their own are not in it.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn row(id: ProcedureId, bytes: &[u8]) -> Result<Row, CodecError> {
    decode_row(id, bytes).map(StoredRow::without_labels)
}

/// Decodes the entry of a procedure's labels.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn labels(id: ProcedureId, bytes: &[u8]) -> Result<Labels, CodecError> {
    decode_labels(id, bytes)
}

/// Returns `true` if a list with this filter shows a row.
#[must_use]
pub fn admits(filter: &ListFilter, row: &Row) -> bool {
    filter.admits(row)
}

/// Decodes a history entry.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn history(family: u64, number: u32, bytes: &[u8]) -> Result<HistoryEntry, CodecError> {
    Ok(HistoryEntry {
        family,
        number,
        ..codec::decode(bytes)?
    })
}

/// Decodes an entry of the list of failures.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn failure(key: &[u8], bytes: &[u8]) -> Result<FailureEntry, CodecError> {
    let (ended, family) = keys::parse_failure(key).unwrap_or_default();
    failure_of(ended, family, bytes)
}

/// Decodes a signal and its payload.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn signal(bytes: &[u8]) -> Result<(SignalEntry, Blob), CodecError> {
    codec::decode(bytes).map(|StoredSignal { entry, payload }| (entry, payload))
}

/// Decodes the entry of an idempotency key.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn key_entry(bytes: &[u8]) -> Result<KeyEntry, CodecError> {
    codec::decode(bytes)
}

/// Decodes an entry of the audit log.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn audit(number: u64, bytes: &[u8]) -> Result<AuditEntry, CodecError> {
    Ok(AuditEntry {
        number,
        ..codec::decode(bytes)?
    })
}

/// Decodes a pause that an operator has set.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn pause(bytes: &[u8]) -> Result<PauseScope, CodecError> {
    codec::decode(bytes)
}

/// Decodes a broadcast that has not woken all of its waiters.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn broadcast(bytes: &[u8]) -> Result<Broadcast, CodecError> {
    codec::decode(bytes)
}

/// Decodes which engine started last, and how often engines had died.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn started(bytes: &[u8]) -> Result<(Epoch, u32), CodecError> {
    codec::decode(bytes).map(|Started { epoch, deaths }| (epoch, deaths))
}

/// Decodes what a limit allows.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn limit(bytes: &[u8]) -> Result<Limit, CodecError> {
    codec::decode(bytes)
}

/// Decodes the begins that count for the rate of a limit.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn rate_window(bytes: &[u8]) -> Result<RateWindow, CodecError> {
    codec::decode(bytes)
}
