//! One child of a list: what comes before it, and what its failure means.

use procession_kernel::{Birth, Gate, GraphNode, JoinPolicy, Label, OnFailure};

use crate::error::CodecError;
use crate::procedure::Procedure;
use crate::step::birth_of;

/// A child to add to [`Children`](crate::Children) with [`Children::child`](crate::Children::child): with a name, or
/// with siblings that come before it.
///
/// A child with siblings before it is born with its list, and waits at its *gate*. It takes no place in the width, no
/// permit and no lock. The gate is looked at in each commit in which one of these siblings ends or fails. When its
/// policy is met it opens for good, and the child begins, in that very commit or as soon as the width, permits and locks
/// let it. When the policy can no longer be met the child ends as `RolledBack` without a call, with the first failure
/// before it as its cause, and its own dependants follow.
///
/// ```
/// # use procession_actors::{Child, Children, CodecError, Procedure};
/// # use procession_kernel::JoinPolicy;
/// # fn plan<P: Procedure>(fetch: &P, compile: &P, lint: &P, publish: &P) -> Result<Children, CodecError> {
/// let build = Children::new()
///     .child(Child::new(fetch)?.named("fetch"))
///     .child(Child::new(compile)?.named("compile").after([0]))
///     .child(Child::new(lint)?.named("lint").after([0]))
///     // It waits for an operator if `compile` or `lint` fails.
///     .child(Child::new(publish)?.named("publish").after([1, 2]).or_wait())
///     .join(JoinPolicy::AllFinished);
/// # Ok(build) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a child is born only if it is added to a list"]
pub struct Child {
    birth: Birth,
    name: Option<String>,
    after: Vec<u32>,
    opens: Option<JoinPolicy>,
    or_wait: bool,
    vital: bool,
}

impl Child {
    /// Creates a child that waits for no sibling, and whose result stands when the family rolls back later.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn new<P: Procedure>(procedure: &P) -> Result<Self, CodecError> {
        Ok(Self {
            birth: birth_of(procedure)?,
            name: None,
            after: Vec::new(),
            opens: None,
            or_wait: false,
            vital: false,
        })
    }

    /// Sets the name that people see in trees and on the dashboard, at most 200 characters. Names need not be unique.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the siblings that come before it, by their places in the list, counted from 0. Only attached children have
    /// a place: detached ones are not counted. At most 10,000.
    ///
    /// A stage fails for good if a place is not before the child's own, or is given twice; the error names both.
    pub fn after(mut self, places: impl IntoIterator<Item = u32>) -> Self {
        self.after = places.into_iter().collect();
        self
    }

    /// Sets when the child may begin. Default: when all siblings before it have succeeded. `Named` counts positions in
    /// the list given to [`after`](Self::after), from 0. With `Custom` the child's own
    /// [`Procedure::gate`](crate::Procedure::gate) decides; opening the gate then costs a commit of its own.
    pub fn opens(mut self, policy: JoinPolicy) -> Self {
        self.opens = Some(policy);
        self
    }

    /// If the child can no longer begin by itself, it stays and waits for an operator, instead of ending: `retry_now`
    /// lets it begin, `bypass` ends it. A verdict `undecided` names it. A `Custom` rule has the last word only when all
    /// siblings before the child have ended: until then the next end may make it say otherwise.
    pub fn or_wait(mut self) -> Self {
        self.or_wait = true;
        self
    }

    /// Its failure, or its end at a gate that can no longer open, fails the parent at once, whatever the join policy
    /// says, while the parent waits for this list. A parent past its point of no return goes on instead.
    pub fn vital(mut self) -> Self {
        self.vital = true;
        self
    }

    /// Overrides the procedure's own [priority](crate::Procedure::priority).
    pub fn priority(mut self, priority: i16) -> Self {
        self.birth.priority = priority;
        self
    }

    /// It is undone with the rest of the family, even if it succeeded.
    pub fn compensated(mut self) -> Self {
        self.birth.on_failure = OnFailure::Compensate;
        self
    }

    /// Sets a label by which people find it: a name of at most 64 bytes, and a value of at most 256. A second one of
    /// the same name replaces the first. A child has at most 16, inherited ones included.
    ///
    /// A stage fails for good if a label is out of bounds; the error says which.
    pub fn label(mut self, name: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        self.birth.labels.set(Label::new(name, value));
        self
    }

    /// Copies the labels of its parent to it, as they are at its birth.
    pub fn inherit_labels(mut self) -> Self {
        self.birth.inherits_labels = true;
        self
    }

    /// Returns what the kernel must know.
    pub(crate) fn into_birth(self) -> Birth {
        let has_gate = !self.after.is_empty() || self.opens.is_some() || self.or_wait;
        let gate = has_gate.then(|| Gate {
            after: self.after,
            opens: self.opens.unwrap_or_default(),
            or_wait: self.or_wait,
        });
        let node = GraphNode {
            name: self.name,
            gate,
            vital: self.vital,
        };
        Birth {
            graph: (node != GraphNode::default()).then(|| Box::new(node)),
            ..self.birth
        }
    }
}
