//! The user's own closures, with their types erased: asynchronous ones cannot be
//! trait objects as they are.

use futures::future::LocalBoxFuture;

use crate::testkit::world::{Run, Trouble};

/// An asynchronous closure of what survives a crash and one engine's life.
pub(super) trait Act<S, T> {
    fn act<'a>(&'a self, state: &'a S, run: &'a Run) -> LocalBoxFuture<'a, Result<T, Trouble>>;
}

impl<S, T, F> Act<S, T> for F
where
    F: AsyncFn(&S, &Run) -> Result<T, Trouble>,
{
    fn act<'a>(&'a self, state: &'a S, run: &'a Run) -> LocalBoxFuture<'a, Result<T, Trouble>> {
        Box::pin(self(state, run))
    }
}

/// The same with one thing more to know.
pub(super) trait ActOn<S, A> {
    fn act<'a>(&'a self, state: &'a S, run: &'a Run, on: A) -> LocalBoxFuture<'a, Result<(), Trouble>>
    where
        A: 'a;
}

impl<S, A, F> ActOn<S, A> for F
where
    F: AsyncFn(&S, &Run, A) -> Result<(), Trouble>,
{
    fn act<'a>(&'a self, state: &'a S, run: &'a Run, on: A) -> LocalBoxFuture<'a, Result<(), Trouble>>
    where
        A: 'a,
    {
        Box::pin(self(state, run, on))
    }
}
