//! Texts of a definition: literals, and what `$` makes of them.
//!
//! `$Type.content`, or `$Type{content}` up to the first `}`. Without a type the content is an expression. The type
//! `Exception` asks for a fault of a class, and `Sequence` makes an id.

use std::fmt;

use serde_json::Value;

use super::{Expression, Failed, Misread, Steps, Wrong, length};

/// What a text is without a `$` at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A literal: in `Input` and `Output`, and as a `Collection`.
    Value,
    /// An expression that is true or false: in `Choices` and `Status`, and as a `CompletionCondition`.
    Condition,
}

/// What a text asks of the visit to a state for which it is evaluated.
pub trait Visit {
    /// Returns whether the call ended with a fault of this class, or of a class below it.
    fn has_fault_of(&self, class: &str) -> bool;

    /// Returns an id that is the same on every run of this visit. It is the only one of its kind: another entity, rule,
    /// visit or saga has another.
    fn sequence(&self, entity: &str, rule: &str) -> String;
}

/// A text of a definition, read once.
#[derive(Clone, Debug, PartialEq)]
pub enum Text {
    /// Stands for itself.
    Literal(Box<str>),
    /// `$.content`, `${content}`, or a condition without `$`.
    Expression(Expression),
    /// `$Exception{class}`: whether the call ended with a fault of this class.
    Exception(Box<str>),
    /// `$Sequence.entity|rule`: an id.
    Sequence {
        /// What the id is for, as `BUSINESS_KEY`.
        entity: Box<str>,
        /// How it is made upstream, as `SIMPLE`. Here it only tells ids apart.
        rule: Box<str>,
    },
}

impl Text {
    /// Reads a text that stands at such a place.
    ///
    /// # Errors
    ///
    /// If it has a `$` and no known type, or what must be an expression is none. The column counts from the beginning
    /// of the text, its `$` included.
    pub fn parse(text: &str, place: Place) -> Result<Self, Wrong> {
        if let Some(marked) = text.strip_prefix('$') {
            let marked = Marked::find(text, marked).map_err(|misread| misread.in_text(text))?;
            return marked.read(place);
        }
        match place {
            Place::Value => Ok(Self::Literal(text.into())),
            Place::Condition => Expression::parse(text).map(Self::Expression),
        }
    }

    /// Returns the value for this root. Several texts may share their steps.
    ///
    /// # Errors
    ///
    /// As [`Expression::evaluate`].
    pub fn evaluate(&self, root: &Value, visit: &dyn Visit, steps: &mut Steps) -> Result<Value, Failed> {
        match self {
            Self::Literal(text) => Ok(Value::String(text.as_ref().to_owned())),
            Self::Expression(expression) => expression.evaluate(root, steps),
            Self::Exception(class) => Ok(Value::Bool(visit.has_fault_of(class))),
            Self::Sequence { entity, rule } => Ok(Value::String(visit.sequence(entity, rule))),
        }
    }

    /// Returns whether a condition holds for this root.
    ///
    /// # Errors
    ///
    /// As [`Expression::test`]. A literal and an id never are conditions: [`Text::parse`] refuses them there.
    pub fn test(&self, root: &Value, visit: &dyn Visit, steps: &mut Steps) -> Result<bool, Failed> {
        match self {
            Self::Expression(expression) => expression.test(root, steps),
            Self::Exception(class) => Ok(visit.has_fault_of(class)),
            Self::Literal(_) | Self::Sequence { .. } => Err(Failed {
                column: 1,
                text: "a condition takes true or false, and this is a text".to_owned(),
            }),
        }
    }
}

impl fmt::Display for Text {
    /// As it stands in its definition; types in braces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => f.write_str(text),
            Self::Expression(expression) => expression.fmt(f),
            Self::Exception(class) => write!(f, "$Exception{{{class}}}"),
            Self::Sequence { entity, rule } => write!(f, "$Sequence{{{entity}|{rule}}}"),
        }
    }
}

/// The parts of a text behind its `$`.
struct Marked<'a> {
    text: &'a str,
    kind: &'a str,
    /// The content, by offsets in the text.
    begin: usize,
    end: usize,
}

impl<'a> Marked<'a> {
    fn find(text: &'a str, marked: &'a str) -> Result<Self, Misread> {
        length(text)?;
        let Some((kind, content)) = marked.split_once(['.', '{']) else {
            let what = "a text that begins with $ is $.expression, $Exception{class} or $Sequence.entity|rule";
            return Err(Misread::new(0, what));
        };
        let begin = text.len() - content.len();
        let is_braced = marked.as_bytes().get(kind.len()) == Some(&b'{');
        let end = if is_braced {
            let closing = content.find('}').map(|closing| begin + closing);
            closing.ok_or_else(|| Misread::new(begin - 1, "the closing } is missing"))?
        } else {
            text.len()
        };
        if is_braced && end + 1 < text.len() {
            return Err(Misread::new(end + 1, "nothing may stand behind the closing }"));
        }
        Ok(Self { text, kind, begin, end })
    }

    fn read(&self, place: Place) -> Result<Text, Wrong> {
        match self.kind {
            "" => Expression::within(self.text, self.begin, self.end).map(Text::Expression),
            "Exception" => self.exception().map_err(|misread| misread.in_text(self.text)),
            "Sequence" => self.sequence(place).map_err(|misread| misread.in_text(self.text)),
            kind => Err(self.unknown(kind)),
        }
    }

    fn exception(&self) -> Result<Text, Misread> {
        match self.content().trim() {
            "" => Err(Misread::new(self.begin, "the class of the fault is missing")),
            class => Ok(Text::Exception(class.into())),
        }
    }

    fn sequence(&self, place: Place) -> Result<Text, Misread> {
        if place == Place::Condition {
            let what = "$Sequence makes an id, and a condition is true or false";
            return Err(Misread::new(0, what));
        }
        match self.content().split_once('|') {
            Some((entity, rule)) if !entity.is_empty() && !rule.is_empty() => Ok(Text::Sequence {
                entity: entity.into(),
                rule: rule.into(),
            }),
            Some(_) | None => {
                let wrong = Misread::new(self.begin, "an id has an entity and a rule");
                Err(wrong.hint("write for instance $Sequence.BUSINESS_KEY|SIMPLE"))
            }
        }
    }

    fn content(&self) -> &'a str {
        self.text.get(self.begin..self.end).unwrap_or_default()
    }

    fn unknown(&self, kind: &str) -> Wrong {
        let is_braced = self.text.get(..self.begin).is_some_and(|head| head.ends_with('{'));
        let shape = if is_braced { "{..}" } else { ".." };
        let meant = ["Exception", "Sequence"]
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(kind));
        let hint = match meant {
            Some(meant) => format!("did you mean ${meant}?"),
            None => "the types are $Exception and $Sequence, and $. begins an expression".to_owned(),
        };
        let kind = kind.escape_debug();
        Wrong {
            column: None,
            text: format!("\"${kind}{shape}\" has the unknown type [{kind}]"),
            hint: Some(hint),
        }
    }
}
