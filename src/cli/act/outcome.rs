//! What an act would do, or has done, in words.

use serde::Deserialize;

use super::super::print;
use super::target::Target;

/// The plan or the outcome of an act, as the API has it.
#[derive(Deserialize)]
pub(super) struct Outcome {
    /// What the plan was made for.
    #[serde(default)]
    pub(super) revision: Option<String>,
    /// Its entry in the audit, once it is done.
    #[serde(default)]
    number: Option<String>,
    /// The first of what changes.
    changes: Vec<Changed>,
    /// How many change in all.
    changed: u64,
    /// What an abort met.
    #[serde(default)]
    abort: Option<Met>,
}

#[derive(Deserialize)]
struct Changed {
    id: String,
    before: String,
    after: String,
}

#[derive(Deserialize)]
struct Met {
    outcome: String,
    #[serde(default)]
    why: Option<String>,
}

impl Outcome {
    /// Prints the plan.
    pub(super) fn show(&self, verb: &str, target: &Target) {
        let rows = self.changes.iter();
        let rows = rows.map(|change| [change.id.clone(), change.before.clone(), change.after.clone()]);
        print::table(["ID", "NOW", "THEN"], rows);
        print::notice(&match self.changed {
            0 => "no procedure changes".to_owned(),
            1 => "1 procedure changes".to_owned(),
            several => format!("{several} procedures change"),
        });
        if let Some(met) = self.met() {
            print::notice(&format!("it {met}"));
        }
        if let ("pause", Target::Kind(_) | Target::All) = (verb, target) {
            print::notice(&format!(
                "no stage of {target} begins from then on, until it is resumed"
            ));
        }
    }

    /// Says why an abort does nothing, if it does nothing.
    pub(super) fn too_late(&self) -> Option<&str> {
        let met = self.abort.as_ref().filter(|met| met.outcome == "too_late")?;
        Some(met.why.as_deref().unwrap_or("it has passed its point of no return"))
    }

    /// Says what was done.
    pub(super) fn sentence(&self, verb: &str, target: &Target) -> String {
        let done = match verb {
            "pause" => "is paused",
            "resume" => "goes on",
            "retry" => "is tried again",
            "bypass" => "has ended, by you",
            "abort" => self.met().unwrap_or("is aborted"),
            other => other,
        };
        let changed = match self.changed {
            1 => "1 procedure changed".to_owned(),
            several => format!("{several} procedures changed"),
        };
        let entry = self
            .number
            .as_deref()
            .map(|number| format!("; entry {number} of the audit"));
        format!("{target} {done}; {changed}{}", entry.unwrap_or_default())
    }

    fn met(&self) -> Option<&'static str> {
        let met = self.abort.as_ref()?;
        match met.outcome.as_str() {
            "will_roll_back" => Some("will roll back"),
            "already_rolling_back" => Some("rolls back already"),
            _ => None,
        }
    }
}
