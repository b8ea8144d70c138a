//! From a text to words: a name, if there is one, and its values, each with its place.

/// Where something is wrong, as an offset in bytes, and what.
pub(super) type Wrong = (usize, String);

/// One value, unquoted.
pub(super) struct Value {
    pub(super) text: String,
    pub(super) at: usize,
}

/// One word of a filter.
pub(super) struct Word<'a> {
    /// The field before the colon, and where it begins.
    pub(super) name: Option<(&'a str, usize)>,
    /// What follows, parted at commas if there is a name. Never empty.
    pub(super) values: Vec<Value>,
}

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next word; none at the end.
    pub(super) fn next_word(&mut self) -> Result<Option<Word<'a>>, Wrong> {
        self.pass(char::is_whitespace);
        if self.peek().is_none() {
            return Ok(None);
        }
        let name = self.name();
        let mut values = vec![self.value(name.is_some())?];
        while name.is_some() && self.peek() == Some(',') {
            self.take();
            values.push(self.value(true)?);
        }
        match self.peek() {
            Some(found) if !found.is_whitespace() => Err((
                self.at,
                format!("a blank is missing before \"{}\"", found.escape_debug()),
            )),
            Some(_) | None => Ok(Some(Word { name, values })),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Passes what fits, and gives it.
    fn pass(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|next| !fits(next)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// A word of letters with a colon behind it.
    fn name(&mut self) -> Option<(&'a str, usize)> {
        let begin = self.at;
        let name = self.pass(|next| next.is_ascii_alphabetic() || next == '_');
        if !name.is_empty() && self.peek() == Some(':') {
            self.take();
            return Some((name, begin));
        }
        self.at = begin;
        None
    }

    fn value(&mut self, is_listed: bool) -> Result<Value, Wrong> {
        let at = self.at;
        let text = if self.peek() == Some('"') {
            self.quoted()?
        } else {
            let ends = |next: char| next.is_whitespace() || next == '"' || (is_listed && next == ',');
            self.pass(|next| !ends(next)).to_owned()
        };
        if text.is_empty() {
            return Err((at, "a value is missing".to_owned()));
        }
        Ok(Value { text, at })
    }

    fn quoted(&mut self) -> Result<String, Wrong> {
        let begin = self.at;
        self.take();
        let mut text = String::new();
        loop {
            match self.take() {
                Some('"') => return Ok(text),
                Some('\\') => match self.peek() {
                    Some(next @ ('"' | '\\')) => {
                        self.take();
                        text.push(next);
                    }
                    Some(_) | None => return Err((self.at, "behind \\ only \" and \\ may stand".to_owned())),
                },
                Some(next) => text.push(next),
                None => return Err((begin, "the closing \" is missing".to_owned())),
            }
        }
    }
}

/// Writes a value so that it is read as one.
pub(super) fn quote(text: &str) -> String {
    let needs = |next: char| next.is_whitespace() || matches!(next, '"' | '\\' | ',' | ':');
    if !text.is_empty() && !text.contains(needs) {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
