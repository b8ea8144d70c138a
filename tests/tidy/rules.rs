//! The rules: each is a function from a text to what is wrong with it.

use crate::reading::{
    Source, code, is_word, lines_naming, module_of, modules_beside, own_modules, tests_within, without_tests,
};
use crate::tables::{HEADINGS, SECTIONS, STORE_NAMES, TEST_FOLDERS};

pub(crate) fn wrong_order(source: &Source, folder: &str, layers: &[&[&str]]) -> Vec<String> {
    let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let is_test = source.path.ends_with("/tests.rs") || source.path.contains("/tests/");
    let Some(module) = module_of(&source.path, folder).filter(|_| !is_test) else {
        return Vec::new();
    };
    let Some(own) = layer(module) else {
        return vec![format!(
            "{}: module `{module}` is in no layer; add it to the table in tests/tidy/tables.rs",
            source.path
        )];
    };
    let used = own_modules(&source.text);
    let backward = used.iter().filter(|used| layer(used).is_some_and(|used| used > own));
    backward
        .map(|used| {
            format!(
                "{}: `{module}` must not use `{used}`, which stands above it",
                source.path
            )
        })
        .collect()
}

/// Where a file below the supervisor's folder names the supervisor: only `supervisor.rs` itself may.
pub(crate) fn wrong_supervisor(source: &Source) -> Vec<String> {
    let is_test = source.path.ends_with("tests.rs");
    if is_test || !source.path.starts_with("actors/src/supervisor/") {
        return Vec::new();
    }
    let code = code(without_tests(&source.text));
    let lines = lines_naming(&code, "Supervisor").into_iter();
    lines
        .map(|(at, line)| format!("{}:{at}: only supervisor.rs names the supervisor: {line}", source.path))
        .collect()
}

/// What a part of the supervisor takes from a part that stands above it.
pub(crate) fn wrong_part_order(source: &Source, layers: &[&[&str]]) -> Vec<String> {
    let folder = "actors/src/supervisor";
    let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let is_test = source.path.ends_with("tests.rs");
    let Some(module) = module_of(&source.path, folder).filter(|_| !is_test) else {
        return Vec::new();
    };
    let Some(own) = layer(module) else {
        return vec![format!(
            "{}: `{module}` is in no layer; add it to SUPERVISOR in tests/tidy/tables.rs",
            source.path
        )];
    };
    let used = modules_beside(&source.path, folder, &source.text);
    let backward = used.iter().filter(|used| layer(used).is_some_and(|used| used > own));
    backward
        .map(|used| {
            format!(
                "{}: `{module}` must not use `{used}`, which stands above it",
                source.path
            )
        })
        .collect()
}

/// What a wing of the supervisor must not do: implement anything for the supervisor, take it as an argument, or show
/// the fields of its own struct.
pub(crate) fn wrong_wing(source: &Source, wing: &str, name: &str) -> Vec<String> {
    let folder = "actors/src/supervisor/";
    let Some(rest) = source
        .path
        .strip_prefix(folder)
        .and_then(|rest| rest.strip_prefix(wing))
    else {
        return Vec::new();
    };
    if rest != ".rs" && !rest.starts_with('/') {
        return Vec::new();
    }
    let is_test = source.path.ends_with("tests.rs");
    let code = code(without_tests(&source.text));
    let mut wrong: Vec<String> = lines_naming(&code, "Supervisor")
        .into_iter()
        .filter(|_| !is_test)
        .map(|(at, line)| format!("{}:{at}: a wing does not know the supervisor: {line}", source.path))
        .collect();
    if rest == ".rs" {
        match fields(&code, name) {
            Some(fields) => wrong.extend(
                fields
                    .lines()
                    .filter(|line| line.trim_start().starts_with("pub"))
                    .map(|line| format!("{}: `{name}` shows a field: {}", source.path, line.trim())),
            ),
            None => wrong.push(format!("{}: has no struct `{name}`", source.path)),
        }
    }
    wrong
}

/// The lines between the braces of a struct.
fn fields<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    let head = format!("struct {name}");
    let rest = code.split(&head).skip(1).find(|rest| !rest.starts_with(is_word))?;
    let (_, rest) = rest.split_once('{')?;
    rest.split_once("\n}").map(|(fields, _)| fields)
}

pub(crate) fn wrong_packages(source: &Source, allowed: &[&str]) -> Vec<String> {
    let code = code(&source.text);
    let packages = [
        "procession",
        "procession_actors",
        "procession_cli",
        "procession_kernel",
        "procession_page",
        "procession_saga_language",
    ];
    packages
        .into_iter()
        .filter(|package| !allowed.contains(package))
        .filter(|package| code.contains(&format!("{package}::")) && !lines_naming(&code, package).is_empty())
        .map(|package| format!("{}: must not name `{package}`", source.path))
        .collect()
}

pub(crate) fn wrong_names(source: &Source, names: &[&str]) -> Vec<String> {
    let code = code(without_tests(&source.text));
    names
        .iter()
        .flat_map(|name| lines_naming(&code, name).into_iter().map(move |(at, _)| (name, at)))
        .map(|(name, at)| format!("{}:{at}: names `{name}`", source.path))
        .collect()
}

pub(crate) fn wrong_header(source: &Source) -> Vec<String> {
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![source.path.clone()]
}

/// Texts that stand in no file. Written in two parts, so that this file has none either.
pub(crate) fn wrong_words(source: &Source) -> Vec<String> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let places = [
        concat!("/wo", "rk/"),
        concat!("\"/t", "mp"),
        concat!(" /t", "mp/"),
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
    ];
    let calls = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
    ];
    let mut wrong = places_of(&source.path, &source.text, |line| {
        marks.iter().any(|mark| !lines_naming(line, mark).is_empty()) || places.iter().any(|place| line.contains(place))
    });
    if source.path.ends_with(".rs") {
        wrong.extend(places_of(&source.path, &source.text, |line| {
            calls.iter().any(|call| line.contains(call))
        }));
    }
    wrong
}

/// Sleeps of tests: whatever they wait for may come later, or never.
pub(crate) fn wrong_sleeps(source: &Source) -> Vec<String> {
    let calls = [concat!("thread::", "sleep"), concat!("time::", "sleep(")];
    let tests = if is_test(&source.path) {
        source.text.as_str()
    } else {
        tests_within(&source.text)
    };
    places_of(&source.path, tests, |line| calls.iter().any(|call| line.contains(call)))
}

/// Every line that is wrong, with its place and its text.
fn places_of(path: &str, text: &str, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| is_wrong(line));
    lines
        .map(|(at, line)| format!("{path}:{}: {}", at + 1, line.trim()))
        .collect()
}

pub(crate) fn is_test(path: &str) -> bool {
    let below = TEST_FOLDERS.iter().any(|folder| path.starts_with(folder));
    below || path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Calls that end the process where an error would do.
pub(crate) fn wrong_unwraps(source: &Source) -> Vec<String> {
    if is_test(&source.path) {
        return Vec::new();
    }
    let call = concat!(".unw", "rap()");
    let code = code(without_tests(&source.text));
    let lines = code.lines().enumerate().filter(|(_, line)| line.contains(call));
    lines.map(|(at, _)| format!("{}:{}", source.path, at + 1)).collect()
}

/// Lines of plain comment that end as a statement does.
pub(crate) fn wrong_comments(source: &Source) -> Vec<String> {
    let is_code = |line: &str| {
        let Some(text) = line.trim_start().strip_prefix("// ") else {
            return false;
        };
        text.ends_with(';') && (text.contains('(') || text.contains(" = ") || text.starts_with("use "))
    };
    let lines = source.text.lines().enumerate().filter(|(_, line)| is_code(line));
    lines
        .map(|(at, line)| format!("{}:{}: {}", source.path, at + 1, line.trim()))
        .collect()
}

/// Names of the packages in a section of a manifest.
pub(crate) fn dependencies(manifest: &str, section: &str) -> Vec<String> {
    let lines = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != section)
        .skip(1);
    let lines = lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            line.chars()
                .take_while(|character| is_word(*character) || *character == '-')
                .collect()
        })
        .collect()
}

/// What a manifest depends on beside what it may.
pub(crate) fn wrong_dependencies(manifest: &str, allowed: &[&str]) -> Vec<String> {
    let mut wrong = dependencies(manifest, "[dependencies]");
    wrong.retain(|name| !allowed.contains(&name.as_str()));
    for section in ["[target.", "[build-dependencies]", "[dependencies."] {
        wrong.extend(manifest.contains(section).then(|| format!("a section {section}")));
    }
    wrong
}

/// Entries of the changelog outside a section, sections and versions that are none, and formats without golden files.
pub(crate) fn wrong_changes(text: &str) -> Vec<String> {
    let mut section = None;
    let mut wrong = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let is_right = if let Some(version) = line.strip_prefix("## ") {
            section = None;
            is_version(version)
        } else if let Some(name) = line.strip_prefix("### ") {
            section = Some(name);
            SECTIONS.contains(&name)
        } else if let Some(entry) = line.strip_prefix("- ") {
            let is_format = entry.starts_with("Format ");
            section.is_some() && (!is_format || entry.contains("golden"))
        } else {
            true
        };
        wrong.extend((!is_right).then(|| format!("CHANGELOG.md:{}: {line}", at + 1)));
    }
    wrong
}

/// `[Unreleased]`, or `[1.2.3] - 2026-01-31`.
fn is_version(heading: &str) -> bool {
    let Some((version, rest)) = heading.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    let is_dated = rest
        .strip_prefix(" - ")
        .is_some_and(|date| date.split('-').count() == 3);
    (version == "Unreleased" && rest.is_empty()) || (version.split('.').count() == 3 && is_dated)
}

/// Roots of tests that are in no manifest, or in two: discovery is off, so a forgotten one would never run.
pub(crate) fn wrong_roots(roots: &[String], manifests: &str) -> Vec<String> {
    let listed = |root: &String| {
        let paths = manifests.lines().filter_map(|line| line.strip_prefix("path = \""));
        let paths = paths.map(|path| path.trim_end_matches('"').trim_start_matches("../"));
        paths.filter(|path| path == root).count()
    };
    let counted = roots.iter().map(|root| (root, listed(root)));
    counted
        .filter(|(_, count)| *count != 1)
        .map(|(root, count)| format!("{root}: stands in {count} manifests"))
        .collect()
}

/// What is wrong with the decisions: names in order, and each one's text.
pub(crate) fn wrong_decisions(decisions: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, (name, text)) in decisions.iter().enumerate() {
        let number = format!("{:04}-", at + 1);
        if !name.starts_with(&number) {
            wrong.push(format!(
                "{name}: its number should be {number}, as numbers have no gaps"
            ));
        }
        let missing = HEADINGS
            .iter()
            .filter(|heading| !text.lines().any(|line| line.trim() == **heading));
        wrong.extend(missing.map(|heading| format!("{name}: has no heading `{heading}`")));
    }
    wrong
}

/// The text between a line that begins so and the brace that ends it.
fn body_of<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once("\n}").map(|(body, _)| body)
}

/// The fields of a struct that go to disk: short name and name. One that is written by a table of its own has them there,
/// as `"q" row.revision`.
fn stored_fields(text: &str, name: &str) -> Vec<(String, String)> {
    if let Some((_, rest)) = text.split_once(&format!("impl Serialize for {name} {{")) {
        let table = rest.split("pub struct ").next().unwrap_or_default();
        let lines = table
            .lines()
            .filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" "));
        let named = lines.filter_map(|(short, rest)| Some((short, rest.split([' ', ',']).next()?.split_once('.')?.1)));
        return named
            .map(|(short, field)| (short.to_owned(), field.to_owned()))
            .collect();
    }
    let body = body_of(text, &format!("pub struct {name} {{")).unwrap_or_default();
    let mut short = None;
    let mut fields = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[serde(rename = \"") {
            short = rest.split('"').next().map(str::to_owned);
        } else if let Some((field, _)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(':')) {
            fields.extend(short.take().map(|short| (short, field.to_owned())));
        }
    }
    fields
}

/// Fields of these structs that the page does not list in this order, and rows that it has too many.
pub(crate) fn wrong_format_page(page: &str, records: &str, structs: &[&str]) -> Vec<String> {
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted: Vec<String> = structs
        .iter()
        .flat_map(|name| stored_fields(records, name))
        .map(|(short, field)| format!("| `{short}` | `{field}`"))
        .collect();
    let listed: Vec<&str> = rows.into_iter().filter(|row| row.get(4..5) == Some("`")).collect();
    let mut wrong = Vec::new();
    for (at, row) in wanted.iter().enumerate() {
        let shown = listed.get(at).copied().unwrap_or("nothing");
        if !shown.starts_with(row.as_str()) {
            wrong.push(format!("wants a row `{row}`, shows `{shown}`"));
        }
    }
    wrong.extend(
        listed
            .iter()
            .skip(wanted.len())
            .map(|row| format!("has a row too many: {row}")),
    );
    wrong
}

/// Keyspaces that the page does not list.
pub(crate) fn wrong_keyspaces(page: &str, keys: &str) -> Vec<String> {
    let body = keys
        .split_once("pub fn name(")
        .and_then(|(_, rest)| rest.split_once("\n    }"))
        .map_or("", |(body, _)| body);
    let names = body
        .lines()
        .filter_map(|line| line.split_once("=> \"")?.1.split('"').next());
    names
        .filter(|name| !page.contains(&format!("| `{name}` |")))
        .map(|name| format!("has no row for the keyspace {name}"))
        .collect()
}

/// Metrics that stand in one of the page and the code alone, or twice in the code.
pub(crate) fn wrong_metrics(page: &str, telemetry: &str) -> Vec<String> {
    let names = |text: &str, before: &str, behind: char| {
        let found = text.lines().filter_map(|line| {
            let (_, rest) = line.split_once(&format!("{before}procession_"))?;
            Some(format!("procession_{}", rest.split(behind).next()?))
        });
        found.collect::<Vec<String>>()
    };
    let (shown, named) = (names(page, "| `", '`'), names(&code(telemetry), "\"", '"'));
    let mut wrong = Vec::new();
    for name in &shown {
        match named.iter().filter(|other| *other == name).count() {
            0 => wrong.push(format!("the code does not name {name}")),
            1 => {}
            _ => wrong.push(format!("the code names {name} more than once")),
        }
    }
    let missing = named.iter().filter(|name| !shown.contains(name));
    wrong.extend(missing.map(|name| format!("the page does not list {name}")));
    wrong
}

/// Metrics in a page of alerts that the code does not name.
pub(crate) fn wrong_alerts(page: &str, telemetry: &str) -> Vec<String> {
    let names = page
        .split(|character: char| !is_word(character))
        .filter(|word| word.starts_with("procession_"));
    let unknown = names.filter(|name| !telemetry.contains(&format!("\"{name}\"")));
    unknown.map(|name| format!("nothing measures {name}")).collect()
}

/// What is logged and stands in one of the page and the code alone, or there with another level.
pub(crate) fn wrong_log_events(page: &str, sources: &[Source]) -> Vec<String> {
    let shown: Vec<&str> = page
        .lines()
        .filter(|line| LEVELS.iter().any(|level| line.contains(&format!("` | {level} | "))))
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .collect();
    let mut wrong = Vec::new();
    let mut named = Vec::new();
    for (source, level) in sources.iter().flat_map(|source| LEVELS.map(|level| (source, level))) {
        let text = code(&source.text);
        let call = format!("tracing::{level}!(");
        let calls = text.split(&call).skip(1);
        // The name is the one text in a call.
        for name in calls.filter_map(|call| call.split('"').nth(1)) {
            let name = format!("`{name}`");
            if !page.contains(&format!("| {name} | {level} | ")) {
                wrong.push(format!("{}: {name}, {level}, has no row", source.path));
            }
            named.push(name);
        }
    }
    let gone = shown.iter().filter(|name| !named.iter().any(|other| other == *name));
    wrong.extend(gone.map(|name| format!("nothing logs {name}")));
    wrong
}

/// Levels at which something is logged.
const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];

/// Where a file names a part of a store.
pub(crate) fn store_names(source: &Source) -> Vec<String> {
    let code = code(&source.text);
    let lines = code.lines().enumerate();
    let named = lines.filter(|(_, line)| STORE_NAMES.iter().any(|name| line.contains(name)));
    named.map(|(at, _)| format!("{}:{}", source.path, at + 1)).collect()
}
