//! What a row says of its failures in a row, against what the history says of the newest one.

use procession_kernel::{HistoryEntry, Row};

/// Checks a row against the one before it; `newest` is the entry that the row names as its newest.
pub(crate) fn check(before: Option<&Row>, row: &Row, newest: Option<&HistoryEntry>) -> Result<(), String> {
    let times = row.said.as_ref().map_or(0, |said| said.times);
    let expected = expected(before, row, newest);
    if times == expected {
        return Ok(());
    }
    Err(format!(
        "{} says that {times} in a row said the same, not {expected}: {:?}",
        row.id, row.said
    ))
}

fn expected(before: Option<&Row>, row: &Row, newest: Option<&HistoryEntry>) -> u32 {
    let failed = row.failed_in_a_row();
    if row.is_ended() || failed == 0 {
        return 0;
    }
    // Undos say nothing else here, and another undo, or an operator's retry, counts from 0.
    if row.is_failing() {
        return failed;
    }
    let before = before.filter(|before| before.visit == row.visit);
    let Some(said) = before.and_then(|before| before.said.as_ref()) else {
        return 1;
    };
    if before.is_some_and(|before| before.attempt == failed) {
        return said.times;
    }
    let error = newest.and_then(|entry| entry.error.as_deref()).unwrap_or_default();
    match words(&said.text).eq(words(error)) {
        true => said.times + 1,
        false => 1,
    }
}

/// What is left when the numbers are gone.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(' ').filter(|word| word.parse::<u64>().is_err())
}
