//! Streams as users see them: order, names, failures, decisions, crashes.

mod crash;
mod failure;
mod guarded;
mod kit;
mod names;
mod nodes;
mod notified;
mod order;
mod readings;
mod records;
mod sizes;

pub(crate) use kit::{append, enumerate_stream, rest, states};
