//! The file of an export: lines of JSON, of which one holds the family as it is stored.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use procession::offline::FamilyExport;
use serde::Deserialize;

use super::super::exit::Failure;
use super::super::print;

/// Bytes of a line at most: the largest family that is imported, in hexadecimal, and all that
/// is said of it in words.
const LINE_MAX: u64 = 1 << 30;

/// What a line is.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    format: u32,
    #[serde(default)]
    family: u64,
}

/// Finds the family in a file.
pub(super) fn read(file: &Path) -> Result<FamilyExport, Failure> {
    let name = if file.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        print::plain(&file.display().to_string())
    };
    let cannot = |error: io::Error| Failure::new(format!("{name} cannot be read: {error}"));
    if file.as_os_str() == "-" {
        return find(io::stdin().lock(), &name);
    }
    find(BufReader::new(File::open(file).map_err(cannot)?), &name)
}

fn find(mut lines: impl BufRead, name: &str) -> Result<FamilyExport, Failure> {
    let mut found: Option<FamilyExport> = None;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let size = lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
        let size = size.map_err(|error| Failure::new(format!("{name} cannot be read: {error}")))?;
        if size == 0 {
            break;
        }
        let place = format!("line {number} of {name}");
        if line.last() != Some(&b'\n') && size as u64 == LINE_MAX {
            return Err(Failure::new(format!(
                "{place} is longer than any export; give what \"procession export\" has printed"
            )));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(family) = family(&line, &place)? else { continue };
        if let Some(before) = &found {
            return Err(Failure::new(format!(
                "{name} holds the families of {}.0 and {}.0, and an import takes one: export the one that is meant by \
                 its id",
                before.family, family.family
            )));
        }
        found = Some(family);
    }
    found.ok_or_else(|| {
        Failure::new(format!(
            "{name} holds no family as it is stored, a line of the type \"family\"; export it with --payload"
        ))
    })
}

/// Reads the family of a line, if that is what it holds.
fn family(line: &[u8], place: &str) -> Result<Option<FamilyExport>, Failure> {
    let head: Head = serde_json::from_slice(line).map_err(|error| broken(place, &error))?;
    if head.kind.as_deref() != Some("family") {
        return Ok(None);
    }
    if head.format > FamilyExport::NEWEST_FORMAT {
        return Err(Failure::new(format!(
            "the export of family {} has format {}, and this release reads up to {}; use the release that wrote it",
            head.family,
            head.format,
            FamilyExport::NEWEST_FORMAT
        )));
    }
    serde_json::from_slice(line)
        .map(Some)
        .map_err(|error| broken(place, &error))
}

fn broken(place: &str, error: &serde_json::Error) -> Failure {
    let why = print::plain(&error.to_string());
    Failure::new(if error.is_eof() {
        format!("{place} is cut off in the middle: export the family again")
    } else {
        format!("{place} is none of an export: {why}; give what \"procession export ID --payload\" has printed")
    })
}

#[cfg(test)]
mod tests;
