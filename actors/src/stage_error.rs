//! Why a stage did not succeed, and how other errors become that.

use std::fmt;
use std::time::Duration;

use procession_kernel::ParseTraceParentError;

use crate::error::{AskError, CodecError, ImportError, ReadError, StartError, StoreError, SubmitError};
use crate::time_limit::Elapsed;

/// Why a stage or an undo did not succeed.
///
/// Your own error becomes one with `?` once it says what it means for the stage:
///
/// ```
/// # use procession_actors::StageError;
/// #[derive(Debug)]
/// enum BankError { Unreachable, NoSuchAccount(u32) }
///
/// impl From<BankError> for StageError {
///     fn from(error: BankError) -> Self {
///         match error {
///             BankError::Unreachable => StageError::retry("the bank cannot be reached"),
///             BankError::NoSuchAccount(account) => StageError::fail(format!("there is no account {account}")),
///         }
///     }
/// }
/// # impl std::fmt::Display for BankError {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("bank") }
/// # }
/// # impl std::error::Error for BankError {}
/// # fn balance(account: u32) -> Result<u32, BankError> {
/// #     if account == 7 { Ok(100) } else { Err(BankError::NoSuchAccount(account)) }
/// # }
///
/// fn pay(account: u32) -> Result<u32, StageError> {
///     Ok(balance(account)?)
/// }
/// assert_eq!(pay(8), Err(StageError::Fail("there is no account 8".to_owned())));
/// ```
///
/// A [`Transient`] error becomes [`StageError::Retry`] with `?`: errors of this crate, many of the standard library,
/// and types that hold any error, such as `Box<dyn Error>` and `anyhow::Error`. For all others, and to decide otherwise
/// at one place, [`OrStageError`] adds `.or_fail()`, `.or_retry()` and `.or_retry_after(delay)` to `Result`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StageError {
    /// Try again after the kind's backoff.
    Retry(String),
    /// Try again after this delay, instead of the kind's backoff: for callees that say when to ask again. It counts as
    /// an attempt, as `Retry` does, and fails the procedure once the kind's attempts are used up.
    ///
    /// The delay has no jitter, survives restarts, and is at most 24 hours; a longer one counts as 24 hours. A zero
    /// delay runs the stage again at once, behind everything that already waits; it is part of the same commit. Past
    /// the point of no return, once the attempts are used up, the delay is at least the kind's longest backoff.
    RetryAfter(Duration, String),
    /// A time limit has passed: [`CallContext::within`](crate::CallContext::within) or
    /// [`Procedure::stage_timeout`](crate::Procedure::stage_timeout). The stage is tried again, as with `Retry`. If it was
    /// the last attempt, the cause of the failure is
    /// [`CauseKind::StageTimedOut`](procession_kernel::CauseKind::StageTimedOut).
    TimedOut(String),
    /// Fail permanently, and roll back.
    Fail(String),
}

impl StageError {
    /// Creates an error that asks for another attempt. The text is the cause's alternate form, which for
    /// `anyhow::Error` and its like is the whole chain.
    pub fn retry(cause: impl fmt::Display) -> Self {
        Self::Retry(format!("{cause:#}"))
    }

    /// Creates an error that asks for another attempt after this delay. See [`StageError::RetryAfter`].
    ///
    /// ```
    /// # use procession_actors::StageError;
    /// # use std::time::Duration;
    /// fn check(status: u16, retry_after: Option<u64>) -> Result<(), StageError> {
    ///     match (status, retry_after) {
    ///         (200, _) => Ok(()),
    ///         (503, Some(seconds)) => Err(StageError::retry_after(Duration::from_secs(seconds), "the service is busy")),
    ///         _ => Err(StageError::retry(format!("the service answered {status}"))),
    ///     }
    /// }
    /// assert_eq!(check(503, Some(7)).unwrap_err().text(), "the service is busy");
    /// ```
    pub fn retry_after(delay: Duration, cause: impl fmt::Display) -> Self {
        Self::RetryAfter(delay, format!("{cause:#}"))
    }

    /// Creates an error that fails permanently. The text is as in [`retry`](Self::retry).
    pub fn fail(cause: impl fmt::Display) -> Self {
        Self::Fail(format!("{cause:#}"))
    }

    /// Returns the text of the error.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Retry(text) | Self::RetryAfter(_, text) | Self::TimedOut(text) | Self::Fail(text) => text,
        }
    }

    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Retry(text) | Self::RetryAfter(_, text) | Self::TimedOut(text) | Self::Fail(text) => text,
        }
    }

    /// Returns the delay that the error asks for, if it asks for one.
    pub(crate) const fn delay(&self) -> Option<Duration> {
        match self {
            Self::RetryAfter(delay, _) => Some(*delay),
            Self::Retry(_) | Self::TimedOut(_) | Self::Fail(_) => None,
        }
    }
}

/// An error that usually passes, so that `?` in a stage turns it into [`StageError::Retry`]. Attempts are bounded, so
/// one that does not pass fails the procedure in the end.
///
/// ```
/// # use procession_actors::{StageError, Transient};
/// #[derive(Debug)]
/// struct Unreachable;
///
/// impl std::fmt::Display for Unreachable {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("nobody answers") }
/// }
///
/// impl Transient for Unreachable {}
///
/// fn call() -> Result<(), StageError> {
///     Err(Unreachable)?;
///     Ok(())
/// }
/// assert_eq!(call(), Err(StageError::Retry("nobody answers".to_owned())));
/// ```
///
/// Implement [`From`] for [`StageError`] instead if some of your errors do not pass.
///
/// Every type into which any error converts is transient: it does not say what it holds. With `anyhow::Error` the cause
/// is the whole chain.
///
/// An error of another library is not, because nothing says whether it passes. It does not compile with a bare `?`:
///
/// ```compile_fail,E0277
/// # use procession_actors::StageError;
/// fn terminated(text: &str) -> Result<std::ffi::CString, StageError> {
///     Ok(std::ffi::CString::new(text)?)
/// }
/// ```
///
/// ```
/// # use procession_actors::{OrStageError, StageError};
/// fn terminated(text: &str) -> Result<std::ffi::CString, StageError> {
///     std::ffi::CString::new(text).or_fail()
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether the stage is tried again",
    label = "write `.or_retry()?`, `.or_retry_after(delay)?` or `.or_fail()?` with the trait `OrStageError` in scope; for an error of your own, implement `From<{Self}> for StageError`, or `Transient`"
)]
pub trait Transient: fmt::Display {}

/// An error that nobody else can name: a type into which it converts is one that holds any error.
#[derive(Debug)]
struct AnyError;

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error")
    }
}

impl std::error::Error for AnyError {}

// Coherence can tell that no other type converts from an error of this crate, so this implementation stands beside
// those below, and beside `From<MyError> for StageError` in other crates. `Error` as the bound would exclude both.
#[diagnostic::do_not_recommend]
impl<E: From<AnyError> + fmt::Display> Transient for E {}

macro_rules! transient {
    ($($error:ty),+ $(,)?) => {
        $(impl Transient for $error {})+
    };
}

transient!(
    AskError,
    CodecError,
    ImportError,
    ParseTraceParentError,
    ReadError,
    StartError,
    StoreError,
    SubmitError,
    actix::MailboxError,
    futures::channel::oneshot::Canceled,
    std::char::ParseCharError,
    std::char::TryFromCharError,
    std::env::VarError,
    std::fmt::Error,
    std::io::Error,
    std::net::AddrParseError,
    std::num::ParseFloatError,
    std::num::ParseIntError,
    std::num::TryFromIntError,
    std::str::ParseBoolError,
    std::str::Utf8Error,
    std::string::FromUtf8Error,
    std::time::SystemTimeError,
    tokio::sync::AcquireError,
    tokio::sync::oneshot::error::RecvError,
    tokio::sync::watch::error::RecvError,
    tokio::task::JoinError,
    tokio::time::error::Elapsed,
);

/// The kind of the time-out outlives the text.
impl From<Elapsed> for StageError {
    fn from(elapsed: Elapsed) -> Self {
        Self::TimedOut(elapsed.to_string())
    }
}

impl<E: Transient> From<E> for StageError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

/// Says of a failed `Result` what becomes of the stage.
///
/// ```
/// use procession_actors::{OrStageError, StageError};
/// use std::time::Duration;
///
/// fn rooms(answer: &str) -> Result<u8, StageError> {
///     // A number that cannot be read now cannot be read later either.
///     answer.parse::<u8>().or_fail()
/// }
/// assert!(matches!(rooms("many"), Err(StageError::Fail(_))));
///
/// fn send(sent: Result<(), &'static str>) -> Result<(), StageError> {
///     sent.or_retry_after(Duration::from_secs(30))?;
///     Ok(())
/// }
/// assert_eq!(send(Err("too many requests")).unwrap_err().text(), "too many requests");
/// ```
pub trait OrStageError<T> {
    /// Fails the procedure permanently, and rolls it back: [`StageError::Fail`].
    ///
    /// # Errors
    ///
    /// [`StageError::Fail`] with the text of the error.
    fn or_fail(self) -> Result<T, StageError>;

    /// Asks for another attempt after the kind's backoff: [`StageError::Retry`].
    ///
    /// # Errors
    ///
    /// [`StageError::Retry`] with the text of the error.
    fn or_retry(self) -> Result<T, StageError>;

    /// Asks for another attempt after this delay: [`StageError::RetryAfter`].
    ///
    /// # Errors
    ///
    /// [`StageError::RetryAfter`] with the text of the error.
    fn or_retry_after(self, delay: Duration) -> Result<T, StageError>;
}

impl<T, E: fmt::Display> OrStageError<T> for Result<T, E> {
    fn or_fail(self) -> Result<T, StageError> {
        self.map_err(StageError::fail)
    }

    fn or_retry(self) -> Result<T, StageError> {
        self.map_err(StageError::retry)
    }

    fn or_retry_after(self, delay: Duration) -> Result<T, StageError> {
        self.map_err(|error| StageError::retry_after(delay, error))
    }
}
