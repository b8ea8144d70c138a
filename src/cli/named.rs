//! A procedure as it is named on the command line.

use std::str::FromStr;

use procession::ProcedureId;
use procession::submit::Label;

/// Goes before a key that reads like an id, or like a label.
const KEY: &str = "key:";
/// Goes before a label.
const LABEL: &str = "label:";

/// The id of a procedure, the number of its family, or the idempotency key or a label of its submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Id(ProcedureId),
    /// The number of a family. The same text may be a key as well.
    Number {
        family: u64,
        text: String,
    },
    Key(String),
    /// The one root that has this label.
    Label(Label),
}

impl FromStr for Named {
    type Err = String;

    /// A text such as `42.0` is an id. A bare number is a family's, unless it is a key too: that is found out when it is
    /// looked up. A key that reads like either is written `key:42`. A label is written `label:customer=4711`.
    fn from_str(text: &str) -> Result<Self, String> {
        // A number is read with a plus sign as well, and a telephone number may be a key.
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            if let Ok(family) = text.parse() {
                let text = text.to_owned();
                return Ok(Self::Number { family, text });
            }
            if let Ok(id) = text.parse() {
                return Ok(Self::Id(id));
            }
        }
        if let Some(label) = text.strip_prefix(LABEL) {
            return match label.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok(Self::Label(Label::new(name, value))),
                Some(_) | None => {
                    Err("a label is written label:NAME=VALUE, for instance label:customer=4711".to_owned())
                }
            };
        }
        match text.strip_prefix(KEY).unwrap_or(text) {
            "" => Err(
                "name a procedure by its id, for instance 42.0, or by its idempotency key, or by a label".to_owned(),
            ),
            key => Ok(Self::Key(key.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_an_id_and_all_else_is_a_key() {
        let named = |text: &str| text.parse::<Named>();
        let key = |text: &str| Ok(Named::Key(text.to_owned()));
        let number = Named::Number {
            family: 12,
            text: "012".to_owned(),
        };
        assert_eq!(named("012"), Ok(number));
        assert_eq!(named("12.3"), Ok(Named::Id(ProcedureId::new(12, 3))));
        assert_eq!(named("order-A1"), key("order-A1"));
        assert_eq!(named("12.x"), key("12.x"));
        assert_eq!(named("+49301234"), key("+49301234"));
        assert_eq!(named("key:12"), key("12"));
        assert_eq!(named("key:key:a"), key("key:a"));
        assert_eq!(named("label:a=b=c"), Ok(Named::Label(Label::new("a", "b=c"))));
        assert_eq!(named("key:label:a=b"), key("label:a=b"));
        assert!(named("key:").is_err() && named("").is_err() && named("label:a").is_err());
    }
}
