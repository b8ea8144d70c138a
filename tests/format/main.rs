//! The bytes on disk of every format version, against files that are never
//! rewritten: what this release writes, and what it reads.
//!
//! A line of a golden file is a name, a keyspace, a key and a value, the last
//! two in hexadecimal; `-` is a delete. A file that is not there yet is made
//! when `PROCESSION_GOLDEN` is set to `write`.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects, and fails on all else; panics are what some test"
)]

mod export;
mod rewritten;
mod samples;
mod samples_2;
mod samples_4;
mod samples_6;
mod samples_7;
mod store;
mod store_2;
mod store_5;
mod upgrade;
mod values;
mod values_2;
mod values_4;
mod values_6;
mod values_7;

use std::fs;
use std::path::PathBuf;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// A write of a golden file.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    name: String,
    space: String,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Line {
    fn text(&self) -> String {
        let value = self
            .value
            .as_ref()
            .map_or_else(|| "-".to_owned(), |value| format!("={}", hex(value)));
        format!("{} {} {} {value}\n", self.name, self.space, hex(&self.key))
    }

    fn parse(line: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let mut words = line.split(' ');
        let mut word = || words.next().ok_or_else(|| format!("a word is missing in {line}"));
        let (name, space, key, value) = (
            word()?.to_owned(),
            word()?.to_owned(),
            unhex(word()?)?,
            word()?.to_owned(),
        );
        let value = value.strip_prefix('=').map(unhex).transpose()?;
        Ok(Self {
            name,
            space,
            key,
            value,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, std::num::ParseIntError> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2).unwrap_or_default(), 16))
        .collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/format/golden")
        .join(name)
}

/// Returns a golden file, as `v1/rows.hex`; makes it of these lines where it is missing and may be made.
fn golden(
    name: &str,
    make: impl FnOnce() -> Result<Vec<Line>, Box<dyn std::error::Error>>,
) -> Result<Vec<Line>, Box<dyn std::error::Error>> {
    let path = path(name);
    let may_write = std::env::var("PROCESSION_GOLDEN").is_ok_and(|word| word == "write");
    if may_write && !path.exists() {
        let lines = make()?;
        fs::create_dir_all(path.parent().ok_or("it is in a folder")?)?;
        fs::write(&path, lines.iter().map(Line::text).collect::<String>())?;
    }
    fs::read_to_string(&path)?.lines().map(Line::parse).collect()
}
