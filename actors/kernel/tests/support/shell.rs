//! A kernel whose store answers at once, and what it has written into the history.

use procession_kernel::{
    AdmissionEffect, Birth, Commit, Effect, Epoch, Event, HistoryEntry, Kernel, Kind, KindRules, ProcedureId, Receipt,
    Record, RequestId, Rules, SpeculativeCall, Timestamp,
};

/// The one family.
pub(crate) const ROOT: ProcedureId = ProcedureId::new(1, 0);
/// A kind that can be undone; `leaf` is one that cannot.
pub(crate) const KIND: &str = "k";

pub(crate) struct Shell {
    pub(crate) kernel: Kernel,
    pub(crate) history: Vec<HistoryEntry>,
    /// What the newest decision tells the limiter.
    pub(crate) told: Vec<AdmissionEffect>,
    /// The calls of the newest decision that need not wait for its receipt.
    pub(crate) early: Vec<SpeculativeCall>,
}

impl Shell {
    /// Begins at 0, with the birth of the root.
    pub(crate) fn new(birth: Birth) -> Self {
        let mut shell = Self::empty(Epoch(1));
        shell.feed(0, Event::Submitted(RequestId(2), vec![birth.into()]));
        shell
    }

    /// Begins as the engine of this epoch, with nothing.
    pub(crate) fn empty(epoch: Epoch) -> Self {
        let leaf = KindRules {
            rollback: false,
            ..KindRules::new(1)
        };
        let rules = Rules {
            kinds: [(Kind::from(KIND), KindRules::new(1)), (Kind::from("leaf"), leaf)].into(),
            speculation: true,
            ..Rules::default()
        };
        Self {
            kernel: Kernel::new(rules, epoch, 0),
            history: Vec::new(),
            told: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Decides at this instant, and gives what leaves.
    pub(crate) fn feed(&mut self, now: u64, event: Event) -> Vec<Effect> {
        let decision = self.kernel.decide(Timestamp(now), event);
        for record in decision.records() {
            if let Record::History(entry) = record {
                self.history.push((**entry).clone());
            } else if let Record::HistoryDropped(_, number) = record {
                self.history.retain(|entry| entry.number != *number);
            }
        }
        let mut commit = Commit::new();
        let immediate = self.kernel.fold(decision, &mut commit);
        (self.told, self.early) = (immediate.admission, immediate.calls);
        let receipt = Receipt::new(self.kernel.epoch(), self.kernel.seq());
        commit.release(&receipt).unwrap_or_default()
    }
}
