//! What the machine is, and the processor time and memory that this process has used.

use std::time::Duration;

/// Ticks in a second of `/proc/self/stat`. Linux gives user space 100 on every
/// architecture that Rust's standard library supports.
const TICKS_PER_SECOND: u64 = 100;
/// Places of user and system time behind the name of the process, from 0.
const USER_TIME: usize = 11;

/// Processor time of all threads of this process, user and system; none where
/// there is no `/proc`. The reading is exact to 10 ms: measure a second or more.
pub(super) fn processor_time() -> Option<Duration> {
    parse_processor_time(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

fn parse_processor_time(stat: &str) -> Option<Duration> {
    // The name stands in brackets, and may hold any character.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(USER_TIME);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1_000 / TICKS_PER_SECOND))
}

/// Memory of this process that is in the machine's, in bytes; none where there is
/// no `/proc`. Allocators keep what was freed: it tells growth, and hardly shrinks.
pub(super) fn resident_bytes() -> Option<u64> {
    parse_bytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The most memory of this process that was in the machine's at once, in bytes; none where there is no `/proc`.
pub(super) fn peak_bytes() -> Option<u64> {
    parse_bytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

fn parse_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

/// How many threads the machine runs at once.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The processor's name, or the architecture where the system does not tell.
pub(super) fn processor_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_a_name_with_brackets() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100";
        assert_eq!(parse_processor_time(stat), Some(Duration::from_secs(3)));
    }

    #[test]
    fn resident_memory_is_read_among_the_other_lines() {
        let status = "Name:\tprocession\nVmHWM:\t  9000 kB\nVmRSS:\t    8 kB\nThreads:\t4\n";
        assert_eq!(parse_bytes(status, "VmRSS:"), Some(8_192));
        assert_eq!(parse_bytes(status, "VmHWM:"), Some(9_216_000));
    }

    #[test]
    fn a_text_of_another_form_gives_nothing() {
        assert_eq!(parse_processor_time("7 procession"), None);
        assert_eq!(parse_bytes("VmRSS: many", "VmRSS:"), None);
    }
}
