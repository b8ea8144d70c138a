//! Lets a test intercept the calls between the engine and user code. The test sees each call of a stage and of an undo,
//! and may make it fail. Without the feature `testkit` only the plain call remains.

use std::any::Any;

use crate::context::{Call, Host};
use crate::stage_error::StageError;

/// The result of a call of user code, or its panic.
type CallResult<T> = Result<Result<T, StageError>, Box<dyn Any + Send>>;

/// One call of user code that is about to be made.
pub(crate) struct Calling {
    #[cfg(feature = "testkit")]
    interceptor: Option<(std::sync::Arc<dyn seen::StageInterceptor>, seen::Called)>,
}

#[cfg(not(feature = "testkit"))]
impl Calling {
    pub(crate) fn new(_: &Host, _: &Call, _: &impl std::fmt::Debug, _undo: bool) -> Self {
        Self {}
    }

    /// Returns the body itself.
    pub(crate) fn make<T, F: Future<Output = CallResult<T>>>(self, body: F) -> F {
        body
    }
}

#[cfg(feature = "testkit")]
impl Calling {
    pub(crate) fn new(host: &Host, call: &Call, stage: &impl std::fmt::Debug, undo: bool) -> Self {
        let called = |interceptor: &std::sync::Arc<dyn seen::StageInterceptor>| {
            let called = seen::Called {
                id: call.stage.id,
                kind: call.stage.kind.clone(),
                stage: format!("{stage:?}"),
                visit: call.stage.visit,
                attempt: call.stage.attempt,
                undo,
            };
            (std::sync::Arc::clone(interceptor), called)
        };
        Self {
            interceptor: host.interceptor.as_ref().map(called),
        }
    }

    pub(crate) async fn make<T>(self, body: impl Future<Output = CallResult<T>>) -> CallResult<T> {
        let Some((interceptor, called)) = self.interceptor else {
            return body.await;
        };
        let injection = interceptor.begins(&called);
        let mut left = seen::Left::new(interceptor, called);
        for _ in 0..injection.turns {
            tokio::task::yield_now().await;
        }
        let result = match injection.interception {
            seen::Interception::Proceed => body.await,
            seen::Interception::FailsBefore(why) => Ok(Err(StageError::Fail(why))),
            seen::Interception::FailsAfter(why) => match body.await {
                Ok(Ok(_)) => Ok(Err(StageError::Fail(why))),
                result => result,
            },
        };
        left.ends(matches!(result, Ok(Ok(_))));
        result
    }
}

#[cfg(feature = "testkit")]
pub(crate) mod seen {
    //! What a test sees of a call, and what it may inject.

    use std::sync::Arc;

    use procession_kernel::{Kind, ProcedureId};

    /// A call of a stage or of an undo.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Called {
        /// The procedure.
        pub id: ProcedureId,
        /// The procedure's kind.
        pub kind: Kind,
        /// The stage, as its `Debug` shows it.
        pub stage: String,
        /// The number of the visit within the procedure, from 0; an undo has the number of its stage.
        pub visit: u32,
        /// The number of the attempt, from 1.
        pub attempt: u32,
        /// `true` for the undo of the stage.
        pub undo: bool,
    }

    /// What happens to an intercepted call.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub enum Interception {
        /// The call runs, and its result counts.
        #[default]
        Proceed,
        /// The call fails permanently with this cause, and does not run.
        FailsBefore(String),
        /// The call runs, and then fails permanently with this cause, whatever its result.
        FailsAfter(String),
    }

    /// What a test injects into a call.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Injection {
        /// Turns of the executor that other tasks get before the call begins.
        pub turns: u32,
        /// What happens to the call.
        pub interception: Interception,
    }

    /// How a call ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Leaving {
        /// The call succeeded.
        Succeeded,
        /// The call failed, was made to fail, or panicked.
        Failed,
        /// The call was dropped before it ended: the engine crashed.
        Dropped,
    }

    /// Intercepts calls between the engine and user code.
    pub trait StageInterceptor: Send + Sync + 'static {
        /// Returns what to inject into a call that is about to be made.
        fn begins(&self, called: &Called) -> Injection;
        /// Receives how a call ended.
        fn left(&self, called: &Called, how: Leaving);
        /// Returns `true` if each pure stage is to be computed several times on copies of its value, before it runs.
        fn examines_pure_stages(&self) -> bool {
            false
        }
        /// Receives what is not pure about a stage that was computed several times; `None` if nothing is.
        fn examined(&self, called: &Called, why: Option<&str>) {
            let _ = (called, why);
        }
    }

    /// Reports to the interceptor how the call ended, even if it is dropped.
    pub(super) struct Left {
        interceptor: Arc<dyn StageInterceptor>,
        called: Called,
        how: Leaving,
    }

    impl Left {
        pub(super) fn new(interceptor: Arc<dyn StageInterceptor>, called: Called) -> Self {
            Self {
                interceptor,
                called,
                how: Leaving::Dropped,
            }
        }

        pub(super) fn ends(&mut self, well: bool) {
            self.how = if well { Leaving::Succeeded } else { Leaving::Failed };
        }
    }

    impl Drop for Left {
        fn drop(&mut self) {
            self.interceptor.left(&self.called, self.how);
        }
    }
}
