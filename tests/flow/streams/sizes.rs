//! Bounds of what a stream takes: whatever passes them fits into the stream's value, beside all else that this holds.

use procession::flow::{AppendError, Node, NodeContext, Processed, Processor, ResolveError, Stream, StreamState};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, StageError};
use serde::{Deserialize, Serialize};

use super::kit::the_stream;
use crate::kit::{Lab, Tested, by, kinds};

/// Parks, and then fails with a long cause.
#[derive(Serialize, Deserialize)]
struct Filled(String);

impl Processor for Filled {
    const NAME: &'static str = "filled";
    type Env = ();
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<()>, StageError> {
        match cx.notified::<String>()? {
            Some(_) => Err(StageError::fail("because ".repeat(1_000))),
            None => Ok(Processed::Park { timeout: None }),
        }
    }
}

/// Appends the largest node that is taken, and returns the size of its text and its place.
async fn largest_node(stream: &Stream, from: usize) -> Result<(usize, u32), Trouble> {
    let name = "名".repeat(200);
    for size in (0..=from).rev().step_by(16) {
        let node = Node::new(name.as_str(), Filled("x".repeat(size)));
        match stream.append(node).await {
            Ok(place) => return Ok((size, place)),
            Err(AppendError::Refused { .. } | AppendError::Ask(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("none is taken".into())
}

/// Notifies the node with the largest text that is taken, and returns its size.
async fn largest_notification(stream: &Stream, place: u32, from: usize) -> Result<usize, Trouble> {
    for size in (0..=from).rev().step_by(16) {
        match stream.notify(place, &"x".repeat(size), by()).await {
            Ok(_) => return Ok(size),
            Err(ResolveError::Ask(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err("none is taken".into())
}

#[test]
fn what_is_taken_fits_beside_all_else() -> Tested {
    for max in [5_000, 6_000, 8_192, 20_000, 32_768] {
        let lab = Lab::default();
        let set_up = |builder: Builder| kinds(&lab, builder).processor::<Filled>(()).max_payload(max);
        let drive = async |run: &Run| {
            let stream = run.executor.stream("場".repeat(30), "組".repeat(100))?;
            let (size, place) = largest_node(&stream, max).await?;
            run.settle().await;
            let told = largest_notification(&stream, place, max / 4).await?;
            run.settle().await;
            let status = stream.status().await?;
            assert_eq!(status.state, StreamState::Pending, "{max}: {size}, {told}");
            assert!(size + told > max / 16, "{max}: {size}, {told}");
            Ok(())
        };
        World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    }
    Ok(())
}

#[test]
fn no_node_passes_what_the_rule_of_streams_refuses() -> Tested {
    let lab = Lab::default();
    let set_up = |builder: Builder| kinds(&lab, builder).processor::<Filled>(()).max_payload(4_096);
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        for size in [600, 2_000] {
            let refused = stream.append(Node::of(Filled("x".repeat(size)))).await;
            assert!(matches!(refused, Err(AppendError::Refused { .. })), "{refused:?}");
        }
        stream.append(Node::of(Filled(String::new()))).await?;
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}
