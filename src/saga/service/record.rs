//! A fault as it is kept.

use std::any::Any;
use std::fmt::Display;

use procession_actors::{Elapsed, panic_text};
use serde::{Deserialize, Serialize};

use super::Network;
use super::fault::{cut, text_of};

/// Most bytes of a class. Names of Java's classes, and of most types, have some fifty.
pub(super) const CLASS_MAX: usize = 512;

/// The class of a call that panicked.
pub(in crate::saga) const PANIC: &str = "procession.Panic";
/// The class of a call that took longer than its service may.
pub(super) const TIMEOUT: &str = "procession.Timeout";
/// The class of a call whose result has no form in JSON.
pub(super) const BAD_RESULT: &str = "procession.BadResult";

/// What a call has failed with, once its class is known: plain data, which goes to disk and into notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::saga) struct FaultRecord {
    #[serde(rename = "c")]
    pub(in crate::saga) class: String,
    /// Has at most 2,048 bytes.
    #[serde(rename = "m")]
    pub(in crate::saga) message: String,
    /// Of the fault, or of the nearest cause that has one.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) network: Option<Network>,
}

impl FaultRecord {
    pub(super) fn new(class: &str, message: impl Display, network: Option<Network>) -> Self {
        Self {
            class: cut(class, CLASS_MAX).to_owned(),
            message: text_of(format_args!("{message}")),
            network,
        }
    }

    pub(super) fn panicked(what: impl Display, panic: &(dyn Any + Send)) -> Self {
        Self::new(PANIC, format_args!("{what} panicked: {}", panic_text(panic)), None)
    }

    pub(super) fn timed_out(what: impl Display, elapsed: Elapsed) -> Self {
        Self::new(TIMEOUT, format_args!("{what} {elapsed}"), Some(Network::ReadTimeout))
    }
}
