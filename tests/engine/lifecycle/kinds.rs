//! Kinds at run time: one type that is registered as several kinds, each with settings and an environment of its own.

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use procession::errors::{AskError, StartError, SubmitError};
use procession::messages::Submit;
use procession::operate::{OperatorRequest, PauseScope};
use procession::procedure::{Hooks, JoinPolicy, Kind, KindSettings, Noop, RetryPolicy};
use procession::sequence::{Sequence, Steps};
use procession::status::{ListFilter, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Children, Executor, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::submit;
use crate::rollback::helper::{at_rest, is_parked, rolled_back, states};
use crate::support::{Call, Lab, Tested, enumerate};

const ONCE: &str = "job.once";
const TWICE: &str = "job.twice";

/// What a job does in its first stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Does {
    Ends,
    Fails,
    Waits,
    Spawns(Box<Job>),
}

/// A job of the kind that it names. Its undo fails once.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    kind: String,
    does: Does,
}

/// The environment that one kind was registered with.
#[derive(Clone)]
struct Place {
    lab: Lab,
    name: &'static str,
}

impl Procedure for Job {
    const KIND: &'static str = "job";
    type Stage = u32;
    type Env = Place;
    type Output = String;

    fn kind(&self) -> Kind {
        Kind::from(self.kind.as_str())
    }

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.called(stage, false, cx);
        if stage > 1 {
            return Ok(Step::Done(cx.env().name.to_owned()));
        }
        match &self.does {
            Does::Ends => Ok(Step::Done(cx.env().name.to_owned())),
            Does::Fails => Err(StageError::retry("boom")),
            Does::Waits => Ok(Step::Wait {
                event: "go".to_owned(),
                timeout: None,
                then: 2,
            }),
            Does::Spawns(child) => Ok(Step::Spawn {
                children: Children::new().and(&**child)?.join(JoinPolicy::AllFinished),
                then: 2,
            }),
        }
    }

    async fn rollback(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        self.called(stage, true, cx);
        match cx.attempt() {
            1 => Err(StageError::retry("not yet")),
            _ => Ok(()),
        }
    }

    fn hooks() -> Hooks<Self> {
        Hooks::<Self>::new()
            .on_submit(|place, submitted| place.lab.note(format!("{} as {}", submitted.kind, place.name)))
            .on_finish(|place, finished| place.lab.note(format!("{} as {} ends", finished.kind, place.name)))
    }
}

impl Job {
    fn called(&self, stage: u32, undo: bool, cx: &StageContext<'_, Self>) {
        let call = Call {
            name: self.kind.clone(),
            stage,
            undo,
            attempt: cx.attempt(),
            value: Vec::new(),
        };
        cx.env().lab.called(cx.id(), call);
    }
}

fn job(kind: &str, does: Does) -> Job {
    Job {
        kind: kind.to_owned(),
        does,
    }
}

fn tries(attempts: u32) -> KindSettings {
    KindSettings::default()
        .retry(RetryPolicy::default().attempts(attempts))
        .retry_undo(RetryPolicy::default().attempts(attempts))
}

/// Three kinds of one type: one with a single attempt, one with two whose results are kept for an hour, and its own.
fn three(lab: &Lab, builder: Builder) -> Builder {
    let kept = tries(2)
        .keep_after_end(Duration::from_hours(1))
        .keep_after_acknowledgement(Duration::from_mins(30));
    two(lab, builder).register_as::<Job>(TWICE, kept, place(lab, "twice"))
}

fn two(lab: &Lab, builder: Builder) -> Builder {
    lab.begin_life();
    builder
        .register::<Job>(place(lab, "own"))
        .register_as::<Job>(ONCE, tries(1), place(lab, "once"))
        .limit(TWICE, 1)
}

fn place(lab: &Lab, name: &'static str) -> Place {
    Place { lab: lab.clone(), name }
}

fn live(world: &World, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    world
        .run(FaultPlan::none(), |builder| three(lab, builder), drive)?
        .done()
}

#[test]
fn g_073_each_kind_goes_by_its_own_attempts() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let once = submit(run, job(ONCE, Does::Fails), "once").await?;
        for kind in [TWICE, Job::KIND] {
            let handle = submit(run, job(kind, Does::Fails), kind).await?;
            let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
            assert_eq!(cause.text, "boom");
        }
        assert!(is_parked(&at_rest(run, once.id()).await?), "its one undo has failed");
        Ok(())
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        let counts = [(ONCE, 1, 1), (TWICE, 2, 2), (Job::KIND, 3, 2)];
        for (kind, stages, undos) in counts {
            let called = (plain.count(&format!("{kind}1")), plain.count(&format!("{kind}1'")));
            assert_eq!(called, (stages, undos), "{kind}");
        }
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, three, drive, &[], check)?;
    // Submit, attempt, undo; submit, attempt, delay, attempt, undo, delay, undo; and one attempt with its delay more.
    assert_eq!(done.commits, 3 + 7 + 9);
    Ok(())
}

#[test]
fn g_073_children_go_by_their_own_kinds() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let child = Box::new(job(TWICE, Does::Fails));
        let parent = submit(run, job(ONCE, Does::Spawns(child)), "parent").await?;
        assert_eq!(run.wait(parent.outcome()).await??, "once");
        let tree = run.executor.tree(parent.id()).await?;
        let kinds: Vec<&str> = tree.iter().map(|member| member.kind.as_str()).collect();
        assert_eq!(kinds, [ONCE, TWICE]);
        assert_eq!(
            states(run, parent.id()).await?,
            [ProcedureState::Success, ProcedureState::RolledBack]
        );
        Ok(())
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!((plain.count("job.twice1"), plain.count("job.twice1'")), (2, 2));
        plain.compare(crashed, crashes)
    };
    enumerate(Lab::default, three, drive, &[], check)?;
    Ok(())
}

async fn of_kind(run: &Run, kind: &str) -> Result<Vec<ProcedureId>, Trouble> {
    let filter = ListFilter {
        live_only: true,
        kind: Some(Kind::from(kind)),
        ..ListFilter::default()
    };
    let page = run.executor.list(filter, None, 10).await?;
    Ok(page.items.iter().map(|status| status.id).collect())
}

#[test]
fn g_073_limits_pauses_filters_and_figures_tell_kinds_apart() -> Tested {
    let (world, lab, recorder) = (World::new(), Lab::default(), DebuggingRecorder::new());
    let drive = async |run: &Run| {
        let once = submit(run, job(ONCE, Does::Waits), "a").await?.id();
        let first = submit(run, job(TWICE, Does::Waits), "b").await?.id();
        let second = submit(run, job(TWICE, Does::Waits), "c").await?.id();
        run.settle().await;
        let wait = run.executor.status(second).await?.wait;
        assert!(matches!(&wait, Some(WaitReason::Permit(limit)) if limit.as_str() == TWICE));
        assert_eq!(of_kind(run, ONCE).await?, [once]);
        assert_eq!(of_kind(run, TWICE).await?, [first, second]);
        let by = OperatorRequest::new("ann", "look");
        run.executor.pause(PauseScope::Kind(Kind::from(TWICE)), by).await?;
        for id in [once, first] {
            run.executor.signal(id, "go", &()).await?;
        }
        run.settle().await;
        let states = [
            run.executor.status(once).await?.state,
            run.executor.status(first).await?.state,
        ];
        assert_eq!(states, [ProcedureState::Success, ProcedureState::Runnable]);
        let kinds = run.executor.snapshot().await?.kinds;
        let submitted: BTreeMap<&str, u64> = kinds.iter().map(|kind| (kind.kind.as_str(), kind.submitted)).collect();
        assert_eq!(
            (submitted.get(ONCE), submitted.get(TWICE), submitted.get(Job::KIND)),
            (Some(&1), Some(&2), Some(&0))
        );
        Ok(())
    };
    metrics::with_local_recorder(&recorder, || live(&world, &lab, drive))?;
    assert_eq!(
        lab.noted(),
        [
            "job.once as once",
            "job.twice as twice",
            "job.twice as twice",
            "job.once as once ends"
        ]
    );
    let counted = recorder.snapshotter().snapshot().into_vec();
    let counted = counted.into_iter().filter_map(|(key, _, _, value)| match value {
        DebugValue::Counter(count) if key.key().name() == "procession_submitted_total" => {
            let kind = key.key().labels().next()?.value().to_owned();
            Some((kind, count))
        }
        DebugValue::Counter(_) | DebugValue::Gauge(_) | DebugValue::Histogram(_) => None,
    });
    let counted: BTreeMap<String, u64> = counted.collect();
    assert_eq!((counted.get(ONCE), counted.get(TWICE)), (Some(&1), Some(&2)));
    Ok(())
}

#[test]
fn g_073_results_are_kept_as_their_kind_says() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live(&world, &lab, async |run| {
        let own = submit(run, job(Job::KIND, Does::Ends), "own").await?;
        let kept = submit(run, job(TWICE, Does::Ends), "kept").await?;
        assert_eq!(run.wait(own.outcome()).await??, "own");
        assert_eq!(run.wait(kept.outcome()).await??, "twice");
        run.pass(Duration::from_mins(16)).await;
        let gone = run.executor.status(own.id()).await;
        assert!(matches!(gone, Err(AskError::Unknown(_))), "{gone:?}");
        assert_eq!(kept.outcome().await?, "twice");
        run.pass(Duration::from_mins(45)).await;
        let gone = run.executor.status(kept.id()).await;
        assert!(matches!(gone, Err(AskError::Unknown(_))), "{gone:?}");
        Ok(())
    })
}

#[test]
fn g_073_what_is_not_registered_is_refused_or_quarantined_alone() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live(&world, &lab, async |run| {
        submit(run, job(ONCE, Does::Waits), "a").await?;
        submit(run, job(TWICE, Does::Waits), "b").await?;
        let fourth = job("job.fourth", Does::Ends);
        for refused in [
            run.executor.submit(fourth.clone()).into_future().await.err(),
            run.executor.supervisor().send(Submit::new(&fourth)?).await?.err(),
        ] {
            assert!(
                matches!(&refused, Some(SubmitError::UnknownKind { kind }) if kind.as_str() == "job.fourth"),
                "{refused:?}"
            );
        }
        let parent = submit(run, job(ONCE, Does::Spawns(Box::new(fourth))), "parent").await?;
        run.settle().await;
        let cause = run.executor.status(parent.id()).await?.cause;
        assert_eq!(
            cause.map(|cause| cause.text).as_deref(),
            Some("no procedure of kind \"job.fourth\" is registered")
        );
        run.settle().await;
        Ok(())
    })?;
    let (once, twice) = (ProcedureId::root(1), ProcedureId::root(2));
    let drive = async |run: &Run| {
        let quarantined = run.executor.snapshot().await?.quarantined;
        assert_eq!(
            quarantined,
            [(
                twice.family,
                "2.0: no procedure of kind \"job.twice\" is registered".to_owned()
            )]
        );
        run.executor.signal(once, "go", &()).await?;
        let outcome = run.wait(run.executor.outcome(once)).await??;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some("once"));
        Ok(())
    };
    world
        .run(FaultPlan::none(), |builder| two(&lab, builder), drive)?
        .done()?;
    live(&world, &lab, async |run| {
        run.executor.signal(twice, "go", &()).await?;
        let outcome = run.wait(run.executor.outcome(twice)).await??;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some("twice"));
        Ok(())
    })
}

#[test]
fn g_073_a_kind_that_runs_another_type_is_refused() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| {
        two(&lab, builder)
            .register_as::<Noop>("job.noop", KindSettings::default(), ())
            .register_as::<Sequence>(
                "nightly",
                KindSettings::default(),
                Steps::new().step("a", async |_| Ok(())),
            )
    };
    let drive = async |run: &Run| {
        let refused = run
            .executor
            .submit(job("job.noop", Does::Ends))
            .into_future()
            .await
            .err();
        assert!(
            matches!(&refused, Some(SubmitError::Unsupported { why })
                if why.starts_with("the kind \"job.noop\" is registered with the type procession::noop::Noop, and")),
            "{refused:?}"
        );
        let nightly = submit(run, Sequence::new(["a"]).with_kind("nightly"), "nightly").await?;
        run.wait(nightly.outcome()).await??;
        assert_eq!(run.executor.status(nightly.id()).await?.kind.as_str(), "nightly");
        Ok(())
    };
    world.run(FaultPlan::none(), set_up, drive)?.done()
}

fn refused(set_up: impl FnOnce(Builder) -> Builder) -> Result<String, Trouble> {
    let started = World::new().run(FaultPlan::none(), set_up, async |_| Ok(()));
    let error = started.err().ok_or("the engine started")?;
    match error.downcast_ref::<StartError>() {
        Some(error) => Ok(error.to_string()),
        None => Err(error),
    }
}

#[test]
fn g_073_two_registrations_of_one_name_refuse_to_start() -> Tested {
    let lab = Lab::default();
    let again = |kind: &str| {
        let kind = kind.to_owned();
        let lab = lab.clone();
        refused(move |builder| three(&lab, builder).register_as::<Job>(kind, tries(1), place(&lab, "again")))
    };
    for kind in [ONCE, Job::KIND] {
        let told = format!(
            "two registrations have the kind \"{kind}\"; give one of them another KIND, or register it as another kind"
        );
        assert_eq!(again(kind)?, told);
    }
    assert_eq!(
        again("")?,
        "the name of a kind must have 1 to 1024 bytes, but a registered one has 0; register it as another"
    );
    assert!(again(&"x".repeat(1_025))?.contains("has 1025"));
    let crowd = refused(|builder| {
        (0..1_000).fold(three(&lab, builder), |builder, number| {
            builder.register_as::<Noop>(format!("noop.{number}"), KindSettings::default(), ())
        })
    })?;
    assert!(crowd.starts_with("1004 kinds are registered"), "{crowd}");
    Ok(())
}

#[test]
fn g_073_settings_count_from_the_next_start_on() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let start = |attempts: u32| {
        let lab = lab.clone();
        move |builder: Builder| builder.register_as::<Job>(ONCE, tries(attempts), place(&lab, "once"))
    };
    let drive = async |run: &Run| {
        submit(run, job(ONCE, Does::Fails), "a").await?;
        run.settle().await;
        Ok(())
    };
    world.run(FaultPlan::none(), start(5), drive)?.done()?;
    let drive = async |run: &Run| {
        let handle = run.executor.handle::<Job>(ProcedureId::root(1));
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    };
    world.run(FaultPlan::none(), start(2), drive)?.done()?;
    assert_eq!(lab.count("job.once1"), 2, "one attempt in each life");
    Ok(())
}

#[actix_rt::test]
async fn g_073_the_embedded_journal_and_its_reader_know_kinds() -> Tested {
    let directory = tempfile::tempdir()?;
    let (place_of, lab) = (directory.path().join("journal"), Lab::default());
    let executor = three(&lab, Executor::builder(&place_of)).start().await?;
    let id = executor.submit(job(TWICE, Does::Ends)).await?.id();
    assert_eq!(executor.handle::<Job>(id).await?, "twice");
    executor.drain(Duration::from_secs(10)).await?;
    drop(executor);
    let offline = Executor::builder(&place_of).offline().await?;
    let status = offline.status(id).await?.ok_or("it is there")?;
    assert_eq!(status.kind.as_str(), TWICE);
    Ok(())
}
