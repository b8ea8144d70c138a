//! What waits for a person to decide: questions that nobody has answered, and how many procedures wait behind them.

use procession_kernel::{Kernel, ProcedureId, Row, Seq, Timestamp, WaitReason};

use super::rules::{of_row, verdict};
use crate::view::{Rule, Verdict};

/// How many procedures that ask are named, the oldest first. The others are counted.
const NAMED: usize = 1_000;

/// Largest number of procedures that are counted behind one.
const BEHIND_MAX: usize = 1_000;

/// Bounds the steps along gates of an explanation, and of all questions of one check: some milliseconds. A graph may
/// have many more edges than members.
pub(super) const STEPS: usize = 100_000;

/// Bounds the steps along gates for a child whose gate cannot open. A family may have many of them.
pub(super) const STEPS_OF_GATE: usize = 2_000;

/// Counts what waits at gates behind procedures, with a bound on the work of all counts together.
pub(super) struct BehindCounter<'a> {
    kernel: &'a Kernel,
    steps: usize,
}

impl<'a> BehindCounter<'a> {
    pub(super) const fn new(kernel: &'a Kernel, steps: usize) -> Self {
        Self { kernel, steps }
    }

    /// Returns how many procedures wait behind this one at gates, at most [`BEHIND_MAX`]. Once the steps are used up, it
    /// counts no more, and the number may be too small.
    pub(super) fn count(&mut self, id: ProcedureId) -> usize {
        self.kernel.waiting_behind(id, BEHIND_MAX, &mut self.steps)
    }
}

/// Returns the count as a fact, if anything waits.
pub(super) fn behind_fact(count: usize) -> Option<(&'static str, String)> {
    (count > 0).then(|| ("behind", count.to_string()))
}

/// Says how many wait behind it. Nothing, if none does.
pub(super) fn behind_text(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " while 1 waits behind it at gates".to_owned(),
        BEHIND_MAX => format!(" while {BEHIND_MAX} or more wait behind it at gates"),
        several => format!(" while {several} wait behind it at gates"),
    }
}

/// Says how many signals wait for it. Nothing, if none does.
fn signals_text(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => ", with 1 signal in its mailbox".to_owned(),
        several => format!(", with {several} signals in its mailbox"),
    }
}

/// Returns a verdict on each procedure that asks a person, if it is on disk and its family does not fail. They are
/// indexed, so a check costs the same whether they are frozen or not, and however many others there are.
pub(super) fn undecided(kernel: &Kernel, durable: Seq, now: Timestamp) -> Vec<Verdict> {
    let asking = kernel.asking();
    let ids = asking.iter().take(NAMED).map(|(_, id)| *id);
    let asks = |row: &&Row| row.revision <= durable && !kernel.is_stopped(row.id);
    let mut behind = BehindCounter::new(kernel, STEPS);
    let named = ids.filter_map(|id| kernel.row(id).filter(asks));
    let named = named.filter_map(|row| asked(kernel, row, behind.count(row.id)));
    let mut verdicts: Vec<Verdict> = named.collect();
    let more = asking.len().saturating_sub(NAMED);
    if more > 0 {
        let text = format!("{more} more procedures ask, and wait for a decision");
        let since = asking.iter().nth(NAMED).map_or(now, |(since, _)| *since);
        verdicts.push(verdict(
            Rule::Undecided,
            None,
            since,
            vec![("more", more.to_string())],
            text,
        ));
    }
    verdicts
}

fn asked(kernel: &Kernel, row: &Row, behind: usize) -> Option<Verdict> {
    let question = row.wait.as_ref().and_then(WaitReason::question)?;
    let mut facts = vec![("question", question.text.clone())];
    facts.extend(question.until.map(|until| ("next", until.0.to_string())));
    facts.extend(behind_fact(behind));
    // Of a queue, what it holds up are signals.
    let family = kernel.families().get(&row.id.family);
    let signals = family.map_or(0, |family| family.signals.waiting(row.id.member));
    facts.extend((signals > 0).then(|| ("signals", signals.to_string())));
    let text = format!(
        "asks{}{}: {}",
        behind_text(behind),
        signals_text(signals),
        question.text
    );
    Some(of_row(Rule::Undecided, row, facts, &text))
}
