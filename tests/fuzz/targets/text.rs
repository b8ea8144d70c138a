//! Texts that people write: ids, paths of locks, filters, an export as JSON, the demo's rows.

use procession::ProcedureId;
use procession::filter::Filter;
use procession::limits::{LockNeed, LockPath};
use procession::offline::FamilyExport;
use procession_cli::demo::input::Input;
use procession_cli::demo::{record, rows};

use super::Checked;

/// The first byte says as what the rest is read.
pub(crate) fn check(bytes: &[u8]) -> Checked {
    let Some((what, bytes)) = bytes.split_first() else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(bytes);
    match what % 6 {
        0 => id(&text),
        1 => path(&text),
        2 => json(bytes)?,
        3 => lines(&text),
        4 => drop(serde_json::from_slice::<record::Record>(bytes)),
        _ => filter(&text),
    }
    Ok(())
}

fn id(text: &str) {
    match text.parse::<ProcedureId>() {
        Ok(id) => assert_eq!(id.to_string().parse(), Ok(id)),
        Err(error) => assert!(error.to_string().contains("is not a procedure id")),
    }
}

/// A filter that is read is written so that it is read again as the same.
fn filter(text: &str) {
    match text.parse::<Filter>() {
        Ok(filter) => assert_eq!(filter.to_string().parse(), Ok(filter)),
        Err(error) => assert!(error.position() <= text.chars().count() + 1, "{error}"),
    }
}

/// Two paths, apart by a space.
fn path(text: &str) {
    let (one, other) = text.split_once(' ').unwrap_or((text, "a/b"));
    let (one, other) = (LockPath::parse(one), LockPath::parse(other));
    assert_eq!(LockPath::parse(one.as_str()), one, "a path is told as it is");
    assert!(one.covers(&one) && LockPath::parse("").covers(&one));
    assert!(one.ancestors().all(|above| above.covers(&one) && above != one));
    assert_eq!(one.covers(&other) && other.covers(&one), one == other);
    let (share, take) = (LockNeed::shared(one.clone()), LockNeed::exclusive(other));
    assert_eq!(share.conflicts(&take), take.conflicts(&share));
    assert!(!share.conflicts(&share) && LockNeed::exclusive(one).conflicts(&share));
}

fn json(bytes: &[u8]) -> Checked {
    let Ok(export) = serde_json::from_slice::<FamilyExport>(bytes) else {
        return Ok(());
    };
    let text = serde_json::to_string(&export)?;
    let again: FamilyExport = serde_json::from_str(&text)?;
    assert_eq!(again, export);
    Ok(())
}

/// Rows are dealt out whole, whatever the cut.
fn lines(text: &str) {
    let input = Input::of(text);
    assert_eq!(Input::of(text).digest(), input.digest());
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines.sort_unstable();
    let pieces = rows::divide(&lines, 3, "", None);
    let together: Vec<&str> = pieces.iter().flat_map(|piece| piece.lines.iter().copied()).collect();
    assert_eq!(together, lines);
    for piece in &pieces {
        let end = piece.end.as_deref();
        let inside = |row: &&str| *row >= piece.start.as_str() && end.is_none_or(|end| rows::key_of(row) < end);
        assert!(piece.lines.iter().all(inside), "{piece:?}");
    }
}
