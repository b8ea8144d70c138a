//! Constructors for events with the default fields of a plain procedure. Callers set other fields one by one.

use super::{Admission, Birth, StageEnded, StageOutcome, Submission, UndoEnded};
use crate::id::{Blob, Epoch, Kind, ProcedureId, Seq, Timestamp};
use crate::label::Labels;
use crate::row::{Hold, NextStageNeeds, OnFailure, OnTimeout, Rare};

impl Birth {
    /// Creates a procedure that needs no admission and has no deadline.
    #[must_use]
    pub fn new(kind: Kind, version: u16, stage: Blob, payload: Blob) -> Self {
        Self {
            kind,
            version,
            stage,
            payload,
            priority: 0,
            trace: None,
            limit: None,
            hold: Hold::default(),
            permits: None,
            locks_for_life: false,
            next_needs: NextStageNeeds::default(),
            timeout: None,
            on_timeout: OnTimeout::default(),
            admission: Admission::default(),
            on_failure: OnFailure::default(),
            detached: false,
            graph: None,
            labels: Labels::default(),
            inherits_labels: false,
            brood: None,
            end_signal: None,
        }
    }

    /// Returns the procedures whose needs are known when this one is born: itself, or else the children that it is
    /// born with. A root with children asks for its own permits when it goes on.
    pub fn asking(&mut self) -> impl Iterator<Item = &mut Self> {
        let (own, brood) = if self.brood.is_some() {
            (None, self.brood.as_mut().map(|brood| brood.children.iter_mut()))
        } else {
            (Some(self), None)
        };
        own.into_iter().chain(brood.into_iter().flatten())
    }

    /// Returns the labels that it has if a procedure with these labels creates it.
    #[must_use]
    pub fn labels_below(&self, creator: &Labels) -> Labels {
        if self.inherits_labels {
            creator.with(&self.labels)
        } else {
            self.labels.clone()
        }
    }

    /// Returns `true` if it is a child that waits for siblings before it begins.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        self.graph.as_ref().is_some_and(|node| node.gate.is_some())
    }

    /// Returns what few births say, as its row has it. The name and the gate are not among it.
    pub(crate) fn rare(&self) -> Option<Box<Rare>> {
        let says = self.on_timeout != OnTimeout::Fail || self.trace.is_some() || self.end_signal.is_some();
        says.then(|| {
            Box::new(Rare {
                on_timeout: self.on_timeout,
                trace: self.trace.clone(),
                end_signal: self.end_signal.clone(),
                ..Rare::new()
            })
        })
    }
}

impl From<Birth> for Submission {
    /// Creates a submission without a key.
    fn from(birth: Birth) -> Self {
        Self {
            birth,
            key: None,
            known: None,
        }
    }
}

impl StageEnded {
    /// Returns the children that the stage collected one by one.
    #[must_use]
    pub fn children(&self) -> &[Birth] {
        self.effects.as_ref().map_or(&[], |effects| &effects.children)
    }

    /// Creates a report of a stage that began and ended at one instant, with nothing but its outcome.
    #[must_use]
    pub fn new(id: ProcedureId, run: Seq, epoch: Epoch, at: Timestamp, outcome: StageOutcome) -> Self {
        Self {
            id,
            run,
            earlier: Vec::new(),
            epoch,
            begun: at,
            ended: at,
            outcome,
            payload: None,
            replaced: None,
            upgraded: None,
            effects: None,
            keep_places: false,
            note: None,
            nothing_to_undo: false,
            lifts_timeout: false,
            next_needs: NextStageNeeds::default(),
            admission: None,
        }
    }
}

impl UndoEnded {
    /// Creates a report of an undo that began and ended at one instant, with nothing but its outcome.
    #[must_use]
    pub const fn new(scope: ProcedureId, number: u32, at: Timestamp, outcome: Result<(), String>) -> Self {
        Self {
            scope,
            number,
            begun: at,
            ended: at,
            outcome,
            retry_after: None,
            payload: None,
            replaced: None,
            upgraded: None,
            writes: Vec::new(),
            note: None,
        }
    }
}
