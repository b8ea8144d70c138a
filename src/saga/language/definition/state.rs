//! One state out of its attributes. Links are names here; another check looks the names up.

use super::attributes::{Attributes, whole};
use super::form::{Call, Catch, Choice, Fork, Kind, Link, Repeat, Retry, State, Status, Task, Updates};
use super::json::Json;
use super::problem::{Problems, shown};
use super::template::{Template, Types};
use super::texts;
use crate::expression::Text;

/// Types of states, as files name them.
const TYPES: [&str; 9] = [
    "ServiceTask",
    "ScriptTask",
    "SubStateMachine",
    "CompensateSubMachine",
    "Choice",
    "CompensationTrigger",
    "Fork",
    "Join",
    "Succeed",
];
/// The type that is so short that it is near to nothing.
const FAIL: &str = "Fail";

/// Attributes that every state may have.
const ANY: &[&str] = &["Type", "Comment"];
const TASK: &[&str] = &[
    "Next",
    "Input",
    "Output",
    "Status",
    "CompensateState",
    "IsForUpdate",
    "IsForCompensation",
    "Retry",
    "Catch",
    "Loop",
    "IsPersist",
    "IsRetryPersistModeUpdate",
    "IsCompensatePersistModeUpdate",
];
const SERVICE: &[&str] = &[
    "ServiceName",
    "ServiceMethod",
    "ServiceType",
    "ParameterTypes",
    "IsAsync",
];
const SCRIPT: &[&str] = &["ScriptType", "ScriptContent"];
const MACHINE: &[&str] = &["StateMachineName"];

/// Types of services that mean a call in this process.
const SERVICE_TYPES: [&str; 2] = ["SpringBean", "local"];
/// Entries of a Retry.
const RETRIES: usize = 16;
/// Entries of a Catch.
pub(super) const CATCHES: usize = 64;
/// Entries of a Choice. All may be evaluated in the commit that goes through it.
pub(super) const CHOICES: usize = 256;
/// What to do where a state has more of them.
pub(super) const FEWER_CATCHES: &str = "put classes together";
pub(super) const FEWER_CHOICES: &str = "lead some of them to a Choice of their own";
/// Retries of one entry.
const ATTEMPTS: u64 = 1_000;
/// Most elements that a Loop works on at once, and branches of a Fork: more than either may have.
const PARALLEL: u64 = 1_000_000_000;
/// Branches of one Fork.
pub(super) const BRANCHES: usize = 1_000;
/// Longest time-out of a Fork: 366 days.
const TIMEOUT_MS: u64 = 366 * 24 * 60 * 60 * 1_000;

/// Reads a state of the type that `Type` says.
pub(super) fn read(name: &str, attributes: &Attributes<'_>, problems: &mut Problems) -> State {
    let word = attributes.text("Type", problems);
    if !attributes.has("Type") {
        let hint = format!("say what the state is: {}, or {FAIL}", TYPES.join(", "));
        problems.error_in(attributes.state(), &attributes.place(), "Type is missing", hint);
    }
    read_as(name, word, &attributes.at("Type"), attributes, problems)
}

/// Reads a state of this type; the type lies at `type_at`.
pub(super) fn read_as(
    name: &str,
    word: Option<&str>,
    type_at: &str,
    attributes: &Attributes<'_>,
    problems: &mut Problems,
) -> State {
    let mut next = None;
    let kind = match word {
        Some("ServiceTask") => {
            next = attributes.link("Next", problems);
            service(attributes, problems)
        }
        Some("ScriptTask") => {
            next = attributes.link("Next", problems);
            script(attributes, problems)
        }
        Some("SubStateMachine") => {
            next = attributes.link("Next", problems);
            machine(attributes, problems)
        }
        Some("CompensateSubMachine") => {
            next = attributes.link("Next", problems);
            compensate_machine(attributes, problems)
        }
        Some("Choice") => choice(attributes, problems),
        Some("CompensationTrigger") => {
            attributes.find_ignored(&[ANY, &["Next"]], problems);
            next = attributes.link("Next", problems);
            Kind::Trigger
        }
        Some("Fork") => fork(name, attributes, problems),
        Some("Join") => {
            attributes.find_ignored(&[ANY, &["Next"]], problems);
            next = attributes.link("Next", problems);
            Kind::Join
        }
        Some("Succeed") => {
            attributes.find_ignored(&[ANY], problems);
            Kind::Succeed
        }
        Some(FAIL) => {
            attributes.find_ignored(&[ANY, &["ErrorCode", "Message"]], problems);
            let code = attributes.owned_text("ErrorCode", problems);
            Kind::Fail {
                code,
                message: attributes.owned_text("Message", problems),
            }
        }
        Some(other) => {
            unsupported(other, type_at, attributes, problems);
            next = attributes.link("Next", problems);
            Kind::Unsupported
        }
        None => Kind::Unsupported,
    };
    State {
        name: name.to_owned(),
        at: attributes.place(),
        comment: attributes.owned_text("Comment", problems),
        kind,
        next,
        drawn: None,
    }
}

fn unsupported(word: &str, at: &str, attributes: &Attributes<'_>, problems: &mut Problems) {
    // Of a design that Seata did not take.
    let hint = match word.starts_with("Parallel") {
        true => "use Fork and Join".to_owned(),
        false => {
            let otherwise = format!("use {}, or {FAIL}", TYPES.join(", "));
            problems.nearest(word, TYPES.into_iter().chain([FAIL]), &otherwise)
        }
    };
    let text = format!("State Type [{}] is not supported", shown(word));
    problems.error_in(attributes.state(), at, text, hint);
}

fn service(attributes: &Attributes<'_>, problems: &mut Problems) -> Kind {
    attributes.find_ignored(&[ANY, TASK, SERVICE], problems);
    if let Some(other) = attributes
        .text("ServiceType", problems)
        .filter(|word| !SERVICE_TYPES.contains(word))
    {
        let text = format!("ServiceType \"{}\" is ignored", shown(other));
        let hint = "the service is found by its name; remove ServiceType";
        problems.warn_in(attributes.state(), &attributes.at("ServiceType"), text, hint);
    }
    let has_types = attributes.texts("ParameterTypes", problems).is_some();
    let call = Call::Service {
        service: attributes.owned_text("ServiceName", problems).unwrap_or_default(),
        method: attributes.owned_text("ServiceMethod", problems).unwrap_or_default(),
        is_async: attributes.flag("IsAsync", problems).unwrap_or_default(),
        has_types,
    };
    let types = match has_types {
        true => Types::OfJava,
        false => Types::None,
    };
    task(call, types, attributes, problems)
}

fn script(attributes: &Attributes<'_>, problems: &mut Problems) -> Kind {
    attributes.find_ignored(&[ANY, TASK, SCRIPT], problems);
    let call = Call::Script {
        language: attributes.owned_text("ScriptType", problems),
        content: attributes.owned_text("ScriptContent", problems),
    };
    task(call, Types::None, attributes, problems)
}

fn machine(attributes: &Attributes<'_>, problems: &mut Problems) -> Kind {
    attributes.find_ignored(&[ANY, TASK, MACHINE], problems);
    if attributes.has("Retry") {
        let text = "Retry of a SubStateMachine has no effect";
        let hint = "its failure is a status and no fault: let states inside the machine retry";
        problems.warn_in(attributes.state(), &attributes.at("Retry"), text, hint);
    }
    let machine = attributes.owned_text("StateMachineName", problems).unwrap_or_default();
    task(Call::Machine { machine }, Types::None, attributes, problems)
}

fn compensate_machine(attributes: &Attributes<'_>, problems: &mut Problems) -> Kind {
    attributes.find_ignored(&[ANY, TASK], problems);
    for key in ["Input", "Status", "Retry"] {
        if attributes.has(key) {
            let text = format!("{key} of a CompensateSubMachine has no effect");
            problems.warn_in(
                attributes.state(),
                &attributes.at(key),
                text,
                "remove it: the machine undoes itself",
            );
        }
    }
    task(Call::CompensateMachine, Types::None, attributes, problems)
}

fn task(call: Call, types: Types, attributes: &Attributes<'_>, problems: &mut Problems) -> Kind {
    find_persist(attributes, problems);
    Kind::Task(Box::new(Task {
        call,
        input: input(types, attributes, problems),
        output: output(attributes, problems),
        status: statuses(attributes, problems),
        compensate: attributes.link("CompensateState", problems),
        is_for_update: attributes.flag("IsForUpdate", problems).unwrap_or_default(),
        is_for_compensation: attributes.flag("IsForCompensation", problems).unwrap_or_default(),
        retry: retries(attributes, problems),
        catches: catches(attributes, problems),
        repeat: repeat(attributes, problems),
        updates: updates(attributes, problems),
    }))
}

/// Warns of `IsPersist`, which a machine has as well.
pub(super) fn find_persist(attributes: &Attributes<'_>, problems: &mut Problems) {
    if attributes.flag("IsPersist", problems).is_some() {
        let text = "IsPersist is ignored: every step is durable";
        problems.warn_in(attributes.state(), &attributes.at("IsPersist"), text, "remove it");
    }
}

/// Reads which tries a list of states shows, of a machine or a state.
pub(super) fn updates(attributes: &Attributes<'_>, problems: &mut Problems) -> Updates {
    Updates {
        retry: attributes.flag("IsRetryPersistModeUpdate", problems),
        compensate: attributes.flag("IsCompensatePersistModeUpdate", problems),
    }
}

fn input(types: Types, attributes: &Attributes<'_>, problems: &mut Problems) -> Vec<Template> {
    let items = attributes.list("Input", problems).unwrap_or_default();
    let place = attributes.path().key("Input");
    let items = items.iter().enumerate();
    items
        .map(|(index, item)| Template::compile(item, types, &place.index(index), attributes.state(), problems))
        .collect()
}

fn output(attributes: &Attributes<'_>, problems: &mut Problems) -> Vec<(String, Template)> {
    let members = attributes.object("Output", problems).unwrap_or_default();
    let place = attributes.path().key("Output");
    let members = members.iter().map(|(key, value)| {
        let at = place.key(key);
        let value = Template::compile(value, Types::None, &at, attributes.state(), problems);
        (key.clone(), value)
    });
    members.collect()
}

fn statuses(attributes: &Attributes<'_>, problems: &mut Problems) -> Vec<(Text, Status)> {
    let members = attributes.object("Status", problems).unwrap_or_default();
    let place = attributes.path().key("Status");
    let mut statuses = Vec::with_capacity(members.len());
    for (expression, word) in members {
        let at = place.key(expression);
        let condition = texts::condition(expression, &at, attributes.state(), problems);
        if let Some(status) = word.text().and_then(Status::of_word) {
            statuses.push((condition, status));
            continue;
        }
        let said = match word.text() {
            Some(word) => format!("\"{}\"", shown(word)),
            None => word.described(),
        };
        let text = format!("Status of \"{}\" is {said}", shown(expression));
        problems.error_in(attributes.state(), &at.to_string(), text, "use SU, FA, UN, SK or RU");
    }
    statuses
}

/// Returns the objects of a list; entries that are none are told of.
fn entries<'a>(
    key: &'a str,
    attributes: &Attributes<'a>,
    problems: &mut Problems,
) -> Vec<(usize, &'a [(String, Json)])> {
    let items = attributes.list(key, problems).unwrap_or_default();
    let place = attributes.path().key(key);
    let mut entries = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item.members() {
            Some(members) => entries.push((index, members)),
            None => {
                let text = format!("{key}[{index}] is {}", item.described());
                let hint = "write an object, between { and }";
                problems.error_in(attributes.state(), &place.index(index).to_string(), text, hint);
            }
        }
    }
    entries
}

fn check_number(
    key: &str,
    count: usize,
    most: usize,
    hint: &str,
    attributes: &Attributes<'_>,
    problems: &mut Problems,
) {
    if count > most {
        let text = format!("{key} has {count} entries, at most {most}");
        problems.error_in(attributes.state(), &attributes.at(key), text, hint);
    }
}

fn retries(attributes: &Attributes<'_>, problems: &mut Problems) -> Vec<Retry> {
    let entries = entries("Retry", attributes, problems);
    check_number(
        "Retry",
        entries.len(),
        RETRIES,
        "put classes together",
        attributes,
        problems,
    );
    let list = attributes.path().key("Retry");
    let mut retries = Vec::with_capacity(entries.len());
    for (index, members) in entries {
        let entry = Attributes::new(members, list.index(index), attributes.state());
        entry.find_ignored(
            &[&["Exceptions", "MaxAttempts", "IntervalSeconds", "BackoffRate"]],
            problems,
        );
        if !entry.has("MaxAttempts") {
            let text = format!("Retry[{index}] has no MaxAttempts");
            problems.error_in(entry.state(), &entry.place(), text, "say how often it is retried");
        }
        retries.push(Retry {
            exceptions: entry.texts("Exceptions", problems),
            max_attempts: entry.whole("MaxAttempts", 0..=ATTEMPTS, problems).unwrap_or_default(),
            interval_seconds: entry.amount("IntervalSeconds", problems).unwrap_or_default(),
            backoff_rate: entry.amount("BackoffRate", problems).unwrap_or(1.0),
        });
    }
    retries
}

fn catches(attributes: &Attributes<'_>, problems: &mut Problems) -> Vec<Catch> {
    let entries = entries("Catch", attributes, problems);
    check_number("Catch", entries.len(), CATCHES, FEWER_CATCHES, attributes, problems);
    let list = attributes.path().key("Catch");
    let mut catches = Vec::with_capacity(entries.len());
    for (index, members) in entries {
        let entry = Attributes::new(members, list.index(index), attributes.state());
        entry.find_ignored(&[&["Exceptions", "Next"]], problems);
        if !entry.has("Next") {
            let text = format!("Catch[{index}] has no Next");
            problems.error_in(entry.state(), &entry.place(), text, "say where it leads");
        }
        catches.push(Catch {
            exceptions: entry.texts("Exceptions", problems).unwrap_or_default(),
            next: entry.link("Next", problems),
        });
    }
    catches
}

fn repeat(attributes: &Attributes<'_>, problems: &mut Problems) -> Option<Repeat> {
    const KNOWN: &[&str] = &[
        "Collection",
        "Parallel",
        "ElementVariableName",
        "ElementIndexName",
        "CompletionCondition",
    ];
    let members = attributes.object("Loop", problems)?;
    let of = Attributes::new(members, attributes.path().key("Loop"), attributes.state());
    of.find_ignored(&[KNOWN], problems);
    if !of.has("Collection") {
        problems.error_in(
            of.state(),
            &of.place(),
            "Loop has no Collection",
            "say which list it goes through",
        );
    }
    let name = |key: &str, default: &str, problems: &mut Problems| {
        of.owned_text(key, problems).unwrap_or_else(|| default.to_owned())
    };
    let collection = of.get("Collection").map(|json| {
        let at = of.path().key("Collection");
        Template::compile(json, Types::None, &at, of.state(), problems)
    });
    Some(Repeat {
        collection,
        parallel: of.whole("Parallel", 0..=PARALLEL, problems).unwrap_or(1),
        element_name: name("ElementVariableName", "loopElement", problems),
        index_name: name("ElementIndexName", "loopCounter", problems),
        completion: of.condition("CompletionCondition", problems),
    })
}

fn choice(attributes: &Attributes<'_>, problems: &mut Problems) -> Kind {
    attributes.find_ignored(&[ANY, &["Choices", "Default"]], problems);
    let entries = entries("Choices", attributes, problems);
    check_number("Choices", entries.len(), CHOICES, FEWER_CHOICES, attributes, problems);
    let list = attributes.path().key("Choices");
    let mut choices = Vec::with_capacity(entries.len());
    for (index, members) in entries {
        let entry = Attributes::new(members, list.index(index), attributes.state());
        entry.find_ignored(&[&["Expression", "Next"]], problems);
        for (key, hint) in [("Expression", "say when it is taken"), ("Next", "say where it leads")] {
            if !entry.has(key) {
                let text = format!("Choices[{index}] has no {key}");
                problems.error_in(entry.state(), &entry.place(), text, hint);
            }
        }
        choices.push(Choice {
            expression: entry.condition("Expression", problems).unwrap_or_else(texts::nothing),
            next: entry.link("Next", problems),
        });
    }
    Kind::Choice {
        choices,
        default: attributes.link("Default", problems),
    }
}

fn fork(name: &str, attributes: &Attributes<'_>, problems: &mut Problems) -> Kind {
    attributes.find_ignored(&[ANY, &["Branches", "Parallel", "Timeout", "Next"]], problems);
    if attributes.has("Next") {
        let text = "Next of a Fork is ignored";
        problems.warn_in(
            attributes.state(),
            &attributes.at("Next"),
            text,
            "remove it: its Join says what follows",
        );
    }
    let items = attributes.list("Branches", problems).unwrap_or_default();
    let list = attributes.path().key("Branches");
    let mut branches = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = list.index(index).to_string();
        match item.text() {
            Some(branch) => branches.push(Link::new(branch, at)),
            None => {
                let text = format!("Branches[{index}] is {}", item.described());
                problems.error_in(
                    attributes.state(),
                    &at,
                    text,
                    "write the name of the branch's first state",
                );
            }
        }
    }
    Kind::Fork(Fork {
        branches,
        parallel: at_least_none(name, "Parallel", PARALLEL, "write 0 for no limit", attributes, problems),
        timeout_ms: at_least_none(name, "Timeout", TIMEOUT_MS, "write 0 for none", attributes, problems),
    })
}

/// Reads a whole number of a Fork, where 0 says that there is no bound.
fn at_least_none(
    fork: &str,
    key: &str,
    most: u64,
    none: &str,
    attributes: &Attributes<'_>,
    problems: &mut Problems,
) -> u64 {
    let Some(value) = attributes.get(key) else { return 0 };
    let Some(number) = attributes.number(key, value, problems) else {
        return 0;
    };
    if number < 0.0 {
        let text = format!("Fork [{}]: {key} must be >= 0", shown(fork));
        problems.error(&attributes.at(key), text, format!("it is {number}: {none}"));
        return 0;
    }
    match whole(number) {
        Some(number) if number <= most => number,
        whole => {
            let hint = match whole {
                Some(_) => format!("write {most} or less"),
                None => "write a whole number".to_owned(),
            };
            let text = format!("Fork [{}]: {key} is {number}", shown(fork));
            problems.error(&attributes.at(key), text, hint);
            0
        }
    }
}
