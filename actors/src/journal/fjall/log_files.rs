//! The files of logs: which exist, and what they contain, whatever length they claim.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::VALUE_MAX;

/// Piece size for reading a log.
const PIECE_BYTES: usize = 256 * 1024;
/// Longest run of zeros between a log's data: that of the largest value.
const GAP_MAX: u64 = VALUE_MAX as u64;

/// Returns the path of the log of a number.
pub(super) fn named(store: &Path, number: u64) -> PathBuf {
    store.join(format!("{number}.jnl"))
}

/// Returns the files that are named like logs, in no order.
pub(super) fn numbered(store: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        let name = entry.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".jnl"));
        if let Some(number) = stem.and_then(|stem| stem.parse().ok()) {
            logs.push((number, entry.path()));
        }
    }
    Ok(logs)
}

/// Reads a log without the zeros at its end. A log is created 64 MiB long, most of which is thus never in memory. Its
/// claimed length is not trusted: space is reserved for what the disk holds, and then as data is found.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    // Reserved at once: a buffer that grows piece by piece is copied several times.
    reserve(&mut bytes, stored_bytes(&file.metadata()?), 0)?;
    let zeros = vec![0; PIECE_BYTES];
    // Read position in the file; `bytes` ends before it if zeros were left out.
    let mut end = 0;
    loop {
        let begin = bytes.len();
        let length = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut bytes)?;
        if length == 0 {
            break;
        }
        if bytes.get(begin..) == zeros.get(..length) {
            bytes.truncate(begin);
            match next_data(&mut file, end + length as u64)? {
                Some(next) => end = next,
                None => break,
            }
        } else {
            fill_gap(&mut bytes, begin, end)?;
            end += length as u64;
        }
    }
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    bytes.truncate(bytes.len() - zeros);
    Ok(bytes)
}

/// Moves the last piece from `begin` to its position in the file, behind zeros.
fn fill_gap(bytes: &mut Vec<u8>, begin: usize, at: u64) -> io::Result<()> {
    let gap = at.saturating_sub(begin as u64);
    if gap == 0 {
        return Ok(());
    }
    if gap > GAP_MAX {
        let why = format!("{gap} bytes before byte {at} are empty, and no commit has so many");
        return Err(io::Error::new(ErrorKind::InvalidData, why));
    }
    reserve(bytes, gap, at)?;
    let last = bytes.split_off(begin);
    // The gap is at most the longest value, and its space is reserved.
    bytes.resize(begin + usize::try_from(gap).unwrap_or_default(), 0);
    bytes.extend_from_slice(&last);
    Ok(())
}

fn reserve(bytes: &mut Vec<u8>, more: u64, at: u64) -> io::Result<()> {
    let reserved = usize::try_from(more).map(|more| bytes.try_reserve(more));
    reserved.ok().and_then(Result::ok).ok_or_else(|| {
        let why = format!("it has {more} bytes at byte {at}, which is more than memory holds");
        io::Error::new(ErrorKind::OutOfMemory, why)
    })
}

/// Returns how much of a file the disk holds; holes are not counted.
#[cfg(unix)]
fn stored_bytes(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;

    // A block has 512 bytes, whatever the file system's block size. A fully stored log may have spare blocks behind
    // it.
    metadata.len().min(metadata.blocks().saturating_mul(512))
}

#[cfg(not(unix))]
fn stored_bytes(_: &fs::Metadata) -> u64 {
    0
}

/// Seeks to the next data in a file, and returns its position; `None` if only a hole is left. A new log is mostly a
/// hole, and a damaged one may claim any length.
#[cfg(target_os = "linux")]
fn next_data(file: &mut File, at: u64) -> io::Result<Option<u64>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    match seek(&*file, SeekFrom::Data(at)) {
        Ok(next) => Ok(Some(next)),
        Err(Errno::NXIO) => Ok(None),
        // This file system has no holes, and left the position unchanged.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn next_data(_: &mut File, at: u64) -> io::Result<Option<u64>> {
    Ok(Some(at))
}
