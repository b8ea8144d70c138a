//! Batches as bytes of the simulated disk. Each batch is a frame with its length and checksums, so that torn and
//! damaged frames can be told apart.
//!
//! A frame is length (4) · checksum of length (4) · checksum of body (8) · body. A body is epoch (8) · seq (8) ·
//! records. A record is name length (1) · name · key length (4) · key · value length plus 1, or 0 to delete (4) ·
//! value.

use procession_kernel::{Epoch, Key, Seq};
use xxhash_rust::xxh3::xxh3_64;

use crate::journal::batch::{Batch, Write};
use crate::journal::keys::Space;

/// Bytes before the body.
const HEADER: usize = 16;
/// Bytes before the first record.
const PREAMBLE: usize = HEADER + 16;

/// A decoded batch.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) epoch: Epoch,
    pub(super) seq: Seq,
    pub(super) records: Vec<DecodedRecord>,
    /// Size of the frame in bytes.
    pub(super) length: usize,
}

/// A decoded write: keyspace, key, and value unless it deletes.
pub(super) type DecodedRecord = (Space, Vec<u8>, Option<Vec<u8>>);

/// The frame at a position of the disk.
#[derive(Debug)]
pub(super) enum DecodedFrame {
    /// A whole frame.
    Whole(Frame),
    /// The beginning of a frame, or nothing: the log ends here.
    Torn,
    /// Bytes that were never written like this.
    Damaged,
}

/// Encodes a batch, and returns the offsets in the frame at which its records end.
pub(super) fn encode(batch: &Batch) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = vec![0; HEADER];
    bytes.extend_from_slice(&batch.epoch().0.to_le_bytes());
    bytes.extend_from_slice(&batch.seq().0.to_le_bytes());
    let mut ends = Vec::with_capacity(batch.len());
    for write in batch.writes() {
        encode_record(&mut bytes, &write);
        ends.push(bytes.len());
    }
    let length = length_bytes(bytes.len() - HEADER);
    let sum = xxh3_64(bytes.get(HEADER..).unwrap_or_default());
    let header = [&length[..], &check_of(length), &sum.to_le_bytes()].concat();
    for (to, from) in bytes.iter_mut().zip(header) {
        *to = from;
    }
    (bytes, ends)
}

fn encode_record(bytes: &mut Vec<u8>, write: &Write<'_>) {
    let name = write.space.name();
    // Names have at most 105 bytes; longer names are refused before.
    bytes.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(&length_bytes(write.key.len()));
    bytes.extend_from_slice(write.key);
    bytes.extend_from_slice(&length_bytes(write.value.map_or(0, |value| value.len() + 1)));
    bytes.extend_from_slice(write.value.unwrap_or_default());
}

fn length_bytes(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

/// A flipped length must not look like a frame that continues beyond the end.
fn check_of(length: [u8; 4]) -> [u8; 4] {
    let [a, b, c, d, ..] = xxh3_64(&length).to_le_bytes();
    [a, b, c, d]
}

/// Returns the offsets at which a torn write may stop: behind each record but the last, and within the first and the
/// last. A frame without records may stop within its header.
pub(super) fn torn_points(ends: &[usize]) -> Vec<usize> {
    let starts = std::iter::once(PREAMBLE).chain(ends.iter().copied());
    let records: Vec<(usize, usize)> = starts.zip(ends.iter().copied()).collect();
    let Some((&first, &last)) = records.first().zip(records.last()) else {
        return vec![HEADER / 2];
    };
    let mut points: Vec<usize> = records.iter().map(|(start, _)| *start).collect();
    points.extend([first, last].map(|(start, end)| start + (end - start) / 2));
    points.sort_unstable();
    points.dedup();
    points
}

/// Decodes the frame at the beginning of the bytes.
pub(super) fn decode(bytes: &[u8]) -> DecodedFrame {
    let Some((header, rest)) = bytes.split_at_checked(HEADER) else {
        return DecodedFrame::Torn;
    };
    let Some((length, check, sum)) = split_header(header) else {
        return DecodedFrame::Torn;
    };
    if check_of(length) != check {
        return DecodedFrame::Damaged;
    }
    let Some(body) = usize::try_from(u32::from_le_bytes(length))
        .ok()
        .and_then(|length| rest.get(..length))
    else {
        return DecodedFrame::Torn;
    };
    if xxh3_64(body) != sum {
        return DecodedFrame::Damaged;
    }
    decode_body(body).map_or(DecodedFrame::Damaged, DecodedFrame::Whole)
}

fn split_header(header: &[u8]) -> Option<([u8; 4], [u8; 4], u64)> {
    let length = header.get(..4)?.try_into().ok()?;
    let check = header.get(4..8)?.try_into().ok()?;
    let sum = u64::from_le_bytes(header.get(8..)?.try_into().ok()?);
    Some((length, check, sum))
}

fn decode_body(body: &[u8]) -> Option<Frame> {
    let mut rest = body;
    let epoch = Epoch(u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?));
    let seq = Seq(u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?));
    let mut records = Vec::new();
    while !rest.is_empty() {
        records.push(decode_record(&mut rest)?);
    }
    Some(Frame {
        epoch,
        seq,
        records,
        length: HEADER + body.len(),
    })
}

fn decode_record(rest: &mut &[u8]) -> Option<DecodedRecord> {
    let length = usize::from(*take(rest, 1)?.first()?);
    let space = parse_space(std::str::from_utf8(take(rest, length)?).ok()?)?;
    let length = take_length(rest)?;
    let key = take(rest, length)?.to_vec();
    let value = match take_length(rest)?.checked_sub(1) {
        Some(length) => Some(take(rest, length)?.to_vec()),
        None => None,
    };
    Some((space, key, value))
}

fn parse_space(name: &str) -> Option<Space> {
    match name.strip_prefix("user.") {
        Some(name) => Some(Space::User(Key::from(name))),
        None => Space::ENGINE.into_iter().find(|space| space.name() == name),
    }
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?)).ok()
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}
