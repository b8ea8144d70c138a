//! What a process did to its files, in the order in which the system saw it. The
//! library that stands between the two writes it down; nobody else reads it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::Outcome;

/// One operation, as the library noted it. Files go by the system's number, which a later file may have again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A file that was there was opened: from here on its number stands for it.
    Opened {
        file: u64,
        path: PathBuf,
    },
    Created {
        file: u64,
        path: PathBuf,
    },
    Written {
        file: u64,
        at: u64,
        bytes: Range<usize>,
    },
    Truncated {
        file: u64,
        length: u64,
    },
    Synced {
        file: u64,
    },
    SyncFailed {
        file: u64,
    },
    DirectorySynced {
        path: PathBuf,
    },
    DirectorySyncFailed {
        path: PathBuf,
    },
    Renamed {
        from: PathBuf,
        to: PathBuf,
    },
    Unlinked {
        path: PathBuf,
    },
    DirectoryMade {
        path: PathBuf,
    },
    DirectoryRemoved {
        path: PathBuf,
    },
    /// The process wrote this to its ledger: it was told so by now.
    Noted {
        bytes: Range<usize>,
    },
}

impl Operation {
    /// Tells whether something is on disk from here on that was not before.
    pub(crate) const fn is_sync(&self) -> bool {
        matches!(self, Self::Synced { .. } | Self::DirectorySynced { .. })
    }

    /// Tells whether it changes which names there are, or how long a file is.
    pub(crate) const fn is_of_names(&self) -> bool {
        match self {
            Self::Created { .. }
            | Self::Truncated { .. }
            | Self::Renamed { .. }
            | Self::Unlinked { .. }
            | Self::DirectoryMade { .. }
            | Self::DirectoryRemoved { .. }
            | Self::SyncFailed { .. }
            | Self::DirectorySyncFailed { .. } => true,
            Self::Opened { .. }
            | Self::Written { .. }
            | Self::Synced { .. }
            | Self::DirectorySynced { .. }
            | Self::Noted { .. } => false,
        }
    }
}

/// All that one or several processes did, one after the other.
pub(crate) struct Record {
    bytes: Vec<u8>,
    pub(crate) operations: Vec<Operation>,
}

impl Record {
    /// Reads a record.
    ///
    /// # Errors
    ///
    /// It is cut off, or holds an operation that no disk can be rebuilt from.
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let bytes = std::fs::read(path)?;
        let mut reader = Reader { bytes: &bytes, at: 0 };
        let mut operations = Vec::new();
        while reader.at < bytes.len() {
            let broken = format!("{} is broken at byte {}", path.display(), reader.at);
            operations.push(reader.operation().ok_or(broken)??);
        }
        if operations.is_empty() {
            return Err(format!("{} is empty: nothing was preloaded", path.display()).into());
        }
        Ok(Self { bytes, operations })
    }

    pub(crate) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }

    /// Returns what the ledger says when this many operations are done.
    pub(crate) fn ledger(&self, operations: usize) -> String {
        let mut text = Vec::new();
        for operation in &self.operations[..operations] {
            if let Operation::Noted { bytes } = operation {
                text.extend_from_slice(self.bytes(bytes));
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Option<Range<usize>> {
        let range = self.at..self.at.checked_add(length)?;
        self.bytes.get(range.clone())?;
        self.at = range.end;
        Some(range)
    }

    fn number<const BYTES: usize>(&mut self) -> Option<u64> {
        let range = self.take(BYTES)?;
        let bytes = self.bytes[range].iter().rev();
        Some(bytes.fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number::<4>()?).ok()
    }

    fn text(&mut self, length: usize) -> Option<String> {
        let range = self.take(length)?;
        Some(String::from_utf8_lossy(&self.bytes[range]).into_owned())
    }

    /// The layout is that of the library's `head`.
    fn operation(&mut self) -> Option<Outcome<Operation>> {
        let note = self.number::<1>()?;
        let (file, number) = (self.number::<8>()?, self.number::<8>()?);
        let (one, two, bytes) = (self.length()?, self.length()?, self.length()?);
        let (one, two) = (self.text(one)?, self.text(two)?);
        let bytes = self.take(bytes)?;
        let path = PathBuf::from(&one);
        Some(Ok(match note {
            1 => Operation::Opened { file, path },
            2 => Operation::Created { file, path },
            3 => Operation::Written {
                file,
                at: number,
                bytes,
            },
            4 => Operation::Truncated { file, length: number },
            5 => Operation::Synced { file },
            6 => Operation::DirectorySynced { path },
            7 => Operation::SyncFailed { file },
            8 => Operation::DirectorySyncFailed { path },
            9 => Operation::Renamed {
                from: path,
                to: two.into(),
            },
            10 => Operation::Unlinked { path },
            11 => Operation::DirectoryMade { path },
            12 => Operation::DirectoryRemoved { path },
            13 => Operation::Noted { bytes },
            14 => return Some(Err(format!("{two} sees {one}, which the record cannot follow").into())),
            _ => return None,
        }))
    }
}
