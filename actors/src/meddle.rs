//! Where a test may come between the engine and user code: it sees each call of a
//! stage and of an undo, and may have it fail. Without the feature `testkit`
//! nothing of this is left but the plain call.

use std::any::Any;

use crate::context::{Call, Host};
use crate::step::StageError;

/// What a call of user code gives: what it says, or its panic.
type Said<T> = Result<Result<T, StageError>, Box<dyn Any + Send>>;

/// One call of user code that is about to be made.
pub(crate) struct Calling {
    #[cfg(feature = "testkit")]
    meddler: Option<(std::sync::Arc<dyn seen::Meddler>, seen::Called)>,
}

#[cfg(not(feature = "testkit"))]
impl Calling {
    pub(crate) fn new(_: &Host, _: &Call, _: &str, _: &impl std::fmt::Debug, _undo: bool) -> Self {
        Self {}
    }

    /// The body itself: a future around it would carry it twice.
    pub(crate) fn make<T, F: Future<Output = Said<T>>>(self, body: F) -> F {
        body
    }
}

#[cfg(feature = "testkit")]
impl Calling {
    pub(crate) fn new(host: &Host, call: &Call, kind: &'static str, stage: &impl std::fmt::Debug, undo: bool) -> Self {
        let called = |meddler: &std::sync::Arc<dyn seen::Meddler>| {
            let called = seen::Called {
                id: call.stage.id,
                kind,
                stage: format!("{stage:?}"),
                visit: call.stage.visit,
                attempt: call.stage.attempt,
                undo,
            };
            (std::sync::Arc::clone(meddler), called)
        };
        Self {
            meddler: host.meddler.as_ref().map(called),
        }
    }

    pub(crate) async fn make<T>(self, body: impl Future<Output = Said<T>>) -> Said<T> {
        let Some((meddler, called)) = self.meddler else {
            return body.await;
        };
        let meddling = meddler.begins(&called);
        let mut left = seen::Left::new(meddler, called);
        for _ in 0..meddling.turns {
            tokio::task::yield_now().await;
        }
        let said = match meddling.fate {
            seen::Fate::AsItGoes => body.await,
            seen::Fate::FailsBefore(why) => Ok(Err(StageError::Fail(why))),
            seen::Fate::FailsAfter(why) => match body.await {
                Ok(Ok(_)) => Ok(Err(StageError::Fail(why))),
                said => said,
            },
        };
        left.ends(matches!(said, Ok(Ok(_))));
        said
    }
}

#[cfg(feature = "testkit")]
pub(crate) mod seen {
    //! What a test sees of a call, and what it may do to it.

    use std::sync::Arc;

    use procession_kernel::ProcedureId;

    /// A call of a stage or of an undo.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Called {
        /// Whose.
        pub id: ProcedureId,
        /// Its type.
        pub kind: &'static str,
        /// The stage, as its `Debug` shows it.
        pub stage: String,
        /// Which visit of the procedure it is, from 0; an undo has that of its stage.
        pub visit: u32,
        /// Which attempt, from 1.
        pub attempt: u32,
        /// It is the undo of the stage.
        pub undo: bool,
    }

    /// What becomes of a call.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub enum Fate {
        /// It runs, and says what it says.
        #[default]
        AsItGoes,
        /// It fails for good with this cause, and is not run.
        FailsBefore(String),
        /// It is run, and fails for good with this cause whatever it says.
        FailsAfter(String),
    }

    /// What a test does to a call.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Meddling {
        /// So many turns are left to others before it begins.
        pub turns: u32,
        /// What becomes of it.
        pub fate: Fate,
    }

    /// How a call was left.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Leaving {
        /// It succeeded.
        Succeeded,
        /// It failed, was made to fail, or panicked.
        Failed,
        /// It was dropped on the way: the engine crashed.
        Dropped,
    }

    /// Comes between the engine and user code.
    pub trait Meddler: Send + Sync + 'static {
        /// Says what becomes of a call that is about to be made.
        fn begins(&self, called: &Called) -> Meddling;
        /// Learns how a call was left.
        fn left(&self, called: &Called, how: Leaving);
    }

    /// Tells the meddler how the call was left, also when it is dropped.
    pub(super) struct Left {
        meddler: Arc<dyn Meddler>,
        called: Called,
        how: Leaving,
    }

    impl Left {
        pub(super) fn new(meddler: Arc<dyn Meddler>, called: Called) -> Self {
            Self {
                meddler,
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
            self.meddler.left(&self.called, self.how);
        }
    }
}
