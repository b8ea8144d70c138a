//! Stored signals. Each is read with its payload. Most callers keep only the payload's size.

use procession_kernel::{Blob, ProcedureId};

use crate::error::{ReadError, StoreError};
use crate::journal::store::{Entries, Scan};
use crate::journal::{JournalStore, Reader, Space, keys};
use crate::view::SignalSummary;

/// The maximum number of signals that are counted: each is read with its payload.
const COUNTED: usize = 16;
/// The number of payload bytes after which counting stops. Pages of the dashboard count again every few seconds, and
/// one signal may have a mebibyte.
const BYTES_COUNTED: usize = 64 << 10;

/// Reads the signals whose keys begin with `prefix`, at most `limit` of them.
pub(super) async fn read(reader: &Reader, prefix: &[u8], limit: usize) -> Result<Vec<SignalSummary>, ReadError> {
    let read = read_with_payloads(reader, prefix, limit).await?.into_iter();
    Ok(read.map(|(signal, _)| signal).collect())
}

/// Reads the same signals, each with its payload.
pub(super) async fn read_with_payloads(
    reader: &Reader,
    prefix: &[u8],
    limit: usize,
) -> Result<Vec<(SignalSummary, Blob)>, ReadError> {
    decoded(&reader.scan_up_to(Space::Signals, prefix, limit).await?)
}

/// Reads the signals of a procedure from this number on, each with its payload, at most `limit` of them.
pub(super) async fn read_from(
    reader: &Reader,
    id: ProcedureId,
    from: u32,
    limit: usize,
) -> Result<Vec<(SignalSummary, Blob)>, ReadError> {
    let scan = Scan {
        space: Space::Signals,
        from: keys::signal(id, from, ""),
        to: keys::after_prefix(&keys::procedure(id)),
        limit,
    };
    decoded(&reader.scan(scan).await?)
}

fn decoded(entries: &Entries) -> Result<Vec<(SignalSummary, Blob)>, ReadError> {
    let read = entries
        .iter()
        .filter_map(|(key, value)| SignalSummary::stored(key, value));
    Ok(read.collect::<Result<_, _>>()?)
}

/// Counts the signals of a procedure, up to a number and a size. Also returns whether there are more.
pub(super) async fn count(reader: &Reader, id: ProcedureId) -> Result<(usize, bool), StoreError> {
    // One job of the read pool reads all of them.
    reader.run(move |store| Box::pin(count_in(store, id))).await
}

async fn count_in(store: &dyn JournalStore, id: ProcedureId) -> Result<(usize, bool), StoreError> {
    let mut from = keys::procedure(id).to_vec();
    let to = keys::after_prefix(&from);
    let (mut count, mut bytes) = (0, 0);
    loop {
        let next = Scan {
            space: Space::Signals,
            from,
            to: to.clone(),
            limit: 1,
        };
        let Some((key, value)) = store.scan(next).await?.into_iter().next() else {
            return Ok((count, false));
        };
        if count == COUNTED || bytes > BYTES_COUNTED {
            return Ok((count, true));
        }
        count += 1;
        bytes += value.len();
        from = keys::after(&key);
    }
}
