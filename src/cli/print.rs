//! What the verbs print: tables in columns, sentences, and JSON, one document a line.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

use ::console::{Alignment, Term, measure_text_width, pad_str, truncate_str};
use procession::views::ProcedureView;
use serde::Serialize;

use super::exit::Failure;
use crate::demo::console;

/// Of several that stand in one place of a table, or in one line, this many are named.
const NAMED: usize = 8;
/// Blanks between two columns.
const GAP: usize = 2;
/// A column that is cut to the width of the terminal keeps so many characters.
const NARROWEST: usize = 8;
/// A column with ids or fingerprints keeps so many: they are of no use without their ends.
const TYPED: usize = 24;

/// Prints rows below their headings; nothing if there are no rows. On a terminal the widest columns are cut to its width.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(rows.into_iter().map(Vec::from));
    rows_of(&table);
}

/// Prints rows of the same columns. The first row holds the headings; if it is the only one, nothing is printed.
pub(super) fn rows_of(table: &[Vec<String>]) {
    let Some(headings) = table.first().filter(|_| table.len() > 1) else {
        return;
    };
    let mut widths = vec![0; headings.len()];
    for row in table {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = measure_text_width(cell).max(*width);
        }
    }
    if let Some(columns) = columns() {
        let least: Vec<usize> = headings.iter().map(|heading| narrowest(heading)).collect();
        narrow(&mut widths, &least, columns);
    }
    for row in table {
        let cells = row.iter().zip(&widths);
        let text: String = cells
            .map(|(cell, width)| {
                let cut = truncate_str(cell, *width, "…");
                pad_str(&cut, width + GAP, Alignment::Left, None).into_owned()
            })
            .collect();
        line(text.trim_end());
    }
}

/// Returns how many characters a column keeps. What one types into the next command is kept whole.
fn narrowest(heading: &str) -> usize {
    match heading {
        "ID" | "FINGERPRINT" => TYPED,
        _ => NARROWEST,
    }
}

/// Takes from the widest columns until a row fits, or none can give more.
fn narrow(widths: &mut [usize], least: &[usize], columns: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
    while over > 0
        && let Some((widest, _)) = widths
            .iter_mut()
            .zip(least)
            .filter(|(width, least)| **width > **least)
            .max_by_key(|(width, _)| **width)
    {
        *widest -= 1;
        over -= 1;
    }
}

/// Returns the width of the terminal to which results go, if they go to one.
fn columns() -> Option<usize> {
    let (_, columns) = Term::stdout().size_checked()?;
    io::stdout().is_terminal().then_some(usize::from(columns))
}

/// Prints one line of the result.
pub(super) fn line(text: &str) {
    if !held(text) {
        console::result(text);
    }
}

/// Prints a text as it is.
pub(super) fn text(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    console::keep(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    must_be_written()
}

/// Fails if a part of the result could not be written.
pub(super) fn must_be_written() -> Result<(), Failure> {
    match console::lost() {
        Some(why) => Err(Failure::new(format!(
            "the output could not be written, and is not complete: {why}"
        ))),
        None => Ok(()),
    }
}

/// Prints one line of a result that has no end by itself; tells whether anybody can still read it.
pub(super) fn next_line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    let is_read = written.is_ok();
    console::keep(written);
    is_read
}

/// Says something about the result, on standard error: a pipe gets results alone.
pub(super) fn notice(text: &str) {
    let text = plain(text);
    if !held(&text) {
        console::notice(&text);
    }
}

thread_local! {
    /// What is held back, while a picture is made.
    static HELD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Holds back what is printed from here on.
pub(super) fn hold() {
    HELD.set(Some(String::new()));
}

/// Returns what was held back; what comes now is printed again.
pub(super) fn release() -> String {
    HELD.take().unwrap_or_default()
}

fn held(text: &str) -> bool {
    HELD.with_borrow_mut(|held| {
        if let Some(held) = held {
            held.push_str(text);
            held.push('\n');
        }
        held.is_some()
    })
}

/// Prints a document of JSON as one line.
pub(super) fn json<T: Serialize>(document: &T) -> Result<(), Failure> {
    line(&serde_json::to_string(document)?);
    must_be_written()
}

/// Makes a text that others wrote fit to be shown: it neither breaks lines nor steers the terminal.
pub(super) fn plain(text: &str) -> String {
    let steers = |next: char| {
        next.is_control() || matches!(next, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(steers) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for next in text.chars() {
        if steers(next) {
            shown.extend(next.escape_default());
        } else {
            shown.push(next);
        }
    }
    shown
}

/// Returns what there is, or a dash.
pub(super) fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), plain)
}

/// Returns how a procedure stands, in its colour, on a terminal alone.
pub(super) fn standing(procedure: &ProcedureView) -> String {
    let standing = procedure.standing();
    let code = match standing.split(" · ").next() {
        Some("success") => "32",
        Some("failed") => "31",
        Some("rolled back" | "rolling back") => "33",
        Some("waiting") => "36",
        _ => return standing,
    };
    if is_coloured() {
        format!("\u{1b}[{code}m{standing}\u{1b}[0m")
    } else {
        standing
    }
}

fn is_coloured() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted
}

/// Names the first few, and counts the rest; a dash if there are none.
pub(super) fn named(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match (names.is_empty(), more) {
        (true, _) => "-".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{}, and {more} more", names.join(", ")),
    }
}

/// Says how many there are, in words.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{narrow, plain};

    #[test]
    fn a_text_of_others_does_not_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2J\nb\u{202e}ä"), "a\\u{1b}[2J\\nb\\u{202e}ä");
    }
    #[test]
    fn the_widest_columns_give_way() {
        let mut widths = [4, 40, 30];
        narrow(&mut widths, &[8, 8, 8], 50);
        assert_eq!(widths, [4, 21, 21]);
        let mut narrowest = [8, 8];
        narrow(&mut narrowest, &[8, 8], 10);
        assert_eq!(narrowest, [8, 8]);
        let mut with_ids = [16, 30];
        narrow(&mut with_ids, &[24, 8], 20);
        assert_eq!(with_ids, [16, 8], "an id stays whole");
    }
}
