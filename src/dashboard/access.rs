//! Who may do what: the host's resolver says it for each request. Where the host asks for no more than that,
//! everybody on this machine may look, and nobody may do anything.

use std::fmt;

use actix_web::HttpRequest;

use super::hosts::Host;

/// Tells what the sender of a request may do.
///
/// Identity is the host's: its middleware has named the caller, in an extension of the
/// request for instance, and this reads it. The dashboard has no login and no cookie.
pub trait Access: Send + Sync + 'static {
    /// Says what this request may do. Called once for each request, before anything is read.
    fn resolve(&self, request: &HttpRequest) -> Grant;
}

impl<F> Access for F
where
    F: Fn(&HttpRequest) -> Grant + Send + Sync + 'static,
{
    fn resolve(&self, request: &HttpRequest) -> Grant {
        self(request)
    }
}

/// What a caller may do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// Nothing.
    Deny,
    /// Look: the right `view` alone.
    ReadOnly {
        /// Name of the caller, as the audit has it.
        who: String,
    },
    /// What these rights say.
    Only {
        /// Name of the caller, as the audit has it.
        who: String,
        /// What it may do.
        rights: Rights,
    },
    /// Everything.
    All {
        /// Name of the caller, as the audit has it.
        who: String,
    },
}

impl Grant {
    /// Returns the name of the caller, or `None` if it may do nothing.
    #[must_use]
    pub fn who(&self) -> Option<&str> {
        match self {
            Self::Deny => None,
            Self::ReadOnly { who } | Self::Only { who, .. } | Self::All { who } => Some(who),
        }
    }

    /// Returns `true` if it has a right.
    #[must_use]
    pub fn has(&self, right: Right) -> bool {
        match self {
            Self::Deny => false,
            Self::ReadOnly { .. } => right == Right::View,
            Self::Only { rights, .. } => rights.has(right),
            Self::All { .. } => true,
        }
    }
}

/// One thing that a caller may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Right {
    /// Read everything but payloads.
    View,
    /// Read payloads, outputs and signals in full.
    Payload,
    /// Pause, resume, retry.
    Operate,
    /// Abort.
    Abort,
    /// Bypass, override results, skip undos, discharge.
    Repair,
    /// Set limits and priorities, drain.
    Configure,
    /// Submit procedures, send signals.
    Submit,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 7] = [
        Self::View,
        Self::Payload,
        Self::Operate,
        Self::Abort,
        Self::Repair,
        Self::Configure,
        Self::Submit,
    ];

    /// Returns its name, as replies have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Payload => "payload",
            Self::Operate => "operate",
            Self::Abort => "abort",
            Self::Repair => "repair",
            Self::Configure => "configure",
            Self::Submit => "submit",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::View => 1,
            Self::Payload => 2,
            Self::Operate => 4,
            Self::Abort => 8,
            Self::Repair => 16,
            Self::Configure => 32,
            Self::Submit => 64,
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of rights; none by default.
///
/// ```
/// use procession::dashboard::{Right, Rights};
///
/// let rights = Rights::none().with(Right::View).with(Right::Operate);
/// assert!(rights.has(Right::Operate));
/// assert!(!rights.has(Right::Repair));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// The empty set.
    #[must_use]
    pub const fn none() -> Self {
        Self(0)
    }

    /// The set with one right more.
    #[must_use]
    pub const fn with(self, right: Right) -> Self {
        Self(self.0 | right.bit())
    }

    /// Returns `true` if a right is in it.
    #[must_use]
    pub const fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }
}

/// What [`local_only`](super::DashboardBuilder::local_only) asks: whoever is on this machine may look, if the
/// request was made to this machine by its own name, and came through no proxy that says so.
///
/// A proxy that adds no header cannot be told from this machine, so whoever has one in front of the server
/// needs an [`Access`] of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopbackReadOnly;

/// Headers that a proxy adds. Behind one on this machine every peer looks local.
const FORWARDING: [&str; 9] = [
    "forwarded",
    "via",
    "x-forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-real-ip",
    "cf-connecting-ip",
];

impl Access for LoopbackReadOnly {
    fn resolve(&self, request: &HttpRequest) -> Grant {
        let is_near = request
            .peer_addr()
            .is_some_and(|peer| peer.ip().to_canonical().is_loopback());
        let is_forwarded = FORWARDING.iter().any(|name| request.headers().contains_key(*name));
        if is_near && !is_forwarded && Host::of(request).is_some_and(|host| host.is_loopback()) {
            let who = "someone on this machine".to_owned();
            return Grant::ReadOnly { who };
        }
        Grant::Deny
    }
}
