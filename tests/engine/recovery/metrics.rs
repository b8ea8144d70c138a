//! What is counted, when, and how often: after the commit, once.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use procession::procedure::{Finished, Hooks, Submitted};
use procession::status::ProcedureState;
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Limited, Plan, Planned, Tested, chain, end, failing, kinds, plan, spawn};

/// Every series by its name with its labels: counters and gauges as one number, histograms as their samples.
pub(super) struct Read(BTreeMap<String, Vec<f64>>);

impl Read {
    /// Takes what was recorded; a second reading finds nothing of it.
    pub(super) fn of(snapshotter: &Snapshotter) -> Self {
        let mut read = BTreeMap::new();
        for (key, _, _, value) in snapshotter.snapshot().into_vec() {
            let labels: Vec<&str> = key.key().labels().map(metrics::Label::value).collect();
            let values = match value {
                DebugValue::Counter(count) => vec![count as f64],
                DebugValue::Gauge(value) => vec![value.into_inner()],
                DebugValue::Histogram(samples) => samples.into_iter().map(|sample| sample.into_inner()).collect(),
            };
            read.insert(format!("{} {}", key.key().name(), labels.join(" ")), values);
        }
        Self(read)
    }

    pub(super) fn samples(&self, series: &str) -> &[f64] {
        let name = format!("procession_{series}");
        self.0.get(&name).map_or(&[], Vec::as_slice)
    }

    /// Returns a counter or a gauge; an unknown one is no number, which equals nothing.
    pub(super) fn value(&self, series: &str) -> f64 {
        self.samples(series).first().copied().unwrap_or(f64::NAN)
    }

    /// Adds up all series whose names begin like this.
    pub(super) fn sum(&self, prefix: &str) -> f64 {
        let prefix = format!("procession_{prefix}");
        let series = self.0.iter().filter(|(name, _)| name.starts_with(&prefix));
        series.flat_map(|(_, values)| values).sum()
    }
}

pub(super) fn limited(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).limit("limited", 2)
}

fn three() -> [(&'static str, Plan); 3] {
    let yields = plan("y", [Act::Yield(5, Box::new(Act::Done(7)))]);
    [("s", chain("s", 2)), ("f", failing("f", 2)), ("y", yields)]
}

async fn run_three(run: &Run) -> Result<u64, Trouble> {
    run_these(run, three()).await
}

pub(super) async fn run_these(run: &Run, three: [(&'static str, Plan); 3]) -> Result<u64, Trouble> {
    for (key, plan) in three {
        end(run, Limited(plan), key).await?.ok();
    }
    run.settle().await;
    Ok(run.store.commits())
}

pub(super) fn assert_three(read: &Read, name: &str) {
    assert_eq!(read.value("submitted_total limited"), 3.0, "{name}");
    assert_eq!(read.value("finished_total limited success"), 2.0, "{name}");
    assert_eq!(read.value("finished_total limited rolled_back"), 1.0, "{name}");
    assert_eq!(read.value("finished_total limited failed"), 0.0, "{name}");
    assert_eq!(read.value("failed_total limited"), 1.0, "{name}");
    assert_eq!(read.samples("procedure_seconds limited success").len(), 2, "{name}");
    assert_eq!(read.samples("procedure_seconds limited rolled_back").len(), 1, "{name}");
    assert_eq!(read.value("retries_total limited"), 0.0, "{name}");
    assert_eq!(read.sum("active"), 0.0, "{name}");
    assert_eq!(read.value("limiter_used limited"), 0.0, "{name}");
    assert_eq!(read.value("limiter_waiting limited"), 0.0, "{name}");
    assert_eq!(read.value("limiter_limit limited"), 2.0, "{name}");
    // Per kind: the others were registered, and counted nothing.
    assert_eq!(read.value("submitted_total planned"), 0.0, "{name}");
    assert_eq!(read.sum("finished_total planned"), 0.0, "{name}");
    assert_eq!(read.value("commits_waiting "), 0.0, "{name}");
}

#[test]
fn e_112_each_end_is_counted_once_per_kind() -> Tested {
    let (recorder, lab) = (DebuggingRecorder::new(), Lab::default());
    let set_up = |builder| limited(&lab, builder);
    let commits = metrics::with_local_recorder(&recorder, || {
        World::new().run(FaultPlan::none(), set_up, run_three)?.done()
    })?;
    let read = Read::of(&recorder.snapshotter());
    assert_three(&read, "without a crash");
    assert_eq!(
        read.samples("stage_seconds limited - ok").len(),
        4,
        "a call that yields is none"
    );
    assert_eq!(read.samples("stage_seconds limited - failed").len(), 1);
    assert_eq!(read.samples("undo_seconds limited - ok").len(), 2);
    assert_eq!(read.value("journal_commits_total "), commits as f64);
    assert_eq!(read.samples("journal_batch_commits ").len() as u64, commits);
    assert_eq!(read.samples("journal_commit_seconds ").len() as u64, commits);
    assert!(
        read.samples("journal_batch_records ")
            .iter()
            .all(|records| *records > 0.0)
    );
    assert_eq!(read.sum("late_wakes_total "), 0.0);
    Ok(())
}

#[test]
fn e_112_each_end_is_counted_once_after_a_crash_before_any_commit() -> Tested {
    let plain = Lab::default();
    let commits = World::new()
        .run(FaultPlan::none(), |builder| limited(&plain, builder), run_three)?
        .done()?;
    for commit in 1..commits {
        let (recorder, world, lab) = (DebuggingRecorder::new(), World::new(), Lab::default());
        metrics::with_local_recorder(&recorder, || {
            let plan = FaultPlan::at(commit, Fault::CrashBefore);
            match world.run(plan, |builder| limited(&lab, builder), run_three)? {
                Ended::Crashed => world
                    .run(FaultPlan::none(), |builder| limited(&lab, builder), run_three)?
                    .done(),
                Ended::Done(_) => Err(format!("it did not crash at commit {commit}").into()),
            }
        })?;
        assert_three(
            &Read::of(&recorder.snapshotter()),
            &format!("crash before commit {commit}"),
        );
    }
    Ok(())
}

#[test]
fn waits_retries_and_children_are_measured() -> Tested {
    let (recorder, lab) = (DebuggingRecorder::new(), Lab::default());
    let child = plan("c", [Act::Retry(1, Box::new(Act::Done(1)))]);
    let root = plan("r", [Act::Sleep(1_500), spawn([child.clone(), child]), Act::Done(2)]);
    metrics::with_local_recorder(&recorder, || {
        let set_up = |builder| kinds(&lab, builder);
        World::new()
            .run(FaultPlan::none(), set_up, async |run: &Run| {
                end(run, Planned(root), "r").await??;
                run.settle().await;
                Ok(())
            })?
            .done()
    })?;
    let read = Read::of(&recorder.snapshotter());
    assert_eq!(read.value("submitted_total planned"), 3.0, "children count");
    assert_eq!(read.value("retries_total planned"), 2.0);
    assert_eq!(read.samples("stage_seconds planned - retry").len(), 2);
    assert_eq!(read.samples("wait_seconds planned timer"), [1.5]);
    let backoffs = read.samples("wait_seconds planned backoff");
    assert_eq!(backoffs.len(), 2);
    let children = read.samples("wait_seconds planned children");
    let longest = backoffs.iter().copied().fold(0.0, f64::max);
    assert_eq!(children, [longest], "the parent waits as long as its slowest child");
    let total = read
        .samples("procedure_seconds planned success")
        .iter()
        .copied()
        .fold(0.0, f64::max);
    assert_eq!(total, 1.5 + longest);
    Ok(())
}

#[test]
fn the_gauges_of_a_start_show_what_it_found() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let waits = |name: &str| Planned(plan(name, [Act::Wait("go".to_owned(), None), Act::Done(1)]));
    let set_up = |builder| kinds(&lab, builder);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            for name in ["a", "b"] {
                run.wait(run.executor.submit(waits(name)).into_future()).await??;
            }
            run.settle().await;
            Ok(())
        })?
        .done()?;
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let set_up = |builder| kinds(&lab, builder);
        world.run(FaultPlan::none(), set_up, async |_: &Run| Ok(()))?.done()
    })?;
    let read = Read::of(&recorder.snapshotter());
    assert_eq!(read.value("active planned waiting_timeout"), 2.0);
    assert_eq!(read.value("recovered waiting_timeout"), 2.0);
    assert_eq!(
        read.value("submitted_total planned"),
        0.0,
        "they were counted when they were born"
    );
    assert_eq!(
        read.value("recovery_seconds "),
        0.0,
        "no time passes on the test's clock"
    );
    assert_eq!(read.value("quarantined "), 0.0);

    // Without their kind's code they are set aside, and active no more.
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let set_up = |builder: Builder| builder.register::<Limited>(lab.clone());
        world.run(FaultPlan::none(), set_up, async |_: &Run| Ok(()))?.done()
    })?;
    let read = Read::of(&recorder.snapshotter());
    assert_eq!(read.value("quarantined "), 2.0);
    assert_eq!(read.sum("recovered"), 0.0);
    Ok(())
}

/// Notes what its hooks are told; one of them panics.
#[derive(Clone, Serialize, Deserialize)]
struct Told {
    fails: bool,
}

impl Procedure for Told {
    const KIND: &'static str = "told";
    type Stage = u32;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            1 => Ok(Step::Sleep {
                until: cx.now().after(Duration::from_secs(2)),
                then: 2,
            }),
            _ if self.fails => Err(StageError::fail("boom")),
            _ => Ok(Step::Done(())),
        }
    }

    fn hooks() -> Hooks<Self> {
        let born = |lab: &Lab, submitted: &Submitted| {
            lab.note(format!("{} born at {} s", submitted.id, submitted.at.0 / 1_000_000));
            assert!(!lab.is_open("hooks panic"), "a hook panics");
        };
        let ended = |lab: &Lab, finished: &Finished| {
            let (id, state, elapsed) = (finished.id, finished.state, finished.elapsed);
            let cause = finished.cause.as_ref().map_or("nothing", |cause| &cause.text);
            lab.note(format!("{id} {state} after {elapsed:?} of {cause}"));
        };
        Hooks::<Self>::new().on_submit(born).on_finish(ended)
    }
}

#[test]
fn metric_hooks_are_called_once_and_may_panic() -> Tested {
    for panics in [false, true] {
        let lab = Lab::default();
        if panics {
            lab.open("hooks panic");
        }
        let set_up = |builder: Builder| builder.register::<Told>(lab.clone());
        World::new()
            .run(FaultPlan::none(), set_up, async |run: &Run| {
                end(run, Told { fails: false }, "a").await??;
                let failed = end(run, Told { fails: true }, "b").await?;
                assert!(failed.is_err());
                run.settle().await;
                Ok(())
            })?
            .done()?;
        let expected = [
            "1.0 born at 0 s",
            "1.0 Success after 2s of nothing",
            "2.0 born at 2 s",
            "2.0 RolledBack after 2s of boom",
        ];
        assert_eq!(lab.noted(), expected, "panics: {panics}");
    }
    Ok(())
}

/// Ends at once.
#[derive(Clone, Serialize, Deserialize)]
struct Quick;

impl Procedure for Quick {
    const KIND: &'static str = "quick";
    type Stage = ();
    type Env = Lab;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }

    fn hooks() -> Hooks<Self> {
        Hooks::<Self>::new().on_finish(|lab, finished| {
            assert_eq!(finished.state, ProcedureState::Success);
            lab.note("finished");
        })
    }
}

#[test]
fn a_drain_ends_when_the_hooks_have_been_called() -> Tested {
    let (directory, lab) = (tempfile::tempdir()?, Lab::default());
    actix_rt::System::new().block_on(async {
        let builder = Executor::builder(directory.path().join("journal"));
        let executor = builder.register::<Quick>(lab.clone()).start().await?;
        let mut handles = Vec::new();
        for _ in 0..600 {
            handles.push(executor.submit(Quick).await?);
        }
        for handle in handles {
            handle.await?;
        }
        executor.drain(Duration::from_secs(60)).await?;
        assert_eq!(lab.noted().len(), 600);
        Ok(())
    })
}
