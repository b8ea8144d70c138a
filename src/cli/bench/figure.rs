//! Figures that only some shapes of a workload have.

use std::collections::BTreeMap;
use std::time::Duration;

use super::report::thousands;
use super::taken::{count, millis, tenths};

/// One figure: for the closing line a name and a number, for the table a line.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    name: &'static str,
    value: Option<f64>,
    row: &'static str,
    text: String,
    remark: String,
}

impl Figure {
    /// Makes a figure of any kind.
    pub(super) fn new(name: &'static str, value: f64, row: &'static str, text: String, remark: &str) -> Self {
        Self {
            name,
            value: Some(value),
            row,
            text,
            remark: remark.to_owned(),
        }
    }

    /// Makes a time in milliseconds.
    pub(super) fn time(name: &'static str, time: Duration, row: &'static str, remark: &str) -> Self {
        let value = millis(time);
        Self::new(name, value, row, format!("{value:.2} ms"), remark)
    }

    /// Makes a number of things.
    pub(super) fn number(name: &'static str, number: u64, row: &'static str, remark: &str) -> Self {
        let number = count(number);
        Self::new(name, number, row, thousands(number), remark)
    }

    /// Makes a ratio of two times; none where too little was measured to tell.
    pub(super) fn ratio(name: &'static str, ratio: Option<f64>, row: &'static str, remark: &str) -> Self {
        Self {
            name,
            value: ratio,
            row,
            text: ratio.map_or_else(|| "unknown".to_owned(), |ratio| ratio.to_string()),
            remark: remark.to_owned(),
        }
    }

    /// Makes a size in bytes; none where the system does not tell.
    pub(super) fn bytes(name: &'static str, bytes: Option<f64>, row: &'static str, remark: &str) -> Self {
        let value = bytes.map(tenths);
        Self {
            name,
            value,
            row,
            text: value.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} B", thousands(bytes))),
            remark: remark.to_owned(),
        }
    }
}

/// Returns what the closing line has of them.
pub(super) fn named(figures: &[Figure]) -> BTreeMap<&'static str, Option<f64>> {
    figures.iter().map(|figure| (figure.name, figure.value)).collect()
}

/// Returns their lines of the table.
pub(super) fn rows(figures: &[Figure]) -> Vec<(&'static str, String, String)> {
    let row = |figure: &Figure| (figure.row, figure.text.clone(), figure.remark.clone());
    figures.iter().map(row).collect()
}
