//! A reader's project as it stands at some line of a page.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::block::Block;

/// What stands for lines, or for part of a line, that a page leaves out.
pub(crate) const LEFT_OUT: &str = "…";

/// A dependency as `cargo add` was asked for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) features: Vec<String>,
    pub(crate) is_dev: bool,
}

/// Files and dependencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) dependencies: Vec<Dependency>,
}

impl Project {
    /// Does what a block with a file's name says.
    pub(crate) fn take(&mut self, block: &Block, file: &str) -> Result<(), String> {
        let before = self.files.get(file);
        let text = match (block.language.as_str(), before) {
            ("diff", None) => return Err(format!("{}: there is no {file} to change yet", block.place())),
            ("diff", Some(before)) => {
                changed(before, &block.text).map_err(|why| format!("{}: {why}", block.place()))?
            }
            (_, None) => block.text.clone(),
            (_, Some(before)) => format!("{before}\n{}", block.text),
        };
        self.files.insert(file.to_owned(), text);
        Ok(())
    }

    /// Writes the files beside its sources, which programs read as they run.
    pub(crate) fn lay_out(&self, folder: &Path) -> io::Result<()> {
        let beside = self
            .files
            .iter()
            .filter(|(name, _)| !name.contains('/') && !name.ends_with(".toml"));
        for (name, text) in beside {
            fs::write(folder.join(name), text)?;
        }
        Ok(())
    }

    /// Says whether an excerpt is in one of the files. Indentation does not count.
    pub(crate) fn has(&self, excerpt: &str) -> bool {
        let wanted: Vec<&str> = excerpt.lines().map(str::trim).collect();
        let parts: Vec<&[&str]> = wanted
            .split(|line| line.trim_start_matches("// ") == LEFT_OUT)
            .collect();
        self.files.values().any(|text| {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let mut rest = lines.as_slice();
            parts.iter().all(
                |part| match rest.windows(part.len().max(1)).position(|lines| lines == *part) {
                    Some(at) => {
                        rest = rest.get(at + part.len()..).unwrap_or_default();
                        true
                    }
                    None => part.is_empty(),
                },
            )
        })
    }

    /// `cargo add NAME… [--dev] [--features a,b]`, the words behind `add`.
    pub(crate) fn add(&mut self, words: &[&str]) -> Result<(), String> {
        let is_dev = words.contains(&"--dev");
        let features = words.iter().position(|word| *word == "--features");
        let listed = match features {
            Some(at) => *words.get(at + 1).ok_or("--features names none")?,
            None => "",
        };
        let names: Vec<&&str> = words
            .iter()
            .filter(|word| !word.starts_with("--") && **word != listed)
            .collect();
        if features.is_some() && names.len() > 1 {
            return Err("with --features, add one package at a time".to_owned());
        }
        self.dependencies.extend(names.into_iter().map(|name| {
            Dependency {
                name: (*name).to_owned(),
                features: listed
                    .split(',')
                    .filter(|feature| !feature.is_empty())
                    .map(str::to_owned)
                    .collect(),
                is_dev,
            }
        }));
        Ok(())
    }
}

/// Applies the hunks of a diff, which `@@` separates.
fn changed(before: &str, diff: &str) -> Result<String, String> {
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    let diff: Vec<&str> = diff.lines().collect();
    for hunk in diff
        .split(|line| line.starts_with("@@"))
        .filter(|hunk| !hunk.is_empty())
    {
        let side = |skipped: char| -> Vec<String> {
            let kept = hunk.iter().filter(|line| !line.starts_with(skipped));
            kept.map(|line| line.get(1..).unwrap_or_default().to_owned()).collect()
        };
        let (old, new) = (side('+'), side('-'));
        let is_there = |at: &usize| lines.get(*at..).is_some_and(|lines| lines.starts_with(&old));
        let places: Vec<usize> = (0..lines.len()).filter(is_there).collect();
        match places[..] {
            [at] => drop(lines.splice(at..at + old.len(), new)),
            [] => return Err(format!("the file has no such lines:\n{}", old.join("\n"))),
            _ => return Err(format!("the file has these lines more than once:\n{}", old.join("\n"))),
        }
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_changes_what_is_there_once() {
        assert_eq!(changed("a\nb\nc\n", " a\n-b\n+x\n+y\n").as_deref(), Ok("a\nx\ny\nc\n"));
        assert_eq!(changed("a\n\nb\n", "-a\n@@\n+c\n b\n").as_deref(), Ok("\nc\nb\n"));
        assert!(changed("a\nb\n", "-c\n").is_err());
        assert!(changed("a\na\n", "-a\n").is_err());
    }

    #[test]
    fn an_excerpt_is_in_order_and_may_leave_lines_out() {
        let files = [("src/main.rs".to_owned(), "a\n  b\nc\nd\n".to_owned())];
        let project = Project {
            files: files.into(),
            ..Project::default()
        };
        assert!(project.has("b\nc\n") && project.has("  a\n// …\nd\n"));
        assert!(!project.has("b\nd\n") && !project.has("d\n// …\na\n"));
    }

    #[test]
    fn dependencies_are_those_that_were_asked_for() {
        let mut project = Project::default();
        assert_eq!(project.add(&["serde", "--features", "derive"]), Ok(()));
        assert_eq!(project.add(&["--dev", "a", "b"]), Ok(()));
        let found: Vec<_> = project
            .dependencies
            .iter()
            .map(|found| (&*found.name, found.features.len(), found.is_dev))
            .collect();
        assert_eq!(found, [("serde", 1, false), ("a", 0, true), ("b", 0, true)]);
        assert!(project.add(&["a", "b", "--features", "c"]).is_err());
    }
}
