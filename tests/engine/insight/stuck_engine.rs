//! Verdicts of the engine itself: a store that does not answer, or has failed;
//! and the health check on the engine's clock, which logs each verdict once.

use std::fmt::{Debug, Write as _};
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use procession::Builder;
use procession::health::Rule;
use procession::testkit::{Fault, FaultPlan, Run, World};
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::kit::{Slow, at, live_in, set_up, told};
use crate::support::{Act, Holding, Lab, Planned, Tested, chain, plan};

#[test]
fn e_115_a_store_that_does_not_answer_is_told_of_though_it_does_not_answer() -> Tested {
    let lab = Lab::default();
    // The third commit: a1 of a chain.
    live_in(
        &World::new(),
        &lab,
        FaultPlan::none().and(2, Fault::Withhold),
        async |run| {
            run.pass(Duration::from_secs(1)).await;
            let handle = run.executor.submit(Planned(chain("a", 3))).await?;
            run.settle().await;
            run.pass(Duration::from_millis(4_999)).await;
            assert_eq!(run.executor.verdicts().await?, []);
            run.pass(Duration::from_millis(1)).await;
            let verdicts = run.executor.verdicts().await?;
            assert_eq!(verdicts.len(), 1, "{verdicts:?}");
            let verdict = &verdicts[0];
            assert_eq!(
                (verdict.rule, verdict.procedure, verdict.since),
                (Rule::StoreSlow, None, at(1))
            );
            assert_eq!((verdict.fact("time"), verdict.fact("commits")), (Some("5s"), Some("1")));
            run.store.release_receipts();
            run.wait(handle.outcome()).await??;
            assert_eq!(run.executor.verdicts().await?, []);
            Ok(())
        },
    )
}

#[test]
fn e_115_a_store_that_is_full_is_told_of() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, FaultPlan::at(2, Fault::FailNoSpace), async |run| {
        run.executor.submit(Planned(chain("a", 3))).await?;
        run.settle().await;
        run.pass(Duration::from_secs(9)).await;
        let verdicts = run.executor.verdicts().await?;
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert_eq!((verdicts[0].rule, verdicts[0].since), (Rule::StoreFailed, at(0)));
        assert!(verdicts[0].fact("why").is_some_and(|why| why.contains("no space left")));
        Ok(())
    })
}

/// Every verdict that was logged, as its rule.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if ["rule", "procedure"].contains(&field.name()) {
            // Writing to a text cannot fail.
            write!(self.0, "{value:?} ").ok();
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        if *event.metadata().level() == tracing::Level::WARN && line.0.starts_with('"') {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
        }
    }
}

impl Log {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[test]
fn e_115_the_health_check_on_the_clock_logs_a_verdict_once_and_shows_it() -> Tested {
    // Or a line that another test's thread reaches first counts as wanted by nobody, here too.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let (log, lab, recorder) = (Log::default(), Lab::default(), DebuggingRecorder::new());
    let snapshotter = recorder.snapshotter();
    let overruns = || {
        let all = snapshotter.snapshot().into_vec();
        let overrun = all.into_iter().find(|(key, ..)| {
            let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
            key.key().name() == "procession_stuck" && labels == ["overrun"]
        });
        match overrun {
            Some((.., DebugValue::Gauge(value))) => value.into_inner(),
            _ => f64::NAN,
        }
    };
    let checks = |builder: Builder| set_up(&lab, builder).health_check_every(Some(Duration::from_secs(10)));
    let drive = async |run: &Run| -> Tested {
        let slow = run
            .wait(run.executor.submit(Slow("slow".to_owned())).into_future())
            .await??;
        run.pass(Duration::from_secs(60)).await;
        assert_eq!((log.lines(), overruns()), (Vec::new(), 0.0));
        run.pass(Duration::from_secs(10)).await;
        let line = format!("\"overrun\" {} ", slow.id());
        assert_eq!((log.lines(), overruns()), (vec![line.clone()], 1.0));
        run.pass(Duration::from_mins(10)).await;
        assert_eq!(told(run).await?, [(Rule::Overrun, Some(slow.id()))]);
        assert_eq!(log.lines(), [line], "it is logged once");
        lab.open("slow");
        run.pass(Duration::from_secs(10)).await;
        assert_eq!(overruns(), 0.0);
        Ok(())
    };
    metrics::with_local_recorder(&recorder, || {
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log.clone()), || {
            World::new().run(FaultPlan::none(), checks, drive)?.done()
        })
    })
}

#[test]
fn e_115_the_health_check_commits_nothing() -> Tested {
    let lab = Lab::default();
    let checks = |builder: Builder| set_up(&lab, builder).health_check_every(Some(Duration::from_secs(10)));
    let drive = async |run: &Run| -> Tested {
        let sleeps = plan("a", [Act::Sleep(86_400_000), Act::Done(1)]).exclusive("t");
        run.executor.submit(Holding(sleeps)).await?;
        run.executor.submit(Planned(chain("b", 1).exclusive("t"))).await?;
        run.settle().await;
        let before = run.store.commits();
        run.pass(Duration::from_hours(1)).await;
        assert_eq!(run.store.commits(), before, "360 health checks");
        assert_eq!(run.executor.snapshot().await?.lost_wakes, 0);
        Ok(())
    };
    World::new().run(FaultPlan::none(), checks, drive)?.done()
}
