//! What a shop was begun with, so that a restart goes on with the same orders.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::demo::DemoError;
use crate::demo::story::{self, Story};

/// Format of the record.
const FORMAT: u32 = 1;

/// What a shop was begun with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    format: u32,
    /// Seed of the orders.
    pub seed: u64,
    /// How many orders there are.
    pub orders: u64,
}

impl Record {
    /// Reads what the directory was begun with, or begins it. What is asked for must be the same then.
    ///
    /// # Errors
    ///
    /// [`DemoError`] if the record cannot be read or written, or differs.
    pub fn open(root: &Path, seed: Option<u64>, orders: Option<u64>) -> Result<Self, DemoError> {
        let Some(text) = story::read_record(root, Story::Shop)? else {
            let record = Self {
                format: FORMAT,
                seed: seed.unwrap_or(1),
                orders: orders.unwrap_or(100),
            };
            let text = serde_json::to_string(&record).map_err(|error| DemoError::file(root, &error.into()))?;
            return story::write_record(root, Story::Shop, &text).map(|()| record);
        };
        let damaged = |why: String| DemoError::File {
            path: root.join(Story::Shop.file()),
            why,
        };
        let record: Self = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if record.format != FORMAT {
            let format = record.format;
            return Err(damaged(format!(
                "its format is {format}, and this release reads {FORMAT}"
            )));
        }
        let pairs = [("--seed", record.seed, seed), ("--orders", record.orders, orders)];
        match pairs
            .into_iter()
            .find(|(_, before, now)| now.is_some_and(|now| now != *before))
        {
            Some((what, before, now)) => Err(DemoError::Different {
                path: root.to_owned(),
                what,
                before: before.to_string(),
                now: now.unwrap_or(before).to_string(),
            }),
            None => Ok(record),
        }
    }
}
