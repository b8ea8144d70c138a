//! Links between pages: each leads to a file of the project, and to a heading that is there.

use std::collections::{BTreeMap, BTreeSet};

use crate::reading::{Source, root};

/// Returns the links of these pages that lead nowhere.
pub(crate) fn wrong_links(pages: &[Source]) -> Vec<String> {
    let headings: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|page| (page.path.as_str(), anchors(&page.text)))
        .collect();
    let mut wrong = Vec::new();
    for page in pages {
        for (line, link) in links(&page.text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() {
                page.path.clone()
            } else {
                beside(&page.path, file)
            };
            let leads = match headings.get(path.as_str()) {
                Some(headings) => anchor.is_empty() || headings.contains(anchor),
                None => anchor.is_empty() && root().join(&path).exists(),
            };
            if !leads {
                wrong.push(format!("{}:{line}: {link}", page.path));
            }
        }
    }
    wrong
}

/// Targets of links within the project, with their lines. Code is left out.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        in_code ^= line.starts_with("```");
        if in_code {
            continue;
        }
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let own = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
        found.extend(own.map(|target| (at + 1, target)));
    }
    found
}

/// The path of a link, from the root.
fn beside(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let headings = text.lines().filter(|line| {
        in_code ^= line.starts_with("```");
        !in_code && line.starts_with('#')
    });
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
