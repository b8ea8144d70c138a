//! What a stream's node is given; appends from stages; waits and limits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procession::flow::{
    Node, NodeContext, NodeState, OnError, Processed, Processor, ResolveError, Stream, StreamName, When,
};
use procession::procedure::RetryPolicy;
use procession::testkit::{FaultPlan, Run, Trouble, World, enumerate};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{append, enumerate_stream, rest, states, the_stream};
use crate::kit::{Act, Lab, ROWS, Tested, by, done, failing, held, kinds, live, live_in, node, set};

/// Asks for what it cannot have.
#[derive(Clone, Serialize, Deserialize)]
enum Reads {
    Stranger,
    OtherType,
}

impl Processor for Reads {
    const NAME: &'static str = "reads";
    type Env = ();
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        match self {
            Self::Stranger => drop(cx.parent("n0").await?),
            Self::OtherType => drop(cx.parent("n1").await?.output::<String>().await?),
        }
        Ok(Processed::Done(()))
    }
}

#[test]
fn f_055_outputs_in_a_stream() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        append(&the_stream(run)?, [node("n1", Act::Done(42))]).await?;
        run.settle().await;
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [node("n2", Act::See(1)), node("n3", Act::See(1))]).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS, n3 SUCCESS");
        Ok(())
    })?;
    assert_eq!(lab.noted(), ["n2 saw n1 SUCCESS 42", "n3 saw n2 SUCCESS 1"]);

    for (reads, expected) in [
        (
            Reads::Stranger,
            "\"n0\" is no parent of node \"n2\"; its parents are: n1",
        ),
        (
            Reads::OtherType,
            "the output of node \"n1\", one of \"work\", cannot be read",
        ),
    ] {
        let lab = Lab::default();
        let set_up = |builder| kinds(&lab, builder).processor::<Reads>(());
        let drive = async |run: &Run| {
            let stream = the_stream(run)?;
            append(&stream, [done("n0"), done("n1"), Node::new("n2", reads)]).await?;
            run.settle().await;
            let asks = stream.status().await?.in_hand.and_then(|node| node.cause);
            assert!(
                asks.as_ref().is_some_and(|cause| cause.starts_with(expected)),
                "{asks:?}"
            );
            Ok(())
        };
        World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    }
    Ok(())
}

#[test]
fn f_055_an_output_that_is_too_large_is_its_nodes_failure() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        let nodes = [
            Node::new("n1", crate::kit::Bulky(60_000)).on_error(OnError::Continue),
            Node::new("n2", crate::kit::Bulky(59_000)).when(When::AllFinished),
        ];
        append(&stream, nodes).await?;
        assert_eq!(states(run, &stream).await?, "n1 ERROR, n2 SUCCESS");
        let records = stream.records(None, 10).await?.items;
        let cause = records
            .last()
            .and_then(|record| record.cause.clone())
            .unwrap_or_default();
        assert!(
            cause.contains("is over the limit of 60000; store it elsewhere"),
            "{cause}"
        );
        Ok(())
    })
}

#[test]
fn f_056_park_in_a_stream() -> Tested {
    let (counted, lab) = enumerate_stream(async |_, run, stream| {
        append(stream, [node("n1", Act::Park(None)), done("n2")]).await?;
        rest(run).await?;
        let status = stream.status().await?;
        if let Some(parked) = status.in_hand {
            assert_eq!(parked.state, NodeState::Running);
            assert_eq!(parked.reason.as_deref(), Some("parked: waits for the event notify/1"));
        }
        stream.notify(1, &"go", by().key("notify")).await.ok();
        rest(run).await?;
        assert_eq!(states(run, stream).await?, "n1 SUCCESS, n2 SUCCESS");
        let late = stream.notify(1, &"late", by()).await;
        assert!(matches!(late, Err(ResolveError::Passed { place: 1, .. })), "{late:?}");
        Ok(())
    })?;
    // Submitted, opened, an append, the wait, its end, two nodes.
    assert_eq!((counted.commits, lab.line().as_str()), (7, "n1 n1 n2"));
    assert_eq!(lab.noted(), ["n1 was told go"]);
    let calls = lab.calls();
    assert_eq!(calls[0].token, calls[1].token);

    // One that is told before it parks, and one that nobody tells.
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(
            &stream,
            [held("n1"), node("n2", Act::Park(Some(Duration::from_secs(60))))],
        )
        .await?;
        stream.notify(2, &"early", by()).await?;
        lab.open("n1");
        append(&stream, [node("n3", Act::Park(Some(Duration::from_secs(60))))]).await?;
        run.settle().await;
        run.pass(Duration::from_secs(61)).await;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS, n3 SUCCESS");
        assert_eq!(lab.noted(), ["n2 was told early", "n3 was told nothing"]);
        Ok(())
    })
}

/// Starts a set, parks, and is notified by its end.
#[derive(Serialize, Deserialize)]
struct Starts;

impl Processor for Starts {
    const NAME: &'static str = "starts";
    type Env = ();
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        if cx.notified::<()>()?.is_some() {
            return Ok(Processed::Done(()));
        }
        let started = set([done("a")]).map_err(StageError::fail)?;
        let message = started.into_message()?;
        cx.submit_message(message.signal_at_end(cx.id(), cx.notify_event(), &())?)?;
        Ok(Processed::Park { timeout: None })
    }
}

#[test]
fn a_stream_waits_for_a_set_that_its_node_has_started() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).processor::<Starts>(());
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        append(&stream, [Node::new("n1", Starts), done("n2")]).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS");
        assert_eq!(lab.line(), "a n2");
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn f_058_streams_of_a_scene_take_turns() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).limit("stream/invoices", 1);
    let drive = async |run: &Run| {
        let streams = ["a", "b", "c"].map(|group| (group, run.executor.stream("invoices", group)));
        let mut opened = Vec::new();
        for (group, stream) in streams {
            let stream = stream?;
            stream.open().await?;
            opened.push((group, stream));
        }
        run.settle().await;
        // Something holds the permit while all are appended.
        let gate = run.executor.stream("invoices", "gate")?;
        append(&gate, [held("gate")]).await?;
        run.settle().await;
        for (group, stream) in &opened {
            append(stream, (0..5).map(|number| done(&format!("{group}{number}")))).await?;
        }
        run.settle().await;
        assert_eq!(lab.line(), "gate");
        let before = run.store.commits();
        lab.open("gate");
        run.settle().await;
        // The gate's end; each node, and the grant for it.
        assert_eq!(run.store.commits() - before, 1 + 2 * 15);
        assert_eq!(lab.line(), "gate a0 b0 c0 a1 b1 c1 a2 b2 c2 a3 b3 c3 a4 b4 c4");
        assert!(run.executor.limits().await?.iter().all(|limit| limit.used == 0));
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

/// A procedure of two stages whose first appends two nodes.
#[derive(Serialize, Deserialize)]
struct Appends {
    retries: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum AppendsStage {
    Append,
    End,
}

/// What outlives a crash, and the stream of this life.
#[derive(Clone, Default)]
struct Desk {
    lab: Lab,
    stream: Arc<Mutex<Option<Stream>>>,
}

impl Desk {
    fn put(&self, stream: Option<Stream>) {
        *self.stream.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }

    async fn stream(&self) -> Stream {
        loop {
            let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match stream {
                Some(stream) => return stream,
                None => tokio::task::yield_now().await,
            }
        }
    }
}

impl Procedure for Appends {
    const KIND: &'static str = "appends";
    type Stage = AppendsStage;
    type Env = Desk;
    type Output = ();

    fn first(&self) -> AppendsStage {
        AppendsStage::Append
    }

    async fn execute(
        &mut self,
        stage: AppendsStage,
        cx: &mut StageContext<'_, Self>,
    ) -> Result<Step<Self>, StageError> {
        match stage {
            AppendsStage::Append => {
                let stream = cx.env().stream().await;
                stream.append_in(cx, done("n1")).await?;
                stream.append_in(cx, done("n2")).await?;
                if self.retries && cx.attempt() == 1 {
                    return Err(StageError::retry("once more"));
                }
                Ok(Step::Next(AppendsStage::End))
            }
            AppendsStage::End => Ok(Step::Done(())),
        }
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2).base(Duration::ZERO)
    }
}

fn with_appends(desk: &Desk, builder: Builder) -> Builder {
    desk.put(None);
    kinds(&desk.lab, builder).register::<Appends>(desk.clone())
}

#[test]
fn f_053_append_from_a_stage() -> Tested {
    for retries in [false, true] {
        let done = enumerate(
            Desk::default,
            with_appends,
            async |desk: &Desk, run: &Run| {
                let stream = the_stream(run)?;
                stream.open().await?;
                run.settle().await;
                desk.put(Some(stream.clone()));
                run.executor.submit(Appends { retries }).key("once").await?;
                rest(run).await?;
                assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS");
                let places: Vec<u32> = stream
                    .records(None, 9)
                    .await?
                    .items
                    .iter()
                    .map(|record| record.place)
                    .collect();
                assert_eq!(places, [2, 1], "neighbours");
                Ok(())
            },
            &[ROWS],
            |plain, crashed, crashes| plain.lab.compare(&crashed.lab, crashes),
        )?;
        // A failed attempt is one, and so is the end of its delay.
        assert_eq!(done.commits, if retries { 9 } else { 7 });
    }
    Ok(())
}

#[test]
fn f_053_a_finished_stream_fails_the_attempt() -> Tested {
    let desk = Desk::default();
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        append(&stream, [held("n0")]).await?;
        stream.finish().await?;
        desk.put(Some(stream.clone()));
        let handle = run.executor.submit(Appends { retries: false }).await?;
        let failed = run.wait(handle).await?;
        let text = failed.map_err(|error| error.to_string()).err().unwrap_or_default();
        assert!(
            text.contains("the last signal of \"procession.node\" was sent before"),
            "{text}"
        );
        desk.lab.open("n0");
        assert_eq!(states(run, &stream).await?, "n0 SUCCESS");
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| with_appends(&desk, builder), drive)?
        .done()
}

/// A node that appends a line to the stream of its section.
#[derive(Serialize, Deserialize)]
struct Reports {
    section: String,
}

impl Processor for Reports {
    const NAME: &'static str = "reports";
    type Env = ();
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        let stream = StreamName::new("report", self.section.as_str())?;
        let line = format!("line of {}", cx.name());
        cx.append(&stream, done(&line)).await?;
        Ok(Processed::Done(()))
    }
}

#[test]
fn f_053_a_node_appends_and_opens_the_stream() -> Tested {
    let set_up = |lab: &Lab, builder| kinds(lab, builder).processor::<Reports>(());
    let done = enumerate(
        Lab::default,
        set_up,
        async |_: &Lab, run: &Run| {
            let report = |name: &str| {
                let section = "s".to_owned();
                Node::new(name, Reports { section })
            };
            let handle = run
                .executor
                .start_set(set([report("a"), report("b").after(["a"])])?)
                .key("the set");
            let handle = handle.await?;
            rest(run).await?;
            handle.outcome().await?;
            let stream = run.executor.stream("report", "s")?;
            assert_eq!(states(run, &stream).await?, "line of a SUCCESS, line of b SUCCESS");
            Ok(())
        },
        &[ROWS],
        |plain, crashed, crashes| plain.compare(crashed, crashes),
    )?;
    // The set, the stream, opened, a, its line, b, its line.
    assert_eq!(done.commits, 7);
    Ok(())
}

#[test]
fn a_note_is_part_of_the_record() -> Tested {
    /// Notes its name.
    #[derive(Serialize, Deserialize)]
    struct Notes(bool);

    impl Processor for Notes {
        const NAME: &'static str = "notes";
        type Env = ();
        type Output = u8;

        async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<u8>, StageError> {
            let name = cx.name().to_owned();
            cx.note(&name)?;
            if self.0 {
                Err(StageError::fail("it fails"))
            } else {
                Ok(Processed::Done(7))
            }
        }
    }
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).processor::<Notes>(());
    let drive = async |run: &Run| -> Result<(), Trouble> {
        let stream = the_stream(run)?;
        let second = Node::new("n2", Notes(true)).on_error(OnError::Continue);
        append(&stream, [Node::new("n1", Notes(false)), second, failing("n3")]).await?;
        run.settle().await;
        let records = stream.records(None, 9).await?.items;
        let notes: Result<Vec<Option<String>>, _> = records.iter().map(|record| record.note()).collect();
        assert_eq!(notes?, [Some("n2".to_owned()), Some("n1".to_owned())]);
        assert_eq!(
            records.last().map(|record| record.output::<u8>().ok().flatten()),
            Some(Some(7))
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}
