//! The rows that the tables are filled with: a real file of lines, dealt out
//! to the tables so that each row belongs to exactly one.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::DemoError;
use super::rows;

/// The Unicode Character Database's main file, from Debian's package
/// unicode-data; its licence stands beside it.
static UNICODE_DATA: &str = include_str!("data/UnicodeData.txt");

/// Largest input accepted: it is held in memory, sorted, for the whole run.
const INPUT_BYTES_MAX: u64 = 256 << 20;

/// All rows, in the order of the lines.
#[derive(Debug)]
pub struct Input {
    lines: Vec<String>,
    digest: u64,
}

/// One table's part of the input: every `of`-th row, from row `index` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Which part.
    pub index: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Input {
    /// Returns the data set that is shipped with the project.
    #[must_use]
    pub fn shipped() -> Self {
        Self::of(UNICODE_DATA)
    }

    /// Takes the rows of a text; empty lines are left out.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut lines: Vec<String> = text
            .split('\n')
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect();
        lines.sort_unstable();
        Self {
            lines,
            digest: rows::digest(text.as_bytes()),
        }
    }

    /// Reads the rows of a file.
    ///
    /// # Errors
    ///
    /// [`DemoError::Input`] if it cannot be read, is too large, is not UTF-8, or has no line.
    pub fn read(path: &Path) -> Result<Self, DemoError> {
        let refused = |why: String| DemoError::Input {
            path: PathBuf::from(path),
            why,
        };
        let size = std::fs::metadata(path)
            .map_err(|error| refused(error.to_string()))?
            .len();
        if size > INPUT_BYTES_MAX {
            return Err(refused(format!(
                "it has {size} bytes, and {INPUT_BYTES_MAX} are the most"
            )));
        }
        let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            refused(format!(
                "it is not UTF-8 text from byte {} on",
                error.utf8_error().valid_up_to()
            ))
        })?;
        let input = Self::of(&text);
        if input.lines.is_empty() {
            return Err(refused("it has no row".to_owned()));
        }
        Ok(input)
    }

    /// Returns the rows of one part, in order.
    #[must_use]
    pub fn share(&self, share: Share) -> Vec<&str> {
        let skip = usize::try_from(share.index).unwrap_or(usize::MAX);
        let step = usize::try_from(share.of).unwrap_or(usize::MAX).max(1);
        self.lines.iter().skip(skip).step_by(step).map(String::as_str).collect()
    }

    /// Returns the number that tells this input from another.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Tells whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}
