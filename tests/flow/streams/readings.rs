//! Readings of streams that the engine cannot run, or that does not answer.

use std::future::IntoFuture;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use futures::future::BoxFuture;
use procession::Builder;
use procession::errors::AskError;
use procession::flow::StreamState;
use procession::procedure::{Noop, RetryPolicy};
use procession::provider::{Clock, SystemClock, Timestamp};
use procession::testkit::{FaultPlan, Run, World};

use super::kit::{append, states, the_stream};
use crate::kit::{Act, Lab, Tested, Work, by, done, failing, kinds, live, live_in, node};

#[test]
fn a_quarantined_stream_is_read() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [done("n1"), failing("n2"), done("n3")]).await?;
        run.settle().await;
        stream.notify(3, &"early", by()).await?;
        stream.finish().await?;
        Ok(())
    })?;
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        assert_eq!(run.executor.snapshot().await?.quarantined.len(), 1);
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 PENDING, n3 WAIT");
        let status = stream.status().await?;
        assert_eq!((status.state, status.sealed), (StreamState::Pending, true));
        Ok(())
    };
    let without = |builder: Builder| builder.processor::<Work>(lab.clone());
    world.run(FaultPlan::none(), without, drive)?.done()
}

#[test]
fn records_are_read_in_pages_of_any_size() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        let retry = RetryPolicy::default().attempts(4).base(Duration::ZERO);
        let nodes = (0..20_u32).map(|number| node(&format!("n{number}"), Act::RetryUpTo(number % 4)).retry(retry));
        append(&stream, nodes).await?;
        run.settle().await;
        run.pass(Duration::from_secs(86_400)).await;
        let all = stream.records(None, 1_000).await?;
        assert_eq!((all.items.len(), all.next), (20, None));
        for limit in 1..=21 {
            let (mut paged, mut before) = (Vec::new(), None);
            loop {
                let page = stream.records(before, limit).await?;
                let is_full = page.items.len() == limit;
                paged.extend(page.items);
                assert!(is_full || page.next.is_none(), "pages of {limit}");
                before = page.next;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(paged, all.items, "pages of {limit}");
        }
        Ok(())
    })
}

/// A clock of the system that holds whoever else asks it for the time: so the engine stands still.
#[derive(Clone)]
struct Holding {
    mine: ThreadId,
    is_held: Arc<(Mutex<bool>, Condvar)>,
}

impl Holding {
    fn new() -> Self {
        let mine = std::thread::current().id();
        let is_held = Arc::default();
        Self { mine, is_held }
    }

    fn hold(&self, held: bool) {
        let (is_held, changed) = &*self.is_held;
        *is_held.lock().unwrap_or_else(PoisonError::into_inner) = held;
        changed.notify_all();
    }
}

impl Clock for Holding {
    fn now(&self) -> Timestamp {
        if std::thread::current().id() != self.mine {
            let (is_held, changed) = &*self.is_held;
            let held = is_held.lock().unwrap_or_else(PoisonError::into_inner);
            drop(changed.wait_while(held, |held| *held));
        }
        SystemClock.now()
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        SystemClock.sleep_until(until)
    }
}

#[test]
fn an_engine_that_does_not_answer_holds_no_reader() -> Tested {
    let directory = tempfile::tempdir()?;
    let (lab, clock) = (Lab::default(), Holding::new());
    actix_rt::System::new().block_on(async {
        let builder = procession::Executor::builder(directory.path().join("journal")).workers(1);
        let builder = kinds(&lab, builder).clock(Arc::new(clock.clone()));
        let executor = builder.start().await?;
        let stream = executor.stream("invoices", "customer-17")?;
        append(&stream, [failing("n1"), done("n2")]).await?;
        while stream.status().await?.state != StreamState::Pending {
            tokio::task::yield_now().await;
        }
        clock.hold(true);
        // Whoever submits asks for the time. Readings that come before it are answered.
        let submitted = actix_rt::spawn(executor.submit(Noop).into_future());
        let unanswered = async {
            loop {
                match stream.status().await {
                    Ok(_) => tokio::task::yield_now().await,
                    Err(error) => break error,
                }
            }
        };
        let read = tokio::time::timeout(Duration::from_secs(60), unanswered).await;
        clock.hold(false);
        assert!(matches!(read, Ok(AskError::NotYet)), "{read:?}");
        submitted.await.ok();
        assert_eq!(stream.status().await?.waiting, 1);
        executor.drain(Duration::from_secs(10)).await?;
        Ok(())
    })
}
