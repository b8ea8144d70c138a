//! The engine's clock: the only reader of time, real or a test's.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use procession_kernel::Timestamp;

/// A source of time for one engine.
pub trait Clock: Send + Sync + 'static {
    /// Reads the wall clock.
    fn now(&self) -> Timestamp;

    /// Waits until this instant, or returns at once if it has passed. It may end early if the wall clock was set back
    /// meanwhile, so callers must look at the clock again.
    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()>;

    /// Returns how long the machine has run, which nobody can set. With it the engine notices that the wall clock was
    /// set forward, and keeps results that only seem to be due. Without it, by default, the wall clock is always
    /// believed.
    fn machine_time(&self) -> Option<MachineTime> {
        None
    }
}

/// How long a machine has run, by its own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineTime {
    /// The boot from which it counts: readings of different boots cannot be compared.
    pub boot: u64,
    /// The time since that boot.
    pub since: Duration,
}

/// The system's wall clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

/// Longest single wait: a change of the wall clock is noticed after this time.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Difference from which on the wall clock counts as set back. Smaller corrections keep the clock right while it
/// runs, and delay nobody for long.
const SET_BACK: Duration = Duration::from_secs(1);

/// Returns `true` if the wall clock was set back since it showed `before`.
pub(crate) fn is_set_back(before: Timestamp, now: Timestamp) -> bool {
    before.since(now) >= SET_BACK
}

#[expect(clippy::disallowed_methods, reason = "this is the one file that reads time")]
fn system_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[expect(clippy::disallowed_methods, reason = "this is the one file that waits for time")]
async fn system_sleep_until(until: Timestamp) {
    let mut before = system_now();
    loop {
        let now = system_now();
        let left = until.since(now);
        if left.is_zero() || is_set_back(before, now) {
            return;
        }
        before = now;
        tokio::time::sleep(left.min(LONGEST_WAIT)).await;
    }
}

/// Returns the machine's time, whatever the engine's clock. It measures how long a thread has been occupied.
#[expect(clippy::disallowed_methods, reason = "this is the one file that reads time")]
pub(crate) fn machine_now() -> Instant {
    Instant::now()
}

/// Waits this long in the machine's time.
#[expect(clippy::disallowed_methods, reason = "this is the one file that waits for time")]
pub(crate) async fn machine_sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Reads the time since boot from Linux, where it is comparable across processes. Elsewhere it counts from the first
/// reading of this process.
fn system_machine_time() -> MachineTime {
    static BOOT: OnceLock<Option<u64>> = OnceLock::new();
    let boot = *BOOT.get_or_init(|| parse_boot(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?));
    let uptime = || parse_uptime(&std::fs::read_to_string("/proc/uptime").ok()?);
    match boot.and_then(|boot| Some((boot, uptime()?))) {
        Some((boot, since)) => MachineTime { boot, since },
        None => process_time(),
    }
}

/// Parses the identifier that Linux draws at each boot.
fn parse_boot(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).ok()
}

/// Parses the seconds since boot: the first number of the file.
fn parse_uptime(text: &str) -> Option<Duration> {
    let seconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn process_time() -> MachineTime {
    static BEGUN: OnceLock<(u64, Instant)> = OnceLock::new();
    let (boot, begun) = BEGUN.get_or_init(|| (RandomState::new().hash_one(()), machine_now()));
    MachineTime {
        boot: *boot,
        since: begun.elapsed(),
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        system_now()
    }

    fn machine_time(&self) -> Option<MachineTime> {
        Some(system_machine_time())
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(system_sleep_until(until))
    }
}

#[cfg(test)]
mod tests {
    //! What Linux tells about its own time.

    use super::*;

    #[test]
    fn boot_and_uptime_are_read() {
        let boot = parse_boot("0f3c21aa-94d2-4b1e-8a44-d0b1c6a7e8f9\n");
        assert_eq!(boot, Some(0x0f3c_21aa_94d2_4b1e));
        assert_eq!(
            parse_uptime("350735.47 234388.90\n"),
            Some(Duration::from_millis(350_735_470))
        );
        for text in ["", "x 1", "-1 0", "nan 0"] {
            assert_eq!(parse_uptime(text), None, "{text}");
        }
    }

    #[test]
    fn the_machine_counts_on() {
        let (first, second) = (system_machine_time(), system_machine_time());
        assert_eq!(first.boot, second.boot);
        assert!(first.since <= second.since);
    }
}
