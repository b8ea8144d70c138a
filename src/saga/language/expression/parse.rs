//! From tokens to a tree: a Pratt parser.
//!
//! It looks ahead one token, in three places two, and never goes back, so its time is linear. Its recursion is bounded
//! by [`DEPTH`].

use super::method::Method;
use super::operator::{LOOSEST, Operator, Sign};
use super::scan::{Kind, Scanner, Token};
use super::tree::{Constant, Link, LinkKind, Node, Operand};
use super::{DEPTH, Misread};

type Parsed<T> = Result<T, Misread>;

/// Reads the part of a text between two offsets.
pub(super) fn parse(text: &str, begin: usize, end: usize) -> Parsed<Node> {
    let mut scanner = Scanner::new(text.get(..end).unwrap_or(text), begin);
    let token = scanner.token()?;
    let mut parser = Parser {
        scanner,
        token,
        depth: 0,
    };
    let node = parser.expression()?;
    if parser.token.kind == Kind::End {
        return Ok(node);
    }
    Err(parser.unexpected("an operator"))
}

struct Parser<'a> {
    /// Stands behind the token.
    scanner: Scanner<'a>,
    token: Token<'a>,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn expression(&mut self) -> Parsed<Node> {
        self.enter()?;
        let value = self.binary(LOOSEST)?;
        let at = self.token.at;
        let node = if self.takes("?")? {
            let then = self.expression()?;
            self.expect(":")?;
            Node::Conditional {
                condition: Box::new(value),
                at,
                then: Box::new(then),
                otherwise: Box::new(self.expression()?),
            }
        } else if self.takes("?:")? {
            Node::Default {
                value: Box::new(value),
                otherwise: Box::new(self.expression()?),
            }
        } else {
            value
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Operators that bind at least so tightly, and their operands.
    fn binary(&mut self, least: u8) -> Parsed<Node> {
        let mut left = self.unary()?;
        while let Some(operator) = self.operator().filter(|operator| operator.power() >= least) {
            let at = self.token.at;
            self.advance()?;
            let node = self.binary(operator.power() + 1)?;
            left = left.and(Operand { operator, at, node });
            let is_chained = operator.is_relation() && self.operator().is_some_and(Operator::is_relation);
            if is_chained {
                let wrong = Misread::new(self.token.at, "a comparison has two sides");
                return Err(wrong.hint("write for instance 1 < [a] && [a] < 5"));
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Node> {
        let sign = match &self.token.kind {
            Kind::Symbol(symbol) => Sign::of_symbol(symbol),
            Kind::Word(word) => Sign::of_word(word),
            Kind::Constant(_) | Kind::Variable(_) | Kind::End => None,
        };
        let Some(sign) = sign else {
            return self.path();
        };
        let at = self.token.at;
        self.enter()?;
        self.advance()?;
        let operand = Box::new(self.unary()?);
        self.depth -= 1;
        Ok(Node::Signed { sign, at, operand })
    }

    fn path(&mut self) -> Parsed<Node> {
        let mut links = Vec::new();
        let start = self.start(&mut links)?;
        while let Kind::Symbol(symbol) = self.token.kind {
            let at = self.token.at;
            let kind = match symbol {
                "[" => self.index()?,
                "." => self.member(false)?,
                "?." => self.member(true)?,
                ".?[" => LinkKind::Select(self.between("]")?),
                ".![" => LinkKind::Map(self.between("]")?),
                _ => break,
            };
            links.push(Link { at, kind });
        }
        if links.is_empty() {
            return Ok(start);
        }
        Ok(Node::Path {
            start: Box::new(start),
            links,
        })
    }

    /// The first value of a path. A name is a key of the current object, and so the first link.
    fn start(&mut self, links: &mut Vec<Link>) -> Parsed<Node> {
        match self.token.kind.clone() {
            Kind::Constant(constant) => {
                self.advance()?;
                Ok(Node::Constant(constant))
            }
            Kind::Variable(name) => self.variable(name),
            Kind::Word(word) => self.word(word, links),
            Kind::Symbol("(") => self.between(")"),
            // What is between the brackets is read as a link.
            Kind::Symbol("[") => Ok(Node::This),
            Kind::Symbol(_) | Kind::End => Err(self.unexpected("a value")),
        }
    }

    fn variable(&mut self, name: &str) -> Parsed<Node> {
        let node = match name {
            "root" => Node::Root,
            "this" => Node::This,
            _ => {
                let wrong = Misread::new(self.token.at, format!("there is no {}", self.token.said()));
                return Err(wrong.hint("#root and #this are there"));
            }
        };
        self.advance()?;
        Ok(node)
    }

    fn word(&mut self, word: &str, links: &mut Vec<Link>) -> Parsed<Node> {
        let at = self.token.at;
        if let Some(constant) = constant(word) {
            self.advance()?;
            return Ok(Node::Constant(constant));
        }
        if Operator::of_word(word).is_some() {
            return Err(self.unexpected("a value"));
        }
        self.advance()?;
        if self.token.is("(") {
            if word == "T" {
                return Err(Misread::new(
                    at,
                    "T(..) names a class, and an expression reaches no code",
                ));
            }
            let wrong = Misread::new(at, format!("\"{word}\" is called without a value"));
            return Err(wrong.hint(format!("write for instance #this.{word}(..)")));
        }
        if word.eq_ignore_ascii_case("new") && matches!(self.token.kind, Kind::Word(_)) {
            let what = "\"new\" makes an object, and an expression reaches no code";
            return Err(Misread::new(at, what));
        }
        links.push(key(at, word, false));
        Ok(Node::This)
    }

    /// What is between brackets behind a value. A name alone is a key, also one that is a word of the language.
    fn index(&mut self) -> Parsed<LinkKind> {
        self.advance()?;
        let mut ahead = self.scanner;
        if let Kind::Word(word) = self.token.kind
            && ahead.token()?.is("]")
        {
            self.advance()?;
            self.advance()?;
            return Ok(LinkKind::Key {
                name: word.into(),
                is_safe: false,
            });
        }
        let index = self.expression()?;
        self.expect("]")?;
        if let Node::Constant(Constant::Text(name)) = index {
            return Ok(LinkKind::Key { name, is_safe: false });
        }
        Ok(LinkKind::Index(index))
    }

    /// A key or a method behind a dot.
    fn member(&mut self, is_safe: bool) -> Parsed<LinkKind> {
        self.advance()?;
        let Kind::Word(name) = self.token.kind else {
            return Err(self.unexpected("a name"));
        };
        let at = self.token.at;
        self.advance()?;
        if !self.token.is("(") {
            let name = name.into();
            return Ok(LinkKind::Key { name, is_safe });
        }
        let (method, arity) = Method::find(name, at)?;
        let arguments = self.arguments()?;
        if arguments.len() != arity {
            let what = format!("{name}() takes {arity} arguments, and here are {}", arguments.len());
            return Err(Misread::new(at, what));
        }
        Ok(LinkKind::Call {
            method,
            arguments,
            is_safe,
        })
    }

    fn arguments(&mut self) -> Parsed<Vec<Node>> {
        self.advance()?;
        let mut arguments = Vec::new();
        if self.takes(")")? {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if !self.takes(",")? {
                self.expect(")")?;
                return Ok(arguments);
            }
        }
    }

    /// Passes the opening bracket, and reads until the closing one.
    fn between(&mut self, closing: &str) -> Parsed<Node> {
        self.advance()?;
        let node = self.expression()?;
        self.expect(closing)?;
        Ok(node)
    }

    fn operator(&self) -> Option<Operator> {
        match &self.token.kind {
            Kind::Symbol(symbol) => Operator::of_symbol(symbol),
            Kind::Word(word) => Operator::of_word(word),
            Kind::Constant(_) | Kind::Variable(_) | Kind::End => None,
        }
    }

    /// One level deeper.
    fn enter(&mut self) -> Parsed<()> {
        if self.depth > DEPTH {
            let wrong = Misread::new(self.token.at, format!("it is nested more than {DEPTH} deep"));
            return Err(wrong.hint("let a service compute it"));
        }
        self.depth += 1;
        Ok(())
    }

    fn advance(&mut self) -> Parsed<()> {
        self.token = self.scanner.token()?;
        Ok(())
    }

    fn takes(&mut self, symbol: &str) -> Parsed<bool> {
        let is_there = self.token.is(symbol);
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.takes(symbol)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("an operator or \"{symbol}\"")))
    }

    /// What is said of a token that does not fit.
    fn unexpected(&self, wanted: &str) -> Misread {
        let at = self.token.at;
        match &self.token.kind {
            Kind::Symbol("=") => {
                let what = "\"=\" sets a value, and an expression changes nothing";
                Misread::new(at, what).hint("write == to compare")
            }
            Kind::Word(word) => match foreign(word) {
                Some(instead) => Misread::new(at, format!("\"{word}\" is no operator here")).hint(instead),
                None => self.missing(wanted),
            },
            Kind::Constant(_) | Kind::Variable(_) | Kind::Symbol(_) | Kind::End => self.missing(wanted),
        }
    }

    fn missing(&self, wanted: &str) -> Misread {
        let what = format!("{wanted} is missing before {}", self.token.said());
        Misread::new(self.token.at, what)
    }
}

fn key(at: usize, name: &str, is_safe: bool) -> Link {
    let name = name.into();
    Link {
        at,
        kind: LinkKind::Key { name, is_safe },
    }
}

fn constant(word: &str) -> Option<Constant> {
    let constants = [
        ("true", Constant::Boolean(true)),
        ("false", Constant::Boolean(false)),
        ("null", Constant::Null),
    ];
    let found = constants.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(word));
    found.map(|(_, constant)| constant)
}

/// What to write instead of an operator that Spring has and this language has not.
fn foreign(word: &str) -> Option<&'static str> {
    match word.to_ascii_lowercase().as_str() {
        "div" => Some("write /"),
        "mod" => Some("write %"),
        "between" => Some("write two comparisons with &&"),
        "matches" => Some("compare with startsWith, endsWith or contains"),
        "instanceof" => Some("compare with a value"),
        _ => None,
    }
}
