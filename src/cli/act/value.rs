//! Values on the command line: JSON, times and rates.

use std::io::{self, Read};
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

/// Bytes of a value that is read from a file or from standard input, at most: more than an engine takes.
const READ_MAX: u64 = 64 << 20;

/// Reads JSON, from a file if it is named `@FILE`, or from standard input if it is `-`.
pub(crate) fn json(text: &str) -> Result<Value, String> {
    let read = match text.strip_prefix('@') {
        Some(file) => {
            let opened = std::fs::File::open(file);
            Some(
                opened
                    .and_then(whole)
                    .map_err(|error| format!("cannot read {file}: {error}"))?,
            )
        }
        None if text == "-" => {
            Some(whole(io::stdin()).map_err(|error| format!("cannot read standard input: {error}"))?)
        }
        None => None,
    };
    serde_json::from_str(read.as_deref().unwrap_or(text))
        .map_err(|error| format!("it is no JSON: {error}; a text has quotes: '\"yes\"'"))
}

fn whole(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(READ_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Reads a time such as `90s`, `5m` or `1h30m`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let time: SignedDuration = text
        .parse()
        .map_err(|_| format!("\"{text}\" is no time, such as 90s or 5m"))?;
    Duration::try_from(time).map_err(|_| format!("\"{text}\" is less than nothing"))
}

/// How many may begin in which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) begins: u32,
    pub(super) per_ms: u64,
}

/// Reads a rate such as `10/1s`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let wrong = || format!("\"{text}\" is no rate, such as 10/1s: ten may begin within a second");
    let (begins, per) = text.split_once('/').ok_or_else(wrong)?;
    let begins = begins.trim().parse().map_err(|_| wrong())?;
    match u64::try_from(time(per.trim())?.as_millis()).map_err(|_| wrong())? {
        0 => Err(format!("the time in \"{text}\" is shorter than a millisecond")),
        per_ms => Ok(Rate { begins, per_ms }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        assert_eq!(json(r#"{"a": [1]}"#), Ok(json!({ "a": [1] })));
        assert!(json("yes").unwrap_err().contains("a text has quotes"));
        assert!(json("@/nowhere/at.json").unwrap_err().contains("/nowhere/at.json"));
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1h30m"), Ok(Duration::from_secs(5_400)));
        assert!(time("soon").is_err() && time("-5s").is_err());
        let ten = Rate {
            begins: 10,
            per_ms: 500,
        };
        assert_eq!(rate("10/500ms"), Ok(ten));
        assert!(rate("10/0s").unwrap_err().contains("shorter than a millisecond"));
        assert!(rate("10").is_err() && rate("x/1s").is_err() && rate("1/x").is_err());
    }
}
