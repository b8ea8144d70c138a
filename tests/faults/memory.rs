//! A process that gets no more memory.

use std::fs;
use std::process::Command;

use crate::Outcome;
use crate::check::{acknowledged, whole};
use crate::disk::skip;
use crate::other::{Other, task};
use crate::place::{ENDLESS, Ground};

/// What it may still take, in KiB: less than one memory table of the store.
const MORE: u64 = 8 * 1_024;

/// Returns what the system says of a process's memory under this name, in KiB.
pub(crate) fn kilobytes(name: &str, process: u32) -> Outcome<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    Ok(number.ok_or("its size is not known")?.parse()?)
}

#[test]
fn without_more_memory_it_may_die_and_loses_nothing() -> Outcome {
    let ground = Ground::new()?;
    let mut command = task(&std::env::current_exe()?, &ground.task(0, ENDLESS, 50_000));
    // Else each thread has reserved more than it will use.
    command.env("MALLOC_ARENA_MAX", "1");
    let mut other = Other::start(command)?;
    other.until("acknowledged", 20)?;
    let limit = (kilobytes("VmSize:", other.id())? + MORE) * 1_024;
    let limited = Command::new("prlimit")
        .arg(format!("--pid={}", other.id()))
        .arg(format!("--as={limit}"))
        .output();
    match limited {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip("memory", &String::from_utf8_lossy(&output.stderr)),
        Err(error) => return skip("memory", &format!("prlimit: {error}")),
    }
    let (status, lines) = other.end()?;
    let is_told = lines.iter().any(|line| line.starts_with("failed "));
    assert!(!status.success() || is_told, "{status}, and nobody was told");
    assert!(acknowledged(&ground.ledger())?.len() >= 20);
    whole(&ground)?;
    Ok(())
}
