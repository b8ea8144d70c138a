//! Faults: how a call of a service says that it failed.

use std::any::type_name;
use std::error::Error;
use std::fmt::{self, Display, Write};
use std::io;

use serde::{Deserialize, Serialize};

/// Most bytes of a fault's message. What is longer is cut.
pub(super) const MESSAGE_MAX: usize = 2_048;

/// Most errors that are looked at below an error, and most causes of a fault.
pub(super) const CAUSES_MAX: usize = 20;

/// Why a call failed: a class, which a definition's `Retry`, `Catch` and `Status` know, and a message for people.
///
/// A class is named as Seata names it, after a Java exception, or in any other way. [`Fault::new`] names it at the place
/// where the call fails:
///
/// ```
/// use procession::saga::{Fault, Network};
///
/// let fault = Fault::new("com.acme.OutOfStock", "3 are left");
/// assert_eq!(fault.to_string(), "com.acme.OutOfStock: 3 are left");
///
/// let fault = Fault::new("com.acme.NoAnswer", "the bank is silent").network(Network::ReadTimeout);
/// let outer = Fault::new("com.acme.NotPaid", "the order is not paid").cause(fault);
/// assert_eq!(outer.network_failure(), Some(Network::ReadTimeout));
/// ```
///
/// Every error becomes one with `?`, and so do types that hold any error, such as `Box<dyn Error>` and `anyhow::Error`.
/// The class is found once the call has ended: the one that the host registered for the type of the error, or of the
/// nearest error below it, up to 20 down. A refused connection of the standard library is a `java.net.ConnectException`,
/// and a time-out a `java.net.SocketTimeoutException`, unless a registered class says otherwise. Other errors have the
/// name of their type for a class. It changes with the code, so register the types that a definition is to know.
///
/// ```
/// # use procession::saga::{Fault, Network};
/// fn count(answer: &str) -> Result<u32, Fault> {
///     Ok(answer.parse()?)
/// }
/// let fault = count("many").unwrap_err();
/// assert_eq!(fault.to_string(), "core::num::error::ParseIntError: invalid digit found in string");
///
/// fn connect() -> Result<(), Fault> {
///     # let connected: Result<(), _> = Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
///     Ok(connected?)
/// }
/// assert_eq!(connect().unwrap_err().network_failure(), Some(Network::Refused));
/// ```
///
/// It does not implement `Error`, because then no other error could become one with `?`.
pub struct Fault {
    origin: Origin,
    message: String,
    network: Option<Network>,
    /// The nearest first. Their own causes stand behind them here, so that no chain is deep.
    causes: Vec<Self>,
}

/// What says which class a fault has.
pub(super) enum Origin {
    Class(String),
    Error {
        error: Box<dyn Error>,
        type_name: &'static str,
    },
}

/// How a network failed a call. It decides whether the call may have had an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Network {
    /// The connection was refused, so the call had no effect.
    Refused,
    /// Nobody answered the attempt to connect.
    ConnectTimeout,
    /// The connection stood, and no answer arrived in time. The call may have had its effect.
    ReadTimeout,
}

impl Fault {
    /// Creates a fault of a class, with a message. 2,048 bytes of it are kept.
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            origin: Origin::Class(class.into()),
            message: cut(&message.into(), MESSAGE_MAX).to_owned(),
            network: None,
            causes: Vec::new(),
        }
    }

    /// Replaces its class.
    #[must_use]
    pub fn of_class(mut self, class: impl Into<String>) -> Self {
        self.origin = Origin::Class(class.into());
        self
    }

    /// Says that the network failed. Without it, what the causes say counts.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// Sets the fault that is behind this one, with its own causes. 20 of them are kept. They count for
    /// [`network_failure`](Self::network_failure) alone: a `Catch` and a `Retry` look at this fault's class.
    #[must_use]
    pub fn cause(mut self, mut cause: Self) -> Self {
        let below = std::mem::take(&mut cause.causes);
        self.causes = std::iter::once(cause).chain(below).take(CAUSES_MAX).collect();
        self
    }

    /// Returns the class. Of an error it is the name of its type here: the class for which the type was registered is
    /// found once the call has ended.
    #[must_use]
    pub fn class(&self) -> &str {
        match &self.origin {
            Origin::Class(class) => class,
            Origin::Error { type_name, .. } => type_name,
        }
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns how the network failed the call, if it did: by what this fault says, else by the nearest of its causes
    /// that says so. An error says so if it is or holds a refused connection or a time-out of the standard library.
    #[must_use]
    pub fn network_failure(&self) -> Option<Network> {
        let causes = self.causes.iter().filter_map(|cause| cause.network);
        self.network.or_else(|| causes.into_iter().next())
    }

    /// Returns the causes, the nearest first.
    pub fn causes(&self) -> impl Iterator<Item = &Self> {
        self.causes.iter()
    }

    /// Puts something before the message.
    pub(super) fn within(mut self, place: impl Display) -> Self {
        self.message = text_of(format_args!("{place}: {}", self.message));
        self
    }

    pub(super) const fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl<E: Into<Box<dyn Error>> + Display> From<E> for Fault {
    fn from(error: E) -> Self {
        // The alternate form of types that hold any error is their whole chain.
        let message = text_of(format_args!("{error:#}"));
        let error = error.into();
        let network = chain(&*error).find_map(network_of);
        Self {
            network,
            origin: Origin::Error {
                error,
                type_name: type_name::<E>(),
            },
            message,
            causes: Vec::new(),
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class(), self.message)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("class", &self.class())
            .field("message", &self.message)
            .field("network", &self.network)
            .field("causes", &self.causes)
            .finish()
    }
}

/// Returns an error and those below it.
pub(super) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| below(*error)).take(1 + CAUSES_MAX)
}

/// The source of an `io::Error` that holds another error is the source of that one, which would be passed over.
fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match held {
        Some(held) => Some(held),
        None => error.source(),
    }
}

/// Returns what an error itself says of the network.
pub(super) fn network_of(error: &(dyn Error + 'static)) -> Option<Network> {
    let kind = error.downcast_ref::<io::Error>()?.kind();
    let known = [
        (io::ErrorKind::ConnectionRefused, Network::Refused),
        (io::ErrorKind::TimedOut, Network::ReadTimeout),
    ];
    known
        .into_iter()
        .find(|(known, _)| *known == kind)
        .map(|(_, network)| network)
}

/// Returns the beginning of a text, with at most this many bytes and no part of a character.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Writes a message, and stops where it would be cut: what users' types write has no bound.
pub(super) fn text_of(message: fmt::Arguments<'_>) -> String {
    struct Bounded(String);
    impl Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let left = MESSAGE_MAX.saturating_sub(self.0.len());
            let fitting = cut(text, left);
            self.0.push_str(fitting);
            match fitting.len() == text.len() {
                true => Ok(()),
                false => Err(fmt::Error),
            }
        }
    }
    let mut bounded = Bounded(String::new());
    // What was written before an error stands, whether it was the bound or the type itself.
    match bounded.write_fmt(message) {
        Ok(()) | Err(fmt::Error) => bounded.0,
    }
}
