//! The cost of one child's failure does not depend on the number of children.

use crate::decision::{Commit, Receipt};
use crate::effect::{DispatchEffect, Effect, StageCall};
use crate::event::{Birth, Event, StageEnded, StageOutcome, UndoEnded};
use crate::family::looked;
use crate::history::HistoryEntry;
use crate::id::{Blob, Epoch, Kind, ProcedureId, RequestId, Seq, Timestamp};
use crate::kernel::{Kernel, KindRules, Rules};
use crate::lifecycle::ProcedureState;
use crate::record::Record;
use crate::row::JoinPolicy;

const NOW: Timestamp = Timestamp(1_000_000);
const UNDOABLE: &str = "undoable";
const FINAL: &str = "final";

/// A kernel, and the history that it has written.
struct Shell {
    kernel: Kernel,
    history: Vec<HistoryEntry>,
}

fn birth(kind: &str) -> Birth {
    Birth::new(Kind::from(kind), 1, Blob::default(), Blob::default())
}

impl Shell {
    /// Creates a root that waits for the ends of its children. All of this kind have their first stage out.
    fn new(kind: &str, children: u32, width: u32) -> Self {
        Self::joined(kind, children, width, JoinPolicy::AllFinished)
    }

    fn joined(kind: &str, children: u32, width: u32, join: JoinPolicy) -> Self {
        let mut last = KindRules::new(1);
        last.rollback = false;
        let rules = Rules {
            kinds: [(Kind::from(UNDOABLE), KindRules::new(1)), (Kind::from(FINAL), last)].into(),
            ..Rules::default()
        };
        let (kernel, history) = (Kernel::new(rules, Epoch(1), 0), Vec::new());
        let mut shell = Self { kernel, history };
        shell.feed(Event::Submitted(RequestId(1), vec![birth(UNDOABLE).into()]));
        let births = vec![birth(kind); children as usize];
        let then = Blob::default();
        shell.ends(
            ProcedureId::root(1),
            StageOutcome::Spawn {
                births,
                join,
                width,
                then,
            },
        );
        shell
    }

    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let decision = self.kernel.decide(NOW, event);
        for record in decision.records() {
            if let Record::History(entry) = record {
                self.history.retain(|before| before.number != entry.number);
                self.history.push((**entry).clone());
            }
        }
        let mut commit = Commit::new();
        self.kernel.apply(decision, &mut commit);
        let receipt = Receipt::new(Epoch(1), self.kernel.seq());
        commit.release(&receipt).unwrap_or_default()
    }

    fn ends(&mut self, id: ProcedureId, outcome: StageOutcome) -> Vec<Effect> {
        let in_flight = self.kernel.row(id).and_then(|row| row.in_flight);
        let run = in_flight.map_or(Seq(0), |in_flight| in_flight.run);
        let report = StageEnded::new(id, run, Epoch(1), NOW, outcome);
        self.feed(Event::StageEnded(Box::new(report)))
    }

    /// Fails a child, and performs every effect that follows.
    fn fails(&mut self, member: u32) {
        let mut effects = self.ends(ProcedureId::new(1, member), StageOutcome::Fail("boom".to_owned()));
        while let Some(effect) = effects.pop() {
            let more = if let Effect::Dispatch(DispatchEffect::LoadStack(scope)) = effect {
                let entries = self.history.iter().filter(|entry| entry.member == scope.member);
                self.feed(Event::StackLoaded(scope, entries.cloned().collect()))
            } else if let Some((scope, number)) = effect.call().and_then(StageCall::undone) {
                let ended = UndoEnded::new(scope, number, NOW, Ok(()));
                self.feed(Event::UndoEnded(Box::new(ended)))
            } else {
                Vec::new()
            };
            effects.extend(more);
        }
    }
}

/// Returns how many members are looked at while all children fail, one after the other.
fn looks(kind: &str, children: u32, width: u32) -> u64 {
    let mut shell = Shell::new(kind, children, width);
    looked::taken();
    for member in 1..=children {
        shell.fails(member);
    }
    let looks = looked::taken();
    let root = shell.kernel.row(ProcedureId::root(1)).expect("it lives");
    assert_eq!(root.state, ProcedureState::Runnable, "all have ended, so it goes on");
    looks
}

/// The same if all children fail before the first of them has ended.
fn looks_at_once(children: u32) -> u64 {
    let mut shell = Shell::new(UNDOABLE, children, 0);
    looked::taken();
    let mut effects = Vec::new();
    for member in 1..=children {
        let failed = shell.ends(ProcedureId::new(1, member), StageOutcome::Fail("boom".to_owned()));
        effects.extend(failed);
    }
    for effect in effects {
        if let Some((scope, number)) = effect.call().and_then(StageCall::undone) {
            let ended = UndoEnded::new(scope, number, NOW, Ok(()));
            shell.feed(Event::UndoEnded(Box::new(ended)));
        }
    }
    assert_eq!(
        shell.kernel.row(ProcedureId::root(1)).map(|row| row.state),
        Some(ProcedureState::Runnable)
    );
    looked::taken()
}

#[test]
fn a_failing_child_costs_the_same_among_many() {
    for (kind, width) in [(UNDOABLE, 0), (FINAL, 0), (UNDOABLE, 3)] {
        let (few, many) = (looks(kind, 200, width), looks(kind, 400, width));
        assert!(
            few > 0 && many <= 2 * few + 32,
            "{kind}, width {width}: {few} and {many} looks"
        );
    }
    let (few, many) = (looks_at_once(200), looks_at_once(400));
    assert!(few > 0 && many <= 2 * few + 32, "at once: {few} and {many} looks");
}

#[test]
fn a_failing_child_among_16_000_costs_a_few_looks() {
    let children = 16_000;
    for (kind, width) in [(FINAL, 0), (FINAL, 64)] {
        let looks = looks(kind, children, width);
        assert!(looks <= 64 * u64::from(children), "width {width}: {looks} looks");
    }
}

/// Returns how many members are looked at while one child after the other reports to a family that fails.
fn looks_of_reports(children: u32) -> u64 {
    let mut shell = Shell::joined(UNDOABLE, children, 0, JoinPolicy::AllSucceeded);
    looked::taken();
    for member in 1..=children {
        let outcome = if member == 1 {
            StageOutcome::Fail("boom".to_owned())
        } else {
            StageOutcome::Done(Blob::default())
        };
        shell.ends(ProcedureId::new(1, member), outcome);
    }
    looked::taken()
}

#[test]
fn a_report_to_a_failing_family_costs_the_same_among_many() {
    let (few, many) = (looks_of_reports(200), looks_of_reports(400));
    assert!(few > 0 && many <= 2 * few + 32, "{few} and {many} looks");
}
