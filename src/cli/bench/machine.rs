//! What the machine is, and the processor time and memory that this process has used.

use std::time::Duration;

/// Returns the processor time of all threads of this process, user and system, or `None` where the system does not tell.
pub(super) fn processor_time() -> Option<Duration> {
    cpu_time::ProcessTime::try_now().ok().map(|time| time.as_duration())
}

/// Memory of this process that is in the machine's, in bytes; none where there is
/// no `/proc`. Allocators keep what was freed: it tells growth, and hardly shrinks.
pub(super) fn resident_bytes() -> Option<u64> {
    parse_bytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The same of another process.
pub(super) fn resident_bytes_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    parse_bytes(&status.ok()?, "VmRSS:")
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
    fn resident_memory_is_read_among_the_other_lines() {
        let status = "Name:\tprocession\nVmHWM:\t  9000 kB\nVmRSS:\t    8 kB\nThreads:\t4\n";
        assert_eq!(parse_bytes(status, "VmRSS:"), Some(8_192));
        assert_eq!(parse_bytes(status, "VmHWM:"), Some(9_216_000));
    }

    #[test]
    fn a_text_of_another_form_gives_nothing() {
        assert_eq!(parse_bytes("VmRSS: many", "VmRSS:"), None);
    }
}
