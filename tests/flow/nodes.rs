//! What a node is given: outputs of its parents, waits, time limits, permits; and what it starts itself.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::StageError;
use procession::errors::AskError;
use procession::flow::{NOTIFY, Node, NodeContext, NodeState, OnError, Processed, Processor, Set, SetError, When};
use procession::operate::OperatorRequest;
use procession::procedure::{Noop, RetryPolicy};
use procession::testkit::{FaultPlan, Run, World};
use serde::{Deserialize, Serialize};

use crate::kit::{
    Act, Lab, Tested, by, done, ended, enumerate_in, enumerate_set, failing, held, kinds, live, node, set, start,
    states,
};

/// Asks for what it cannot have.
#[derive(Clone, Serialize, Deserialize)]
enum Reads {
    /// The output of a node that is no parent.
    Stranger,
    /// A parent's output as another type.
    OtherType,
}

impl Processor for Reads {
    const NAME: &'static str = "reads";
    type Env = ();
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        match self {
            Self::Stranger => drop(cx.parent("a").await?.output::<i64>().await?),
            Self::OtherType => drop(cx.parent("b").await?.output::<String>().await?),
        }
        Ok(Processed::Done(()))
    }
}

#[test]
fn f_055_outputs() -> Tested {
    let nodes = || {
        vec![
            done("a"),
            node("b", Act::Done(42)).after(["a"]),
            failing("c").after(["a"]).on_error(OnError::Continue),
            node("d", Act::See(1)).after(["b", "c"]).when(When::AllFinished),
        ]
    };
    let (_, lab) = enumerate_set(nodes, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "3 SUCCESS, 1 ERROR");
        Ok(())
    })?;
    assert_eq!(lab.noted(), ["d saw b SUCCESS 42", "d saw c ERROR it fails"]);

    for (reads, expected) in [
        (
            Reads::Stranger,
            "\"a\" is no parent of node \"d\"; its parents are: b, c",
        ),
        (
            Reads::OtherType,
            "the output of node \"b\", one of \"work\", cannot be read",
        ),
    ] {
        let lab = Lab::default();
        let set_up = |builder| kinds(&lab, builder).processor::<Reads>(());
        let drive = async |run: &Run| {
            let mut nodes = nodes();
            nodes[3] = Node::new("d", reads).after(["b", "c"]).when(When::AllFinished);
            let handle = start(run, set(nodes)?).await?;
            run.settle().await;
            let d = handle.node("d").await?;
            assert_eq!(d.state, NodeState::Pending);
            assert!(
                d.cause.as_ref().is_some_and(|cause| cause.starts_with(expected)),
                "{:?}",
                d.cause
            );
            Ok(())
        };
        World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    }
    Ok(())
}

#[test]
fn f_055_an_output_is_read_only_when_asked_for() -> Tested {
    let reads = |act: Act| {
        let lab = Lab::default();
        live(&lab, async |run| {
            let nodes = [done("a"), done("b"), node("d", act).after(["a", "b"])];
            let before = run.store.reads();
            let handle = start(run, set(nodes)?).await?;
            assert_eq!(ended(run, &handle).await?, "3 SUCCESS");
            Ok(run.store.reads() - before)
        })
    };
    assert!(reads(Act::See(1))? > reads(Act::Done(1))?);
    Ok(())
}

#[test]
fn f_056_park_and_notify() -> Tested {
    let nodes = |timeout| move || vec![node("a", Act::Park(timeout)), done("b").after(["a"])];
    let limited = |lab: &Lab, builder| kinds(lab, builder).limit("work", 1);
    let (enumerated, lab) = enumerate_in(limited, nodes(None), async |_, run, set| {
        run.settle().await;
        let notified = by().key("notify");
        let a = set.node("a").await?;
        if a.state == NodeState::Running {
            assert_eq!(a.reason.as_deref(), Some("parked: waits for the event notify"));
            assert!(run.executor.limits().await?.iter().all(|limit| limit.used == 0));
            assert_eq!(run.executor.snapshot().await?.actors, 0);
            run.pass(Duration::from_hours(24)).await;
        }
        // A repeat is answered as the first was, and one that comes too late is refused.
        run.wait(set.notify("a", &"go", notified)).await?.ok();
        assert_eq!(ended(run, set).await?, "2 SUCCESS");
        Ok(())
    })?;
    // The start, the wait, its end, a grant, a's end, a grant for b, and its end.
    assert_eq!((enumerated.commits, lab.line().as_str()), (7, "a a b"));
    assert_eq!(lab.noted(), ["a was told go"]);
    let calls = lab.calls();
    assert_eq!(calls[0].token, calls[1].token);

    let (enumerated, lab) = enumerate_in(limited, nodes(Some(Duration::from_secs(60))), async |_, run, set| {
        assert_eq!(ended(run, set).await?, "2 SUCCESS");
        Ok(())
    })?;
    assert_eq!(
        (enumerated.commits, lab.noted()),
        (7, vec!["a was told nothing".to_owned()])
    );
    Ok(())
}

#[test]
fn f_056_a_notification_that_comes_first_is_kept() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let nodes = [node("a", Act::Held("a".to_owned(), Box::new(Act::Park(None))))];
        let handle = start(run, set(nodes)?).await?;
        run.settle().await;
        run.wait(handle.notify("a", &"early", by())).await??;
        lab.open("a");
        assert_eq!(ended(run, &handle).await?, "1 SUCCESS");
        assert_eq!(lab.noted(), ["a was told early"]);
        // Nobody else is told.
        let refused = run.executor.signal(handle.node("a").await?.id, "other", &()).await;
        assert!(refused.is_err());
        Ok(())
    })
}

#[test]
fn f_057_time_out_of_an_attempt() -> Tested {
    let nodes = || {
        let twice = RetryPolicy::default().attempts(2);
        vec![Node::new("a", Slow).timeout(Duration::from_secs(1)).retry(twice)]
    };
    let set_up = |lab: &Lab, builder: procession::Builder| kinds(lab, builder).processor::<Slow>(lab.clone());
    let (enumerated, lab) = enumerate_in(set_up, nodes, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "1 SUCCESS");
        let a = set.node("a").await?;
        let history = run.executor.history(a.id).await?;
        assert!(
            history
                .iter()
                .any(|entry| entry.error.as_deref() == Some("timed out after 1 s"))
        );
        Ok(())
    })?;
    assert_eq!(enumerated.commits, 4);
    let at: Vec<u64> = lab.calls().iter().map(|call| call.at).collect();
    assert_eq!(at, [0, 2]);
    Ok(())
}

/// Never ends in its first attempt.
#[derive(Serialize, Deserialize)]
struct Slow;

impl Processor for Slow {
    const NAME: &'static str = "slow";
    type Env = Lab;
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<()>, StageError> {
        lab.called(cx);
        if cx.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(Processed::Done(()))
    }
}

#[test]
fn f_058_limits() -> Tested {
    let lab = Lab::default();
    let limited = |builder| kinds(&lab, builder).limit("work", 2);
    let drive = async |run: &Run| {
        let before = run.store.commits();
        let mut nodes = vec![done("a")];
        nodes.extend(["1", "2", "3", "4", "5"].map(|name| held(name).after(["a"])));
        nodes.push(done("z").after(["1", "2", "3", "4", "5"]));
        let handle = start(run, set(nodes)?).await?;
        run.settle().await;
        assert_eq!(lab.line(), "a 1 2");
        assert_eq!(handle.status().await?.counts.ready, 3);
        run.executor.set_limit("work", 4, by()).await?;
        run.settle().await;
        assert_eq!(lab.line(), "a 1 2 3 4");
        for name in ["1", "2", "3", "4", "5"] {
            lab.open(name);
        }
        assert_eq!(ended(run, &handle).await?, "7 SUCCESS");
        assert_eq!(lab.most(), 4);
        assert!(run.executor.limits().await?.iter().all(|limit| limit.used == 0));
        // The start, the limit, seven ends, and a grant for each node that had waited at its gate.
        assert_eq!(run.store.commits() - before, 15);
        Ok(())
    };
    World::new().run(FaultPlan::none(), limited, drive)?.done()
}

#[test]
fn f_058_a_pending_node_holds_no_permit() -> Tested {
    let lab = Lab::default();
    let limited = |builder| kinds(&lab, builder).limit("work", 1);
    let drive = async |run: &Run| {
        let handle = start(run, set([failing("a"), done("b")])?).await?;
        assert_eq!(states(run, &handle).await?, "a PENDING, b SUCCESS");
        assert!(run.executor.limits().await?.iter().all(|limit| limit.used == 0));
        Ok(())
    };
    World::new().run(FaultPlan::none(), limited, drive)?.done()
}

#[test]
fn a_node_has_its_own_priority_or_that_of_the_set() -> Tested {
    let lab = Lab::default();
    let limited = |builder| kinds(&lab, builder).limit("work", 1);
    let drive = async |run: &Run| {
        let nodes = [held("first"), done("low"), done("high").priority(9)];
        let start = run.executor.start_set(set(nodes)?).priority(3);
        let handle = run.wait(start).await??;
        run.settle().await;
        for (name, priority) in [("first", 3), ("low", 3), ("high", 9)] {
            let id = handle.node(name).await?.id;
            assert_eq!(run.executor.status(id).await?.priority, priority, "{name}");
        }
        lab.open("first");
        assert_eq!(ended(run, &handle).await?, "3 SUCCESS");
        assert_eq!(lab.line(), "first high low");
        Ok(())
    };
    World::new().run(FaultPlan::none(), limited, drive)?.done()
}

/// Starts a set in its own commit, and waits for its end.
#[derive(Serialize, Deserialize)]
struct Nesting;

impl Processor for Nesting {
    const NAME: &'static str = "nesting";
    type Env = Lab;
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<()>, StageError> {
        lab.called(cx);
        if cx.notified::<()>()?.is_some() {
            return Ok(Processed::Done(()));
        }
        let mut inner = Set::builder("inner");
        let first = inner.add(done("x"));
        inner.add(done("y").after([first]));
        let inner = inner.build().map_err(StageError::fail)?.into_message()?.key("inner");
        cx.submit_message(inner.signal_at_end(cx.id(), NOTIFY, &())?)?;
        Ok(Processed::Park { timeout: None })
    }
}

#[test]
fn a_node_starts_a_set_and_waits_for_it() -> Tested {
    let set_up = |lab: &Lab, builder: procession::Builder| kinds(lab, builder).processor::<Nesting>(lab.clone());
    let nodes = || vec![Node::new("n", Nesting), done("z").after(["n"])];
    let (_, lab) = enumerate_in(set_up, nodes, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "2 SUCCESS");
        Ok(())
    })?;
    assert_eq!(lab.line(), "n x y n z");
    Ok(())
}

/// Its processor is not registered.
#[derive(Serialize, Deserialize)]
struct Stranger;

impl Processor for Stranger {
    const NAME: &'static str = "stranger";
    type Env = ();
    type Output = ();

    async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        Ok(Processed::Done(()))
    }
}

/// Starts a set that the commit would refuse, and hears of it in time.
#[derive(Serialize, Deserialize)]
struct Hopeful;

impl Processor for Hopeful {
    const NAME: &'static str = "hopeful";
    type Env = ();
    type Output = String;

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<String>, StageError> {
        let mut inner = Set::builder("inner");
        inner.add(Node::new("x", Stranger));
        let inner = inner.build().map_err(StageError::fail)?.into_message()?;
        let refused = cx.submit_message(inner).err().map(|error| error.to_string());
        Ok(Processed::Done(
            refused.unwrap_or_else(|| "nothing is wrong".to_owned()),
        ))
    }
}

#[test]
fn a_set_that_cannot_start_is_refused_in_the_call() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).processor::<Hopeful>(());
    let drive = async |run: &Run| {
        let handle = start(run, set([Node::new("h", Hopeful)])?).await?;
        run.settle().await;
        assert_eq!(
            handle.output::<Hopeful>("h").await?,
            "the procedure cannot be submitted: no procedure of kind \"stranger\" is registered"
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn a_procedure_is_no_set() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).register::<Noop>(());
    let drive = async |run: &Run| {
        let id = run.wait(run.executor.submit(Noop).into_future()).await??.id();
        run.settle().await;
        let told = run.executor.set_handle(id).status().await;
        assert!(matches!(told, Err(SetError::Ask(AskError::Unknown(unknown))) if unknown == id));
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn a_failed_attempt_leaves_nothing_but_its_note() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).processor::<Leaving>(());
    let drive = async |run: &Run| {
        let handle = start(run, set([Node::new("a", Leaving)])?).await?;
        run.pass(Duration::from_secs(10)).await;
        let a = handle.node("a").await?;
        assert_eq!(
            (a.state, a.cause.as_deref()),
            (NodeState::Pending, Some("not now (failed 2 times)"))
        );
        assert!(run.executor.scan::<bool>("left", "").await?.is_empty());
        assert_eq!(
            run.executor.snapshot().await?.live_families,
            1,
            "what it submitted is not there"
        );
        let history = run.executor.history(a.id).await?;
        let notes: Result<Vec<_>, _> = history.iter().map(procession::status::note::<u32>).collect();
        assert_eq!(notes?, [Some(1), Some(2)]);
        run.executor
            .abort(handle.id(), OperatorRequest::new("ann", "enough"))
            .await?;
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

/// Writes, submits and notes, and then fails.
#[derive(Serialize, Deserialize)]
struct Leaving;

impl Processor for Leaving {
    const NAME: &'static str = "leaving";
    type Env = ();
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        cx.put("left", "a", &true)?;
        cx.submit(&procession::procedure::Noop)?;
        cx.note(&cx.attempt())?;
        Err(StageError::retry("not now"))
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2)
    }
}

/// Waits on a thread of its own, in its first attempt.
#[derive(Serialize, Deserialize)]
struct Blocks;

/// What a call on a thread waits for, and whether it has returned.
#[derive(Clone, Default)]
struct Thread {
    gate: Arc<Mutex<Option<Receiver<()>>>>,
    returned: Arc<AtomicBool>,
}

impl Processor for Blocks {
    const NAME: &'static str = "blocks";
    type Env = (Lab, Thread);
    type Output = u32;

    async fn process(&self, cx: &mut NodeContext<'_>, (lab, thread): &Self::Env) -> Result<Processed<u32>, StageError> {
        lab.called(cx);
        let gate = thread.gate.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(gate) = gate {
            let returned = Arc::clone(&thread.returned);
            let wait = move || {
                gate.recv().ok();
                returned.store(true, Ordering::Release);
            };
            cx.blocking(wait).await?;
        }
        Ok(Processed::Done(cx.attempt()))
    }
}

#[test]
fn f_057_a_late_result_of_a_thread_changes_nothing() -> Tested {
    let (lab, thread) = (Lab::default(), Thread::default());
    let (open, gate) = std::sync::mpsc::channel();
    *thread.gate.lock().unwrap_or_else(PoisonError::into_inner) = Some(gate);
    let set_up = |builder| kinds(&lab, builder).processor::<Blocks>((lab.clone(), thread.clone()));
    let drive = async |run: &Run| {
        let before = run.store.commits();
        let twice = RetryPolicy::default().attempts(2);
        let node = Node::new("a", Blocks).timeout(Duration::from_secs(1)).retry(twice);
        let handle = start(run, set([node])?).await?;
        assert_eq!(ended(run, &handle).await?, "1 SUCCESS");
        assert!(!thread.returned.load(Ordering::Acquire));
        open.send(())?;
        while !thread.returned.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        run.settle().await;
        assert_eq!(handle.output::<Blocks>("a").await?, 2);
        assert_eq!(run.store.commits() - before, 4);
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    let at: Vec<u64> = lab.calls().iter().map(|call| call.at).collect();
    assert_eq!(at, [0, 2]);
    Ok(())
}
