//! An engine's life on the current thread, for any scenario.
//!
//! A runtime's code is generic over the future that it drives. Here that future is boxed, so the runtime is compiled
//! once instead of for each scenario, with this package's optimisation.

use futures::future::{BoxFuture, Either, LocalBoxFuture, select};

/// Drives a life on a system of its own until it ends. Returns `false` if the process counts as dead before that: then
/// the life is dropped where it stands.
#[must_use]
pub fn live(life: LocalBoxFuture<'_, ()>, crashed: BoxFuture<'static, ()>) -> bool {
    // The life is dropped within the system, whichever of the two ends first.
    actix_rt::System::new().block_on(async move { matches!(select(life, crashed).await, Either::Left(_)) })
}
