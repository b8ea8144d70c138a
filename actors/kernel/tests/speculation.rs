//! Which stages may run ahead of the disk: those whose code says that they are pure, at their first call, with everything
//! at hand.

#![expect(clippy::expect_used, reason = "a test names what it expects")]

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, Commit, Effect, Epoch, Event, EventName, Kind, NextStageNeeds, ProcedureId, Receipt, RequestId, Row,
    SentSignal, Seq, StageEnded, StageOutcome, Timestamp, WaitReason,
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
