//! Constructor for a row with default fields. Callers set other fields one by one.

use super::{Hold, OnFailure, Row};
use crate::id::{Blob, Kind, ProcedureId, Seq, Timestamp};
use crate::label::RowLabels;
use crate::lifecycle::ProcedureState;
use crate::list::List;

impl Row {
    /// Creates the row of a procedure that is born at this instant, needs no admission, and has default settings.
    #[must_use]
    pub fn new(id: ProcedureId, kind: Kind, version: u16, stage: Blob, at: Timestamp) -> Self {
        Self {
            id,
            revision: Seq::default(),
            kind,
            version,
            parent: None,
            on_failure: OnFailure::default(),
            state: ProcedureState::Initializing,
            wait: None,
            since: at,
            stage,
            visit: 0,
            attempt: 0,
            in_flight: None,
            history: 0,
            standing: 0,
            as_submitted: false,
            wake: None,
            rounds: List::new(),
            limits: List::new(),
            holds: false,
            hold: Hold::default(),
            stage_limits: List::new(),
            stage_permits: false,
            locks: List::new(),
            locked: List::new(),
            locked_at: List::new(),
            locks_for_life: false,
            ready: None,
            next_is_no_return: None,
            same_stage: 0,
            expected: None,
            is_pure: false,
            out_of_time: false,
            priority: 0,
            signals: 0,
            waits_after: Seq::default(),
            repeated: 0,
            history_from: 0,
            labels: RowLabels::default(),
            key: None,
            deadline: None,
            submitted: at,
            ended: None,
            due: None,
            rare: None,
        }
    }
}
