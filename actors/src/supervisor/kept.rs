//! What the store keeps of procedures, for answers: of a family that is set aside it says why, where a row of it
//! cannot be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use procession_kernel::{HistoryEntry, ProcedureId, Row};

use crate::error::{AskError, ReadError};
use crate::journal::Reader;

/// Families that are set aside, each with why: shared with the answers that are under way.
pub(crate) type Quarantined = Arc<BTreeMap<u64, String>>;

/// What answers are read from.
pub(crate) struct Kept {
    reader: Reader,
    quarantined: Quarantined,
}

impl Kept {
    pub(crate) const fn new(reader: Reader, quarantined: Quarantined) -> Self {
        Self { reader, quarantined }
    }

    /// Says why a family is set aside, if it is.
    pub(super) fn why(&self, family: u64) -> Option<&str> {
        self.quarantined.get(&family).map(String::as_str)
    }

    pub(super) async fn row(&self, id: ProcedureId) -> Result<Option<Row>, AskError> {
        let row = self.reader.row(id).await;
        row.map_err(|error| self.unread(id.family, error))
    }

    pub(super) async fn rows(&self, family: u64) -> Result<Vec<Row>, AskError> {
        let rows = self.reader.rows(family).await;
        rows.map_err(|error| self.unread(family, error))
    }

    pub(super) async fn history(&self, family: u64) -> Result<Vec<HistoryEntry>, AskError> {
        let history = self.reader.history(family).await;
        history.map_err(|error| self.unread(family, error))
    }

    /// Makes the answer to who wants something of a procedure that is not live.
    pub(super) async fn not_live(&self, id: ProcedureId) -> AskError {
        match self.row(id).await {
            Ok(Some(row)) if row.is_ended() => AskError::Finished(id),
            Ok(Some(_)) => match self.why(id.family) {
                Some(why) => set_aside(id.family, why),
                None => AskError::NotNow(format!("the family of {id} is quarantined; see why with a snapshot")),
            },
            Ok(None) => AskError::Unknown(id),
            Err(error) => error,
        }
    }

    fn unread(&self, family: u64, error: ReadError) -> AskError {
        match (error, self.why(family)) {
            (ReadError::Codec(_), Some(why)) => set_aside(family, why),
            (error, _) => AskError::Read(error),
        }
    }
}

fn set_aside(family: u64, why: &str) -> AskError {
    AskError::NotNow(format!(
        "the family {family} is quarantined: {why}; start a binary that can load it, or discharge it"
    ))
}
