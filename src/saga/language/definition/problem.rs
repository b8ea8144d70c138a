//! What is wrong with a definition, and where. It owns the form of these texts; it knows no rule of any definition.

use std::borrow::Cow;
use std::fmt;

use super::nearest::Nearest;

/// Most problems of one file that are listed; the rest are counted.
const PROBLEMS_MAX: usize = 1_000;
/// Most characters of a name or a text out of a file that a problem repeats.
const SHOWN: usize = 128;

/// Whether a problem refuses its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// The machine cannot run.
    Error,
    /// The machine runs, and does something that its author may not mean.
    Warning,
}

/// One thing that is wrong with a definition, or may be.
///
/// Its text is one line: file, place, what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    file: String,
    place: Place,
    state: Option<String>,
    text: String,
    hint: String,
    severity: Severity,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Position { line: usize, column: usize },
    Pointer(String),
}

impl Problem {
    /// Returns the name of the file, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the JSON pointer to what is wrong; none if the file is no JSON.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match &self.place {
            Place::Pointer(pointer) => Some(pointer),
            Place::Position { .. } => None,
        }
    }

    /// Returns line and column, from 1, where the file stops being JSON; none if it is JSON.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        match self.place {
            Place::Position { line, column } => Some((line, column)),
            Place::Pointer(_) => None,
        }
    }

    /// Returns the state that the problem lies in, if its text does not name it.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns what is wrong.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what to do.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }

    /// Returns whether it refuses the file.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    pub(crate) fn into_error(mut self) -> Self {
        self.severity = Severity::Error;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match &self.place {
            Place::Position { line, column } => write!(f, ":{line}:{column}: ")?,
            Place::Pointer(pointer) if pointer.is_empty() => f.write_str("#/: ")?,
            Place::Pointer(pointer) => write!(f, "#{pointer}: ")?,
        }
        if let Some(state) = &self.state {
            write!(f, "state [{state}]: ")?;
        }
        write!(f, "{}; {}", self.text, self.hint)
    }
}

/// The problems of one file, as its checks find them. The first 1,000 are listed; the rest are counted.
pub struct Problems {
    file: String,
    found: Vec<Problem>,
    more: usize,
    errors: usize,
    nearest: Nearest,
    /// A store has kept the file, so sagas may run by it.
    is_stored: bool,
}

impl Problems {
    /// Begins without a problem, for a file of this name.
    #[must_use]
    pub fn new(file: &str) -> Self {
        Self {
            file: shown(file).into_owned(),
            found: Vec::new(),
            more: 0,
            errors: 0,
            nearest: Nearest::default(),
            is_stored: false,
        }
    }

    /// Begins without a problem, for a file that a store has kept.
    pub(super) fn of_stored(file: &str) -> Self {
        Self {
            is_stored: true,
            ..Self::new(file)
        }
    }

    /// Returns how many errors have been found, those that are only counted included.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// The file is no JSON from this position on.
    pub(super) fn at_position(&mut self, line: usize, column: usize, text: &str, hint: &str) {
        let place = Place::Position { line, column };
        self.push(place, None, text.to_owned(), hint.to_owned(), Severity::Error);
    }

    /// Adds an error at a JSON pointer: what is wrong, and what to do.
    pub fn error(&mut self, at: &str, text: impl Into<String>, hint: impl Into<String>) {
        self.at_pointer(at, None, text.into(), hint.into(), Severity::Error);
    }

    /// As `error`, by a rule that earlier releases did not have: a file that one of them has stored is only warned of, so
    /// that sagas that run by it go on.
    pub(super) fn error_if_new(&mut self, at: &str, text: impl Into<String>, hint: impl Into<String>) {
        let severity = match self.is_stored {
            true => Severity::Warning,
            false => Severity::Error,
        };
        self.at_pointer(at, None, text.into(), hint.into(), severity);
    }

    /// As `error`, of a state that the text does not name.
    pub(super) fn error_in(&mut self, state: Option<&str>, at: &str, text: impl Into<String>, hint: impl Into<String>) {
        self.at_pointer(at, state, text.into(), hint.into(), Severity::Error);
    }

    pub(super) fn warn(&mut self, at: &str, text: impl Into<String>, hint: impl Into<String>) {
        self.at_pointer(at, None, text.into(), hint.into(), Severity::Warning);
    }

    /// As `warn`, of a state that the text does not name.
    pub(super) fn warn_in(&mut self, state: Option<&str>, at: &str, text: impl Into<String>, hint: impl Into<String>) {
        self.at_pointer(at, state, text.into(), hint.into(), Severity::Warning);
    }

    /// Returns `did you mean [..]?` with the candidate that is nearest to a wrong word; otherwise what to do instead.
    pub fn nearest<'a>(&mut self, word: &str, candidates: impl Iterator<Item = &'a str>, otherwise: &str) -> String {
        match self.nearest.find(word, candidates) {
            Some(near) => format!("did you mean [{}]?", shown(near)),
            None => otherwise.to_owned(),
        }
    }

    fn at_pointer(&mut self, at: &str, state: Option<&str>, text: String, hint: String, severity: Severity) {
        let place = Place::Pointer(escaped(at).into_owned());
        let state = state.map(|state| shown(state).into_owned());
        self.push(place, state, text, hint, severity);
    }

    fn push(&mut self, place: Place, state: Option<String>, text: String, hint: String, severity: Severity) {
        self.errors += usize::from(severity == Severity::Error);
        if self.found.len() == PROBLEMS_MAX {
            self.more += 1;
            return;
        }
        let file = self.file.clone();
        self.found.push(Problem {
            file,
            place,
            state,
            text,
            hint,
            severity,
        });
    }

    /// Returns all that was found. If there is more than is listed, the last one says how much.
    #[must_use]
    pub fn into_found(mut self) -> Vec<Problem> {
        if self.more > 0 {
            let severity = match self.errors {
                0 => Severity::Warning,
                _ => Severity::Error,
            };
            self.found.push(Problem {
                file: self.file,
                place: Place::Pointer(String::new()),
                state: None,
                text: format!("{} more problems are not listed", self.more),
                hint: "mend those above first".to_owned(),
                severity,
            });
        }
        self.found
    }
}

/// Returns a name or text out of a file as a problem shows it: control characters escaped, cut if it is long.
pub fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", escaped(text.get(..end).unwrap_or_default()))),
        None => escaped(text),
    }
}

/// Returns the names as `[A, B]`.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<Cow<'_, str>> = names.map(shown).collect();
    format!("[{}]", names.join(", "))
}

/// A line break out of a file would make two lines of one problem.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character.is_control() {
            true => escaped.extend(character.escape_debug()),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}
