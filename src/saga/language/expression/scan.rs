//! From a text to tokens, one at a time.

use super::Misread;
use super::tree::Constant;

/// Longest first: each is tried as a beginning. `=` is there to be refused by name.
const SYMBOLS: [&str; 27] = [
    ".?[", ".![", "&&", "||", "==", "!=", "<=", ">=", "?:", "?.", "<", ">", "=", "+", "-", "*", "/", "%", "!", "?",
    ".", "[", "]", "(", ")", ",", ":",
];

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind<'a> {
    /// A number, or a text between quotes.
    Constant(Constant),
    /// A name, an operator that is a word, `true`, `false` or `null`.
    Word(&'a str),
    /// The word behind `#`.
    Variable(&'a str),
    Symbol(&'static str),
    End,
}

/// A token, and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) kind: Kind<'a>,
    /// As it stands in the text.
    raw: &'a str,
}

impl Token<'_> {
    /// Returns `true` if it is this symbol.
    pub(super) fn is(&self, symbol: &str) -> bool {
        matches!(self.kind, Kind::Symbol(own) if own == symbol)
    }

    /// Names it in an error.
    pub(super) fn said(&self) -> String {
        if self.kind == Kind::End {
            return "the end".to_owned();
        }
        format!("\"{}\"", self.raw.escape_debug())
    }
}

/// Reads tokens. A copy of it looks ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Reads a text from an offset on.
    pub(super) const fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// Returns the next token, which is [`Kind::End`] from the end on.
    pub(super) fn token(&mut self) -> Result<Token<'a>, Misread> {
        self.pass(char::is_whitespace);
        let at = self.at;
        let kind = self.kind()?;
        let raw = self.text.get(at..self.at).unwrap_or_default();
        Ok(Token { at, kind, raw })
    }

    fn kind(&mut self) -> Result<Kind<'a>, Misread> {
        let Some(first) = self.peek() else {
            return Ok(Kind::End);
        };
        match first {
            '0'..='9' => self.number(),
            '\'' | '"' => self.quoted(first),
            '#' => {
                self.at += 1;
                Ok(Kind::Variable(self.pass(continues_word)))
            }
            _ if begins_word(first) => Ok(Kind::Word(self.pass(continues_word))),
            _ => self.symbol(first),
        }
    }

    fn symbol(&mut self, first: char) -> Result<Kind<'a>, Misread> {
        let rest = self.rest();
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            self.at += symbol.len();
            return Ok(Kind::Symbol(symbol));
        }
        let at = self.at;
        Err(match first {
            '@' => Misread::new(at, "\"@\" names a bean, and an expression reaches no code"),
            '$' => Misread::new(at, "\"$\" stands at the beginning of a text alone"),
            _ => Misread::new(at, format!("\"{}\" is no part of an expression", first.escape_debug())),
        })
    }

    /// Digits, perhaps with a fraction and an exponent.
    fn number(&mut self) -> Result<Kind<'a>, Misread> {
        let begin = self.at;
        let is_digit = |next: char| next.is_ascii_digit();
        self.pass(is_digit);
        let mut is_whole = true;
        let mut behind = self.rest().chars();
        if behind.next() == Some('.') && behind.next().is_some_and(is_digit) {
            is_whole = false;
            self.at += 1;
            self.pass(is_digit);
        }
        if self.rest().starts_with(['e', 'E']) {
            is_whole = false;
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            self.pass(is_digit);
        }
        // A letter behind it, as in 100L, would else begin a token of its own.
        self.pass(continues_word);
        let raw = self.text.get(begin..self.at).unwrap_or_default();
        let constant = if is_whole {
            Constant::integer(raw, begin)
        } else {
            Constant::float(raw, begin)
        };
        constant.map(Kind::Constant)
    }

    /// A text between quotes; a quote inside is doubled.
    fn quoted(&mut self, quote: char) -> Result<Kind<'a>, Misread> {
        let begin = self.at;
        let mut text = String::new();
        self.at += 1;
        loop {
            text.push_str(self.pass(|next| next != quote));
            if self.peek().is_none() {
                return Err(Misread::new(begin, format!("the closing {quote} is missing")));
            }
            self.at += 1;
            if self.peek() != Some(quote) {
                return Ok(Kind::Constant(Constant::Text(text.into())));
            }
            text.push(quote);
            self.at += 1;
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Passes what fits, and returns it.
    fn pass(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|next| !fits(next)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }
}

fn begins_word(character: char) -> bool {
    character.is_alphabetic() || character == '_'
}

fn continues_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}
