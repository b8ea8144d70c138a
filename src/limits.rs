//! Locks and limits: what procedures ask for, and who holds what.

pub use procession_actors::GLOBAL_LIMIT;
pub use procession_actors::view::{LockView, LockWaiter};
pub use procession_kernel::{Limit, LimitKey, LimitUse, LockMode, LockNeed, LockPath, MAX_OVERTAKES, Rate, RateUse};
