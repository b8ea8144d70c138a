//! A grant that comes when its procedure waits for something else by then.

use procession_kernel::{
    Admission, Ahead, Birth, Blob, By, Commit, Effect, Epoch, Event, HistoryEntry, Kernel, Kind, KindRules, Lacking,
    LimitKey, LockNeed, Needs, ProcedureId, Receipt, Record, Rules, StageEnded, StageOutcome, Ticket, Timestamp, Verb,
    WaitReason,
};

const ROOT: ProcedureId = ProcedureId::new(1, 0);
const NOW: Timestamp = Timestamp(1_000_000);

struct Shell {
    kernel: Kernel,
    history: Vec<HistoryEntry>,
}

impl Shell {
    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let decision = self.kernel.decide(NOW, event);
        for record in decision.records() {
            if let Record::History(entry) = record {
                self.history.push((**entry).clone());
            }
        }
        let mut commit = Commit::new();
        self.kernel.apply(decision, &mut commit);
        let receipt = Receipt::new(Epoch(1), self.kernel.seq());
        commit.release(&receipt).unwrap_or_default()
    }
}

#[test]
fn a_grant_for_the_stage_before_gives_an_undo_its_locks_and_no_permit() -> Result<(), String> {
    let rules = Rules {
        kinds: [(Kind::from("k"), KindRules::new(1))].into(),
        ..Rules::default()
    };
    let mut shell = Shell {
        kernel: Kernel::new(rules, Epoch(1), 0),
        history: Vec::new(),
    };
    let limits = vec![LimitKey::from("k")];
    let ahead = Ahead {
        locks: vec![LockNeed::exclusive("t")],
        ..Ahead::default()
    };
    let birth = Birth {
        hold: procession_kernel::Hold::WhileActive,
        ahead: ahead.clone(),
        admission: Admission {
            limits: limits.clone(),
            asked: Some(Ticket(1)),
            lacking: None,
        },
        ..Birth::new(Kind::from("k"), 1, Blob::default(), Blob::default())
    };
    shell.feed(Event::Submitted(Ticket(2), vec![birth.into()]));
    let run = shell
        .kernel
        .row(ROOT)
        .and_then(|row| row.going)
        .ok_or("no stage is out")?
        .run;
    // Permit and lock were given up for those of the next stage, and it lacks one of them: somebody went before it.
    let report = StageEnded {
        ahead,
        admission: Some(Admission {
            limits: limits.clone(),
            asked: Some(Ticket(1)),
            lacking: Some(Lacking::Lock("t".into())),
        }),
        ..StageEnded::new(ROOT, run, Epoch(1), NOW, StageOutcome::Next(Blob::default()))
    };
    shell.feed(Event::StageEnded(Box::new(report)));
    let abort = Verb::Abort(ROOT);
    shell.feed(Event::Requested(
        Ticket(3),
        Box::new(abort),
        Box::new(By::new("ann", "over")),
    ));
    let stack = shell.history.clone();
    shell.feed(Event::StackLoaded(ROOT, stack));
    let wait = shell.kernel.row(ROOT).and_then(|row| row.wait.clone());
    assert_eq!(wait, Some(WaitReason::Lock("t".into())), "its undo waits for the lock");

    // The limiter had granted permit and lock before it heard of the abort.
    let effects = shell.feed(Event::Granted(ROOT));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Undo(_))));
    let back = Needs {
        limits,
        locks: Vec::new(),
    };
    assert!(effects.contains(&Effect::GiveBack(ROOT, back)), "{effects:?}");
    Ok(())
}
