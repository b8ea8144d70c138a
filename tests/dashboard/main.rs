//! The dashboard's API, as its viewers see it: an engine of the test kit, whose time is the
//! test's, under an application of the host's.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on all else"
)]

mod access;
mod act;
mod beyond;
mod bounds;
mod bulk;
mod charts;
mod damaged;
mod flows;
mod flows_truth;
mod frozen;
mod hidden;
mod hostile;
mod incident;
mod kit;
mod labels;
mod listen;
mod lists;
mod logs;
mod metrics;
mod model;
mod one;
mod openapi;
mod page;
mod plan;
mod questions;
mod sagas;
mod schedules;
mod shapes;
mod slow;
mod stages;
mod stream;
mod turns;
mod values;
mod verbs;
mod whole;
