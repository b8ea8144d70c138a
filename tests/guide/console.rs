//! The commands of a `console` block, and what each prints.

use crate::block::Block;

/// Where a reader has a clone of this repository.
const CLONE: &str = "../procession/";

/// What a command does, as far as a test can do it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verb {
    /// `cargo new NAME`.
    New(String),
    /// `mkdir NAME`: a folder without a program of the reader's.
    Folder(String),
    /// `cd NAME`.
    Enter(String),
    /// `cargo add …`, the words behind `add`.
    Add(Vec<String>),
    /// `cp ../procession/FILE FILE`: a file of this repository, and where it is put.
    Copy(String, String),
    /// `cargo run`, with what stands behind `--`.
    Run(Vec<String>),
    /// `cargo test`, with what stands behind `--`.
    Test(Vec<String>),
    /// `procession …`, the words behind it.
    Program(Vec<String>),
}

/// A command with its place.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) place: String,
    pub(crate) verb: Verb,
    /// Lines that it prints; empty if the page shows none.
    pub(crate) printed: Vec<String>,
    /// It is killed once it has printed that.
    pub(crate) is_killed: bool,
}

/// Reads the commands of a block.
pub(crate) fn commands(block: &Block) -> Result<Vec<Command>, String> {
    let mut commands: Vec<Command> = Vec::new();
    for (at, line) in block.text.lines().enumerate() {
        let place = format!("{}:{}", block.page, block.line + at);
        if let Some(text) = line.strip_prefix("$ ") {
            let verb = verb(text).map_err(|why| format!("{place}: {why}"))?;
            commands.push(Command {
                place,
                verb,
                printed: Vec::new(),
                is_killed: false,
            });
            continue;
        }
        let command = commands
            .last_mut()
            .ok_or_else(|| format!("{place}: a command begins with `$ `"))?;
        match line {
            "^C" => command.is_killed = true,
            _ => command.printed.push(line.trim_end().to_owned()),
        }
    }
    Ok(commands)
}

fn verb(text: &str) -> Result<Verb, String> {
    // A comment is for the reader.
    let text = text.split_once(" #").map_or(text, |(command, _)| command);
    let words = words(text);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match &words[..] {
        ["cargo", "new", name] => Ok(Verb::New((*name).to_owned())),
        ["mkdir", name] => Ok(Verb::Folder((*name).to_owned())),
        ["cd", name] => Ok(Verb::Enter((*name).to_owned())),
        ["cargo", "add", rest @ ..] => Ok(Verb::Add(owned(rest))),
        ["cp", from, to] => match from.strip_prefix(CLONE) {
            Some(from) => Ok(Verb::Copy(from.to_owned(), (*to).to_owned())),
            None => Err(format!("files are copied from {CLONE} only")),
        },
        ["cargo", "run"] => Ok(Verb::Run(Vec::new())),
        ["cargo", "run", "--", rest @ ..] => Ok(Verb::Run(owned(rest))),
        ["cargo", "test"] => Ok(Verb::Test(Vec::new())),
        ["cargo", "test", "--", rest @ ..] => Ok(Verb::Test(owned(rest))),
        ["procession", rest @ ..] => Ok(Verb::Program(owned(rest))),
        _ => Err(format!("no test can run `{text}`; a block of `sh` is not run")),
    }
}

/// Words between blanks, or between quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in text.trim().chars() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().into_iter().for_each(|word| word.push(character)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_with_what_they_print() -> Result<(), String> {
        let block = Block {
            page: "a.md".to_owned(),
            line: 7,
            language: "console".to_owned(),
            title: None,
            text: "$ cargo run -- 'a b' c   # twice\none\n^C\n$ cargo test\n".to_owned(),
        };
        let read = commands(&block)?;
        assert_eq!(read[0].verb, Verb::Run(vec!["a b".to_owned(), "c".to_owned()]));
        assert!(read[0].is_killed && read[0].printed == ["one"]);
        assert_eq!(
            (read[1].verb.clone(), &*read[1].place),
            (Verb::Test(Vec::new()), "a.md:10")
        );
        assert!(verb("rm -rf data").is_err());
        Ok(())
    }
}
