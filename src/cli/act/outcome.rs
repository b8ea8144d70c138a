//! What an act would do, or has done, in words.

use procession::operate::VerbName;
use serde::Deserialize;

use super::super::print;
use super::target::Target;
use procession::views::{FreedView, PlanView};

/// Procedures of which a plan says one thing in a line each.
const LINES: usize = 20;

/// The plan or the outcome of an act, as the API has it.
#[derive(Deserialize)]
pub(crate) struct Outcome {
    /// What the plan was made for.
    #[serde(default)]
    pub(crate) revision: Option<String>,
    /// Its entry in the audit, once it is done.
    #[serde(default)]
    number: Option<String>,
    /// The first of what changes.
    changes: Vec<Changed>,
    /// How many change in all.
    changed: u64,
    /// The procedure that runs it again.
    #[serde(default)]
    submitted: Option<String>,
    /// What an abort met.
    #[serde(default)]
    abort: Option<Met>,
    /// What a plan sets beside the states that change.
    #[serde(default)]
    sets: Vec<Setting>,
    /// The limit that it sets is not there yet.
    #[serde(default)]
    pub(super) new: bool,
    /// What else it would lead to.
    #[serde(default)]
    plan: Option<PlanView>,
    /// How many executed stages an abort or a bypass concerns.
    #[serde(default)]
    reach: Option<Reach>,
}

#[derive(Clone, Copy, Deserialize)]
struct Reach {
    undone: u64,
    stays: u64,
}

/// A pause, a priority or a limit.
#[derive(Deserialize)]
struct Setting {
    what: String,
    now: String,
    then: String,
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
    pub(crate) fn show(&self) {
        let rows = self.changes.iter();
        let rows = rows.map(|change| [change.id.clone(), change.before.clone(), change.after.clone()]);
        print::table(["ID", "NOW", "THEN"], rows);
        let sets = self.sets.iter();
        print::table(
            ["SETS", "NOW", "THEN"],
            sets.map(|set| [set.what.clone(), set.now.clone(), set.then.clone()]),
        );
        if let Some(plan) = &self.plan {
            lead_to(plan);
        }
        print::notice(&match self.changed {
            0 => "no procedure changes".to_owned(),
            1 => "1 procedure changes".to_owned(),
            several => format!("{several} procedures change"),
        });
        if let Some(met) = self.met() {
            print::notice(&format!("it {met}"));
        }
    }

    /// Says why an abort does nothing, if it does nothing.
    pub(super) fn too_late(&self) -> Option<&str> {
        let met = self.abort.as_ref().filter(|met| met.outcome == "too_late")?;
        Some(met.why.as_deref().unwrap_or("it has passed its point of no return"))
    }

    /// Returns a sentence that says what was done.
    pub(super) fn sentence(&self, verb: VerbName, target: &Target) -> String {
        let done = match verb {
            VerbName::Pause => "is paused",
            VerbName::Resume => "goes on",
            VerbName::RetryNow => "is tried again",
            VerbName::Bypass => "has ended, by you",
            VerbName::Decide => "has its answer",
            VerbName::Signal => "has the signal",
            VerbName::Acknowledge => "is acknowledged",
            VerbName::RunAgain => return self.ran_again(target),
            VerbName::Abort => self.met().unwrap_or("is aborted"),
            VerbName::RetryUndo => "tries its undo again",
            VerbName::SkipUndo => "goes on without that undo",
            VerbName::OverrideResult => "has this output",
            VerbName::SetPriority => "has this priority",
            VerbName::SetLimit => return format!("{target} is set{}", self.entry()),
            VerbName::Discharge => "is in the archive",
            VerbName::Drain => return format!("{target} drains, and stops when no stage runs{}", self.entry()),
            // What it prints is the outcome.
            VerbName::Reveal | VerbName::Export => "is shown",
            VerbName::Submit => return self.submitted(target),
        };
        self.told(target, done)
    }

    fn ran_again(&self, target: &Target) -> String {
        let new = self.submitted.as_deref().unwrap_or("another");
        format!("{target} runs again, as {new}{}", self.entry())
    }

    fn submitted(&self, target: &Target) -> String {
        let new = self.submitted.as_deref().unwrap_or("another");
        format!("submitted {new} of {target}{}", self.entry())
    }

    /// Says what the target does by now, how many procedures changed, and where that was recorded.
    pub(crate) fn told(&self, target: &Target, done: &str) -> String {
        let changed = match self.changed {
            1 => "1 procedure changed".to_owned(),
            several => format!("{several} procedures changed"),
        };
        format!("{target} {done}; {changed}{}", self.entry())
    }

    /// Says what an act concerned beyond the plan that was shown: a family goes on while somebody looks at it.
    pub(super) fn beyond(&self, planned: &Self) -> Vec<String> {
        let Some((done, planned)) = self.reach.zip(planned.reach) else {
            return Vec::new();
        };
        let more = [
            (done.undone.saturating_sub(planned.undone), "undone"),
            (done.stays.saturating_sub(planned.stays), "left as they are"),
        ];
        let told = more.into_iter().filter(|(number, _)| *number > 0);
        told.map(|(number, what)| format!("executed stages that the plan did not show, and that are {what}: {number}"))
            .collect()
    }

    /// Says where in the audit it was recorded.
    fn entry(&self) -> String {
        let number = self.number.as_deref();
        number.map_or_else(String::new, |number| format!("; entry {number} of the audit"))
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

/// Prints what a plan leads to beside the rows that change, a line for each sort of thing.
fn lead_to(plan: &PlanView) {
    if !plan.undone.is_empty() {
        let undone = plan.undone.iter().map(|undo| format!("{} of {}", undo.stage, undo.id));
        print::line(&format!("undoes {}", print::named(undone.collect())));
    }
    for stays in plan.stays.iter().take(LINES) {
        let stages = print::named(stays.stages.clone());
        print::line(&format!("does not undo {stages} of {}: {}", stays.id, stays.why));
    }
    for freed in plan.freed.iter().take(LINES) {
        print::line(&given_back(freed));
    }
    if !plan.moves_next.is_empty() {
        print::line(&format!("lets {} go on", print::named(plan.moves_next.clone())));
    }
    for warning in &plan.warnings {
        print::line(&format!("Warning: {warning}"));
    }
    if plan.truncated || plan.stays.len() > LINES || plan.freed.len() > LINES {
        print::notice("there is more than is named here; --json says more");
    }
}

fn given_back(freed: &FreedView) -> String {
    let permits = freed.limits.iter().map(|limit| format!("a permit of {limit}"));
    let locks = freed.locks.iter().map(|lock| format!("the lock {lock}"));
    let what = print::named(permits.chain(locks).collect());
    let when = match freed.when.as_ref() {
        "now" => "at once",
        _ => "after the rollback",
    };
    format!("{} gives back {what} {when}", freed.id)
}
