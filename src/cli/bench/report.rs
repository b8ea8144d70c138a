//! What the benchmark says: a table for people, one line of JSON for programs.
#![expect(clippy::print_stdout, reason = "this module prints the result")]

use serde::Serialize;

use super::BenchError;
use super::common::Common;
use super::machine;
use super::rounds::Summary;
use super::taken::{count, millis, significant, tenths, thousandths};

/// Where and how it was measured, and what all rounds took together; part of every closing line.
#[derive(Debug, Serialize)]
pub(super) struct Ground {
    /// Units in a second over all rounds.
    overall_per_second: f64,
    /// Processor time of a unit over all rounds; none where the system does not tell.
    overall_cpu_us: Option<f64>,
    /// How each batch was synced: `fdatasync`, `fsync` or `none`.
    sync: &'static str,
    seed: u64,
    rounds: usize,
    /// Batches that were synced in the round that is shown.
    syncs: u64,
    /// The longest turn of the supervisor since the engine was started, in the machine's time.
    longest_decision_ms: f64,
    /// The most memory of the process until the end of that round; none where the system does not tell.
    peak_bytes: Option<u64>,
    machine: String,
    cores: usize,
}

impl Ground {
    pub(super) fn of<T>(summary: &Summary<T>, common: &Common) -> Self {
        Self {
            overall_per_second: tenths(summary.overall.rate()),
            overall_cpu_us: summary.overall.processor_us_per_unit().map(thousandths),
            sync: summary.single.sync,
            seed: common.seed,
            rounds: summary.rounds,
            syncs: summary.taken.batches,
            longest_decision_ms: millis(summary.taken.longest_turn),
            peak_bytes: summary.taken.peak,
            machine: machine::processor_name(),
            cores: machine::cores(),
        }
    }

    /// Prints what was run, and where.
    pub(super) fn print(&self, title: &str) {
        println!("{title}; median of rounds: {}", self.rounds);
        println!(
            "machine: {}, {} cores; sync: {}; seed: {}",
            self.machine, self.cores, self.sync, self.seed
        );
        println!();
    }
}

/// The closing line of a workload. Its names are a promise to scripts.
#[derive(Debug, Serialize)]
struct Closing<F> {
    workload: &'static str,
    #[serde(flatten)]
    figures: F,
    /// Units that the store alone could do: the same writes in batches of the same size.
    raw_per_second: f64,
    ratio: f64,
    raw_commit_us_p50: f64,
    commits: u64,
    batches: u64,
    bytes_per_unit: f64,
    /// None where the system does not tell processor time.
    cpu_us_per_unit: Option<f64>,
    #[serde(flatten)]
    ground: Ground,
}

/// How a workload is told.
pub(super) struct Telling {
    /// Its name.
    pub(super) workload: &'static str,
    /// What was run, in a line.
    pub(super) title: String,
    /// What is counted, one of it: "child".
    pub(super) unit: &'static str,
    /// The same, many of it: "children".
    pub(super) units: &'static str,
    /// Name, value and remark of what only this workload has.
    pub(super) rows: Vec<(&'static str, String, String)>,
}

/// Prints what a workload found: the closing line, or the table.
pub(super) fn tell<T, F: Serialize>(
    summary: &Summary<T>,
    common: &Common,
    figures: F,
    telling: &Telling,
) -> Result<(), BenchError> {
    let ground = Ground::of(summary, common);
    let taken = &summary.taken;
    if common.json {
        return print_json(&Closing {
            workload: telling.workload,
            figures,
            raw_per_second: tenths(summary.raw_rate()),
            ratio: significant(summary.ratio()),
            raw_commit_us_p50: tenths(summary.single.commit_us_p50),
            commits: taken.commits,
            batches: taken.batches,
            bytes_per_unit: tenths(taken.per_unit(taken.bytes)),
            cpu_us_per_unit: taken.processor_us_per_unit().map(thousandths),
            ground,
        });
    }
    ground.print(&format!("{}: {}", telling.workload, telling.title));
    print_rate(summary, &format!("{} per second", telling.units));
    for (name, value, remark) in &telling.rows {
        row(name, value, remark);
    }
    print_cost(summary, telling.unit);
    Ok(())
}

/// Says a word to the process that started this one.
pub(super) fn say(word: &str) {
    println!("{word}");
}

/// Prints a value as one line.
pub(super) fn print_json<T: Serialize>(value: &T) -> Result<(), BenchError> {
    println!("{}", serde_json::to_string(value)?);
    Ok(())
}

/// Prints a rate, and how it compares with the store's.
pub(super) fn print_rate<T>(summary: &Summary<T>, name: &str) {
    let spread = format!(
        "rounds from {} to {}",
        thousands(summary.slowest),
        thousands(summary.fastest)
    );
    row(name, &thousands(summary.taken.rate()), &spread);
    row(
        "over all rounds",
        &thousands(summary.overall.rate()),
        "all their units in all their time, merges of the store included",
    );
    row(
        "the store alone could do",
        &thousands(summary.raw_rate()),
        "the same writes in batches of the same size, nothing else",
    );
    row("engine against store", &format!("{:.0} %", summary.ratio() * 100.0), "");
}

/// Prints what each unit cost, and what the round took.
pub(super) fn print_cost<T>(summary: &Summary<T>, unit: &str) {
    let taken = &summary.taken;
    row(
        "one commit of the store alone",
        &micros(summary.single.commit_us_p50),
        "median of single puts",
    );
    let batches = taken.batches.max(1);
    let merged = count(taken.commits) / count(batches);
    row(
        "commits",
        &thousands(count(taken.commits)),
        &format!("in {} syncs, {merged:.1} each", thousands(count(taken.batches))),
    );
    row(
        &format!("bytes journalled per {unit}"),
        &thousands(taken.per_unit(taken.bytes)),
        "keys and values, history and rollback on",
    );
    let processor = taken
        .processor_us_per_unit()
        .map_or_else(|| "unknown".to_owned(), |micros| format!("{micros:.2} us"));
    row(
        &format!("processor time per {unit}"),
        &processor,
        "all threads, the submitter's too",
    );
    let peak = taken
        .peak
        .map_or_else(|| "unknown".to_owned(), |bytes| format!("{:.1} MB", count(bytes) / 1e6));
    row("memory of the process at its peak", &peak, "since it began");
    row(
        "longest turn of the supervisor",
        &format!("{:.2} ms", millis(taken.longest_turn)),
        "since the engine was started",
    );
    row(
        "time of the round",
        &format!("{:.2} s", taken.cost.elapsed.as_secs_f64()),
        "",
    );
}

/// Prints one line of the table.
pub(super) fn row(name: &str, value: &str, remark: &str) {
    println!("{}", format!("  {name:<34}{value:>12}   {remark}").trim_end());
}

/// Says of a median how long the slowest take.
pub(super) fn tail(micros_p99: f64) -> String {
    format!("median; 1 of 100 takes longer than {}", micros(micros_p99))
}

/// Writes microseconds, or milliseconds where they are many.
pub(super) fn micros(micros: f64) -> String {
    if micros < 10_000.0 {
        format!("{micros:.0} us")
    } else {
        format!("{:.1} ms", micros / 1e3)
    }
}

/// Writes a whole number with its thousands apart.
pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(thousands(7.4), "7");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }
}
