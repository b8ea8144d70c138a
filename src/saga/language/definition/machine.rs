//! A machine out of its file: the standard form, an object with states by name. The older designer's form is read beside.

use super::attributes::Attributes;
use super::form::{Link, RecoverStrategy, State, Updates};
use super::json::Json;
use super::path::Path;
use super::problem::{Problems, shown};
use super::{designer, state};

/// Longest name of a machine or a state, in characters.
const NAME_MAX: usize = 128;

const KNOWN: &[&str] = &[
    "Name",
    "Comment",
    "Version",
    "StartState",
    "States",
    "RecoverStrategy",
    "IsPersist",
    "IsRetryPersistModeUpdate",
    "IsCompensatePersistModeUpdate",
];

/// A machine as its file says it, before anything is looked up.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) recover: RecoverStrategy,
    pub(super) updates: Updates,
    pub(super) start: Option<Link>,
    pub(super) states: Vec<State>,
}

/// Reads a machine of either form. None if the document is no machine at all.
pub(super) fn read(json: &Json, problems: &mut Problems) -> Option<Draft> {
    let members = json.members().unwrap_or_default();
    if json.member("nodes").is_some() && json.member("States").is_none() {
        return designer::read(members, problems);
    }
    let top = Attributes::new(members, Path::DOCUMENT, None);
    if !is_machine(&top, &["Name", "StartState", "States"], problems) {
        return None;
    }
    let mut draft = top_level(&top, problems);
    draft.start = top.link("StartState", problems);
    let states = top.object("States", problems).unwrap_or_default();
    let place = top.path().key("States");
    draft.states = states
        .iter()
        .map(|(name, value)| {
            check_name("state", name, &place.key(name).to_string(), problems);
            let members = value.members();
            if members.is_none() {
                let text = format!("state [{}] is {}", shown(name), value.described());
                problems.error(&place.key(name).to_string(), text, "write an object, between { and }");
            }
            match members {
                Some(members) => {
                    let attributes = Attributes::new(members, place.key(name), Some(name));
                    state::read(name, &attributes, problems)
                }
                // Its name is known, so that what leads to it is no mistake.
                None => state::read_as(
                    name,
                    None,
                    "",
                    &Attributes::new(&[], place.key(name), Some(name)),
                    problems,
                ),
            }
        })
        .collect();
    Some(draft)
}

/// Returns whether these attributes are there, and reports those that are missing.
pub(super) fn is_machine(top: &Attributes<'_>, wanted: &[&str], problems: &mut Problems) -> bool {
    let missing: Vec<&str> = wanted.iter().copied().filter(|key| !top.has(key)).collect();
    if missing.is_empty() {
        return true;
    }
    let hint = match missing.as_slice() {
        [one] => format!("{one} is missing"),
        several => format!("{} are missing", several.join(", ")),
    };
    problems.error(
        &top.place(),
        "a machine is an object with Name, StartState and States",
        hint,
    );
    false
}

/// Reads what both forms have at the top level.
pub(super) fn top_level(top: &Attributes<'_>, problems: &mut Problems) -> Draft {
    top.find_ignored(&[KNOWN], problems);
    state::find_persist(top, problems);
    let name = top.owned_text("Name", problems).unwrap_or_default();
    if top.get("Name").and_then(Json::text).is_some() {
        check_name("machine", &name, &top.at("Name"), problems);
    }
    Draft {
        name,
        version: top.owned_text("Version", problems),
        comment: top.owned_text("Comment", problems),
        recover: recover(top, problems),
        updates: state::updates(top, problems),
        start: None,
        states: Vec::new(),
    }
}

fn recover(top: &Attributes<'_>, problems: &mut Problems) -> RecoverStrategy {
    match top.text("RecoverStrategy", problems) {
        None | Some("Compensate") => RecoverStrategy::Compensate,
        Some("Forward") => RecoverStrategy::Forward,
        Some(other) => {
            let text = format!("RecoverStrategy is \"{}\"", shown(other));
            problems.error(&top.at("RecoverStrategy"), text, "use Compensate or Forward");
            RecoverStrategy::Compensate
        }
    }
}

pub(super) fn check_name(what: &str, name: &str, at: &str, problems: &mut Problems) {
    let length = name.chars().count();
    if length == 0 {
        problems.error(
            at,
            format!("the name of a {what} is empty"),
            format!("give it 1 to {NAME_MAX} characters"),
        );
    } else if length > NAME_MAX {
        let text = format!("the name of {what} [{}] has {length} characters", shown(name));
        problems.error(at, text, format!("give it at most {NAME_MAX}"));
    }
}
