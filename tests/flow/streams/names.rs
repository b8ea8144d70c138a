//! Names of streams and of nodes, what a stream does not take, and streams that never end.

use procession::flow::{AppendError, Node, NodeContext, Processed, Processor, StreamName, When};
use procession::limits::{LockNeed, LockPath};
use procession::procedure::RetryPolicy;
use procession::provider::Space;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Procedure, StageError, procedure::Noop};
use serde::{Deserialize, Serialize};

use super::kit::{append, states, the_stream};
use crate::kit::{Act, Bulky, Lab, Tested, by, done, failing, held, kinds, live, live_in, node};

fn refused(stream: Result<procession::flow::Stream, procession::flow::StreamNameError>) -> String {
    stream.map_or_else(|error| error.to_string(), |stream| stream.name().to_string())
}

#[test]
fn f_052_names_of_streams() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let of = |scene: &str, group: &str| refused(run.executor.stream(scene, group));
        let (long, cjk) = ("s".repeat(30), "流".repeat(30));
        for scene in ["s", &long, &cjk] {
            assert_eq!(of(scene, "g"), format!("{scene}:g"));
        }
        for group in ["g".repeat(100).as_str(), "b:c"] {
            assert_eq!(of("s", group), format!("s:{group}"));
        }
        assert_eq!(of("", "g"), "scene is empty: give it 1 to 30 characters");
        assert_eq!(of(&"s".repeat(31), "g"), "scene has 31 characters, at most 30");
        assert_eq!(of("s", ""), "group is empty: give it 1 to 100 characters");
        assert_eq!(of("s", &"g".repeat(101)), "group has 101 characters, at most 100");
        assert_eq!(
            of("a:b", "g"),
            "scene \"a:b\" contains ':', which separates scene and group"
        );
        assert_eq!(of("s", "a\nb"), "group \"a\\nb\" has a control character: leave it out");
        // The longest names are no problem on the way.
        let longest = run.executor.stream(cjk, "組".repeat(100))?;
        let name = "名".repeat(200);
        let place = longest.append(Node::new(name.as_str(), act_done())).await?;
        assert_eq!(longest.append(Node::new(name, act_done())).await?, place);
        let (one, two) = (
            run.executor.stream("a", "b:c")?.open().await?,
            run.executor.stream("a", "b")?.open().await?,
        );
        assert_ne!(one, two);
        assert_eq!(StreamName::new("a", "b:c")?.group(), "b:c");
        Ok(())
    })
}

fn act_done() -> crate::kit::Work {
    crate::kit::Work {
        act: Act::Done(1),
        rule: crate::kit::Rule::default(),
    }
}

#[test]
fn f_052_names_of_nodes() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let conflict = |refused: Result<Vec<u32>, AppendError>| refused.map_err(|error| error.to_string());
    let other_content =
        Err("node \"n2\" is in stream invoices:customer-17 already, at place 2, with other content".to_owned());
    let other = || node("n2", Act::Held("n2".to_owned(), Box::new(Act::Done(2))));
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [done("n1"), held("n2")]).await?;
        run.settle().await;
        let before = run.store.commits();
        assert_eq!(stream.append(held("n2")).await?, 2);
        assert_eq!(conflict(stream.append_all([other()]).await), other_content);
        assert_eq!(run.store.commits(), before, "neither is a commit");
        assert_eq!(
            stream.append_all([held("n2"), done("n3"), done("n4")]).await?,
            [2, 3, 4]
        );
        assert_eq!(conflict(stream.append_all([other(), done("n5")]).await), other_content);
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 RUNNING, n3 WAIT, n4 WAIT");
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        run.settle().await;
        let before = run.store.commits();
        assert_eq!(stream.append(held("n2")).await?, 2);
        assert_eq!(conflict(stream.append_all([done("n5"), other()]).await), other_content);
        assert_eq!(run.store.commits(), before);
        lab.open("n2");
        assert_eq!(
            states(run, &stream).await?,
            "n1 SUCCESS, n2 SUCCESS, n3 SUCCESS, n4 SUCCESS"
        );
        // Nodes without a name are never the same.
        let unnamed = || Node::of(Bulky(3));
        let (one, two) = (stream.append(unnamed()).await?, stream.append(unnamed()).await?);
        assert_ne!(one, two);
        Ok(())
    })
}

/// Takes a lock.
#[derive(Serialize, Deserialize)]
struct Move;

impl Processor for Move {
    const NAME: &'static str = "move";
    type Env = ();
    type Output = ();

    async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        Ok(Processed::Done(()))
    }

    fn locks(&self) -> Vec<LockNeed> {
        vec![LockNeed::exclusive(LockPath::of(["box"]))]
    }
}

/// Is not registered.
#[derive(Serialize, Deserialize)]
struct Stranger(Vec<u8>);

impl Processor for Stranger {
    const NAME: &'static str = "stranger";
    type Env = ();
    type Output = ();

    async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        Ok(Processed::Done(()))
    }
}

/// Has the name of a procedure.
#[derive(Serialize, Deserialize)]
struct Namesake;

impl Processor for Namesake {
    const NAME: &'static str = Noop::KIND;
    type Env = ();
    type Output = ();

    async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        Ok(Processed::Done(()))
    }
}

#[test]
fn f_041_what_a_stream_does_not_take() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        let before = run.store.commits();
        let one_of = "chooses among parents, and a stream's node has one: use AllSucceeded or AllFinished";
        let named = When::Named(vec!["n1".to_owned()]);
        let cases = [
            (done("n7").when(named), format!("node \"n7\": Named {one_of}")),
            (
                done("n7").when(When::AtLeast(1)),
                format!("node \"n7\": AtLeast(1) {one_of}"),
            ),
            (
                Node::of(Bulky(1)).when(When::Custom),
                format!("node \"(unnamed)\": Custom {one_of}"),
            ),
            (
                done("n7").after(["n1"]),
                "node \"n7\" names its parents, and a stream's node follows the one before it: leave `after` out"
                    .to_owned(),
            ),
            (
                done("n7").priority(3),
                "node \"n7\" has a priority, and a stream runs its nodes in their order: leave it out".to_owned(),
            ),
            (
                Node::procedure("n7", Noop),
                "node \"n7\" is a procedure, and a stream runs processors: put it into a set".to_owned(),
            ),
            (
                Node::of(Move),
                "processor \"move\" takes locks, and a stream's node cannot: put it into a set".to_owned(),
            ),
            (
                done("n7").retry(RetryPolicy::default().attempts(1_001)),
                "node \"n7\": 1001 attempts, at most 1000".to_owned(),
            ),
            (done(""), "a node name is empty: give it 1 to 200 characters".to_owned()),
            (done("N/A"), "node name \"N/A\" is reserved: choose another".to_owned()),
            (
                done(&"a".repeat(201)),
                "node name \"aaaaaaaaaa…\" has 201 characters, at most 200".to_owned(),
            ),
        ];
        for (node, expected) in cases {
            let text = stream.append(node).await.map_err(|error| error.to_string());
            assert_eq!(text, Err(expected));
        }
        assert_eq!(run.store.commits(), before, "nothing is stored, and nothing opened");
        let text = stream.append(Node::of(Stranger(Vec::new()))).await;
        assert_eq!(
            text.map_err(|error| error.to_string()),
            Err("no processor \"stranger\" is registered; register it with the builder".to_owned())
        );
        Ok(())
    })?;
    // A procedure of that name is no processor.
    let set_up = |builder| kinds(&lab, builder).register::<Noop>(());
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        let refused = stream.append_all([done("n1"), Node::of(Namesake)]).await;
        assert_eq!(
            refused.map_err(|error| error.to_string()),
            Err("no processor \"procession.noop\" is registered; register it with the builder".to_owned())
        );
        assert_eq!(states(run, &stream).await?, "");
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    // Data that would not fit beside what else the stream's value holds.
    let set_up = |builder| kinds(&lab, builder).processor::<Stranger>(()).max_payload(4_096);
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        let refused = stream.append(Node::new("n1", Stranger(vec![200; 2_000]))).await;
        let text = refused.map_err(|error| error.to_string());
        assert!(
            text.as_ref()
                .is_err_and(|text| text.starts_with("node \"n1\": its data is ") && text.ends_with(", at most 512")),
            "{text:?}"
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    // An engine that takes none.
    let plain = |builder: procession::Builder| builder.processor::<Bulky>(lab.clone());
    let drive = async |run: &Run| {
        let refused = the_stream(run)?.append(Node::of(Bulky(1))).await;
        assert_eq!(
            refused.map_err(|error| error.to_string()),
            Err("the engine takes no streams: call `streams` on the builder".to_owned())
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), plain, drive)?.done()
}

#[test]
fn a_full_stream_says_so() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [failing("n0")]).await?;
        run.settle().await;
        // More at once than callers may, so that the test is quick.
        let id = stream.open().await?;
        assert_eq!(stream.status().await?.waiting, 0);
        let many = (0..100_000_u32).map(|_| Node::of(Bulky(1)));
        let places = stream.extend(many).await?;
        assert_eq!(places.len(), 100_000);
        let full = stream.append(Node::of(Bulky(1))).await;
        assert_eq!(
            full.map_err(|error| error.to_string()),
            Err(
                "stream invoices:customer-17 has 100000 waiting signals, nodes and notifications, the limit: append again when it has caught up"
                    .to_owned()
            )
        );
        assert_eq!(stream.status().await?.waiting, 100_000);
        run.executor.abort(id, by()).await?;
        Ok(())
    })
}

/// Counts what is on the disk of a stream that has run so many nodes.
fn kept(world: &World, lab: &Lab, names: std::ops::Range<u32>) -> Result<(usize, usize), Trouble> {
    live_in(world, lab, async |run| {
        let stream = the_stream(run)?;
        let nodes = names.map(|number| done(&format!("n{number}")));
        stream.extend(nodes).await?;
        run.settle().await;
        let count = |space: Space| run.world.disk.dump(&space).len();
        Ok((count(Space::History), count(Space::Signals)))
    })
}

#[test]
fn f_054_endless() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let before = kept(&world, &lab, 0..2_500)?;
    assert_eq!(before, (1_000, 100), "the newest records, and the newest names");
    let reads = |world: &World| {
        live_in(world, &lab, async |run| {
            run.settle().await;
            Ok(run.store.reads())
        })
    };
    let read = reads(&world)?;
    assert_eq!(kept(&world, &lab, 2_500..10_000)?, before);
    assert_eq!(reads(&world)?, read, "a start reads as much");
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        let status = stream.status().await?;
        assert_eq!((status.ended, status.is_idle()), (10_000, true));
        let page = stream.records(None, 1_000).await?;
        assert_eq!(page.items.len(), 1_000);
        assert!(page.items.iter().rev().map(|record| record.place).eq(9_001..=10_000));
        let rest = stream.records(page.next, 1_000).await?;
        assert!(rest.items.is_empty() && rest.next.is_none());
        // One that is remembered, and one that is not.
        let before = run.store.commits();
        assert_eq!(stream.append(done("n9950")).await?, 9_951);
        assert_eq!(run.store.commits(), before);
        assert_eq!(stream.append(done("n9850")).await?, 10_001);
        // A thousand behind one that asks.
        append(&stream, [failing("stuck")]).await?;
        stream.extend((0..1_000).map(|_| Node::of(Bulky(1)))).await?;
        run.settle().await;
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        run.settle().await;
        let status = stream.status().await?;
        assert_eq!((status.waiting, status.ended), (1_000, 10_001));
        let page = stream.waiting(0, 400).await?;
        assert_eq!(page.items.len(), 400);
        let Some(next) = page.next else {
            return Err("there are more".into());
        };
        assert_eq!(stream.waiting(next, 1_000).await?.items.len(), 600);
        Ok(())
    })
}
