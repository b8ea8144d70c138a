//! Comparisons with a number or a time, as a filter has them.

use std::fmt;
use std::time::Duration;

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
}

/// A relation and what is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compare<T> {
    relation: Relation,
    with: T,
}

impl<T: Ord> Compare<T> {
    pub(super) fn admits(&self, value: &T) -> bool {
        match self.relation {
            Relation::More => *value > self.with,
            Relation::AtLeast => *value >= self.with,
            Relation::Less => *value < self.with,
            Relation::AtMost => *value <= self.with,
            Relation::Equal => *value == self.with,
        }
    }
}

impl Compare<Duration> {
    pub(super) fn of_time(text: &str) -> Result<Self, String> {
        let (relation, rest) = relation(text, Relation::AtLeast);
        let with = time(rest).ok_or_else(|| {
            format!(
                "\"{}\" is no time; write for instance >10m, with ms, s, m, h or d",
                rest.escape_debug()
            )
        })?;
        Ok(Self { relation, with })
    }
}

impl Compare<u32> {
    pub(super) fn of_number(text: &str) -> Result<Self, String> {
        let (relation, rest) = relation(text, Relation::Equal);
        let with = digits(rest)
            .and_then(|rest| rest.parse().ok())
            .ok_or_else(|| format!("\"{}\" is no number; write for instance >3", rest.escape_debug()))?;
        Ok(Self { relation, with })
    }
}

fn relation(text: &str, without: Relation) -> (Relation, &str) {
    // The longer ones first: each is tried as a beginning.
    let signs = [
        (">=", Relation::AtLeast),
        ("<=", Relation::AtMost),
        (">", Relation::More),
        ("<", Relation::Less),
        ("=", Relation::Equal),
    ];
    let found = signs
        .into_iter()
        .find_map(|(sign, relation)| Some((relation, text.strip_prefix(sign)?)));
    found.unwrap_or((without, text))
}

/// The text, if it is digits alone: no sign.
fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// Units of time in milliseconds, the larger ones first.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

fn time(text: &str) -> Option<Duration> {
    let end = text.find(|next: char| !next.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(end)?;
    let number: u64 = digits(number)?.parse().ok()?;
    let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "=",
        })
    }
}

impl fmt::Display for Compare<u32> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.relation, self.with)
    }
}

impl fmt::Display for Compare<Duration> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.with.as_millis()).unwrap_or(u64::MAX);
        let fitting = UNITS.into_iter().find(|(_, unit)| millis % unit == 0 && millis > 0);
        let (name, unit) = fitting.unwrap_or(("s", 1_000));
        write!(f, "{}{}{name}", self.relation, millis / unit)
    }
}
