//! What is on disk, for tests that compare it with files of earlier releases:
//! records as writes, and values read back.

use procession_kernel::{
    AuditEntry, Blob, Broadcast, Epoch, HistoryEntry, KeyEntry, Pause, ProcedureId, Record, Row, SignalEntry,
};

use crate::error::CodecError;
use crate::journal::encode::{self, Started, StoredSignal};
use crate::journal::reader::decode_row;
use crate::journal::{Batch, codec, rewritten_commit};
use crate::view::ListFilter;

/// Gives the writes that records mean, in their order.
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

/// Reads a commit as the embedded store keeps it until a checkpoint, and writes it again; none if this release cannot.
#[must_use]
pub fn commit(bytes: &[u8]) -> Option<Vec<u8>> {
    rewritten_commit(bytes)
}

/// Reads a row back.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn row(id: ProcedureId, bytes: &[u8]) -> Result<Row, CodecError> {
    decode_row(id, bytes)
}

/// Tells whether a list with this filter shows a row.
#[must_use]
pub fn admits(filter: &ListFilter, row: &Row) -> bool {
    filter.admits(row)
}

/// Reads a history entry back.
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

/// Reads a signal and its payload back.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn signal(bytes: &[u8]) -> Result<(SignalEntry, Blob), CodecError> {
    codec::decode(bytes).map(|StoredSignal { entry, payload }| (entry, payload))
}

/// Reads back what an idempotency key stands for.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn key_entry(bytes: &[u8]) -> Result<KeyEntry, CodecError> {
    codec::decode(bytes)
}

/// Reads an act of an operator back.
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

/// Reads back what operators have paused.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn pause(bytes: &[u8]) -> Result<Pause, CodecError> {
    codec::decode(bytes)
}

/// Reads back a broadcast that has not woken all of its waiters.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn broadcast(bytes: &[u8]) -> Result<Broadcast, CodecError> {
    codec::decode(bytes)
}

/// Reads back which engine started last, and how often engines had died.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn started(bytes: &[u8]) -> Result<(Epoch, u32), CodecError> {
    codec::decode(bytes).map(|Started { epoch, deaths }| (epoch, deaths))
}

/// Reads a capacity back.
///
/// # Errors
///
/// [`CodecError`] if this release cannot.
pub fn limit(bytes: &[u8]) -> Result<Option<u32>, CodecError> {
    codec::decode(bytes)
}
