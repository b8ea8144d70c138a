//! Panics of a processor's code beside its `process`: of each the node fails, and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use procession::StageError;
use procession::flow::{Node, NodeContext, NodeState, Processed, Processor};
use procession::procedure::RetryPolicy;
use procession::testkit::{FaultPlan, Run, World};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::kit::{append, states, the_stream};
use crate::kit::{Lab, Tested, by, done, kinds, set, start};

/// Where the code panics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Where {
    Retry,
    Timeout,
    Begin,
    Output,
}

/// Panics there.
#[derive(Serialize, Deserialize)]
struct Panics(Where);

/// An output that panics on its way in and out if it says so.
struct Shaky(bool);

impl Serialize for Shaky {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0, "no pen");
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shaky {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shaky = bool::deserialize(deserializer)?;
        assert!(!shaky, "no glasses");
        Ok(Self(shaky))
    }
}

/// `retry` has no value to ask. A registration asks it as well, so it panics later.
static NO_POLICY: AtomicBool = AtomicBool::new(false);

impl Processor for Panics {
    const NAME: &'static str = "panics";
    type Env = ();
    type Output = Shaky;

    fn process(&self, _: &mut NodeContext<'_>, (): &()) -> impl Future<Output = Result<Processed<Shaky>, StageError>> {
        assert_ne!(self.0, Where::Begin, "no pencil");
        async { Ok(Processed::Done(Shaky(self.0 == Where::Output))) }
    }

    fn retry() -> RetryPolicy {
        assert!(!NO_POLICY.load(Ordering::SeqCst), "no policy");
        RetryPolicy::default().attempts(2).base(Duration::ZERO)
    }

    fn timeout(&self) -> Option<Duration> {
        assert_ne!(self.0, Where::Timeout, "no watch");
        None
    }
}

#[test]
fn a_panic_beside_the_call_is_a_failed_attempt() -> Tested {
    for (at, cause) in [
        (Where::Timeout, "no watch"),
        (Where::Begin, "no pencil"),
        (Where::Output, "no pen"),
        (Where::Retry, "no policy"),
    ] {
        let lab = Lab::default();
        NO_POLICY.store(false, Ordering::SeqCst);
        let set_up = |builder| kinds(&lab, builder).processor::<Panics>(());
        let drive = async |run: &Run| {
            NO_POLICY.store(at == Where::Retry, Ordering::SeqCst);
            let stream = the_stream(run)?;
            append(&stream, [Node::new("n1", Panics(at)), done("n2")]).await?;
            let set = start(run, set([Node::new("a", Panics(at)), done("b")])?).await?;
            run.settle().await;
            run.pass(Duration::from_secs(86_400)).await;
            assert_eq!(states(run, &stream).await?, "n1 PENDING, n2 WAIT", "{at:?}");
            let nodes = run.wait(set.nodes(0, 9)).await??.items;
            let states: Vec<NodeState> = nodes.iter().map(|node| node.state).collect();
            assert_eq!(states, [NodeState::Pending, NodeState::Success], "{at:?}");
            let asked = [stream.status().await?.in_hand, nodes.into_iter().next()];
            for node in asked {
                let asked = node.and_then(|node| node.cause).unwrap_or_default();
                assert!(asked.contains("panicked: ") && asked.contains(cause), "{asked}");
            }
            NO_POLICY.store(false, Ordering::SeqCst);
            Ok(())
        };
        World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    }
    Ok(())
}

#[test]
fn an_output_whose_code_panics_is_asked_for_again() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).processor::<Other>(());
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        append(&stream, [Node::new("n1", Other), done("n2")]).await?;
        run.settle().await;
        let id = stream.open().await?;
        let answer = |shaky: bool| serde_json::json!({ "act": { "succeed": shaky } });
        run.executor.decide(id, &answer(true), by()).await?;
        run.settle().await;
        run.pass(Duration::from_secs(3_600)).await;
        let asks = run.executor.status(id).await?.question.unwrap_or_default();
        assert!(asks.contains("no glasses") && asks.ends_with("; it fails"), "{asks}");
        run.executor.decide(id, &answer(false), by()).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS");
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

/// Fails.
#[derive(Serialize, Deserialize)]
struct Other;

impl Processor for Other {
    const NAME: &'static str = "other";
    type Env = ();
    type Output = Shaky;

    async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<Shaky>, StageError> {
        Err(StageError::fail("it fails"))
    }
}
