//! What the benchmark says: a table for people, one line of JSON for programs.
#![expect(clippy::print_stdout, reason = "this module prints the result")]

use std::cmp::Ordering;

use hdrhistogram::Histogram;
use procession::RawRate;
use serde::Serialize;

use super::BenchError;
use super::load::{Round, Shape, count};
use super::machine;

/// The closing line. Its names are a promise to scripts.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    workload: &'static str,
    concurrency: u32,
    stages_per_second: f64,
    raw_stages_per_second: f64,
    ratio: f64,
    stage_us_p50: f64,
    stage_us_p99: f64,
    raw_commit_us_p50: f64,
    procedure_us_p50: f64,
    procedure_us_p99: f64,
    commits: u64,
    bytes_per_stage: f64,
    /// None where the system does not tell processor time.
    cpu_us_per_stage: Option<f64>,
    sync: &'static str,
}

/// What only the table shows.
pub(super) struct Table {
    procedures: u32,
    stages: u32,
    rounds: usize,
    seconds: f64,
    slowest: f64,
    fastest: f64,
    batches: u64,
    commits_per_batch: f64,
    seed: u64,
}

/// Picks the round with the median rate, and says all of that one; of the raw
/// measurements, the one with the median rate.
pub(super) fn summarize(
    mut rounds: Vec<Round>,
    mut raw: Vec<RawRate>,
    single: RawRate,
    shape: &Shape,
    seed: u64,
) -> (Report, Table) {
    rounds.sort_by(|left, right| order(left.stages_per_second(), right.stages_per_second()));
    raw.sort_by(|left, right| order(left.writes_per_second, right.writes_per_second));
    let rate = |round: Option<&Round>| round.map_or(0.0, Round::stages_per_second);
    let number = rounds.len();
    let (slowest, fastest) = (rate(rounds.first()), rate(rounds.last()));
    let raw_writes = raw.get(raw.len() / 2).map_or(0.0, |rate| rate.writes_per_second);
    let round = rounds.swap_remove(number / 2);
    let raw_stages_per_second = raw_writes / round.writes_per_stage().max(f64::EPSILON);
    let report = Report {
        workload: "chain",
        concurrency: shape.concurrency,
        stages_per_second: tenths(round.stages_per_second()),
        raw_stages_per_second: tenths(raw_stages_per_second),
        ratio: thousandths(round.stages_per_second() / raw_stages_per_second.max(f64::EPSILON)),
        stage_us_p50: quantile_us(&round.stage_times, 0.5),
        stage_us_p99: quantile_us(&round.stage_times, 0.99),
        raw_commit_us_p50: tenths(single.commit_us_p50),
        procedure_us_p50: quantile_us(&round.procedure_times, 0.5),
        procedure_us_p99: quantile_us(&round.procedure_times, 0.99),
        commits: round.commits,
        bytes_per_stage: tenths(round.bytes_per_stage()),
        cpu_us_per_stage: round
            .processor
            .map(|time| thousandths(time.as_secs_f64() * 1e6 / round.stages)),
        sync: single.sync,
    };
    let table = Table {
        procedures: shape.procedures,
        stages: shape.stages,
        rounds: number,
        seconds: round.elapsed.as_secs_f64(),
        slowest,
        fastest,
        batches: round.batches,
        commits_per_batch: count(round.commits) / count(round.batches.max(1)),
        seed,
    };
    (report, table)
}

fn order(left: f64, right: f64) -> Ordering {
    left.total_cmp(&right)
}

fn quantile_us(times: &Histogram<u64>, quantile: f64) -> f64 {
    tenths(count(times.value_at_quantile(quantile)) / 1e3)
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

impl Report {
    /// Prints the one line.
    pub(super) fn print_json(&self) -> Result<(), BenchError> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }

    /// Prints the table.
    pub(super) fn print(&self, table: &Table) -> Result<(), BenchError> {
        println!(
            "chain: {} procedures of {} stages, {} at once; median of rounds: {}",
            table.procedures, table.stages, self.concurrency, table.rounds
        );
        println!(
            "machine: {}, {} cores; sync: {}; seed: {}",
            machine::processor_name(),
            machine::cores(),
            self.sync,
            table.seed
        );
        println!();
        row(
            "durable stages per second",
            &thousands(self.stages_per_second),
            &format!(
                "rounds from {} to {}",
                thousands(table.slowest),
                thousands(table.fastest)
            ),
        );
        row(
            "the store alone could do",
            &thousands(self.raw_stages_per_second),
            "the same writes in batches of the same size, nothing else",
        );
        row("engine against store", &format!("{:.0} %", self.ratio * 100.0), "");
        row(
            "from stage to stage",
            &micros(self.stage_us_p50),
            &format!("median; 1 of 100 takes longer than {}", micros(self.stage_us_p99)),
        );
        row(
            "one commit of the store alone",
            &micros(self.raw_commit_us_p50),
            "median of single puts",
        );
        row(
            "from submission to outcome",
            &micros(self.procedure_us_p50),
            &format!("median; 1 of 100 takes longer than {}", micros(self.procedure_us_p99)),
        );
        row(
            "commits",
            &thousands(count(self.commits)),
            &format!(
                "in {} syncs, {:.1} each",
                thousands(count(table.batches)),
                table.commits_per_batch
            ),
        );
        row(
            "bytes journalled per stage",
            &thousands(self.bytes_per_stage),
            "keys and values, history and rollback on",
        );
        let processor = self
            .cpu_us_per_stage
            .map_or_else(|| "unknown".to_owned(), |micros| format!("{micros:.2} us"));
        row(
            "processor time per stage",
            &processor,
            "all threads, the submitter's too",
        );
        row("time of the round", &format!("{:.2} s", table.seconds), "");
        Ok(())
    }
}

fn row(name: &str, value: &str, remark: &str) {
    println!("{}", format!("  {name:<32}{value:>12}   {remark}").trim_end());
}

fn micros(micros: f64) -> String {
    if micros < 10_000.0 {
        format!("{micros:.0} us")
    } else {
        format!("{:.1} ms", micros / 1e3)
    }
}

/// Writes a whole number with its thousands apart.
fn thousands(number: f64) -> String {
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
