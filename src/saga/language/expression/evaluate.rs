//! From a tree and a root to a value.

use serde_json::Value;

use super::Mistake;
use super::arithmetic::{compute, signed};
use super::compare::related;
use super::method::{self, Method};
use super::operator::Operator;
use super::steps::Steps;
use super::tree::{Link, LinkKind, Node, Operand};
use super::value::Item;

type Evaluated<'a> = Result<Item<'a>, Mistake>;

/// One evaluation: its root, and the steps that it has left.
#[derive(Debug)]
pub(super) struct Evaluation<'a, 's> {
    root: Item<'a>,
    steps: &'s mut Steps,
}

impl<'a, 's> Evaluation<'a, 's> {
    pub(super) fn new(root: &'a Value, steps: &'s mut Steps) -> Self {
        Self {
            root: Item::of(root),
            steps,
        }
    }

    /// Returns the value of a whole expression.
    pub(super) fn run(&mut self, node: &'a Node) -> Evaluated<'a> {
        let root = self.root.clone();
        self.value(node, &root)
    }

    /// Returns the value of a part, in which `this` is the current object.
    fn value(&mut self, node: &'a Node, this: &Item<'a>) -> Evaluated<'a> {
        match node {
            Node::Constant(constant) => Ok(Item::constant(constant)),
            Node::Root => Ok(self.root.clone()),
            Node::This => Ok(this.clone()),
            Node::Path { start, links } => self.path(start, links, this),
            Node::Signed { sign, at, operand } => {
                self.steps.take(1, *at)?;
                signed(*sign, &self.value(operand, this)?, *at)
            }
            Node::Chain { first, rest } => self.chain(first, rest, this),
            Node::Conditional {
                condition,
                at,
                then,
                otherwise,
            } => {
                self.steps.take(1, *at)?;
                let holds = self.value(condition, this)?.boolean(&"\"?\"", *at)?;
                self.value(if holds { then } else { otherwise }, this)
            }
            Node::Default { value, otherwise } => {
                let value = self.value(value, this)?;
                // Spring replaces an empty text as well.
                if value.is_null() || value.text() == Some("") {
                    return self.value(otherwise, this);
                }
                Ok(value)
            }
        }
    }

    fn chain(&mut self, first: &'a Node, rest: &'a [Operand], this: &Item<'a>) -> Evaluated<'a> {
        let mut left = self.value(first, this)?;
        for Operand { operator, at, node } in rest {
            self.steps.take(1, *at)?;
            left = match operator {
                Operator::Logic(logic) => {
                    if left.boolean(operator, *at)? == logic.settled_by() {
                        // All operators of this chain are the same one, so what stands behind it changes nothing.
                        break;
                    }
                    Item::Boolean(self.value(node, this)?.boolean(operator, *at)?)
                }
                Operator::Relation(relation) => {
                    let right = self.value(node, this)?;
                    Item::Boolean(related(*relation, &left, &right, *at, self.steps)?)
                }
                Operator::Arithmetic(arithmetic) => {
                    let right = self.value(node, this)?;
                    compute(*arithmetic, &left, &right, *at, self.steps)?
                }
            };
        }
        Ok(left)
    }

    fn path(&mut self, start: &'a Node, links: &'a [Link], this: &Item<'a>) -> Evaluated<'a> {
        let mut value = self.value(start, this)?;
        for Link { at, kind } in links {
            self.steps.take(1, *at)?;
            value = match kind {
                LinkKind::Key { is_safe: true, .. } | LinkKind::Call { is_safe: true, .. } if value.is_null() => value,
                LinkKind::Key { name, .. } => value.key(name, *at, self.steps)?,
                LinkKind::Index(index) => {
                    let index = self.value(index, this)?;
                    value.at(&index, *at, self.steps)?
                }
                LinkKind::Call { method, arguments, .. } => self.call(*method, &value, arguments, this, *at)?,
                LinkKind::Select(condition) => self.selected(&value, condition, *at)?,
                LinkKind::Map(node) => self.mapped(&value, node, *at)?,
            };
        }
        Ok(value)
    }

    fn call(
        &mut self,
        method: Method,
        of: &Item<'a>,
        arguments: &'a [Node],
        this: &Item<'a>,
        at: usize,
    ) -> Evaluated<'a> {
        let argument = match arguments.first() {
            Some(argument) => self.value(argument, this)?,
            None => Item::Null,
        };
        method::call(method, of, &argument, at, self.steps)
    }

    /// Returns the elements for which a condition holds.
    fn selected(&mut self, list: &Item<'a>, condition: &'a Node, at: usize) -> Evaluated<'a> {
        let mut kept = Vec::new();
        for place in 0..length(list, at)? {
            self.steps.take(1, at)?;
            let Some(element) = list.element(place) else { break };
            if self.value(condition, &element)?.boolean(&"\".?[ ]\"", at)? {
                kept.push(element);
            }
        }
        Ok(Item::Elements(kept.into()))
    }

    /// Returns a value for each element.
    fn mapped(&mut self, list: &Item<'a>, node: &'a Node, at: usize) -> Evaluated<'a> {
        let mut values = Vec::new();
        for place in 0..length(list, at)? {
            self.steps.take(1, at)?;
            let Some(element) = list.element(place) else { break };
            values.push(self.value(node, &element)?);
        }
        Ok(Item::Elements(values.into()))
    }
}

fn length(list: &Item<'_>, at: usize) -> Result<usize, Mistake> {
    let elements = list.length();
    elements.ok_or_else(|| (at, format!("{} has no elements; a list has", list.said())))
}
