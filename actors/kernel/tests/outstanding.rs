//! The call that a row says is out is the one that the decision asked for, from
//! then until it has reported.

use std::collections::BTreeMap;

use procession_kernel::{
    Birth, Blob, Commit, DispatchEffect, Effect, Epoch, Event, HistoryEntry, JoinPolicy, JoinRuling, Kernel, Kind,
    KindRules, OnFailure, ProcedureId, Receipt, Record, RequestId, Rules, StageCall, StageEnded, StageOutcome,
    StageTask, Timestamp, UndoEnded,
};

type Tested = Result<(), String>;

const ROOT: ProcedureId = ProcedureId::new(1, 0);
const CHILD: ProcedureId = ProcedureId::new(1, 1);
const NOW: Timestamp = Timestamp(1_000_000);
const LATER: Timestamp = Timestamp(3_600_000_000);

fn blob(text: &str) -> Blob {
    Blob::from(text.as_bytes().to_vec())
}

fn birth() -> Birth {
    Birth {
        on_failure: OnFailure::Compensate,
        ..Birth::new(Kind::from("k"), 1, blob("1"), blob("value"))
    }
}

/// A kernel, its history on disk, and the call that is out last.
struct Shell {
    kernel: Kernel,
    history: BTreeMap<u32, HistoryEntry>,
    asked: Option<StageCall>,
}

impl Shell {
    fn new() -> Self {
        Self::of(KindRules::new(1))
    }

    fn of(kind: KindRules) -> Self {
        let rules = Rules {
            kinds: [(Kind::from("k"), kind)].into(),
            ..Rules::default()
        };
        Self {
            kernel: Kernel::new(rules, Epoch(1), 0),
            history: BTreeMap::new(),
            asked: None,
        }
    }

    /// Decides, and compares each call that comes of it with what the row says.
    fn feed(&mut self, now: Timestamp, event: Event) {
        let decision = self.kernel.decide(now, event);
        let mut commit = Commit::new();
        for record in self.kernel.apply(decision, &mut commit).0 {
            if let Record::History(entry) = record {
                self.history.insert(entry.number, *entry);
            }
        }
        let receipt = Receipt::new(Epoch(1), self.kernel.seq());
        self.asked = None;
        for effect in commit.release(&receipt).unwrap_or_default() {
            let Effect::Dispatch(effect) = effect else {
                // No other effect calls user code.
                continue;
            };
            let mut call = match effect {
                DispatchEffect::Call(call) => call,
                DispatchEffect::LoadStack(scope) => {
                    let entries = self.history.values().cloned().collect();
                    return self.feed(now, Event::StackLoaded(scope, entries));
                }
                DispatchEffect::Stop(_) => continue,
            };
            if call.task == StageTask::CleanUp {
                continue;
            }
            // Where the value is at hand it is part of the call; it is on disk all the same.
            call.payload = None;
            let calls = self.kernel.calls_of(call.id).into_iter();
            let others = calls.filter(|call| call.task != StageTask::CleanUp);
            assert_eq!(others.collect::<Vec<_>>(), std::slice::from_ref(&*call));
            self.asked = Some(*call);
        }
    }

    fn stage(&mut self, id: ProcedureId, outcome: StageOutcome) -> Tested {
        let calls = self.kernel.calls_of(id);
        let Some(run) = calls.iter().find_map(StageCall::run) else {
            return Err(format!("{id} has no stage out"));
        };
        let report = StageEnded::new(id, run, Epoch(1), NOW, outcome);
        self.feed(NOW, Event::StageEnded(Box::new(report)));
        Ok(())
    }

    fn undo_out(&self) -> Option<StageCall> {
        self.asked.clone().filter(|call| call.undone().is_some())
    }

    fn undo(&mut self, outcome: Result<(), String>) -> Tested {
        let undo = self.undo_out().and_then(|call| call.undone());
        let (scope, number) = undo.ok_or("no undo is out")?;
        let report = UndoEnded::new(scope, number, NOW, outcome);
        self.feed(NOW, Event::UndoEnded(Box::new(report)));
        Ok(())
    }
}

#[test]
fn the_call_that_is_out_is_the_one_that_was_asked_for() -> Tested {
    let mut shell = Shell::new();
    shell.feed(NOW, Event::Submitted(RequestId(1), vec![birth().into()]));
    shell.stage(ROOT, StageOutcome::Retry("not yet".to_owned()))?;
    assert_eq!(shell.kernel.calls_of(ROOT), [], "it waits for its next attempt");
    shell.feed(LATER, Event::TimerDue(ROOT));
    shell.stage(
        ROOT,
        StageOutcome::Spawn {
            births: vec![birth()],
            join: JoinPolicy::Custom,
            width: 0,
            then: blob("2"),
        },
    )?;
    shell.stage(CHILD, StageOutcome::Done(blob("output")))?;
    assert!(
        shell
            .asked
            .as_ref()
            .is_some_and(|call| call.id == ROOT && matches!(call.task, StageTask::Join(_))),
        "the rule is asked"
    );
    let ruled = Event::JoinRuled {
        parent: ROOT,
        first: 1,
        seen: 1,
        ruling: JoinRuling::Met,
    };
    shell.feed(NOW, ruled);
    assert_eq!(shell.kernel.calls_of(CHILD), [], "it has ended");
    shell.stage(ROOT, StageOutcome::Fail("boom".to_owned()))?;

    shell.undo(Err("the undo fails".to_owned()))?;
    assert_eq!(
        shell.kernel.calls_of(ROOT),
        [],
        "it waits before the undo is tried again"
    );
    shell.feed(LATER, Event::TimerDue(ROOT));
    let mut undone = Vec::new();
    while let Some(undo) = shell.undo_out() {
        undone.push((undo.id, undo.attempt));
        shell.undo(Ok(()))?;
    }
    assert_eq!(undone, [(ROOT, 2), (CHILD, 1), (ROOT, 1)]);
    assert_eq!(shell.kernel.calls_of(ROOT), []);
    Ok(())
}

#[test]
fn one_that_is_undone_while_it_cleans_up_has_two_calls_out() -> Tested {
    let mut shell = Shell::of(KindRules {
        cleanup: true,
        ..KindRules::new(1)
    });
    shell.feed(NOW, Event::Submitted(RequestId(1), vec![birth().into()]));
    shell.stage(
        ROOT,
        StageOutcome::Spawn {
            births: vec![birth()],
            join: JoinPolicy::AllSucceeded,
            width: 0,
            then: blob("2"),
        },
    )?;
    shell.stage(CHILD, StageOutcome::Done(blob("output")))?;
    let calls = shell.kernel.calls_of(CHILD);
    let [clean_up] = calls.as_slice() else {
        return Err(format!("{calls:?} are out"));
    };
    assert_eq!((clean_up.id, &clean_up.task), (CHILD, &StageTask::CleanUp));
    shell.stage(ROOT, StageOutcome::Fail("boom".to_owned()))?;
    shell.undo(Ok(()))?;
    let undo = shell.undo_out().ok_or("the child's undo is out")?;
    assert_eq!(undo.id, CHILD);
    let both = [clean_up.clone(), undo];
    assert_eq!(shell.kernel.calls_of(CHILD), both);
    shell.feed(NOW, Event::CleanedUp(CHILD));
    assert_eq!(shell.kernel.calls_of(CHILD), both[1..]);
    Ok(())
}
