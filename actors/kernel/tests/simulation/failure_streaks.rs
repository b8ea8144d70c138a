//! Compares the streak of failures in a row with the newest failure in the history.

use procession_kernel::{HistoryEntry, Row};

/// Checks a row against the one before it; `newest` is the entry that the row names as its newest.
pub(crate) fn check(before: Option<&Row>, row: &Row, newest: Option<&HistoryEntry>) -> Result<(), String> {
    let times = row.rare().failure_streak.as_ref().map_or(0, |streak| streak.times);
    let expected = expected(before, row, newest);
    if times == expected {
        return Ok(());
    }
    Err(format!(
        "{} says that {times} in a row said the same, not {expected}: {:?}",
        row.id,
        row.rare().failure_streak
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
    let Some(streak) = before.and_then(|before| before.rare().failure_streak.as_ref()) else {
        return 1;
    };
    if before.is_some_and(|before| before.attempt == failed) {
        return streak.times;
    }
    let error = newest.and_then(|entry| entry.error.as_deref()).unwrap_or_default();
    match words(&streak.text).eq(words(error)) {
        true => streak.times + 1,
        false => 1,
    }
}

/// What is left when the numbers are gone, the ids among them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_number = |word: &str| word.trim_matches([',', ';', ':', '"']).parse::<f64>().is_ok();
    text.split(' ').filter(move |word| !is_number(word))
}
