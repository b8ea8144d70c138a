//! Questions to people that nobody has answered.

use procession_kernel::{Kernel, Row, Seq, Timestamp, WaitReason};

use super::rules::{of_row, verdict};
use crate::view::{Rule, Verdict};

/// How many procedures that ask are named, the oldest first. The others are counted.
const NAMED: usize = 1_000;

/// Returns a verdict on each procedure that asks a person, if it is on disk and its family does not fail. They are
/// indexed, so a check costs the same whether they are frozen or not, and however many others there are.
pub(super) fn undecided(kernel: &Kernel, durable: Seq, now: Timestamp) -> Vec<Verdict> {
    let asking = kernel.asking();
    let ids = asking.iter().take(NAMED).map(|(_, id)| *id);
    let asks = |row: &&Row| row.revision <= durable && !kernel.is_stopped(row.id);
    let named = ids.filter_map(|id| kernel.row(id).filter(asks)).filter_map(asked);
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

fn asked(row: &Row) -> Option<Verdict> {
    let question = row.wait.as_ref().and_then(WaitReason::question)?;
    let mut facts = vec![("question", question.text.clone())];
    facts.extend(question.until.map(|until| ("next", until.0.to_string())));
    Some(of_row(Rule::Undecided, row, facts, &format!("asks: {}", question.text)))
}
