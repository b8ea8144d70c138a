//! Instants, times and sizes, as people read them: on a terminal how long ago it was, elsewhere the instant.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{HumanBytes, HumanDuration};
use jiff::{SignedDuration, Timestamp};
use procession::provider::{Clock, SystemClock};

/// Times above this are shown without their milliseconds.
const WHOLE_SECONDS: SignedDuration = SignedDuration::from_secs(10);

/// Whether instants are asked for on a terminal, too.
static INSTANTS: OnceLock<bool> = OnceLock::new();

/// Says once for the process whether instants are asked for on a terminal, too.
pub(super) fn show_instants(asked: bool) {
    INSTANTS.get_or_init(|| asked);
}

fn shows_ages() -> bool {
    io::stdout().is_terminal() && !INSTANTS.get().copied().unwrap_or_default()
}

/// Returns an instant for a table: its age, or the instant without its fraction.
pub(super) fn when(time: &str) -> String {
    age(time).map_or_else(|| seconds(time), |age| format!("{age} ago"))
}

/// Returns since when something is, for a sentence: ` for 3m`, or ` since` the instant.
pub(super) fn since(time: &str) -> String {
    age(time).map_or_else(|| format!(" since {}", seconds(time)), |age| format!(" for {age}"))
}

/// Returns how long ago an instant was, if ages are shown and it is past.
fn age(time: &str) -> Option<String> {
    let at: Timestamp = time.parse().ok().filter(|_| shows_ages())?;
    let now = Timestamp::from_microsecond(i64::try_from(SystemClock.now().0).ok()?).ok()?;
    let age = Duration::try_from(now.duration_since(at)).ok()?;
    Some(format!("{:#}", HumanDuration(age)))
}

/// Returns an instant without its fraction: enough for a table.
pub(super) fn seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => time.to_owned(),
    }
}

/// Returns how long something took, such as `1m 5s` or `250ms`.
pub(super) fn took(millis: u64) -> String {
    let time = SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX));
    let time = match time > WHOLE_SECONDS {
        true => SignedDuration::from_secs(time.as_secs()),
        false => time,
    };
    match time.is_zero() {
        true => "0ms".to_owned(),
        false => format!("{time:#}"),
    }
}

/// Returns a size, such as `1.50 MiB`.
pub(super) fn bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_times_and_sizes_read_well() {
        assert_eq!(seconds("2026-11-21T11:18:15.25Z"), "2026-11-21T11:18:15Z");
        assert_eq!(seconds("2026-11-21T11:18:15Z"), "2026-11-21T11:18:15Z");
        assert_eq!(took(0), "0ms");
        assert_eq!(took(1_250), "1s 250ms");
        assert_eq!(took(65_250), "1m 5s");
        assert_eq!(bytes(1_572_864), "1.50 MiB");
    }
}
