//! An engine whose threads are blocked: viewers learn that it is silent, and learn when it answers again.

use std::future::IntoFuture;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use actix_web::test::TestRequest;
use futures::future::BoxFuture;
use procession::Executor;
use procession::dashboard::Dashboard;
use procession::provider::{Clock, Timestamp};
use procession::testkit::{TestClock, Trouble};

use crate::kit::{Job, Tested, everybody, near};
use crate::listen::{Listener, listen_to};

/// How much time passes at once.
const STEP: Duration = Duration::from_millis(250);
/// Within this time a viewer knows.
const KNOWN: Duration = Duration::from_secs(3);
/// How long nothing may be ready on this thread, before time passes.
const STILL: Duration = Duration::from_millis(20);

/// A clock at which every thread but the test's own stops, while it is shut.
struct Gate {
    clock: TestClock,
    test: ThreadId,
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn new() -> Self {
        Self {
            clock: TestClock::new(),
            test: thread::current().id(),
            is_shut: Mutex::new(false),
            opened: Condvar::new(),
        }
    }

    fn set(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap_or_else(PoisonError::into_inner) = is_shut;
        self.opened.notify_all();
    }
}

impl Clock for Gate {
    fn now(&self) -> Timestamp {
        if thread::current().id() != self.test {
            let is_shut = self.is_shut.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = self.opened.wait_while(is_shut, |is_shut| *is_shut);
            drop(opened);
        }
        self.clock.now()
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(until)
    }
}

/// Waits until the stream reports this standing of the engine. Returns the time that has passed.
async fn told(stream: &mut Listener, gate: &Gate, wanted: &str) -> Result<Duration, Trouble> {
    let begun = gate.clock.now();
    loop {
        let passed = gate.clock.now().since(begun);
        match tokio::time::timeout(STILL, stream.next_of("engine")).await {
            Ok(event)
                if event
                    .as_ref()
                    .is_ok_and(|event| event.data.get("engine").is_some_and(|engine| engine == wanted)) =>
            {
                return Ok(passed);
            }
            Ok(event) => drop(event?),
            Err(_) if passed > 10 * KNOWN => return Err(format!("the stream never says {wanted}").into()),
            Err(_) => gate.clock.advance(STEP),
        }
    }
}

#[test]
fn viewers_know_within_three_seconds_that_an_engine_stands_still() -> Tested {
    let directory = tempfile::tempdir()?;
    actix_rt::System::new().block_on(async {
        let gate = Arc::new(Gate::new());
        let executor = Executor::builder(directory.path().join("journal"))
            .clock(gate.clone())
            .register::<Job>(())
            .start()
            .await?;
        let dashboard = everybody(Dashboard::builder(&executor)).start().await?;
        dashboard.reached(executor.snapshot().await?.durable).await;
        let stream = listen_to(&dashboard, near(TestRequest::get()), "").await;
        let mut stream = stream.map_err(|status| status.to_string())?;
        told(&mut stream, &gate, "live").await?;

        gate.set(true);
        // The engine looks at the clock for each request, and comes back only once the gate is open.
        let submitted = actix_rt::spawn(executor.submit(Job::End).into_future());
        let silent = told(&mut stream, &gate, "silent").await;
        gate.set(false);
        assert!(silent? <= KNOWN, "it was told too late");
        told(&mut stream, &gate, "live").await?;
        submitted.await??;
        drop(stream);
        executor.shutdown().await;
        Ok(())
    })
}
