//! Attributes of one object, each as the type that it should have. A wrong one is told of and counts as absent, so that
//! one reading finds all that are wrong.

use std::ops::RangeInclusive;

use super::form::Link;
use super::json::Json;
use super::path::Path;
use super::problem::{Problems, shown};
use super::texts;
use crate::expression::Text;

/// Keys that designers write for themselves.
const OF_DESIGNERS: [&str; 4] = ["style", "edge", "catch", "Name"];

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    members: &'a [(String, Json)],
    path: Path<'a>,
    /// The state in which the object lies, if it lies in one.
    state: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(members: &'a [(String, Json)], path: Path<'a>, state: Option<&'a str>) -> Self {
        Self { members, path, state }
    }

    pub(super) fn state(&self) -> Option<&'a str> {
        self.state
    }

    /// Returns the pointer to the object.
    pub(super) fn place(&self) -> String {
        self.path.to_string()
    }

    /// Returns the pointer to an attribute.
    pub(super) fn at(&self, key: &str) -> String {
        self.path.key(key).to_string()
    }

    pub(super) fn path(&self) -> &Path<'a> {
        &self.path
    }

    /// Returns an attribute; none if it is null, as upstream takes it.
    pub(super) fn get(&self, key: &str) -> Option<&'a Json> {
        let mut members = self.members.iter();
        members
            .find(|(name, value)| name == key && *value != Json::Null)
            .map(|(_, value)| value)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn text(&self, key: &str, problems: &mut Problems) -> Option<&'a str> {
        let value = self.get(key)?;
        let text = value.text();
        if text.is_none() {
            self.wrong(key, value, "write a string", problems);
        }
        text
    }

    pub(super) fn owned_text(&self, key: &str, problems: &mut Problems) -> Option<String> {
        self.text(key, problems).map(str::to_owned)
    }

    /// Returns a condition, compiled.
    pub(super) fn condition(&self, key: &str, problems: &mut Problems) -> Option<Text> {
        let text = self.text(key, problems)?;
        Some(texts::condition(text, &self.path.key(key), self.state, problems))
    }

    pub(super) fn link(&self, key: &str, problems: &mut Problems) -> Option<Link> {
        self.text(key, problems).map(|name| Link::new(name, self.at(key)))
    }

    pub(super) fn flag(&self, key: &str, problems: &mut Problems) -> Option<bool> {
        let value = self.get(key)?;
        if let Json::Bool(flag) = value {
            return Some(*flag);
        }
        let hint = match value.text().map(str::to_ascii_lowercase).as_deref() {
            Some("true") => "write true",
            Some("false") => "write false",
            _ => "write true or false",
        };
        self.wrong(key, value, hint, problems);
        None
    }

    /// Returns a whole number within a range.
    pub(super) fn whole(&self, key: &str, range: RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let value = self.get(key)?;
        let number = self.number(key, value, problems)?;
        let whole = whole(number);
        if whole.is_some_and(|whole| range.contains(&whole)) {
            return whole;
        }
        let hint = match whole.is_none() && number > 0.0 && number.fract() != 0.0 {
            true => "write a whole number".to_owned(),
            false => format!("write {} to {}", range.start(), range.end()),
        };
        self.out_of_range(key, value, &hint, problems);
        None
    }

    /// Returns a number that is not negative.
    pub(super) fn amount(&self, key: &str, problems: &mut Problems) -> Option<f64> {
        let value = self.get(key)?;
        let amount = self.number(key, value, problems)?;
        if amount >= 0.0 {
            return Some(amount);
        }
        self.out_of_range(key, value, "write 0 or more", problems);
        None
    }

    /// Returns any number.
    pub(super) fn number(&self, key: &str, value: &Json, problems: &mut Problems) -> Option<f64> {
        if let Json::Number(number) = value {
            return number.as_f64();
        }
        let meant = value.text().and_then(|text| text.trim().parse::<f64>().ok());
        let hint = match meant.filter(|number| number.is_finite()) {
            Some(number) => format!("write {number}"),
            None => "write a number".to_owned(),
        };
        self.wrong(key, value, &hint, problems);
        None
    }

    pub(super) fn list(&self, key: &str, problems: &mut Problems) -> Option<&'a [Json]> {
        let value = self.get(key)?;
        if let Json::List(items) = value {
            return Some(items);
        }
        self.wrong(key, value, "write a list, between [ and ]", problems);
        None
    }

    pub(super) fn object(&self, key: &str, problems: &mut Problems) -> Option<&'a [(String, Json)]> {
        let value = self.get(key)?;
        let members = value.members();
        if members.is_none() {
            self.wrong(key, value, "write an object, between { and }", problems);
        }
        members
    }

    /// Returns a list of texts; those that are none are told of.
    pub(super) fn texts(&self, key: &str, problems: &mut Problems) -> Option<Vec<String>> {
        let items = self.list(key, problems)?;
        let list = self.path.key(key);
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item.text() {
                Some(text) => texts.push(text.to_owned()),
                None => {
                    let text = format!("{key}[{index}] is {}", item.described());
                    problems.error_in(self.state, &list.index(index).to_string(), text, "write a string");
                }
            }
        }
        Some(texts)
    }

    /// Reports keys that nothing reads.
    pub(super) fn find_ignored(&self, known: &[&[&str]], problems: &mut Problems) {
        let is_known = |key: &str| OF_DESIGNERS.contains(&key) || known.iter().any(|keys| keys.contains(&key));
        let mut ignored = self.members.iter().filter(|(key, _)| !is_known(key)).peekable();
        if ignored.peek().is_none() {
            return;
        }
        let known = known.iter().flat_map(|keys| keys.iter().copied());
        let unused: Vec<&str> = known.clone().filter(|key| !self.has(key)).collect();
        for (key, _) in ignored {
            let hint = problems.nearest(key, unused.iter().copied(), "remove it");
            problems.warn_in(
                self.state,
                &self.at(key),
                format!("\"{}\" is ignored", shown(key)),
                hint,
            );
        }
    }

    /// An attribute has another type than it should have.
    pub(super) fn wrong(&self, key: &str, value: &Json, hint: &str, problems: &mut Problems) {
        problems.error_in(
            self.state,
            &self.at(key),
            format!("{key} is {}", value.described()),
            hint,
        );
    }

    fn out_of_range(&self, key: &str, value: &Json, hint: &str, problems: &mut Problems) {
        let said = match value {
            Json::Number(number) => number.to_string(),
            Json::Null | Json::Bool(_) | Json::Text(_) | Json::List(_) | Json::Object(_) => value.described(),
        };
        problems.error_in(self.state, &self.at(key), format!("{key} is {said}"), hint);
    }
}

/// Returns a number without a fraction that is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number has no fraction and lies between 0 and 2^53"
)]
pub(super) fn whole(number: f64) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}
