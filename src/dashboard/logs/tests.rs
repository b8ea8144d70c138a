use std::fmt::Debug;

use procession_kernel::ProcedureId;
use tracing_subscriber::layer::SubscriberExt;

use super::{AttemptLog, StageLogs};

/// Logs inside a span as the engine makes it.
fn attempt(family: u64, attempt: u32, log: impl FnOnce()) {
    let id = ProcedureId::root(family);
    let span = tracing::info_span!(target: "procession", parent: None, "stage", procedure = %id, stage = %"Copy", visit = 3_u32, attempt, store = 7_u64);
    span.in_scope(log);
}

fn of(logs: &StageLogs, family: u64) -> Vec<AttemptLog> {
    logs.of(7, ProcedureId::root(family), |_| true).0
}

fn with(logs: &StageLogs, act: impl FnOnce()) {
    // Or a line that another test's thread reaches first counts as wanted by nobody, here too.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(logs.clone()), act);
}

#[test]
fn an_attempt_keeps_its_newest_50_events_and_counts_the_others() {
    let logs = StageLogs::new();
    with(&logs, || {
        attempt(1, 1, || (0..120).for_each(|line| tracing::info!(line, "copied")));
        attempt(1, 2, || {
            tracing::info_span!("inner").in_scope(|| tracing::warn!("again"))
        });
        tracing::info!("outside of any stage");
    });
    let found = of(&logs, 1);
    let kept: Vec<usize> = found.iter().map(|attempt| attempt.events.len()).collect();
    assert_eq!(kept, [50, 1]);
    assert_eq!((found[0].left_out, found[1].left_out), (70, 0));
    let first = &found[0].events[0];
    assert_eq!((first.level, first.text.message.as_str()), ("INFO", "copied"));
    assert_eq!(first.text.fields, [("line", "70".to_owned())]);
    assert_eq!(found[1].events[0].text.message, "again");
    assert!(
        logs.of(8, ProcedureId::root(1), |_| true).0.is_empty(),
        "another engine's"
    );
}

#[test]
fn attempts_that_logged_nothing_for_longest_go_first() {
    let logs = StageLogs::new().max_bytes(4_000);
    with(&logs, || {
        for family in 1..=40 {
            attempt(family, 1, || tracing::info!("{}", "x".repeat(500)));
            attempt(1, 1, || tracing::info!("still here"));
        }
    });
    assert!(!of(&logs, 1).is_empty() && !of(&logs, 40).is_empty());
    assert!(of(&logs, 2).is_empty(), "the oldest is gone");
    assert!(logs.of(7, ProcedureId::root(1), |_| true).1 > 30);
}

#[test]
fn texts_are_cut_on_a_character_and_values_are_not_trusted() {
    struct Endless;
    impl Debug for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            (0..10_000).try_for_each(|_| f.write_str("ü"))
        }
    }
    let logs = StageLogs::new();
    with(&logs, || {
        attempt(1, 1, || {
            tracing::info!(value = ?Endless, quoted = "a \"b\"", "{}", "ü".repeat(2_000));
        });
    });
    let event = &of(&logs, 1)[0].events[0];
    assert_eq!((event.text.message.len(), event.text.is_cut), (1_024, true));
    let [(_, value), (_, quoted)] = event.text.fields.as_slice() else {
        panic!("{event:?}");
    };
    assert_eq!((value.len(), quoted.as_str()), (256, "a \"b\""));
}
