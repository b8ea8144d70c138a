//! Why a demo ends without success; each text says what to do now.

use std::path::{Path, PathBuf};

use super::shop::books::BooksError;
use procession::errors::{AskError, ReadError, StartError, SubmitError};

/// Why the demo did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The input cannot be used.
    #[error("the input {path} cannot be used: {why}; give a readable file of lines with --input")]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An argument makes no sense.
    #[error("{0}")]
    Argument(String),
    /// The directory was begun with other values.
    #[error("{path} was begun with {what} {before}, and now {now} was asked for; leave the option out to go on, or use another directory", path = .path.display())]
    Different {
        /// The directory.
        path: PathBuf,
        /// Name of the value.
        what: &'static str,
        /// What it was begun with.
        before: String,
        /// What was asked for.
        now: String,
    },
    /// The directory is not one of the demo's.
    #[error("{path} is not empty, and no demo was begun in it; use another directory", path = .0.display())]
    Foreign(PathBuf),
    /// There is no demo in the directory.
    #[error("{path} holds no demo; begin one with `{begin}`", path = .path.display())]
    Absent {
        /// The directory.
        path: PathBuf,
        /// The command that begins it.
        begin: String,
    },
    /// The directory holds another story.
    #[error("{path} was begun by another command; go on with `{begun}`, or use another directory", path = .path.display())]
    Another {
        /// The directory.
        path: PathBuf,
        /// The command that goes on with it.
        begun: String,
    },
    /// A file or directory could not be used.
    #[error("{path} cannot be used: {why}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// The dashboard's port cannot be had.
    #[error("port {port} of this machine cannot be listened on: {why}; give another with --port, or 0 for any")]
    Port {
        /// The port.
        port: u16,
        /// What the system said.
        why: String,
    },
    /// The engine did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A submission was refused.
    #[error("operation {key} could not be submitted: {why}")]
    Submit {
        /// Its idempotency key.
        key: String,
        /// Why.
        #[source]
        why: SubmitError,
    },
    /// The engine did not answer.
    #[error("the engine did not answer: {0}")]
    Ask(#[from] AskError),
    /// The meta table could not be read.
    #[error("the meta table cannot be read: {0}")]
    Read(#[from] ReadError),
    /// The books of the shop could not be checked.
    #[error(transparent)]
    Books(#[from] BooksError),
    /// A procedure goes on only with help.
    #[error("{0}")]
    Stuck(String),
    /// Families were set aside at the start.
    #[error("{count} families could not be loaded and were set aside, the first because {first}; restore {path} from a copy, or begin anew in another directory", path = .path.display())]
    Quarantined {
        /// How many.
        count: usize,
        /// Why the first was.
        first: String,
        /// The directory.
        path: PathBuf,
    },
    /// The verification found something.
    #[error("the verification failed: {findings} finding(s), named above; the data is in {path}", path = .path.display())]
    Unverified {
        /// How many findings there are.
        findings: usize,
        /// The directory.
        path: PathBuf,
    },
    /// Somebody interrupted it.
    #[error("interrupted: nothing is lost; go on with `{0}`")]
    Interrupted(String),
}

impl DemoError {
    /// Names the file or directory in an error of the system.
    pub(crate) fn file(path: &Path, why: &std::io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}
