//! The files of logs: which there are, and what is in them, however long they claim to be.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::VALUE_MAX;

/// How much of a log is read at once.
const PIECE_BYTES: usize = 256 * 1024;
/// Bytes of zeros in a row that a log can have between its data: those of the largest value.
const GAP_MAX: u64 = VALUE_MAX as u64;

/// Gives the files that have a log's name, in no order.
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

/// Reads a log without the zeros at its end: it is made 64 MiB long at once, and most of that is never in memory
/// this way. Its length is not believed: memory is asked for as data is found.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    let zeros = piece.clone();
    let mut bytes = Vec::new();
    let mut end = 0;
    loop {
        let length = file.read(&mut piece)?;
        let read = piece.get(..length).unwrap_or_default();
        if read.is_empty() {
            break;
        }
        if zeros.get(..length) == Some(read) {
            match next_data(&mut file, end + length as u64)? {
                Some(next) => end = next,
                None => break,
            }
        } else {
            extend(&mut bytes, end, read)?;
            end += length as u64;
        }
    }
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    bytes.truncate(bytes.len() - zeros);
    Ok(bytes)
}

/// Puts what was read where it stands, behind zeros.
fn extend(bytes: &mut Vec<u8>, at: u64, read: &[u8]) -> io::Result<()> {
    let far = || {
        let why = format!("it has data at byte {at}, which is more than memory holds");
        io::Error::new(ErrorKind::OutOfMemory, why)
    };
    let gap = at.saturating_sub(bytes.len() as u64);
    if gap > GAP_MAX {
        let why = format!("{gap} bytes before byte {at} are empty, and no commit has so many");
        return Err(io::Error::new(ErrorKind::InvalidData, why));
    }
    let begin = usize::try_from(at).map_err(|_| far())?;
    let end = begin.checked_add(read.len()).ok_or_else(far)?;
    bytes.try_reserve(end.saturating_sub(bytes.len())).map_err(|_| far())?;
    bytes.resize(begin, 0);
    bytes.extend_from_slice(read);
    Ok(())
}

/// Gives where data may come next in a file, and goes there; none if only a hole is left. A log is mostly a hole at
/// first, and a damaged one may be any length.
#[cfg(target_os = "linux")]
fn next_data(file: &mut File, at: u64) -> io::Result<Option<u64>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    match seek(&*file, SeekFrom::Data(at)) {
        Ok(next) => Ok(Some(next)),
        Err(Errno::NXIO) => Ok(None),
        // This file system knows no holes, and left the place where it was.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn next_data(_: &mut File, at: u64) -> io::Result<Option<u64>> {
    Ok(Some(at))
}
