//! The fenced blocks of a page.

/// A block with its place.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) page: String,
    /// Number of its first line.
    pub(crate) line: usize,
    pub(crate) language: String,
    /// The file that it is, or changes.
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

impl Block {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// Reads the blocks of a page, in order.
pub(crate) fn blocks(page: &str, text: &str) -> Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(info), None) => {
                let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
                open = Some(Block {
                    page: page.to_owned(),
                    line: at + 2,
                    language: language.to_owned(),
                    title: rest
                        .strip_prefix("title=\"")
                        .and_then(|rest| rest.strip_suffix('"'))
                        .map(str::to_owned),
                    text: String::new(),
                });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err(format!("{}: the block has no end", block.place())),
        None => Ok(found),
    }
}
