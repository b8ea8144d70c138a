//! What is done with bytes from outside, one function a target: each takes any
//! bytes, and holds if it gives `Ok`. The fuzzer calls them, and so do the tests.

pub(crate) mod export;
mod expressions;
pub(crate) mod kinds;
mod log;
pub(crate) mod recovery;
mod rows;
mod saga;
pub(crate) mod seeds;
mod text;
mod values;

/// A target: its name, which is that of its corpus, and what it does.
pub(crate) type Target = (&'static str, fn(&[u8]) -> Checked);

/// Why a property of a target does not hold; asserts say it as well.
pub(crate) type Checked = Result<(), procession::testkit::Trouble>;

/// All targets.
pub(crate) const TARGETS: [Target; 9] = [
    ("values", values::check),
    ("text", text::check),
    ("expressions", expressions::check),
    ("log", log::check),
    ("disk", log::check_disk),
    ("export", export::check),
    ("recovery", recovery::check),
    ("rows", rows::check),
    ("saga", saga::check),
];
