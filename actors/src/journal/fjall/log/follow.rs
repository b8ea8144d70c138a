//! Whether each log continues where the previous one ended, and the first log where tables reach.

use std::path::Path;

use procession_kernel::{Epoch, Seq};

use super::super::chain::Link;
use super::super::keyspace_tables::KeyspaceTables;
use super::super::log_files::named;
use super::{LogProblem, Walked, broken, continues};

/// Checks that no log is missing whose data is not in tables. Returns the logs that exist but are not needed.
pub(super) fn check<'a>(store: &Path, logs: &'a [Walked], tables: &KeyspaceTables) -> Result<&'a [Walked], LogProblem> {
    let first = first_needed(logs);
    let (older, needed) = logs.split_at(first);
    let before = needed
        .first()
        .and_then(|log| log.batches.first?.link)
        .map(|link| link.before);
    let lack = match before {
        // If its commits name no predecessor, only the numbers of the logs can tell.
        None if older.is_empty() => None,
        None => Some("what it follows is not known".to_owned()),
        Some(before) => tables.lack(before)?,
    };
    let lack = match lack {
        Some(lack) => Some(lack),
        None => tables.lacks_record(newest_link(needed), &records(needed))?,
    };
    if let (Some(lack), Some(first)) = (lack, needed.first()) {
        return Err(gap(store, older.last(), first, before, &lack));
    }
    let noted = needed.iter().rev().find_map(|log| log.batches.versions.as_deref());
    tables.check_versions(noted)?;
    Ok(older)
}

/// Returns the first log from which on each continues where the previous one ended.
fn first_needed(logs: &[Walked]) -> usize {
    let breaks = logs.windows(2).rposition(|pair| match pair {
        [one, next] => !follows(one, next),
        _ => false,
    });
    breaks.map_or(0, |place| place + 1)
}

fn follows(one: &Walked, next: &Walked) -> bool {
    let in_order = match (one.batches.seqnos, next.batches.seqnos) {
        (Some((_, last)), Some((first, _))) => last < first,
        _ => true,
    };
    let (last, first) = (one.batches.last.as_ref(), next.batches.first.as_ref());
    let is_chained = first.is_some_and(|first| first.link.is_some());
    one.number.checked_add(1) == Some(next.number)
        && !one.has_rest
        && in_order
        && (last.is_some() || !is_chained)
        && continues(last, first)
}

fn newest_link(logs: &[Walked]) -> Option<Option<Link>> {
    let newest = logs.iter().rev().find_map(|log| log.batches.last)?;
    Some(newest.link)
}

/// Returns the runs of records in the logs; runs that continue in the next log are joined.
fn records(logs: &[Walked]) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (from, to) in logs.iter().flat_map(|log| log.batches.records.iter().copied()) {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(from) => *last = to,
            _ => runs.push((from, to)),
        }
    }
    runs
}

/// Returns the error that names the missing or broken log.
fn gap(store: &Path, older: Option<&Walked>, first: &Walked, before: Option<(Epoch, Seq)>, lack: &str) -> LogProblem {
    let follows = before.map_or_else(String::new, |(epoch, seq)| {
        format!(
            "; {} continues behind commit {seq} of epoch {epoch}",
            first.path.display()
        )
    });
    let previous = first.number.checked_sub(1);
    let what = match (older.filter(|older| Some(older.number) == previous), previous) {
        (Some(older), _) if older.has_rest => return broken(&older.path, older.at),
        (Some(older), _) => {
            let end = older.batches.last.map_or_else(
                || "it holds no commit".to_owned(),
                |last| format!("it ends with commit {} of epoch {}", last.number.1, last.number.0),
            );
            format!("{} was cut, emptied or replaced: {end}", older.path.display())
        }
        (None, Some(previous)) => {
            let path = named(store, previous);
            format!("{} is missing", path.display())
        }
        (None, None) => format!("{} was replaced: its beginning is missing", first.path.display()),
    };
    LogProblem::Damaged(format!("{what}{follows}, and {lack}; put the file back"))
}
