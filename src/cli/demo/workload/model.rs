//! The world that a workload must end in, kept beside the list of operations
//! while that is drawn up.

use std::collections::BTreeMap;

use crate::demo::input::Share;
use crate::demo::meta::{QuotaRow, TableState};

/// What must be there at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The tables, by name.
    pub tables: BTreeMap<String, ExpectedTable>,
    /// The users' roles, by name.
    pub users: BTreeMap<String, String>,
}

/// A table as it must be at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedTable {
    /// The rows it has.
    pub share: Share,
    /// Enabled or disabled.
    pub state: TableState,
    /// How often it was updated, and one.
    pub schema: u32,
    /// The value of the last update.
    pub properties: BTreeMap<String, String>,
    /// Its quota.
    pub quota: Option<QuotaRow>,
    /// How many of its tablets are offline while it is enabled.
    pub offline: usize,
}

impl ExpectedTable {
    /// A table that was just created.
    #[must_use]
    pub fn new(share: Share) -> Self {
        Self {
            share,
            state: TableState::Enabled,
            schema: 1,
            properties: BTreeMap::new(),
            quota: None,
            offline: 0,
        }
    }
}
