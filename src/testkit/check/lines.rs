//! What a run leaves, as lines: the bytes behind them are compared, and their text is shown.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Lines that differ and are shown.
const SHOWN: usize = 12;

/// A line, and the stored value that it shows. Two values may read alike, so the value itself is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    text: String,
    value: Vec<u8>,
}

impl Line {
    /// A line that shows this value, or is about none.
    pub(super) fn new(text: String, value: &[u8]) -> Self {
        let value = value.to_vec();
        Self { text, value }
    }

    /// Shows it beside the lines that it differs from. One that reads like another of these says which bytes it is.
    fn shown(&self, sign: char, others: &[Self]) -> String {
        let text = self.text.trim();
        if others.iter().any(|other| other.text == self.text) {
            let mut hasher = DefaultHasher::new();
            self.value.hash(&mut hasher);
            return format!("\n    {sign} {text} #{:016x}", hasher.finish());
        }
        format!("\n    {sign} {text}")
    }
}

/// Returns the lines of a text.
pub(super) fn of(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::new(line.to_owned(), &[])).collect()
}

/// Shows the lines that are on one of two lists alone.
pub(super) fn differ(what: &str, expected: &[Line], found: &[Line]) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let only = |sign: char, these: &[Line], those: &[Line]| -> Vec<String> {
        let lines = these.iter().filter(|line| !those.contains(line));
        lines.take(SHOWN).map(|line| line.shown(sign, those)).collect()
    };
    let lines = [only('-', expected, found), only('+', found, expected)].concat();
    if lines.is_empty() {
        return Err(format!("{what}: the same lines, in another order or number"));
    }
    Err(format!("{what}:{}", lines.concat()))
}

#[cfg(test)]
mod tests;
