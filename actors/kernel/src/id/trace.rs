//! Origin of a submission: the context of a trace in the form of the header `traceparent`, from the W3C recommendation
//! "Trace Context".

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Length of the text form.
const LENGTH: usize = 55;
/// Version of the text form that is read and written.
const VERSION: &str = "00";

/// The trace and the span in which something was submitted, as in the header `traceparent`.
///
/// ```
/// use procession_kernel::TraceParent;
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let parent: TraceParent = text.parse()?;
/// assert_eq!(parent.to_string(), text);
/// assert!("00-0-0-01".parse::<TraceParent>().is_err());
/// # Ok::<_, procession_kernel::ParseTraceParentError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent {
    trace: u128,
    span: u64,
    flags: u8,
}

/// The text is not a `traceparent` of version 00.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTraceParentError(String);

impl fmt::Display for ParseTraceParentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\"{}\" is not a traceparent; write it as 00-<32 digits>-<16 digits>-<2 digits>, hexadecimal, with non-zero ids",
            self.0
        )
    }
}

impl std::error::Error for ParseTraceParentError {}

impl TraceParent {
    /// Returns the number of the trace.
    #[must_use]
    pub const fn trace_id(self) -> u128 {
        self.trace
    }

    /// Returns the number of the span.
    #[must_use]
    pub const fn span_id(self) -> u64 {
        self.span
    }

    /// Returns `true` if the caller said that the trace is recorded.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        self.flags & 1 != 0
    }
}

impl FromStr for TraceParent {
    type Err = ParseTraceParentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read(text).ok_or_else(|| ParseTraceParentError(text.chars().take(2 * LENGTH).collect()))
    }
}

fn read(text: &str) -> Option<TraceParent> {
    let is_plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    if text.len() != LENGTH || !text.bytes().all(is_plain) {
        return None;
    }
    let mut parts = text.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || version != VERSION || trace.len() != 32 || span.len() != 16 {
        return None;
    }
    let read = TraceParent {
        trace: u128::from_str_radix(trace, 16).ok()?,
        span: u64::from_str_radix(span, 16).ok()?,
        flags: u8::from_str_radix(flags, 16).ok()?,
    };
    (read.trace != 0 && read.span != 0).then_some(read)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.to_string()
    }
}

impl TryFrom<String> for TraceParent {
    type Error = ParseTraceParentError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::TraceParent;

    const WHOLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_whole_is_read_and_written_as_it_was() {
        let parent: TraceParent = WHOLE.parse().unwrap();
        assert_eq!((parent.span_id(), parent.is_sampled()), (0xb7ad_6b71_6920_3331, true));
        assert_eq!(parent.trace_id(), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(parent.to_string(), WHOLE);
    }

    #[test]
    fn what_is_not_is_refused_and_quoted_no_longer_than_needed() {
        let other_version = WHOLE.replacen("00", "01", 1);
        let (no_trace, no_span) = (
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16)),
        );
        let moved = "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01";
        let capital = WHOLE.to_uppercase();
        for wrong in [
            "",
            "é",
            &other_version,
            &no_trace,
            &no_span,
            moved,
            &capital,
            &"-".repeat(55),
        ] {
            assert!(wrong.parse::<TraceParent>().is_err(), "{wrong}");
        }
        let long = "x".repeat(10_000).parse::<TraceParent>().unwrap_err();
        assert!(long.to_string().len() < 300);
    }
}
