//! One span for each attempt of a stage and of an undo, with its fields in order.

use std::fmt::{Debug, Write as _};
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};

use procession::procedure::JoinPolicy;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::support::{Act, Lab, Planned, Tested, end, kinds, plan};

/// Every span as one line; what is recorded later is a line of its own.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn add(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_u64(&mut self, field: &Field, value: u64) {
        // Drawn for each store.
        if field.name() == "store" {
            self.0.push_str(" store");
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a text cannot fail.
        write!(self.0, " {}={value:?}", field.name()).ok();
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        if attributes.metadata().target() == "procession" {
            let mut line = Line(attributes.metadata().name().to_owned());
            attributes.record(&mut line);
            self.add(line.0);
        }
    }

    fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut line = Line("then".to_owned());
        values.record(&mut line);
        self.add(line.0);
    }
}

/// The spans of what this submits.
fn spans_of(drive: impl AsyncFnOnce(&Run) -> Tested) -> Result<Vec<String>, Trouble> {
    // Or a line that another test's thread reaches first counts as wanted by nobody, here too.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let (lines, lab) = (Lines::default(), Lab::default());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(lines.clone()), || {
        let set_up = |builder| kinds(&lab, builder);
        World::new().run(FaultPlan::none(), set_up, drive)?.done()
    })?;
    Ok(lines.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

#[test]
fn each_attempt_has_a_span_with_its_fields_in_order() -> Tested {
    let work = plan("a", [Act::Retry(1, Box::new(Act::Next)), Act::Fail("boom".to_owned())]);
    let spans = spans_of(async |run: &Run| {
        end(run, Planned(work), "a").await?.err();
        Ok(())
    })?;
    let expected = [
        "stage procedure=1.0 kind=planned stage=1 state=Runnable seq=2 attempt=1 visit=0 store",
        "then outcome=\"retry\"",
        "then error.type=\"retry\"",
        "stage procedure=1.0 kind=planned stage=1 state=Runnable seq=4 attempt=2 visit=0 store",
        "then outcome=\"next\"",
        "stage procedure=1.0 kind=planned stage=2 state=Runnable seq=5 attempt=1 visit=1 store",
        "then outcome=\"failed\"",
        "then error.type=\"failed\"",
        "undo procedure=1.0 kind=planned stage=2 state=Failed seq=6 attempt=1 visit=1 store",
        "then outcome=\"ok\"",
        "undo procedure=1.0 kind=planned stage=1 state=Failed seq=7 attempt=1 visit=0 store",
        "then outcome=\"ok\"",
    ];
    assert_eq!(spans, expected);
    Ok(())
}

#[test]
fn each_span_of_a_family_links_to_where_it_was_submitted() -> Tested {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let work = plan(
        "a",
        [
            Act::Spawn(vec![plan("b", [Act::Done(1)])], JoinPolicy::AllSucceeded, 0),
            Act::Done(1),
        ],
    );
    let spans = spans_of(async |run: &Run| {
        let submission = run.executor.submit(Planned(work)).trace_parent(PARENT.parse()?);
        let handle = run.wait(submission.into_future()).await??;
        run.wait(handle.outcome()).await??;
        assert_eq!(run.executor.status(handle.id()).await?.trace, Some(PARENT.parse()?));
        Ok(())
    })?;
    let stages: Vec<_> = spans.iter().filter(|line| line.starts_with("stage")).collect();
    let of_child = stages.iter().filter(|line| line.contains("procedure=1.1")).count();
    assert!(of_child > 0 && stages.len() > of_child, "{spans:?}");
    for line in stages {
        assert!(line.ends_with(&format!(" link={PARENT}")), "{line}");
    }
    Ok(())
}
