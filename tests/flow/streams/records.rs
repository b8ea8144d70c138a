//! What a record tells: of commits alone, and whatever a node has noted.

use std::time::Duration;

use procession::flow::{Node, NodeContext, OnError, Processed, Processor, StreamName, StreamState, When};
use procession::procedure::RetryPolicy;
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, StageError};
use serde::{Deserialize, Serialize};

use super::kit::{append, states, the_stream};
use crate::kit::{Act, Lab, Tested, by, done, held, kinds, live, node};

/// Notes its parents, and sends what is refused at the commit until its gate is open.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Forwards {
    /// Appends to a stream that has finished.
    Append,
    /// Sends a signal that no stream takes.
    Signal,
}

impl Processor for Forwards {
    const NAME: &'static str = "forwards";
    type Env = Lab;
    type Output = u8;

    async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<u8>, StageError> {
        for parent in cx.parents().await? {
            lab.note(format!("{} saw {} {}", cx.name(), parent.name(), parent.state()));
        }
        if !lab.is_open("forwarded") {
            match self {
                Self::Append => {
                    cx.append(&StreamName::new("invoices", "customer-18")?, done("line"))
                        .await?
                }
                Self::Signal => cx.send_signal(cx.id(), "no node", &())?,
            }
        }
        Ok(Processed::Done(7))
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2).base(Duration::ZERO)
    }
}

#[test]
fn a_commit_that_is_refused_leaves_no_record() -> Tested {
    for forwards in [Forwards::Append, Forwards::Signal] {
        let lab = Lab::default();
        let set_up = |builder: Builder| kinds(&lab, builder).processor::<Forwards>(lab.clone());
        let drive = async |run: &Run| {
            let other = run.executor.stream("invoices", "customer-18")?;
            append(&other, [held("o1")]).await?;
            other.finish().await?;
            let stream = the_stream(run)?;
            append(
                &stream,
                [done("n0"), Node::new("n1", forwards), node("n2", Act::See(1))],
            )
            .await?;
            run.settle().await;
            run.pass(Duration::from_secs(3_600)).await;
            assert_eq!(states(run, &stream).await?, "n0 SUCCESS, n1 PENDING, n2 WAIT");
            assert_eq!(stream.status().await?.ended, 1);
            assert_eq!(lab.noted(), ["n1 saw n0 SUCCESS", "n1 saw n0 SUCCESS"]);
            lab.open("forwarded");
            stream.retry(by()).await?;
            assert_eq!(states(run, &stream).await?, "n0 SUCCESS, n1 SUCCESS, n2 SUCCESS");
            assert_eq!(lab.noted().last().map(String::as_str), Some("n2 saw n1 SUCCESS 7"));
            Ok(())
        };
        World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    }
    Ok(())
}

/// Writes more than one commit may, in its last call: at once, or once it was notified. It parks or is done then.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct WritesAlot {
    after_a_wait: bool,
    parks: bool,
}

impl Processor for WritesAlot {
    const NAME: &'static str = "writes a lot";
    type Env = ();
    type Output = u8;

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<u8>, StageError> {
        if self.after_a_wait && cx.notified::<()>()?.is_none() {
            return Ok(Processed::Park { timeout: None });
        }
        for number in 0..10_001_u32 {
            cx.put("many", number.to_be_bytes(), &number)?;
        }
        Ok(match self.parks {
            true => Processed::Park { timeout: None },
            false => Processed::Done(7),
        })
    }
}

#[test]
fn a_node_whose_commit_ends_its_stream_has_failed() -> Tested {
    for (after_a_wait, parks) in [(false, false), (false, true), (true, false), (true, true)] {
        let (lab, work) = (Lab::default(), WritesAlot { after_a_wait, parks });
        let set_up = |builder: Builder| kinds(&lab, builder).processor::<WritesAlot>(());
        let drive = async |run: &Run| {
            let stream = the_stream(run)?;
            append(&stream, [done("n1"), Node::new("n2", work), done("n3")]).await?;
            if after_a_wait {
                stream.notify(2, &(), by()).await?;
            }
            assert_eq!(
                states(run, &stream).await?,
                "n1 SUCCESS, n2 ERROR, n3 CANCELLED",
                "{work:?}"
            );
            let status = stream.status().await?;
            assert_eq!((status.state, status.ended), (StreamState::Finish, 2), "{work:?}");
            let record = stream.records(None, 1).await?.items.pop().ok_or("no record")?;
            let cause = run.executor.status(stream.open().await?).await?.cause;
            assert_eq!(record.cause, cause.map(|cause| cause.text));
            assert_eq!((record.place, record.output::<u8>()?), (2, None));
            Ok(())
        };
        World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
    }
    Ok(())
}

/// Leaves a note and an output of so many bytes.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Noisy {
    note: usize,
    output: usize,
    fails: bool,
}

impl Processor for Noisy {
    const NAME: &'static str = "noisy";
    type Env = ();
    type Output = String;

    async fn process(&self, cx: &mut NodeContext<'_>, (): &()) -> Result<Processed<String>, StageError> {
        cx.note(&"x".repeat(self.note))?;
        if self.fails {
            return Err(StageError::fail("y".repeat(5_000)));
        }
        Ok(Processed::Done("x".repeat(self.output)))
    }
}

#[test]
fn a_large_note_is_no_end_of_its_stream() -> Tested {
    let name = "名".repeat(199);
    let noisy = |note, output, fails| Noisy { note, output, fails };
    let lab = Lab::default();
    for (work, is_kept) in [
        (noisy(66_000, 0, true), false),
        (noisy(60_500, 0, true), false),
        (noisy(59_900, 0, true), true),
        (noisy(66_000, 0, false), false),
        (noisy(59_900, 2_000, false), true),
        (noisy(62_000, 62_000, false), false),
    ] {
        for on_error in [OnError::Continue, OnError::Stop, OnError::Pend] {
            let set_up = |builder: Builder| kinds(&lab, builder).processor::<Noisy>(());
            let drive = async |run: &Run| {
                let stream = the_stream(run)?;
                let first = Node::new(name.as_str(), work).on_error(on_error);
                append(&stream, [first, done("n2").when(When::AllFinished)]).await?;
                run.settle().await;
                if on_error == OnError::Pend {
                    stream.fail(by()).await?;
                }
                let expected = match on_error {
                    OnError::Stop => format!("{name} ERROR, n2 CANCELLED"),
                    _ => format!("{name} ERROR, n2 SUCCESS"),
                };
                assert_eq!(states(run, &stream).await?, expected);
                let record = stream.records(None, 9).await?.items.pop().ok_or("no record")?;
                let is_kept = is_kept && on_error != OnError::Pend;
                assert_eq!(record.note::<String>()?.is_some(), is_kept);
                Ok(())
            };
            World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
        }
    }
    Ok(())
}

#[test]
fn a_broadcast_that_is_no_node_fails_none() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [done("n1")]).await?;
        run.settle().await;
        assert_eq!(run.executor.broadcast("procession.node", &"hello").await?, 1);
        append(&stream, [done("n2")]).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS");
        assert_eq!(stream.status().await?.ended, 2);
        Ok(())
    })
}
