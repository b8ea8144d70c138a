//! What a request sets beside the states that it changes: a pause, a priority, a limit, as it is now and as it is then.

use procession_actors::view::Status;
use procession_kernel::{Limit, LimitUse, PauseScope, Rate, VerbName};
use serde::Serialize;

use super::wish::Wish;
use crate::dashboard::problem::Problem;
use crate::dashboard::state::State;

/// What a limit allows that is not set.
const ANYTHING: &str = "anything";

/// One setting, in words.
#[derive(Serialize)]
pub(super) struct Setting {
    what: String,
    now: String,
    then: String,
}

impl Setting {
    fn pause(of: &str, now: bool, then: bool) -> Self {
        let word = |paused: bool| if paused { "paused" } else { "not paused" }.to_owned();
        Self {
            what: format!("pause of {of}"),
            now: word(now),
            then: word(then),
        }
    }
}

/// Returns what a verb sets of one procedure.
pub(super) fn of_one(verb: VerbName, row: Option<&Status>, wish: &Wish) -> Option<Setting> {
    let row = row?;
    let id = row.id.to_string();
    if verb == VerbName::Pause {
        Some(Setting::pause(&id, row.paused, true))
    } else if verb == VerbName::Resume {
        Some(Setting::pause(&id, row.paused, false))
    } else if verb == VerbName::SetPriority {
        let then = wish.priority?.to_string();
        Some(Setting {
            what: format!("priority of {id}"),
            now: row.priority.to_string(),
            then,
        })
    } else {
        None
    }
}

/// Returns what a pause of a kind or of everything sets, or its end.
pub(super) async fn of_many(state: &State, what: &PauseScope, then: bool) -> Result<Setting, Problem> {
    let snapshot = state.live.snapshot().await?;
    Ok(Setting::pause(&what.to_string(), snapshot.paused.contains(what), then))
}

/// The limit of everything.
const GLOBAL: &str = "*";

/// Returns what is set of a limit, and whether there is none of that name yet. Each kind has one of its own name.
pub(super) async fn of_limit(state: &State, key: &str, then: Limit) -> Result<(Setting, bool), Problem> {
    let limits = state.live.limits().await?;
    let known = limits.iter().find(|limit| limit.key.as_str() == key);
    let is_new = known.is_none() && key != GLOBAL && !state.engine().kinds().any(|kind| kind.as_str() == key);
    let unset = if is_new { "not there" } else { ANYTHING };
    let setting = Setting {
        what: format!("limit {key}"),
        now: known.map_or_else(|| unset.to_owned(), in_use),
        then: words(then.capacity(), then.rate()),
    };
    Ok((setting, is_new))
}

fn in_use(limit: &LimitUse) -> String {
    words(limit.limit, limit.rate.as_ref().map(|usage| usage.rate))
}

fn words(at_once: Option<u32>, rate: Option<Rate>) -> String {
    let at_once = at_once.map(|permits| format!("{permits} at once"));
    let rate = rate.map(
        |Rate { begins, period }| match (period.as_secs(), period.subsec_millis()) {
            (seconds, 0) => format!("{begins} in {seconds} s"),
            (_, _) => format!("{begins} in {} ms", period.as_millis()),
        },
    );
    let parts: Vec<String> = at_once.into_iter().chain(rate).collect();
    match parts.is_empty() {
        true => ANYTHING.to_owned(),
        false => parts.join(", "),
    }
}
