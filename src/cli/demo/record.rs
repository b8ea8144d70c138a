//! What a directory was begun with: `workload.json`, written before anything
//! else, so that a restart goes on with the same workload.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::DemoError;
use super::story::{self, Story};

/// Name of the file.
pub const FILE: &str = Story::Tablets.file();
/// Format of the file.
const FORMAT: u32 = 1;

/// What a directory was begun with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Format of this record.
    pub format: u32,
    /// The seed.
    pub seed: u64,
    /// How many tables there are.
    pub tables: u32,
    /// How many operations follow their creation.
    pub operations: u64,
    /// The share of operations that meet a fault.
    pub fail_rate: f64,
    /// How many servers there are.
    pub servers: u32,
    /// The input, as it was named; none is the one shipped.
    pub input: Option<String>,
    /// Digest of the input.
    pub digest: u64,
}

/// What was asked for; none leaves it to the record, or to the default.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// The seed.
    pub seed: Option<u64>,
    /// How many tables there are.
    pub tables: Option<u32>,
    /// How many operations follow their creation.
    pub operations: Option<u64>,
    /// The share of operations that meet a fault.
    pub fail_rate: Option<f64>,
    /// How many servers there are.
    pub servers: Option<u32>,
}

impl Record {
    /// Begins a workload, with defaults for what was not asked for: large enough
    /// to show every procedure many times, small enough for some seconds.
    #[must_use]
    pub fn begin(wishes: &Wishes, input: Option<String>, digest: u64) -> Self {
        Self {
            format: FORMAT,
            seed: wishes.seed.unwrap_or(1),
            tables: wishes.tables.unwrap_or(16),
            operations: wishes.operations.unwrap_or(3_000),
            fail_rate: wishes.fail_rate.unwrap_or(0.05),
            servers: wishes.servers.unwrap_or(4),
            input,
            digest,
        }
    }

    /// Reads what the directory was begun with, if it was.
    ///
    /// # Errors
    ///
    /// [`DemoError`] if the file cannot be read, or the directory holds something else.
    pub fn read(root: &Path) -> Result<Option<Self>, DemoError> {
        Story::Tablets.must_fit(root)?;
        let Some(text) = story::read_record(root, Story::Tablets)? else {
            return Ok(None);
        };
        let damaged = |why: String| DemoError::File {
            path: root.join(FILE),
            why,
        };
        let record: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if record.format == FORMAT {
            Ok(Some(record))
        } else {
            Err(damaged(format!(
                "its format is {}, and this release reads {FORMAT}",
                record.format
            )))
        }
    }

    /// Writes it, before anything else is written.
    ///
    /// # Errors
    ///
    /// [`DemoError::File`] if it cannot be written.
    pub fn write(&self, root: &Path) -> Result<(), DemoError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| DemoError::file(root, &error.into()))?;
        story::write_record(root, Story::Tablets, &text)
    }

    /// Refuses wishes that differ from what the directory was begun with.
    ///
    /// # Errors
    ///
    /// [`DemoError::Different`], which names the first difference.
    pub fn must_fit(&self, root: &Path, wishes: &Wishes) -> Result<(), DemoError> {
        let differs = |what, before: String, now: Option<String>| match now {
            Some(now) if now != before => Err(DemoError::Different {
                path: root.to_owned(),
                what,
                before,
                now,
            }),
            Some(_) | None => Ok(()),
        };
        differs(
            "--seed",
            self.seed.to_string(),
            wishes.seed.map(|value| value.to_string()),
        )?;
        differs(
            "--tables",
            self.tables.to_string(),
            wishes.tables.map(|value| value.to_string()),
        )?;
        differs(
            "--operations",
            self.operations.to_string(),
            wishes.operations.map(|value| value.to_string()),
        )?;
        differs(
            "--fail-rate",
            self.fail_rate.to_string(),
            wishes.fail_rate.map(|value| value.to_string()),
        )?;
        differs(
            "--servers",
            self.servers.to_string(),
            wishes.servers.map(|value| value.to_string()),
        )
    }
}
