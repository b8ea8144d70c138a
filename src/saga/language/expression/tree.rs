//! What an expression is once it is read.
//!
//! Operators of one precedence are one list, and so are the links of a path. The height of the tree is thus bounded by
//! the nesting of the text, not by its length, and recursion over it needs little stack.

use super::Misread;
use super::method::Method;
use super::operator::{Operator, Sign};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Constant(Constant),
    /// `#root`
    Root,
    /// `#this`, the current object
    This,
    Path {
        start: Box<Node>,
        links: Vec<Link>,
    },
    Signed {
        sign: Sign,
        at: usize,
        operand: Box<Node>,
    },
    /// Operators of one precedence, from left to right. `&&` and `||` have one each, so a chain has one of them alone.
    Chain {
        first: Box<Node>,
        rest: Vec<Operand>,
    },
    /// `condition ? then : otherwise`
    Conditional {
        condition: Box<Node>,
        at: usize,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    /// `value ?: otherwise`
    Default {
        value: Box<Node>,
        otherwise: Box<Node>,
    },
}

impl Node {
    /// Puts an operator and its right operand behind what has been read so far. `(a + b) - c` and `a + b - c` are one
    /// chain: all operators bind to the left.
    pub(super) fn and(mut self, operand: Operand) -> Self {
        if let Self::Chain { rest, .. } = &mut self
            && rest
                .last()
                .is_some_and(|last| last.operator.power() == operand.operator.power())
        {
            rest.push(operand);
            return self;
        }
        Self::Chain {
            first: Box::new(self),
            rest: vec![operand],
        }
    }
}

/// An operator, where it stands, and what stands behind it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) operator: Operator,
    pub(super) at: usize,
    pub(super) node: Node,
}

/// One step of a path from a value to another, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    pub(super) at: usize,
    pub(super) kind: LinkKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LinkKind {
    /// `[name]`, `.name`, or `?.name`, which is safe.
    Key { name: Box<str>, is_safe: bool },
    /// `[index]`
    Index(Node),
    /// `.method(arguments)`, or `?.method(arguments)`
    Call {
        method: Method,
        arguments: Vec<Node>,
        is_safe: bool,
    },
    /// `.?[condition]`: the elements for which it holds.
    Select(Node),
    /// `.![value]`: that value of each element.
    Map(Node),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Null,
    Boolean(bool),
    /// At most `u64::MAX`.
    Integer(i128),
    Float(f64),
    Text(Box<str>),
}

impl Constant {
    /// Reads digits, or says why not.
    pub(super) fn integer(digits: &str, at: usize) -> Result<Self, Misread> {
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(no_number(digits, at));
        }
        let number = digits.parse::<u64>().map_err(|_| too_large(digits, at))?;
        Ok(Self::Integer(number.into()))
    }

    /// Reads a number with a fraction or an exponent, or says why not.
    pub(super) fn float(digits: &str, at: usize) -> Result<Self, Misread> {
        let number = digits.parse::<f64>().map_err(|_| no_number(digits, at))?;
        if number.is_finite() {
            Ok(Self::Float(number))
        } else {
            Err(too_large(digits, at))
        }
    }
}

fn no_number(text: &str, at: usize) -> Misread {
    Misread::new(at, format!("\"{text}\" is no number")).hint("write for instance 100, 0.5 or 1e3")
}

/// The digits are not repeated: there may be thousands.
fn too_large(digits: &str, at: usize) -> Misread {
    let what = format!("the number has {} characters and is too large", digits.len());
    Misread::new(at, what).hint(format!("integers end at {}", u64::MAX))
}
