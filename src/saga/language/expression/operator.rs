//! Operators: how they are written, and how tightly they bind.

use std::cmp::Ordering;
use std::fmt;

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Logic(Logic),
    Relation(Relation),
    Arithmetic(Arithmetic),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logic {
    Or,
    And,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Differ,
    Ordered(Order),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// Every operator as a symbol, and as a word if it has one.
const WRITTEN: [(&str, Option<&str>, Operator); 13] = [
    ("||", Some("or"), Operator::Logic(Logic::Or)),
    ("&&", Some("and"), Operator::Logic(Logic::And)),
    ("==", Some("eq"), Operator::Relation(Relation::Equal)),
    ("!=", Some("ne"), Operator::Relation(Relation::Differ)),
    ("<", Some("lt"), Operator::Relation(Relation::Ordered(Order::Less))),
    ("<=", Some("le"), Operator::Relation(Relation::Ordered(Order::AtMost))),
    (">", Some("gt"), Operator::Relation(Relation::Ordered(Order::More))),
    (">=", Some("ge"), Operator::Relation(Relation::Ordered(Order::AtLeast))),
    ("+", None, Operator::Arithmetic(Arithmetic::Add)),
    ("-", None, Operator::Arithmetic(Arithmetic::Subtract)),
    ("*", None, Operator::Arithmetic(Arithmetic::Multiply)),
    ("/", None, Operator::Arithmetic(Arithmetic::Divide)),
    ("%", None, Operator::Arithmetic(Arithmetic::Remainder)),
];

/// How tightly the loosest operator binds.
pub(super) const LOOSEST: u8 = 1;

impl Operator {
    pub(super) fn of_symbol(symbol: &str) -> Option<Self> {
        let mut all = WRITTEN.into_iter();
        all.find_map(|(own, _, operator)| (own == symbol).then_some(operator))
    }

    /// Finds an operator by its word, in any case.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        let mut all = WRITTEN.into_iter();
        all.find_map(|(_, own, operator)| own?.eq_ignore_ascii_case(word).then_some(operator))
    }

    /// Returns how tightly it binds: `*` more than `+`, `+` more than `==`.
    pub(super) const fn power(self) -> u8 {
        match self {
            Self::Logic(Logic::Or) => LOOSEST,
            Self::Logic(Logic::And) => 2,
            Self::Relation(_) => 3,
            Self::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => 4,
            Self::Arithmetic(Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::Remainder) => 5,
        }
    }

    pub(super) const fn is_relation(self) -> bool {
        matches!(self, Self::Relation(_))
    }
}

impl fmt::Display for Operator {
    /// As a symbol, in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = WRITTEN.into_iter().find(|(_, _, operator)| operator == self);
        write!(f, "\"{}\"", found.map_or("", |(symbol, _, _)| symbol))
    }
}

impl Logic {
    /// Returns the operand that settles the result, whatever stands behind it.
    pub(super) const fn settled_by(self) -> bool {
        match self {
            Self::Or => true,
            Self::And => false,
        }
    }
}

impl Order {
    /// Returns `true` if it holds for two values that come in this order.
    pub(super) const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// An operator before its only operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
    Not,
}

impl Sign {
    pub(super) fn of_symbol(symbol: &str) -> Option<Self> {
        match symbol {
            "+" => Some(Self::Plus),
            "-" => Some(Self::Minus),
            "!" => Some(Self::Not),
            _ => None,
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        word.eq_ignore_ascii_case("not").then_some(Self::Not)
    }
}
