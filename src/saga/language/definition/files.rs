//! Files that are given together, within the bounds that they have together.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::form::Definition;
use super::json;
use super::problem::{Problem, Problems};

/// Most files: an engine has as many kinds of machines.
const FILES_MAX: usize = 1_000;
/// Most bytes of all files.
const BYTES_MAX: usize = 16 << 20;

/// A file that was read: its machine, unless errors refuse it, and all that was found.
pub struct Parsed {
    /// The name of the file, as it was given.
    pub name: String,
    /// Its machine; none if errors refuse the file.
    pub definition: Option<Definition>,
    /// The whole file; empty if it is refused.
    pub text: String,
    /// Everything that was found.
    pub problems: Vec<Problem>,
}

/// Files in the order in which they are given. Each is read and checked as it is given, without the services that it
/// names.
#[derive(Default)]
pub struct Files {
    parsed: Vec<Parsed>,
    bytes: usize,
}

impl fmt::Debug for Files {
    /// How many there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parsed.len().fmt(f)
    }
}

impl Files {
    /// Returns what was read, in the order in which it was given.
    #[must_use]
    pub fn into_parsed(self) -> Vec<Parsed> {
        self.parsed
    }

    /// Adds a text under the name of its file.
    pub fn add_text(&mut self, name: &str, bytes: &[u8]) {
        self.add(name, |files, problems| files.checked(bytes, problems));
    }

    /// Adds a text that a store has kept: it is not held to rules that its release did not have.
    pub(crate) fn add_stored(&mut self, name: &str, bytes: &[u8]) {
        self.add_to(Problems::of_stored(name), name, |files, problems| {
            files.checked(bytes, problems)
        });
    }

    /// Adds what could not be read at all.
    pub fn add_refused(&mut self, name: &str, text: &str, hint: &str) {
        self.add(name, |_, problems| {
            problems.error("", text, hint);
            None
        });
    }

    /// Adds a file. No more of it is read than a definition may have.
    pub fn add_file(&mut self, path: &Path) {
        let name = path.display().to_string();
        self.add(&name, |files, problems| match read_file(path) {
            Ok(Ok(bytes)) => files.checked(&bytes, problems),
            Ok(Err(size)) => {
                json::too_large(size, problems);
                None
            }
            Err(error) => {
                let text = format!("the file cannot be read: {error}");
                problems.error("", text, "check its path and its rights");
                None
            }
        });
    }

    fn add(&mut self, name: &str, read: impl FnOnce(&mut Self, &mut Problems) -> Option<(Definition, String)>) {
        self.add_to(Problems::new(name), name, read);
    }

    fn add_to(
        &mut self,
        mut problems: Problems,
        name: &str,
        read: impl FnOnce(&mut Self, &mut Problems) -> Option<(Definition, String)>,
    ) {
        // What is said of the first one too many holds for those behind it.
        if self.parsed.len() > FILES_MAX {
            return;
        }
        let read = if self.parsed.len() == FILES_MAX {
            problems.error(
                "",
                format!("{FILES_MAX} files are before this one"),
                "check them in parts",
            );
            None
        } else {
            read(self, &mut problems)
        };
        let (definition, text) = read.filter(|_| problems.errors() == 0).unzip();
        self.parsed.push(Parsed {
            name: name.to_owned(),
            definition,
            text: text.unwrap_or_default(),
            problems: problems.into_found(),
        });
    }

    fn checked(&mut self, bytes: &[u8], problems: &mut Problems) -> Option<(Definition, String)> {
        let with_it = self.bytes + bytes.len();
        if with_it > BYTES_MAX {
            let text = format!("with this file there are {with_it} bytes, at most {BYTES_MAX}");
            problems.error("", text, "check the files in parts");
            return None;
        }
        self.bytes = with_it;
        let definition = super::checked(bytes, problems)?;
        // JSON has no bytes that are no text.
        let text = str::from_utf8(bytes).ok()?;
        Some((definition, text.to_owned()))
    }
}

/// Returns the content, or the size of what is too large.
fn read_file(path: &Path) -> io::Result<Result<Vec<u8>, u64>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let limit = u64::try_from(json::BYTES_MAX).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(match bytes.len() > json::BYTES_MAX {
        true => Err(size.max(limit + 1)),
        false => Ok(bytes),
    })
}
