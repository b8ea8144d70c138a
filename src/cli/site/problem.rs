//! Why a dashboard did not do what it was asked for.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::super::document::read;
use super::super::exit::{Exit, Failure};

/// No answer, or one that refuses.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// Whether it was heard is not known.
    Unreached(String),
    /// It was heard, and refused in words.
    Problem(Box<Problem>),
    /// What answers is no dashboard, or stands before it.
    Other(Failure),
}

/// A problem, as the API has it.
#[derive(Debug, Deserialize)]
pub(crate) struct Problem {
    status: u16,
    pub(crate) kind: String,
    /// One sentence.
    detail: String,
    #[serde(default)]
    remedy: String,
    /// The revision of what has changed, or ended.
    #[serde(default)]
    pub(crate) revision: Option<String>,
    /// The state of what has changed.
    #[serde(default)]
    pub(crate) state: Option<String>,
    /// Of a bulk: how many procedures its filter admits by now, and, as far as the plan is still known, how many came and
    /// went since.
    #[serde(default)]
    pub(crate) count: Option<u64>,
    #[serde(default)]
    pub(crate) came: Option<u64>,
    #[serde(default)]
    pub(crate) went: Option<u64>,
    /// How long to wait before it is asked again, if that helps.
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

impl Problem {
    pub(super) fn read(body: &Value) -> Option<Self> {
        read(body).ok()
    }

    /// Takes the header that says when to ask again, in seconds.
    pub(super) fn retry_in(&mut self, seconds: Option<&str>) {
        let seconds = seconds.and_then(|text| text.parse().ok());
        self.retry_after = seconds.map(Duration::from_secs);
    }

    /// Tells whether it may be otherwise in a while.
    const fn may_pass(&self) -> bool {
        matches!(self.status, 429 | 500 | 502..=504)
    }

    fn text(&self) -> String {
        format!("{} {}", self.detail, self.remedy).trim().to_owned()
    }
}

impl Unanswered {
    /// Tells whether it is worth trying again later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreached(_) => true,
            Self::Problem(problem) => problem.may_pass(),
            Self::Other(_) => false,
        }
    }
}

impl From<Unanswered> for Failure {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Unreached(text) => Self::new(text),
            Unanswered::Problem(problem) => {
                let exit = match problem.status {
                    400 | 413 => Exit::Usage,
                    401 | 403 | 409 => Exit::Refused,
                    _ => Exit::Failed,
                };
                let text = problem.text();
                Self { exit, text }
            }
            Unanswered::Other(failure) => failure,
        }
    }
}
