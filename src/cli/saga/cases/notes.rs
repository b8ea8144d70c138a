//! What a process notes of a case in a file, so that one that follows goes on where it was killed: the step, the time, and
//! what services have seen. It is not synced: it is about processes that are killed, not about machines that lose power.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use procession::procedure::Timestamp;
use serde::{Deserialize, Serialize};

use super::super::super::print;
use super::calls::{Called, Try};

/// Where a case is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct At {
    /// The step in hand.
    pub(super) step: usize,
    /// When it began; none before. From then on what it does was done, or tried.
    pub(super) begun: Option<Timestamp>,
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Note {
    At(At),
    /// To what the clock is moved.
    Time(Timestamp),
    Call(Called),
    /// When a try of a call ends.
    End(Try, Timestamp),
}

/// The file; none once it could not be written.
#[derive(Debug)]
pub struct Notes(Option<File>);

/// What a file says.
#[derive(Debug, Default)]
pub struct Noted {
    pub(super) at: At,
    pub(super) calls: Vec<Called>,
    pub(super) ends: BTreeMap<Try, Timestamp>,
    /// The time.
    pub now: Timestamp,
    /// Whether a process has begun the case.
    pub is_begun: bool,
}

impl Notes {
    /// Opens the file, and reads what it says. A line that was cut off counts as not written.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn open(path: &Path) -> io::Result<(Self, Noted)> {
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let mut noted = Noted::default();
        for line in BufReader::new(&file).split(b'\n') {
            if let Ok(note) = serde_json::from_slice(&line?) {
                noted.add(note);
            }
        }
        Ok((Self(Some(file)), noted))
    }

    /// Writes a line. If that fails, a process that is killed is not gone on with from here.
    pub(super) fn write(&mut self, note: &Note) {
        let Some(file) = &mut self.0 else { return };
        let line = serde_json::to_vec(note).map_err(io::Error::from);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            file.write_all(&line)
        });
        if let Err(error) = written {
            self.0 = None;
            print::notice(&format!(
                "the notes of a case cannot be written: {error}; if this is killed now, run it again with another --data"
            ));
        }
    }
}

impl Noted {
    fn add(&mut self, note: Note) {
        self.is_begun = true;
        match note {
            Note::At(at) => {
                self.at = at;
                self.now = self.now.max(at.begun.unwrap_or_default());
            }
            Note::Time(now) => self.now = self.now.max(now),
            Note::Call(called) => {
                self.now = self.now.max(called.at);
                self.calls.push(called);
            }
            Note::End(tried, end) => {
                self.ends.insert(tried, end);
            }
        }
    }
}
