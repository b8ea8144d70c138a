//! What the log says of failures: a line for each failed attempt and each failed end, bounded, and inside the span of
//! its call.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::procedure::{JoinPolicy, KindSettings};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::support::{Act, Lab, Planned, Tested, UndoAct, end, kinds, plan};

/// Each line about failures and ends, as its level, its span, its name and its fields.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

/// The name of a line, and its fields but for the times.
#[derive(Default)]
struct Line {
    name: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.name = format!("{value:?}"),
            "seconds" => {}
            // Writing to a text cannot fail.
            name => write!(self.fields, " {name}={value:?}").unwrap_or_default(),
        }
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_event(&self, event: &tracing::Event<'_>, context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        if ["an attempt", "a procedure", "failures were"]
            .iter()
            .any(|begin| line.name.starts_with(begin))
        {
            let span = context.event_span(event).map_or("-", |span| span.name());
            let (level, Line { name, fields }) = (event.metadata().level(), line);
            let line = format!("{level} [{span}] {name}:{fields}");
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }
}

/// Returns the lines that this leaves.
fn lines_of(
    set_up: impl Fn(Builder) -> Builder,
    drive: impl AsyncFnOnce(&Run) -> Tested,
) -> Result<Vec<String>, Trouble> {
    // Or a line that another test's thread reaches first counts as wanted by nobody, here too.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let (log, lab) = (Log::default(), Lab::default());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(log.clone()), || {
        World::new()
            .run(FaultPlan::none(), |builder| set_up(kinds(&lab, builder)), drive)?
            .done()
    })?;
    Ok(log.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

#[test]
fn each_failed_attempt_and_the_end_has_a_line() -> Tested {
    let work = plan(
        "a",
        [Act::Retry(1, Box::new(Act::Next)), Act::Fail("no stock".to_owned())],
    )
    .undo(1, UndoAct::Fail(1));
    let lines = lines_of(
        |builder| builder,
        async |run: &Run| {
            end(run, Planned(work), "order-1").await?.err();
            Ok(())
        },
    )?;
    let of = |call: &str| format!("procedure=1.0 kind=planned key=\"order-1\" call=\"{call}\"");
    let (stage, undo) = (of("stage"), of("undo"));
    let expected = [
        format!("WARN [stage] an attempt failed: {stage} stage=\"1\" attempt=1 text=\"attempt 1\" next=1970-01-01T"),
        format!("WARN [stage] an attempt failed: {stage} stage=\"2\" attempt=1 text=\"no stock\" next=none: it fails"),
        format!("WARN [undo] an attempt failed: {undo} stage=\"1\" attempt=1 text=\"the undo fails\" next=1970-01-01T"),
        "ERROR [-] a procedure failed: procedure=1.0 kind=planned key=\"order-1\" state=RolledBack cause=Failed \
         text=\"no stock\" origin=1.0"
            .to_owned(),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(line.starts_with(expected.as_str()), "{line}\n{expected}");
    }
    Ok(())
}

#[test]
fn a_family_that_one_member_brings_down_has_a_line_for_that_member_and_one_for_its_root() -> Tested {
    let fails = plan("b", [Act::Fail("down".to_owned())]);
    let waits = plan("c", [Act::Sleep(60_000), Act::Done(1)]);
    let work = plan(
        "a",
        [
            Act::Spawn(vec![fails, waits], JoinPolicy::AllSucceeded, 0),
            Act::Done(1),
        ],
    );
    let lines = lines_of(
        |builder| builder,
        async |run: &Run| {
            end(run, Planned(work), "a").await?.err();
            Ok(())
        },
    )?;
    let ends: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("a procedure failed"))
        .collect();
    assert_eq!(ends.len(), 2, "{lines:#?}");
    assert!(
        ends.iter().all(|line| line.contains("text=\"down\" origin=1.1")),
        "{ends:#?}"
    );
    assert!(ends.iter().any(|line| line.contains("procedure=1.0")), "{ends:#?}");
    Ok(())
}

#[test]
fn a_storm_is_told_in_few_lines_and_counted() -> Tested {
    let lines = lines_of(
        |builder| builder.health_check_every(Some(Duration::from_secs(10))),
        async |run: &Run| {
            for number in 0..50 {
                let fails = plan("a", [Act::Fail("down".to_owned())]);
                end(run, Planned(fails), &format!("key-{number}")).await?.err();
            }
            run.pass(Duration::from_secs(10)).await;
            Ok(())
        },
    )?;
    let count = |name: &str| lines.iter().filter(|line| line.contains(name)).count();
    assert_eq!(
        [count("an attempt failed"), count("a procedure failed")],
        [20, 20],
        "{lines:#?}"
    );
    let last = lines.last().map(String::as_str);
    assert_eq!(
        last,
        Some("WARN [-] failures were left out of the log: attempts=30 ends=30")
    );
    Ok(())
}

/// A kind whose ends are logged.
#[derive(Serialize, Deserialize)]
struct Loud;

impl Procedure for Loud {
    const KIND: &'static str = "loud";
    const LOGS_ENDS: bool = true;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}

#[test]
fn a_kind_that_asks_for_it_has_each_end_logged() -> Tested {
    let lines = |builder: fn(Builder) -> Builder| {
        lines_of(builder, async |run: &Run| {
            end(run, Planned(plan("a", [Act::Done(1)])), "a").await??;
            end(run, Loud, "b").await??;
            Ok(())
        })
    };
    let ended = "INFO [-] a procedure ended: procedure=2.0 kind=loud key=\"b\" state=Success";
    assert_eq!(lines(|builder| builder.register::<Loud>(()))?, [ended]);
    assert!(
        lines(|builder| builder.register_as::<Loud>("loud", KindSettings::default().logs_ends(false), ()))?.is_empty()
    );
    Ok(())
}
