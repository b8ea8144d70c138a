//! Rows, their keys, and where a sorted list of rows may be cut.
//!
//! Rows stand in the byte order of the whole line, so that `LC_ALL=C sort -c`
//! agrees. A boundary is chosen so that comparing it with lines and comparing
//! it with keys put every row on the same side.

/// How many places for a cut are tried around the middle: enough to leave any
/// run of keys that are prefixes of each other, few enough to end soon.
const CUTS_TRIED: usize = 4096;

/// Returns the key of a row: the text before the first `;` or tab.
#[must_use]
pub fn key_of(line: &str) -> &str {
    line.split([';', '\t']).next().unwrap_or(line)
}

/// Joins rows to the text of a tablet's file.
#[must_use]
pub fn text_of<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Returns a number that differs when the text differs (FNV-1a, 64 bits).
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// A place to cut a list of rows, and the boundary there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// How many rows stand before it.
    pub at: usize,
    /// The least text that does not belong before it.
    pub boundary: String,
}

/// Finds the place nearest to `middle` at which the sorted rows may be cut;
/// none if all have one key.
#[must_use]
pub fn cut(lines: &[&str], middle: usize) -> Option<Cut> {
    let reach = middle.max(lines.len().saturating_sub(middle)).min(CUTS_TRIED);
    (0..=reach)
        .flat_map(|distance| [middle.checked_sub(distance), middle.checked_add(distance)])
        .flatten()
        .find_map(|at| cut_at(lines, at))
}

/// Rows that follow each other, with the bounds of the tablet they make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The least text that belongs to it.
    pub start: String,
    /// The least text that no longer does; none is the end of the table.
    pub end: Option<String>,
    /// Its rows.
    pub lines: &'a [&'a str],
}

/// Divides sorted rows that lie between two bounds into so many pieces of about
/// the same size; into fewer where no further cut is possible.
#[must_use]
pub fn divide<'a>(lines: &'a [&'a str], pieces: usize, start: &str, end: Option<&str>) -> Vec<Piece<'a>> {
    let mut divided = Vec::new();
    let (mut start, mut rest) = (start.to_owned(), lines);
    for left in (2..=pieces).rev() {
        let Some(Cut { at, boundary }) = cut(rest, rest.len() / left) else {
            break;
        };
        let (lines, after) = rest.split_at(at);
        divided.push(Piece {
            start,
            end: Some(boundary.clone()),
            lines,
        });
        (start, rest) = (boundary, after);
    }
    divided.push(Piece {
        start,
        end: end.map(str::to_owned),
        lines: rest,
    });
    divided
}

fn cut_at(lines: &[&str], at: usize) -> Option<Cut> {
    let last_before = lines.get(at.checked_sub(1)?)?;
    let first_after = lines.get(at)?;
    let boundary = separator(last_before, first_after)?;
    if boundary.len() > key_of(first_after).len() {
        return None;
    }
    let misplaced = |line: &&&str| {
        let key = key_of(line);
        key.len() < boundary.len() && boundary.starts_with(key)
    };
    match lines.iter().skip(at).find(misplaced) {
        Some(_) => None,
        None => Some(Cut {
            at,
            boundary: boundary.to_owned(),
        }),
    }
}

/// Returns the shortest beginning of `after` that is greater than `before`.
fn separator<'a>(before: &str, after: &'a str) -> Option<&'a str> {
    let mut left = before.chars();
    for (place, character) in after.char_indices() {
        if left.next() != Some(character) {
            return after.get(..place + character.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests;
