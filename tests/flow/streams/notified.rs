//! Notifications: at any moment of a node's life, and repeated.

use std::pin::pin;

use futures::FutureExt;
use procession::flow::ResolveError;
use procession::testkit::{FaultPlan, Run, World};

use super::kit::{append, states, the_stream};
use crate::kit::{Act, Lab, Tested, by, done, kinds, live, node};

#[test]
fn a_notification_meets_a_node_that_is_about_to_park() -> Tested {
    // The node parks between any two reads of the request.
    for polls in 0..60 {
        let lab = Lab::default();
        let drive = async |run: &Run| {
            let stream = the_stream(run)?;
            let parks = Act::Held("park".to_owned(), Box::new(Act::Park(None)));
            append(&stream, [node("n1", parks)]).await?;
            run.settle().await;
            let mut notify = pin!(stream.notify(1, &"go", by()));
            let mut early = None;
            for _ in 0..polls {
                early = notify.as_mut().now_or_never();
                if early.is_some() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            lab.open("park");
            run.settle().await;
            let notified = match early {
                Some(notified) => notified,
                None => notify.await,
            };
            assert!(notified.is_ok(), "after {polls} polls: {notified:?}");
            assert_eq!(states(run, &stream).await?, "n1 SUCCESS", "after {polls} polls");
            Ok(())
        };
        let late = FaultPlan::none().late(polls, 7);
        World::new().run(late, |builder| kinds(&lab, builder), drive)?.done()?;
    }
    Ok(())
}

#[test]
fn a_repeated_notification_is_answered_as_the_first() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [node("n1", Act::Park(None)), done("n2")]).await?;
        run.settle().await;
        let first = stream.notify(1, &"go", by().key("k")).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS");
        let before = run.store.commits();
        let again = stream.notify(1, &"go", by().key("k")).await?;
        assert_eq!(first.number, again.number);
        for by in [by(), by().key("other")] {
            let late = stream.notify(1, &"go", by).await;
            assert!(matches!(late, Err(ResolveError::Passed { place: 1, .. })), "{late:?}");
        }
        assert_eq!(run.store.commits(), before);
        stream.finish().await?;
        run.settle().await;
        let late = stream.notify(1, &"go", by().key("another")).await;
        assert!(matches!(late, Err(ResolveError::Passed { place: 1, .. })), "{late:?}");
        Ok(())
    })
}
