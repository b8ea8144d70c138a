//! Stages that run ahead of the disk: which do, how far, and that nothing of them is seen before the disk has it. Every
//! enumeration of crashes runs with such stages as well; see `support.rs`.

use std::cell::Cell;
use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_rt::Arbiter;
use procession::errors::SubmitError;
use procession::procedure::{JoinPolicy, PureContext};
use procession::provider::{Clock, SystemClock};
use procession::status::{ListFilter, WaitReason};
use procession::testkit::{Ended, Fault, FaultPlan, MemoryDisk, MemoryStore, Run, TestClock, Trouble, World};
use procession::{Builder, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{Changes, submit};
use crate::support::{
    Act, CountsAppends, InterceptedStore, Lab, Plan, Planned, Tested, chain, kinds, live_in, plan, purely,
};

/// Lives with pure stages, and without receipts from this commit on. The start's own commit is number 0.
fn withheld(from: u64, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    let plan = FaultPlan::at(from, Fault::Withhold);
    purely(|| {
        World::new()
            .run(plan, |builder| batches(kinds(lab, builder)), drive)?
            .done()
    })
}

/// The simulation has each decision synced alone, and nothing runs ahead of more batches than the journal takes.
fn batches(builder: Builder) -> Builder {
    builder.merge(1_000)
}

/// Submits without waiting for the answer; returns what to wait for.
fn begin(run: &Run, plan: Plan) -> tokio::task::JoinHandle<Result<i64, String>> {
    let executor = run.executor.clone();
    actix_rt::spawn(async move {
        let handle = executor.submit(Planned(plan)).key("k").into_future().await;
        let outcome = handle.map_err(|error| error.to_string())?.outcome().await;
        outcome.map_err(|error| error.to_string())
    })
}

#[test]
fn nothing_of_a_stage_that_runs_ahead_is_seen_before_the_disk_has_it() -> Tested {
    let lab = Lab::default();
    withheld(1, &lab, async |run| {
        let changes = Changes::watch(run).await?;
        let reads = Act::Add("row".into(), 5, Box::new(Act::Done(7)));
        let outcome = begin(run, plan("a", [Act::Next, Act::Next, Act::Next, reads]));
        run.settle().await;
        assert!(run.store.is_withholding());
        assert_eq!(lab.line(), "a1 a2 a3", "the fourth reads the store, so it waits");
        assert!(!outcome.is_finished());
        assert_eq!(changes.all().len(), 0);
        let executor = run.executor.clone();
        let asked = actix_rt::spawn(async move {
            let list = executor.list(ListFilter::default(), None, 10).await;
            list.map(|page| page.items.len())
        });
        run.settle().await;
        assert!(!asked.is_finished(), "an answer would rest on what is not on disk");
        run.store.release_receipts();
        assert_eq!(run.wait(outcome).await??, Ok(7));
        assert_eq!(run.wait(asked).await???, 1);
        assert_eq!(lab.line(), "a1 a2 a3 a4");
        Ok(())
    })
}

#[test]
fn an_engine_that_does_not_speculate_runs_them_one_receipt_after_the_other() -> Tested {
    let lab = Lab::default();
    let set_up = |builder: Builder| kinds(&lab, builder).speculation(false);
    purely(|| {
        World::new()
            .run(FaultPlan::at(1, Fault::Withhold), set_up, async |run| {
                let outcome = begin(run, chain("a", 3));
                run.settle().await;
                assert_eq!(lab.line(), "");
                run.store.release_receipts();
                assert_eq!(run.wait(outcome).await??, Ok(7));
                assert_eq!(lab.line(), "a1 a2 a3");
                Ok(())
            })?
            .done()
    })
}

#[test]
fn a_procedure_is_a_bounded_number_of_stages_ahead() -> Tested {
    let lab = Lab::default();
    withheld(1, &lab, async |run| {
        let outcome = begin(run, chain("a", 200));
        run.settle().await;
        assert_eq!(lab.calls().len(), 64);
        run.store.release_receipts();
        assert_eq!(run.wait(outcome).await??, Ok(7));
        assert_eq!(lab.calls().len(), 200);
        Ok(())
    })
}

#[test]
fn children_take_their_turns_in_a_width_ahead_of_the_disk() -> Tested {
    let lab = Lab::default();
    withheld(1, &lab, async |run| {
        let children: Vec<Plan> = (0..6).map(|number| chain(&format!("c{number}-"), 2)).collect();
        let spawn = Act::Spawn(children, JoinPolicy::AllSucceeded, 2);
        let outcome = begin(run, plan("r", [spawn, Act::Done(1)]));
        run.settle().await;
        // Their ends wake the parent, which is told how they ended: it reads the store.
        assert_eq!(lab.calls().len(), 1 + 12, "{}", lab.line());
        run.store.release_receipts();
        assert_eq!(run.wait(outcome).await??, Ok(1));
        assert_eq!(lab.calls().len(), 1 + 12 + 1, "{}", lab.line());
        assert_eq!(run.executor.snapshot().await?.late, 0);
        Ok(())
    })
}

#[test]
fn a_stage_that_makes_the_engine_ask_the_store_runs_again_behind_the_disk() -> Tested {
    let lab = Lab::default();
    withheld(1, &lab, async |run| {
        let signals = Act::Signal(0, "go".into(), Box::new(Act::Wait("go".into(), None)));
        let outcome = begin(run, plan("a", [signals, Act::DoneSignal]));
        run.settle().await;
        assert_eq!(lab.line(), "a1");
        run.store.release_receipts();
        assert_eq!(run.wait(outcome).await??, Ok(1));
        assert_eq!(lab.line(), "a1 a1 a2");
        Ok(())
    })
}

#[test]
fn when_the_journal_fails_all_that_ran_ahead_is_gone_and_nobody_was_told() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    purely(|| {
        world
            .run(
                FaultPlan::at(1, Fault::FailSync),
                |builder| kinds(&lab, builder),
                async |run| {
                    let answer = run.executor.submit(Planned(chain("a", 9))).into_future().await;
                    assert!(
                        matches!(answer, Err(SubmitError::JournalFailed(_))),
                        "{:?}",
                        answer.err()
                    );
                    run.settle().await;
                    Ok(())
                },
            )?
            .done()?;
        assert!(lab.has("a1"), "it ran ahead");
        live_in(&world, &lab, async |run| {
            // The commit that failed may be on disk or not; nothing behind it is.
            let list = run.executor.list(ListFilter::default(), None, 10).await?.items;
            run.settle().await;
            for status in &list {
                let history = run.executor.history(status.id).await?;
                assert_eq!(history.len(), 9, "it began again");
            }
            Ok(())
        })
    })
}

/// The process, as a stage sees it.
#[derive(Clone, Default)]
struct Process {
    store: Arc<Mutex<Option<Arc<MemoryStore>>>>,
    deaths: Arc<AtomicU32>,
}

/// Kills the process in its second stage, ahead of the disk where it may.
#[derive(Serialize, Deserialize)]
struct Deadly;

impl Procedure for Deadly {
    const KIND: &'static str = "deadly_ahead";
    type Stage = u32;
    type Env = Process;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    fn is_pure(&self, _: &u32) -> bool {
        true
    }

    fn compute(&mut self, stage: u32, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 1 {
            return Ok(Step::Next(2));
        }
        let store = cx.env().store.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(store) = store {
            cx.env().deaths.fetch_add(1, Ordering::SeqCst);
            store.crash();
        }
        // The process is dead, or its store is not known yet.
        Ok(Step::Yield)
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

#[test]
fn a_stage_that_kills_the_process_ahead_of_the_disk_is_found_after_one_death_more() -> Tested {
    let (world, process) = (World::new(), Process::default());
    let set_up = |builder: Builder| builder.register::<Deadly>(process.clone());
    // The client submits it again after each start, as its submission may never have been on disk.
    for _ in 0..6 {
        let ended = world.run(FaultPlan::none(), set_up, async |run| {
            *process.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&run.store));
            let deadly = submit(run, Deadly, "deadly").await?;
            run.settle().await;
            Ok(run.executor.status(deadly.id()).await?.wait)
        })?;
        if let Ended::Done(wait) = ended {
            assert_eq!(wait, Some(WaitReason::Poison));
            // Three deaths are those of a stage that does not run ahead.
            let deaths = process.deaths.load(Ordering::SeqCst);
            assert!((3..=4).contains(&deaths), "{deaths} deaths");
            return Ok(());
        }
    }
    Err("it kills on and on".into())
}

/// Stops the thread that it runs on in its second stage, ahead of the disk, and goes on.
#[derive(Serialize, Deserialize)]
struct Stopping {
    stages: Vec<u32>,
}

impl Procedure for Stopping {
    const KIND: &'static str = "stopping_ahead";
    type Stage = u32;
    type Env = Arc<AtomicU32>;
    type Output = Vec<u32>;

    fn first(&self) -> u32 {
        1
    }

    fn is_pure(&self, _: &u32) -> bool {
        true
    }

    fn compute(&mut self, stage: u32, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.stages.push(stage);
        if stage == 2 && cx.env().fetch_add(1, Ordering::SeqCst) == 0 {
            Arbiter::current().stop();
        }
        match stage {
            4 => Ok(Step::Done(self.stages.clone())),
            _ => Ok(Step::Next(stage + 1)),
        }
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

#[test]
fn a_stage_whose_thread_is_gone_ahead_of_the_disk_goes_on_from_the_newest_value() -> Tested {
    let stops = Arc::new(AtomicU32::new(0));
    let set_up = |builder: Builder| {
        batches(builder)
            .register::<Stopping>(Arc::clone(&stops))
            .clock(Arc::new(SystemClock))
            .workers(1)
            .health_check_every(Some(Duration::from_millis(20)))
    };
    World::new()
        .run(FaultPlan::at(1, Fault::Withhold), set_up, async |run| {
            let executor = run.executor.clone();
            let outcome = actix_rt::spawn(async move {
                let handle = executor.submit(Stopping { stages: Vec::new() }).into_future().await;
                handle
                    .map_err(|error| error.to_string())?
                    .outcome()
                    .await
                    .map_err(|error| error.to_string())
            });
            while stops.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            // The call behind it finds that the thread is gone, and asks for the value, which the store does not have yet.
            // Whether it does at once or by a health check, it has done so after some of these.
            for _ in 0..200 {
                run.executor.verdicts().await?;
            }
            run.store.release_receipts();
            assert_eq!(outcome.await?, Ok(vec![1, 2, 3, 4]));
            Ok(())
        })?
        .done()
}

/// Ten pure stages.
#[derive(Serialize, Deserialize)]
struct Ten;

impl Procedure for Ten {
    const KIND: &'static str = "ten";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    fn is_pure(&self, _: &u32) -> bool {
        true
    }

    fn compute(&mut self, stage: u32, _: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(if stage == 10 {
            Step::Done(())
        } else {
            Step::Next(stage + 1)
        })
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

/// An engine with one worker, on a store that counts.
async fn counting<P: Procedure>(
    env: P::Env,
    clock: Arc<dyn Clock>,
    length: u32,
    appends: &Arc<AtomicUsize>,
) -> Result<Executor, Trouble> {
    let store = InterceptedStore::open(&MemoryDisk::new(), CountsAppends(Arc::clone(appends)))?;
    let builder = Executor::builder(Arc::new(store)).register::<P>(env).workers(1);
    let builder = builder.run_length(length);
    Ok(builder.clock(clock).health_check_every(None).start().await?)
}

/// Returns how many syncs twenty procedures take, one after the other, whose runs have this length at most.
fn syncs_of_twenty(length: u32) -> Result<usize, Trouble> {
    let appends = Arc::new(AtomicUsize::new(0));
    actix_rt::System::new().block_on(async {
        // Its time stands still, so no batch goes because it is old.
        let executor = counting::<Ten>((), Arc::new(TestClock::new()), length, &appends).await?;
        let before = appends.load(Ordering::SeqCst);
        for _ in 0..20 {
            executor.submit(Ten).await?.await?;
        }
        let syncs = appends.load(Ordering::SeqCst) - before;
        executor.drain(Duration::from_secs(10)).await?;
        Ok(syncs)
    })
}

#[test]
fn stages_that_nobody_waits_for_share_a_sync() -> Tested {
    // That of the submission and the first stage, and that of all else.
    assert_eq!(syncs_of_twenty(1)?, 40);
    Ok(())
}

#[test]
fn a_submission_and_the_end_of_its_run_share_a_sync() -> Tested {
    assert_eq!(syncs_of_twenty(64)?, 20);
    Ok(())
}

/// What a stage and its submitter tell each other.
#[derive(Default)]
struct Told {
    begun: AtomicBool,
    answered: AtomicBool,
}

/// One pure stage, which goes on once its submission was answered.
#[derive(Serialize, Deserialize)]
struct Unhurried;

impl Procedure for Unhurried {
    const KIND: &'static str = "unhurried";
    type Stage = ();
    type Env = Arc<Told>;
    type Output = bool;

    fn first(&self) {}

    fn is_pure(&self, (): &()) -> bool {
        true
    }

    fn compute(&mut self, (): (), cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().begun.store(true, Ordering::SeqCst);
        Ok(Step::Done(comes_true(|| cx.env().answered.load(Ordering::SeqCst))))
    }

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

#[test]
fn a_submission_is_answered_while_its_first_stage_takes_long() -> Tested {
    let (appends, told) = (Arc::new(AtomicUsize::new(0)), Arc::<Told>::default());
    actix_rt::System::new().block_on(async {
        let executor = counting::<Unhurried>(Arc::clone(&told), Arc::new(SystemClock), 64, &appends).await?;
        for _ in 0..3 {
            told.answered.store(false, Ordering::SeqCst);
            let handle = executor.submit(Unhurried).await?;
            told.answered.store(true, Ordering::SeqCst);
            assert!(handle.await?, "its submission waited for it");
        }
        executor.drain(Duration::from_secs(10)).await?;
        Ok(())
    })
}

#[test]
fn a_submission_that_meets_a_busy_journal_goes_with_the_next_receipt() -> Tested {
    let told = Arc::<Told>::default();
    let set_up = |builder: Builder| batches(builder).register::<Unhurried>(Arc::clone(&told)).workers(1);
    let lab = Lab::default();
    World::new()
        .run(
            FaultPlan::at(1, Fault::Withhold),
            |builder| kinds(&lab, set_up(builder)),
            async |run| {
                // A batch is on its way to the disk.
                let first = begin(run, chain("a", 3));
                run.settle().await;
                let executor = run.executor.clone();
                let tells = Arc::clone(&told);
                let submission = actix_rt::spawn(async move {
                    let handle = executor.submit(Unhurried).await.map_err(|error| error.to_string())?;
                    tells.answered.store(true, Ordering::SeqCst);
                    handle.await.map_err(|error| error.to_string())
                });
                // The journal is still busy when it is decided.
                while !run.store.is_withholding() || !told.begun.load(Ordering::SeqCst) {
                    tokio::task::yield_now().await;
                }
                run.store.release_receipts();
                // The stage is on another thread, so time must not jump.
                assert_eq!(submission.await?, Ok(true));
                assert_eq!(first.await?, Ok(7));
                Ok(())
            },
        )?
        .done()
}

/// Returns `true` once this is so; `false` if it is not after some seconds.
fn comes_true(is_so: impl Fn() -> bool) -> bool {
    (0..20_000_000).any(|_| {
        std::thread::yield_now();
        is_so()
    })
}

/// Three pure stages. The last goes on once the batch of the one before it is on its way to the disk.
#[derive(Serialize, Deserialize)]
struct Slow {
    /// Batches before its submission.
    before: usize,
}

impl Procedure for Slow {
    const KIND: &'static str = "slow";
    type Stage = usize;
    type Env = Arc<AtomicUsize>;
    type Output = bool;

    fn first(&self) -> usize {
        0
    }

    fn is_pure(&self, _: &usize) -> bool {
        true
    }

    fn compute(&mut self, stage: usize, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        // The submission's, and that of the first two stages.
        let (appends, both) = (cx.env(), self.before + 2);
        let is_gone = || appends.load(Ordering::SeqCst) >= both;
        match stage {
            0 | 1 => Ok(Step::Next(stage + 1)),
            _ => Ok(Step::Done(comes_true(is_gone))),
        }
    }

    async fn execute(&mut self, _: usize, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

#[test]
fn a_batch_does_not_wait_for_a_stage_that_takes_long() -> Tested {
    let appends = Arc::new(AtomicUsize::new(0));
    actix_rt::System::new().block_on(async {
        let executor = counting::<Slow>(Arc::clone(&appends), Arc::new(SystemClock), 1, &appends).await?;
        let before = appends.load(Ordering::SeqCst);
        assert!(
            executor.submit(Slow { before }).await?.await?,
            "the stage waited in vain"
        );
        executor.drain(Duration::from_secs(10)).await?;
        Ok(())
    })
}

/// Says of its second stage that it is pure when it is asked for the first time, and not again.
#[derive(Serialize, Deserialize)]
struct Wavering;

impl Procedure for Wavering {
    const KIND: &'static str = "wavering";
    type Stage = u32;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    fn is_pure(&self, stage: &u32) -> bool {
        thread_local! {
            static ASKED: Cell<u32> = const { Cell::new(0) };
        }
        *stage == 1 || ASKED.replace(ASKED.get() + 1) == 0
    }

    fn compute(&mut self, stage: u32, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().note(format!("computed {stage}"));
        Ok(Step::Next(2))
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().note(format!("executed {stage}"));
        Ok(Step::Done(7))
    }
}

#[test]
fn a_stage_that_turns_out_not_to_be_pure_waits_for_the_disk() -> Tested {
    let lab = Lab::default();
    let set_up = |builder: Builder| batches(builder).run_length(1).register::<Wavering>(lab.clone());
    World::new()
        .run(FaultPlan::at(1, Fault::Withhold), set_up, async |run| {
            let executor = run.executor.clone();
            let outcome = actix_rt::spawn(async move {
                let handle = executor.submit(Wavering).into_future().await;
                let outcome = handle.map_err(|error| error.to_string())?.outcome().await;
                outcome.map_err(|error| error.to_string())
            });
            run.settle().await;
            assert_eq!(lab.noted(), ["computed 1"]);
            run.store.release_receipts();
            assert_eq!(run.wait(outcome).await??, Ok(7));
            assert_eq!(lab.noted(), ["computed 1", "executed 2"]);
            Ok(())
        })?
        .done()
}

#[test]
fn an_engine_that_lets_a_batch_gather_answers_questions_at_once() -> Tested {
    let lab = Lab::default();
    withheld(u64::MAX, &lab, async |run| {
        let outcome = begin(run, chain("a", 50));
        run.until("it has begun", || lab.has("a2")).await?;
        // Time stands still here, so nothing but the question makes the batch go.
        let list = run.executor.list(ListFilter::default(), None, 10).await?.items;
        assert_eq!(list.len(), 1);
        assert_eq!(run.wait(outcome).await??, Ok(7));
        Ok(())
    })
}
