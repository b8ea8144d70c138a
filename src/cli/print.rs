//! What the verbs print: tables in columns, sentences, and JSON, one document a line.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};

use ::console::{Alignment, measure_text_width, pad_str};
use procession::views::ProcedureView;
use serde::Serialize;

use super::exit::Failure;
use crate::demo::console;

/// Of several that stand in one place of a table, or in one line, this many are named.
const NAMED: usize = 8;
/// Blanks between two columns.
const GAP: usize = 2;

/// Prints rows below their headings; nothing if there are no rows.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let mut table = vec![headings.map(str::to_owned)];
    table.extend(rows);
    if table.len() == 1 {
        return;
    }
    let mut widths = [0; N];
    for row in &table {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = measure_text_width(cell).max(*width);
        }
    }
    for row in &table {
        let cells = row.iter().zip(widths);
        let text: String = cells
            .map(|(cell, width)| pad_str(cell, width + GAP, Alignment::Left, None))
            .collect();
        line(text.trim_end());
    }
}

/// Prints one line of the result.
pub(super) fn line(text: &str) {
    if !held(text) {
        console::result(text);
    }
}

/// Prints one line of a result that has no end by itself; tells whether anybody can still read it.
pub(super) fn next_line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
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
    Ok(())
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

/// Returns an instant without its fraction: enough for a table.
pub(super) fn seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => time.to_owned(),
    }
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
    use super::{plain, seconds};

    #[test]
    fn a_text_of_others_does_not_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2J\nb\u{202e}ä"), "a\\u{1b}[2J\\nb\\u{202e}ä");
        assert_eq!(seconds("2026-11-21T11:18:15.25Z"), "2026-11-21T11:18:15Z");
        assert_eq!(seconds("2026-11-21T11:18:15Z"), "2026-11-21T11:18:15Z");
    }
}
