//! What few procedures have, in one box of the row.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::{FailureStreak, GraphNode, Mark, OnTimeout, PayloadSizeNote, Row};
use crate::cause::{Cause, NotUndone};
use crate::id::{Blob, EventName, TraceParent};
use crate::list::List;
use crate::wait::{EndSignal, WaitReason};

/// What few procedures have. It is kept in one box, so that the row of a plain procedure is small, and is copied,
/// compared and written in few instructions. On disk its fields are among those of the row.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rare {
    /// History numbers of the kept failed attempts of this visit.
    #[serde(rename = "y", default)]
    pub attempts_kept: List<u32>,
    /// Name of the stage with which it passed its point of no return.
    #[serde(rename = "7", default)]
    pub past_no_return: Option<Box<str>>,
    /// What happens when its deadline passes.
    #[serde(rename = "C", default)]
    pub on_timeout: OnTimeout,
    /// An operator has paused it and all its descendants.
    #[serde(rename = "E", default)]
    pub paused: bool,
    /// Set if an operator ended it, or replaced its result.
    #[serde(rename = "F", default)]
    pub mark: Option<Mark>,
    /// Its output, while it still waits for its last children.
    #[serde(rename = "G", default)]
    pub output: Option<Blob>,
    /// It has ended, and its code has yet to clean up.
    #[serde(rename = "H", default)]
    pub cleaning: bool,
    /// Why it failed.
    #[serde(rename = "c", default)]
    pub cause: Option<Box<Cause>>,
    /// Failed attempts of the undo on top of its rollback stack.
    #[serde(rename = "u", default)]
    pub undo_attempts: u32,
    /// Executed stages of its subtree that were not undone.
    #[serde(rename = "z", default)]
    pub not_undone: List<NotUndone>,
    /// Event names that are closed: further signals of them are refused.
    #[serde(rename = "Q", default)]
    pub closed: List<EventName>,
    /// The trace in which it was submitted.
    #[serde(rename = "I", default)]
    pub trace: Option<Box<TraceParent>>,
    /// Its place in the graph of its parent's list; a root has at most a name. It stays when its gate has opened, so that
    /// the graph can be shown.
    #[serde(rename = "M", default)]
    pub graph: Option<Box<GraphNode>>,
    /// Size of its value, while that is at least a quarter of the allowed size.
    #[serde(rename = "K", default)]
    pub payload_size: Option<Box<PayloadSizeNote>>,
    /// The newest failure of the current stage or undo, and how many in a row had the same text. `None` if nothing has
    /// failed since the last success, or if the failures predate this field.
    #[serde(rename = "L", default)]
    pub failure_streak: Option<Box<FailureStreak>>,
    /// While it backs off: the delay, if its code chose it.
    #[serde(rename = "R", default)]
    pub retry_after: Option<Duration>,
    /// For a root: the signal that is sent once its family has ended.
    #[serde(rename = "O", default)]
    pub end_signal: Option<Box<EndSignal>>,
}

/// What a row without a box reads as.
static PLAIN: Rare = Rare::new();

impl Rare {
    /// Creates one with nothing in it.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            attempts_kept: List::new(),
            past_no_return: None,
            on_timeout: OnTimeout::Fail,
            paused: false,
            mark: None,
            output: None,
            cleaning: false,
            cause: None,
            undo_attempts: 0,
            not_undone: List::new(),
            closed: List::new(),
            trace: None,
            graph: None,
            payload_size: None,
            failure_streak: None,
            retry_after: None,
            end_signal: None,
        }
    }

    /// Returns it in a box; `None` if there is nothing in it.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != PLAIN).then(|| Box::new(self))
    }
}

impl Default for Rare {
    fn default() -> Self {
        Self::new()
    }
}

impl Row {
    /// Returns what few procedures have.
    #[inline]
    #[must_use]
    pub const fn rare(&self) -> &Rare {
        match &self.rare {
            Some(rare) => rare,
            None => &PLAIN,
        }
    }

    /// Returns what few procedures have, to put something there. It creates the box, so nothing that is done for each
    /// procedure may call it: see [`Self::clear_rare`].
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Returns what few procedures have, if this one may have some of it.
    #[inline]
    pub(crate) fn rare_if_any(&mut self) -> Option<&mut Rare> {
        self.rare.as_deref_mut()
    }

    /// Clears something that few procedures have. A row without the box stays without it.
    #[inline]
    pub fn clear_rare(&mut self, clear: impl FnOnce(&mut Rare)) {
        if let Some(rare) = self.rare_if_any() {
            clear(rare);
        }
    }

    /// Clears what no longer matters, and removes a box with nothing in it: the row is then the same as one that is read
    /// from the disk.
    #[inline]
    pub fn settle_rare(&mut self) {
        if self.rare.is_some() {
            self.settle();
        }
    }

    #[inline(never)]
    fn settle(&mut self) {
        self.clear_failure_streak();
        if !matches!(self.wait, Some(WaitReason::Backoff(..))) {
            self.clear_rare(|rare| rare.retry_after = None);
        }
        self.rare.take_if(|rare| **rare == PLAIN);
    }
}

/// Reads what few procedures have out of the fields of a row; `None` if it has none of it.
pub(super) fn read<'de, D: Deserializer<'de>>(fields: D) -> Result<Option<Box<Rare>>, D::Error> {
    Rare::deserialize(fields).map(Rare::boxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Kind, ProcedureId, Timestamp};

    fn plain() -> Row {
        let (id, stage) = (ProcedureId::root(1), Blob::default());
        Row::new(id, Kind::from("kind"), 1, stage, Timestamp(0))
    }

    #[test]
    fn a_row_without_the_box_reads_as_one_with_nothing_in_it() {
        let mut row = plain();
        assert_eq!((row.rare(), &row.rare), (&Rare::default(), &None));
        row.clear_rare(|rare| rare.paused = false);
        row.clear_failure_streak();
        row.note_size(1, 100, |_| None);
        assert_eq!(row.rare, None, "what clears creates no box");
    }

    #[test]
    fn only_an_empty_box_is_removed() {
        let mut row = plain();
        row.rare_mut().undo_attempts = 1;
        row.settle_rare();
        assert_eq!(row.rare().undo_attempts, 1);
        row.clear_rare(|rare| rare.undo_attempts = 0);
        assert_ne!(row, plain());
        row.settle_rare();
        assert_eq!(row, plain());
    }
}
