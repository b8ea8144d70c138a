//! The value behind an entry of a history.

use procession_kernel::Blob;

/// The value behind an entry of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueBehind {
    /// The entry that left it; 0 if it is the value that the procedure was submitted or born with. `None` if it is not
    /// kept: its kind kept no values then, or older entries are gone.
    pub left_by: Option<u32>,
    /// Its size in bytes, where it is known.
    pub size: Option<usize>,
    /// The encoded value, unless it is larger than its kind keeps.
    pub bytes: Option<Blob>,
}
