//! What a run says at its end: one JSON line, or a summary for somebody who has
//! never seen it.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

pub use super::run::Tally;
use super::story::Story;
use super::verify::{Rule, Verdict};

/// How many findings are named.
const FINDINGS_NAMED: usize = 30;

/// What a run did, and what its verification found.
#[derive(Debug, Clone)]
pub struct Report {
    /// What became of the operations.
    pub tally: Tally,
    /// What the verification found.
    pub verdict: Verdict,
    /// How many procedures ran, children included, since the workload was begun.
    pub procedures: usize,
    /// How many of them were rolled back.
    pub rolled_back: usize,
    /// How many were unfinished when this run started.
    pub resumed: usize,
    /// How many commits this run made.
    pub commits: u64,
    /// How long this run took.
    pub elapsed: Duration,
}

#[derive(Serialize)]
struct Closing {
    rows_expected: u64,
    rows_found: u64,
    missing: u64,
    duplicated: u64,
    orphan_files: u64,
    procedures: usize,
    rolled_back: usize,
    resumed: usize,
    commits: u64,
    seconds: f64,
}

impl Report {
    /// Returns the closing line for programs.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let verdict = &self.verdict;
        serde_json::to_string(&Closing {
            rows_expected: verdict.rows_expected,
            rows_found: verdict.rows_found,
            missing: verdict.missing,
            duplicated: verdict.duplicated,
            orphan_files: verdict.orphan_files,
            procedures: self.procedures,
            rolled_back: self.rolled_back,
            resumed: self.resumed,
            commits: self.commits,
            seconds: (self.elapsed.as_secs_f64() * 1_000.0).round() / 1_000.0,
        })
    }

    /// Returns what is wrong, a line each, and what may have been the cause.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let findings = &self.verdict.findings;
        let mut lines: Vec<String> = findings
            .iter()
            .take(FINDINGS_NAMED)
            .map(|(_, text)| text.clone())
            .collect();
        if findings.len() > FINDINGS_NAMED {
            lines.push(format!("and {} more", findings.len() - FINDINGS_NAMED));
        }
        if !lines.is_empty() {
            let refusals = self.tally.refusals.iter();
            lines.extend(refusals.map(|refusal| format!("rolled back without a fault on purpose: {refusal}")));
        }
        lines
    }

    /// Returns the summary for people.
    #[must_use]
    pub fn summary(&self, root: &Path) -> String {
        let mut text = String::new();
        match self.write_summary(&mut text, root) {
            Ok(()) => text,
            Err(error) => format!("{text}\n{error}"),
        }
    }

    fn write_summary(&self, out: &mut String, root: &Path) -> std::fmt::Result {
        let (verdict, tally) = (&self.verdict, &self.tally);
        let operations: u64 = tally.kinds.values().map(|(succeeded, undone)| succeeded + undone).sum();
        let seconds = self.elapsed.as_secs_f64();
        writeln!(
            out,
            "\nDone: {operations} operations of a tablet master, each a durable procedure"
        )?;
        for (kind, (succeeded, undone)) in &tally.kinds {
            writeln!(out, "  {kind:<14} {succeeded:>6} succeeded {undone:>6} rolled back")?;
        }
        writeln!(
            out,
            "  With their children: {} procedures; in this run {} commits in {seconds:.1} s",
            self.procedures, self.commits
        )?;
        if self.resumed > 0 {
            writeln!(
                out,
                "  {} procedures were unfinished when this run started, and went on",
                self.resumed
            )?;
        }
        let undone = tally.injected + tally.refused;
        writeln!(
            out,
            "\nRolled back: {undone} of {operations} operations, each to the state before it"
        )?;
        writeln!(
            out,
            "  {} met a fault that the demo injects (--fail-rate)",
            tally.injected
        )?;
        writeln!(out, "  {} were refused, or failed otherwise", tally.refused)?;
        for refusal in &tally.refusals {
            writeln!(out, "    {refusal}")?;
        }
        writeln!(
            out,
            "\nVerified: {} tables of {} tablets, files and meta table read anew",
            verdict.tables, verdict.tablets
        )?;
        for rule in Rule::ALL {
            let broken = verdict.findings.iter().any(|(of, _)| *of == rule);
            writeln!(out, "  {} {rule}", if broken { "BROKEN" } else { "ok    " })?;
        }
        let (expected, found) = (verdict.rows_expected, verdict.rows_found);
        writeln!(
            out,
            "  {expected} rows expected, {found} found, {} missing, {} duplicated",
            verdict.missing, verdict.duplicated
        )?;
        let (path, command) = (root.display(), Story::Tablets.command_in(root));
        write!(
            out,
            "\nThe tablets are plain files below {path}: see `{command} --dump`"
        )
    }
}
