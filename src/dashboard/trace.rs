//! Where a trace can be looked at: an address of the host's, with a place for the trace's id.

use thiserror::Error;

/// What the trace's id takes the place of, in 32 hexadecimal digits.
const TRACE: &str = "{trace_id}";
/// What the id of the submitter's span takes the place of, in 16.
const SPAN: &str = "{span_id}";
/// Longest template, in bytes.
const LONGEST: usize = 2_048;

/// Why a text is no template of a trace's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TraceUrlError {
    /// A browser would not go there, or would run it.
    #[error("the address of a trace must begin with https:// or http://, and name a host")]
    Scheme,
    /// All traces would have one address.
    #[error("the address of a trace must hold {{trace_id}}, which the id takes the place of")]
    NoPlace,
    /// It has blanks, control characters, braces of another name, or the id before the path.
    #[error("the address of a trace must have neither blanks nor other braces, and its ids behind the host")]
    Characters,
    /// It is too long.
    #[error("the address of a trace may have 2,048 bytes")]
    TooLong,
}

/// Checks a template.
pub(super) fn checked(template: &str) -> Result<String, TraceUrlError> {
    if template.len() > LONGEST {
        return Err(TraceUrlError::TooLong);
    }
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| template.strip_prefix(scheme));
    let rest = rest.ok_or(TraceUrlError::Scheme)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    if host.is_empty() {
        return Err(TraceUrlError::Scheme);
    }
    if !template.contains(TRACE) {
        return Err(TraceUrlError::NoPlace);
    }
    let left = path.replace(TRACE, "").replace(SPAN, "");
    let is_odd = |char: char| char.is_whitespace() || char.is_control() || matches!(char, '{' | '}' | '\\');
    match host.contains(is_odd) || left.contains(is_odd) {
        true => Err(TraceUrlError::Characters),
        false => Ok(template.to_owned()),
    }
}

#[cfg(test)]
mod tests;
