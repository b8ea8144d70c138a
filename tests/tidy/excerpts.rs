//! Rust in pages that no test of the guide types: each block stands in a documentation test or in an example, so it is
//! compiled there.

use crate::reading::Source;

/// Returns the blocks of Rust in these pages that stand nowhere in these files.
pub(crate) fn loose_blocks(pages: &[Source], compiled: &[Source]) -> Vec<String> {
    let compiled: Vec<String> = compiled.iter().map(|source| plain(&source.text)).collect();
    let mut loose = Vec::new();
    for page in pages {
        for (line, block) in blocks(&page.text) {
            let block = plain(&block);
            if !compiled.iter().any(|text| text.contains(&block)) {
                loose.push(format!("{}:{line}", page.path));
            }
        }
    }
    loose
}

/// The blocks of Rust of a page, each with the line at which it begins.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut under_way: Option<(usize, String)> = None;
    for (at, line) in page.lines().enumerate() {
        match &mut under_way {
            Some(_) if line.starts_with("```") => blocks.extend(under_way.take()),
            Some((_, block)) => *block += &format!("{line}\n"),
            None => under_way = line.starts_with("```rust").then(|| (at + 1, String::new())),
        }
    }
    blocks
}

/// The lines of a text without indentation, and without the marks of a comment.
fn plain(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim();
        let line = line
            .strip_prefix("//!")
            .or_else(|| line.strip_prefix("///"))
            .unwrap_or(line);
        line.trim()
    });
    lines.map(|line| format!("{line}\n")).collect()
}
