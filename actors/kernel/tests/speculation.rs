//! Which stages may run ahead of the disk: those whose code says that they are pure, at their first call, with everything
//! at hand.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, Commit, DispatchEffect, EarlierStage, Effect, Ending, Epoch, Event, EventName, HistoryDetail, Kernel,
    Kind, KindRules, LimitKey, NextStageNeeds, OperatorRequest, ProcedureId, ProcedureState, Receipt, RequestId, Row,
    Rules, SentSignal, Seq, StageEnded, StageOutcome, StoredTarget, Timestamp, Verb, WaitReason,
};

use crate::shell::{KIND, ROOT, Shell};

fn blob(text: &str) -> Blob {
    Blob::from(text.as_bytes())
}

fn pure() -> NextStageNeeds {
    NextStageNeeds {
        is_pure: true,
        ..NextStageNeeds::default()
    }
}

fn birth(next_needs: NextStageNeeds) -> Birth {
    Birth {
        next_needs,
        ..Birth::new(Kind::from(KIND), 1, blob("first"), blob("value"))
    }
}

fn next() -> StageOutcome {
    StageOutcome::Next(blob("next"))
}

fn row(shell: &Shell, id: ProcedureId) -> &Row {
    shell.kernel.row(id).expect("it lives")
}

fn report(shell: &Shell, outcome: StageOutcome, next_needs: NextStageNeeds) -> Box<StageEnded> {
    let run = row(shell, ROOT).in_flight.expect("its stage is out").run;
    Box::new(StageEnded {
        next_needs,
        ..StageEnded::new(ROOT, run, shell.kernel.epoch(), Timestamp(0), outcome)
    })
}

fn end(shell: &mut Shell, outcome: StageOutcome, next_needs: NextStageNeeds) -> Vec<Effect> {
    let report = report(shell, outcome, next_needs);
    shell.feed(0, Event::StageEnded(report))
}

/// Returns who is called ahead of the disk, and who is called with the receipt.
fn called(shell: &Shell, effects: &[Effect]) -> (Vec<ProcedureId>, Vec<ProcedureId>) {
    let early = shell.early.iter().map(|call| call.get().id).collect();
    let late = effects.iter().filter_map(|effect| effect.call().map(|call| call.id));
    (early, late.collect())
}

#[test]
fn a_pure_stage_runs_ahead_of_the_disk_and_no_other() {
    let mut shell = Shell::empty(Epoch(1));
    let births = vec![birth(pure()).into(), birth(NextStageNeeds::default()).into()];
    let effects = shell.feed(0, Event::Submitted(RequestId(1), births));
    assert_eq!(called(&shell, &effects), (vec![ROOT], vec![ProcedureId::root(2)]));
    let value = shell.early.first().and_then(|call| call.get().payload.clone());
    assert_eq!(value, Some(blob("value")), "the store has no value yet");

    let effects = end(&mut shell, next(), pure());
    assert_eq!(called(&shell, &effects), (vec![ROOT], vec![]));
    let effects = end(&mut shell, next(), NextStageNeeds::default());
    assert_eq!(called(&shell, &effects), (vec![], vec![ROOT]));
}

#[test]
fn what_reads_the_store_or_runs_again_waits_for_the_receipt() {
    let mut shell = Shell::new(birth(pure()));
    // Its value must be read, and what woke it.
    end(
        &mut shell,
        StageOutcome::Wait(EventName::from("go"), None, blob("woken")),
        pure(),
    );
    let signal = SentSignal {
        to: ROOT,
        name: EventName::from("go"),
        payload: blob("payload"),
        key: None,
        last: false,
    };
    let effects = shell.feed(0, Event::Signalled(RequestId(3), vec![signal]));
    assert_eq!(called(&shell, &effects), (vec![], vec![ROOT]));

    // A yield: it asks for the disk.
    end(&mut shell, next(), pure());
    let effects = end(&mut shell, StageOutcome::Yield, NextStageNeeds::default());
    assert_eq!(called(&shell, &effects), (vec![], vec![ROOT]));

    // A second attempt, at once and after a backoff.
    for delay in [Duration::ZERO, Duration::from_secs(1)] {
        end(&mut shell, next(), pure());
        let mut effects = end(
            &mut shell,
            StageOutcome::RetryAfter(delay, "not yet".to_owned()),
            NextStageNeeds::default(),
        );
        if let Some(WaitReason::Backoff(_, until)) = row(&shell, ROOT).wait {
            effects = shell.feed(until.0, Event::TimerDue(ROOT));
        }
        assert_eq!(called(&shell, &effects), (vec![], vec![ROOT]), "{delay:?}");
    }
}

#[test]
fn after_a_death_every_stage_is_marked_on_disk_first_for_a_while() {
    let mut shell = Shell::empty(Epoch(2));
    shell.kernel.hold_speculation_until(Timestamp(60));
    for (now, is_early) in [(59, false), (60, true)] {
        let effects = shell.feed(now, Event::Submitted(RequestId(now), vec![birth(pure()).into()]));
        let (early, late) = called(&shell, &effects);
        assert_eq!((early.len(), late.len()), if is_early { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn a_deferred_call_waits_for_the_receipt_like_any_effect() {
    let mut shell = Shell::new(birth(NextStageNeeds::default()));
    let report = report(&shell, next(), pure());
    let decision = shell.kernel.decide(Timestamp(0), Event::StageEnded(report));
    let mut commit = Commit::new();
    let mut calls = shell.kernel.fold(decision, &mut commit).calls;
    let call = calls.pop().expect("it may run ahead");
    commit.defer(call.clone());
    let seq = shell.kernel.seq();
    let commit = commit
        .release(&Receipt::new(Epoch(1), Seq(seq.0 - 1)))
        .expect_err("its records are not on disk");
    let effects = commit.release(&Receipt::new(Epoch(1), seq)).expect("they are");
    let called: Vec<_> = effects.iter().filter_map(Effect::call).collect();
    assert_eq!(called, [call.get()]);
}

#[test]
fn an_engine_that_does_not_speculate_runs_pure_stages_with_their_receipts() {
    let mut shell = Shell::empty(Epoch(1));
    let mut rules = shell.kernel.rules().clone();
    rules.speculation = false;
    shell.kernel = procession_kernel::Kernel::new(rules, Epoch(1), 0);
    let effects = shell.feed(0, Event::Submitted(RequestId(1), vec![birth(pure()).into()]));
    assert_eq!(called(&shell, &effects), (vec![], vec![ROOT]));
}

// Runs.

/// A kernel whose runs have this many stages at most, with these rules of the one kind.
fn with_runs(length: u32, rules: KindRules) -> Shell {
    let mut shell = Shell::empty(Epoch(1));
    let rules = Rules {
        kinds: [(Kind::from(KIND), rules)].into(),
        run_length: length,
        ..shell.kernel.rules().clone()
    };
    shell.kernel = Kernel::new(rules, Epoch(1), 0);
    shell
}

fn submit(shell: &mut Shell, birth: Birth) {
    shell.feed(0, Event::Submitted(RequestId(1), vec![birth.into()]));
}

/// Returns how many stages may follow the one that was just called.
fn ahead(shell: &Shell) -> Vec<u32> {
    shell.early.iter().map(|call| call.get().ahead).collect()
}

/// A stage that lasted from this instant for one second.
fn earlier(from: u64, next: &str) -> EarlierStage {
    EarlierStage {
        begun: Timestamp(from),
        ended: Timestamp(from + 1),
        next: blob(next),
        nothing_to_undo: next == "third",
    }
}

/// Reports a stage that lasted from this instant for one second, and the stages of its run before it.
fn report_run(
    shell: &mut Shell,
    from: u64,
    earlier: Vec<EarlierStage>,
    outcome: StageOutcome,
    payload: Option<Blob>,
) -> Vec<Effect> {
    let report = Box::new(StageEnded {
        earlier,
        payload,
        begun: Timestamp(from),
        ended: Timestamp(from + 1),
        ..*report(shell, outcome, pure())
    });
    shell.feed(from + 1, Event::StageEnded(report))
}

#[test]
fn a_run_leaves_what_its_stages_leave_one_by_one() {
    let mut alone = with_runs(1, KindRules::new(1));
    submit(&mut alone, birth(pure()));
    assert_eq!(ahead(&alone), [0]);
    for (from, stage) in [(1, "second"), (2, "third"), (3, "third"), (4, "fifth")] {
        let to = blob(stage);
        let report = Box::new(StageEnded {
            payload: (from == 4).then(|| blob("new")),
            begun: Timestamp(from),
            ended: Timestamp(from + 1),
            nothing_to_undo: stage == "third",
            ..*report(&alone, StageOutcome::Next(to), pure())
        });
        alone.feed(from + 1, Event::StageEnded(report));
    }

    let mut run = with_runs(64, KindRules::new(1));
    submit(&mut run, birth(pure()));
    assert_eq!(ahead(&run), [63]);
    let stages = vec![earlier(1, "second"), earlier(2, "third"), earlier(3, "third")];
    let before = run.kernel.seq();
    report_run(
        &mut run,
        4,
        stages,
        StageOutcome::Next(blob("fifth")),
        Some(blob("new")),
    );
    assert_eq!(run.kernel.seq().0, before.0 + 1, "one commit");

    assert_eq!(run.history.len(), 4);
    assert_eq!(run.history, alone.history);
    let plain = |shell: &Shell| {
        let mut row = row(shell, ROOT).clone();
        row.in_flight = None;
        row.revision = Seq(0);
        row
    };
    assert_eq!(plain(&run), plain(&alone));
    assert_eq!(row(&run, ROOT).standing, 2);
}

#[test]
fn a_run_whose_last_stage_is_refused_runs_again_without_it() {
    let mut shell = with_runs(64, KindRules::new(1));
    submit(&mut shell, birth(pure()));
    let before = row(&shell, ROOT).clone();
    let most = shell.kernel.rules().bounds.payload;
    let too_large = StageOutcome::Done(Blob::from(vec![0; most + 1]));
    let before_it = vec![earlier(0, "second"), earlier(1, "third")];
    let effects = report_run(&mut shell, 2, before_it, too_large.clone(), Some(blob("new")));

    // The actor is stopped, because its value is that of the refused stage; the call that follows reads the store.
    assert!(shell.history.is_empty());
    assert!(
        matches!(effects.first(), Some(Effect::Dispatch(DispatchEffect::Stop(ROOT)))),
        "{effects:?}"
    );
    let calls: Vec<_> = effects.iter().filter_map(Effect::call).collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls.first().map(|call| (call.ahead, &call.payload)), Some((1, &None)));
    let after = row(&shell, ROOT);
    assert_eq!((&after.stage, after.visit, after.history), (&before.stage, 0, 0));
    assert_ne!(
        after.in_flight, before.in_flight,
        "a report of the run that was given up is late"
    );

    // The stages before it run once more, and then it alone is refused.
    report_run(&mut shell, 3, vec![earlier(2, "second")], next(), Some(blob("new")));
    report_run(&mut shell, 4, vec![], too_large, None);
    let endings: Vec<_> = shell.history.iter().map(|entry| (entry.visit, entry.ending)).collect();
    assert_eq!(endings, [(0, Ending::Next), (1, Ending::Next), (2, Ending::Fail)]);
}

#[test]
fn a_run_that_meets_an_abort_is_over_and_then_undone() {
    let mut shell = with_runs(64, KindRules::new(1));
    submit(&mut shell, birth(pure()));
    let (abort, by) = (
        Box::new(Verb::Abort(ROOT)),
        Box::new(OperatorRequest::new("ann", "over")),
    );
    shell.feed(1, Event::Requested(RequestId(2), abort, by, StoredTarget::None));
    report_run(&mut shell, 1, vec![earlier(0, "second")], next(), None);
    assert_eq!(shell.history.len(), 2);
    let row = row(&shell, ROOT);
    assert_eq!((row.state, row.visit, row.in_flight), (ProcedureState::Failed, 2, None));
}

#[test]
fn a_run_keeps_away_from_the_repeat_limit() {
    let rules = KindRules {
        repeat_limit: Some(5),
        ..KindRules::new(1)
    };
    let mut shell = with_runs(64, rules);
    submit(&mut shell, birth(pure()));
    // Four may run, so that none of them is the fifth of its row.
    assert_eq!(ahead(&shell), [3]);
    let stages = vec![earlier(0, "first"), earlier(1, "first")];
    report_run(&mut shell, 2, stages, StageOutcome::Next(blob("first")), None);
    assert_eq!(ahead(&shell), [0]);
    report_run(&mut shell, 3, vec![], StageOutcome::Next(blob("other")), None);
    assert_eq!(ahead(&shell), [3]);
}

#[test]
fn stages_that_hold_something_or_keep_more_than_an_entry_run_alone() {
    let keeps = KindRules {
        keep_values: 8,
        ..KindRules::new(1)
    };
    let forgets = KindRules {
        history: HistoryDetail::Stack,
        ..KindRules::new(1)
    };
    for rules in [keeps, forgets] {
        let mut shell = with_runs(64, rules);
        submit(&mut shell, birth(pure()));
        assert_eq!(ahead(&shell), [0]);
    }
    let locked = NextStageNeeds {
        limits: vec![LimitKey::from("calls")],
        ..pure()
    };
    let mut shell = with_runs(64, KindRules::new(1));
    submit(&mut shell, birth(locked));
    assert!(ahead(&shell).iter().all(|ahead| *ahead == 0));
}
