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

/// Returns the text of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a text".to_owned())
}
