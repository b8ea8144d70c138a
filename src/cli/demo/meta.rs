//! The meta table: rows of user data, committed with the stages that change them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Space of the tables, by name.
pub const TABLES: &str = "tables";
/// Space of the tablets, by table and id.
pub const TABLETS: &str = "tablets";
/// Space of the quotas, by table.
pub const QUOTAS: &str = "quotas";
/// Space of the users, by name.
pub const USERS: &str = "users";

/// What may be done with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableState {
    /// Its tablets are being loaded for the first time.
    Creating,
    /// Its tablets are served.
    Enabled,
    /// Its tablets are being unloaded.
    Disabling,
    /// None of its tablets is served.
    Disabled,
    /// Its tablets are being loaded.
    Enabling,
    /// Its tablets are being reloaded with another schema.
    Updating,
    /// It is on its way out.
    Deleting,
}

impl TableState {
    /// Returns the word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Enabled => "enabled",
            Self::Disabling => "disabling",
            Self::Disabled => "disabled",
            Self::Enabling => "enabling",
            Self::Updating => "updating",
            Self::Deleting => "deleting",
        }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRow {
    /// Its name.
    pub name: String,
    /// What may be done with it.
    pub state: TableState,
    /// Grows with each update; every tablet is loaded with it.
    pub schema: u32,
    /// What updates have set.
    pub properties: BTreeMap<String, String>,
}

/// Whether a server serves a tablet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TabletState {
    /// Its file is in its server's directory.
    Loaded,
    /// Its file is in the shared directory.
    Offline,
}

impl TabletState {
    /// Returns the word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Offline => "offline",
        }
    }
}

/// A tablet: the rows of a table from `start` to before `end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TabletRow {
    /// Its table.
    pub table: String,
    /// Its name, never used twice; its file is called after it.
    pub id: String,
    /// The least text that belongs to it.
    pub start: String,
    /// The least text that no longer belongs to it; none is the end of the table.
    pub end: Option<String>,
    /// Whether it is served.
    pub state: TabletState,
    /// The server that serves it, or served it last.
    pub server: String,
    /// How many rows it has.
    pub rows: u64,
    /// Digest of its file.
    pub digest: u64,
    /// The schema it was loaded with.
    pub schema: u32,
}

impl TabletRow {
    /// Returns its key in the meta table.
    #[must_use]
    pub fn key(&self) -> String {
        tablet_key(&self.table, &self.id)
    }

    /// Returns the name of its file.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}.rows", self.id)
    }

    /// Tells whether a row with this key belongs to it.
    #[must_use]
    pub fn holds(&self, key: &str) -> bool {
        self.start.as_str() <= key && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Returns the row as it stands when no server serves it.
    #[must_use]
    pub fn offline(&self) -> Self {
        Self {
            state: TabletState::Offline,
            ..self.clone()
        }
    }
}

/// Returns the key of a tablet in the meta table.
#[must_use]
pub fn tablet_key(table: &str, id: &str) -> String {
    format!("{table}/{id}")
}

/// What a table's users may use of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaRow {
    /// Rows read per second.
    pub reads: u32,
    /// Rows written per second.
    pub writes: u32,
}

/// A user of the tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRow {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: String,
}
