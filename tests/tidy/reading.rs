//! Finds the project's files and reads Rust in them, by text alone.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::tables::NESTED;

pub(crate) type Checked = Result<(), Box<dyn Error>>;

pub(crate) struct Source {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Checked {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        // The same file a second time, for a package that brings it along.
        if kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            if !matches!(name.as_str(), "target" | ".git" | "data" | "golden" | "node_modules") {
                walk(&entry.path(), found)?;
            }
        } else {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// All files of the project with one of these extensions, in order.
pub(crate) fn sources(extensions: &[&str]) -> Result<Vec<Source>, Box<dyn Error>> {
    let mut paths = Vec::new();
    walk(root(), &mut paths)?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if extensions.contains(&&*extension) {
            let shown = path.strip_prefix(root())?.to_string_lossy().replace('\\', "/");
            found.push(Source {
                path: shown,
                text: fs::read_to_string(&path)?,
            });
        }
    }
    Ok(found)
}

/// Rust files below a folder of the project.
pub(crate) fn rust_below(folder: &str) -> Result<Vec<Source>, Box<dyn Error>> {
    let mut found = sources(&["rs"])?;
    found.retain(|source| {
        source
            .path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
    });
    Ok(found)
}

/// Rust files below a folder that belong to its package: those of packages nested in it are left out.
pub(crate) fn package_below(folder: &str) -> Result<Vec<Source>, Box<dyn Error>> {
    let mut found = rust_below(folder)?;
    let nested = NESTED.iter().filter(|nested| **nested != folder);
    for nested in nested {
        found.retain(|source| !source.path.starts_with(&format!("{nested}/")));
    }
    Ok(found)
}

pub(crate) fn verdict(rule: &str, wrong: &[String]) -> Checked {
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{rule}\n  {}", wrong.join("\n  ")).into())
}

/// Checks every file with one rule.
pub(crate) fn check(rule: &str, sources: &[Source], wrong_with: impl Fn(&Source) -> Vec<String>) -> Checked {
    let wrong: Vec<String> = sources.iter().flat_map(wrong_with).collect();
    verdict(rule, &wrong)
}

/// The text before the tests of a file, if they stand in it.
pub(crate) fn without_tests(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests {")
        .map_or(text, |(before, _)| before)
}

/// The tests of a file, if they stand in it.
pub(crate) fn tests_within(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests {")
        .map_or("", |(_, tests)| tests)
}

/// The text without comments, also those of documentation.
pub(crate) fn code(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once("//") {
        // What stands before is code, unless the slashes stand in a text.
        Some((before, _)) if before.matches('"').count() % 2 == 0 => before,
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Every place where `name` stands as a word of its own: line number and line.
pub(crate) fn lines_naming<'a>(text: &'a str, name: &str) -> Vec<(usize, &'a str)> {
    let names = |line: &str| {
        line.match_indices(name).any(|(at, _)| {
            let before = line.get(..at).and_then(|part| part.chars().next_back());
            let behind = line.get(at + name.len()..).and_then(|part| part.chars().next());
            !before.is_some_and(is_word) && !behind.is_some_and(is_word)
        })
    };
    text.lines()
        .enumerate()
        .filter(|(_, line)| names(line))
        .map(|(at, line)| (at + 1, line.trim()))
        .collect()
}

/// The modules that a file takes from its own package: `crate::x` and `crate::{x, y}`.
pub(crate) fn own_modules(text: &str) -> BTreeSet<String> {
    let code = code(text);
    let mut modules = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        let rest = code.get(at + start.len()..).unwrap_or_default();
        match rest.strip_prefix('{') {
            Some(group) => modules.extend(heads_of_group(group)),
            None => modules.extend(head(rest)),
        }
    }
    modules
}

/// The modules of a folder that a file in it takes from there: `super::x` counted from the file's own depth, and
/// `crate::<folder>::x`.
pub(crate) fn modules_beside(path: &str, folder: &str, text: &str) -> BTreeSet<String> {
    let Some(rest) = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else {
        return BTreeSet::new();
    };
    let up = "super::".repeat(rest.split('/').count());
    let name = folder.rsplit('/').next().unwrap_or_default();
    let code = code(without_tests(text));
    let mut modules = BTreeSet::new();
    for from in [up, format!("crate::{name}::")] {
        for (at, start) in code.match_indices(&from) {
            let (before, rest) = (code.get(..at), code.get(at + start.len()..));
            // One more `super::` before or behind leads elsewhere.
            let rest = rest.filter(|rest| !rest.starts_with("super::"));
            let rest = rest.filter(|_| before.is_some_and(|before| !before.ends_with("super::")));
            match rest.map(|rest| (rest, rest.strip_prefix('{'))) {
                Some((_, Some(group))) => modules.extend(heads_of_group(group)),
                Some((path, None)) => modules.extend(head(path)),
                None => {}
            }
        }
    }
    modules
}

/// The first name of a path, if it is a module's: types begin with a capital.
pub(crate) fn head(path: &str) -> Option<String> {
    let name: String = path
        .trim_start()
        .chars()
        .take_while(|character| is_word(*character))
        .collect();
    name.starts_with(char::is_lowercase).then_some(name)
}

pub(crate) fn heads_of_group(group: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut heads: Vec<String> = head(group).into_iter().collect();
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => heads.extend(head(group.get(at + 1..).unwrap_or_default())),
            _ => {}
        }
    }
    heads
}

/// The module of its package that a file belongs to; none for the package's root.
pub(crate) fn module_of<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
    let module = rest.split('/').next()?.trim_end_matches(".rs");
    (module != "lib").then_some(module)
}

/// A file as a page shows it: its blocks, with an empty line between them.
pub(crate) fn shown_file(page: &str, file: &str) -> String {
    let begin = format!("```rust title=\"{file}\"\n");
    let blocks = page.split(&begin).skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect::<Vec<_>>().join("\n")
}
