//! What an executor hands out can be moved to other threads, also for a type that cannot.

use std::future::IntoFuture;
use std::rc::Rc;
use std::time::Duration;

use procession::submit::Submission;
use procession::{Builder, Executor, Handle, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::support::{Lab, Planned, Tested, chain, end, live};

/// A value and an output that stay on their thread.
struct Local(Rc<str>);

impl Serialize for Local {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Local {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?.into()))
    }
}

impl Procedure for Local {
    const KIND: &'static str = "local";
    type Stage = ();
    type Env = ();
    type Output = Local;

    fn first(&self) {}

    async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(Self(Rc::clone(&self.0))))
    }
}

fn sendable<T: Send>(value: T) -> T {
    value
}

/// All that is awaited while a procedure is submitted and watched, of any type.
async fn submit_and_watch<P: Procedure>(executor: &Executor, mut next: impl FnMut() -> P) -> Tested {
    let handle = sendable(executor.submit(next()).key("one").into_future()).await?;
    sendable(handle.status()).await?;
    sendable(handle.outcome()).await?;
    sendable(handle.clone().into_future()).await?;
    sendable(executor.submit(next()).into_message()).await?;
    let batch = [executor.submit(next()), executor.submit(next())];
    for handle in sendable(executor.submit_batch(batch)).await? {
        sendable(handle.wait_for(Duration::from_mins(1))).await?;
    }
    Ok(())
}

#[test]
fn submissions_and_handles_are_send_futures_for_every_type() -> Tested {
    let directory = tempfile::tempdir()?;
    actix_rt::System::new().block_on(async {
        let builder = Executor::builder(directory.path().join("journal"));
        let executor = builder.register::<Local>(()).start().await?;
        submit_and_watch(&executor, || Local("a".into())).await?;
        assert!(executor.shutdown().await.is_clean());
        Ok(())
    })
}

#[test]
fn a_spawned_task_submits_and_waits() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let executor = run.executor.clone();
        let spawned = tokio::spawn(async move { executor.submit(Planned(chain("a", 2))).await });
        let handle = run.wait(spawned).await???;
        let waited = tokio::spawn(handle.into_future());
        assert_eq!(run.wait(waited).await???, 7);
        Ok(())
    })
}

#[test]
fn what_users_hold_can_be_shown() -> Tested {
    fn shown<T: std::fmt::Debug>(_: &T) {}
    let _: [fn(&Builder); 1] = [shown];
    let lab = Lab::default();
    live(&lab, async |run| {
        end(run, Planned(chain("a", 1)), "k").await??;
        let executor = &run.executor;
        assert!(format!("{executor:?}").contains("is_stopping: false"), "{executor:?}");
        let submission: Submission<Planned> = executor.submit(Planned(chain("secret", 1))).key("k").named("nightly");
        let text = format!("{submission:?}");
        assert!(text.contains("\"nightly\"") && !text.contains("secret"), "{text}");
        let handle: Handle<Planned> = executor.handle("7.3".parse()?);
        assert!(format!("{handle:?}").contains("id: 7.3"), "{handle:?}");
        Ok(())
    })
}
