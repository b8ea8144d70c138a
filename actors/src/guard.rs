//! Catches panics in user code, and turns them into texts.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;

/// Runs a piece of user code that may panic.
///
/// # Errors
///
/// The text of its panic, as a sentence about `what`.
pub fn guarded<T>(what: &str, code: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(code))
        .map_err(|panic| format!("{what} panicked: {}", panic_text(&*panic)))
}

/// Runs several pieces of user code that may panic. The code sets the name of each before it runs it.
pub(crate) fn guarded_each<T>(code: impl FnOnce(&Cell<&'static str>) -> T) -> Result<T, String> {
    let running = Cell::new("");
    std::panic::catch_unwind(AssertUnwindSafe(|| code(&running)))
        .map_err(|panic| format!("{} panicked: {}", running.get(), panic_text(&*panic)))
}

/// Returns the text of a panic, to stand behind "panicked: ".
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    text_of(panic).unwrap_or_else(|| "without a text".to_owned())
}

/// Returns the text of a panic as a cause of its own.
pub(crate) fn panic_cause(panic: &(dyn std::any::Any + Send)) -> String {
    text_of(panic).unwrap_or_else(|| "panicked without a text".to_owned())
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> Option<String> {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_without_a_text_says_so_wherever_it_stands() {
        let with = std::panic::catch_unwind(|| panic!("no {}", "paper")).err();
        let without = std::panic::catch_unwind(|| std::panic::panic_any(7)).err();
        let cause = |panic: &Option<Box<dyn std::any::Any + Send>>| panic.as_ref().map(|panic| panic_cause(&**panic));
        assert_eq!(cause(&with).as_deref(), Some("no paper"));
        assert_eq!(cause(&without).as_deref(), Some("panicked without a text"));
        let text = guarded("join", || std::panic::panic_any(7));
        assert_eq!(text, Err("join panicked: without a text".to_owned()));
    }
}
