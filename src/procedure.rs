//! What a kind declares, and what its code is given: settings, children, hooks, signals, policies.

pub use crate::noop::Noop;
pub use procession_actors::{
    Accepts, CallContext, Child, ChildOutcome, Elapsed, Fence, Finished, Hooks, JoinVerdict, KindSettings, Old,
    PureContext, Signal, SignalOffer, Submitted, Token, Transient,
};
pub use procession_kernel::{
    ChildPermits, HistoryDetail, Hold, JoinPolicy, Kind, OnFailure, OnTimeout, RetryPolicy, Timestamp,
};
