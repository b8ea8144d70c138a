//! What the other side of a call says of its fault.

use serde::Deserialize;

use super::Fault;

/// A fault as the other side writes it.
#[derive(Deserialize)]
struct Said {
    class: String,
    /// An exception without a message is written with a null one.
    #[serde(default)]
    message: Option<String>,
}

impl Fault {
    /// Reads a fault of the form `{"class": "..", "message": ".."}`, as a service outside the process writes it. Any other
    /// text is the message of a fault of the class that `otherwise` returns.
    ///
    /// ```
    /// use procession::saga::Fault;
    ///
    /// let fault = Fault::read(br#"{"class": "com.acme.OutOfStock", "message": "3 are left"}"#, || "command.1".into());
    /// assert_eq!(fault.to_string(), "com.acme.OutOfStock: 3 are left");
    /// let fault = Fault::read(b"no such file", || "command.1".into());
    /// assert_eq!(fault.to_string(), "command.1: no such file");
    /// ```
    pub fn read(text: &[u8], otherwise: impl FnOnce() -> String) -> Self {
        match serde_json::from_slice::<Said>(text) {
            Ok(said) if !said.class.is_empty() => Self::new(said.class, said.message.unwrap_or_default()),
            Ok(_) | Err(_) => Self::new(otherwise(), String::from_utf8_lossy(text).trim()),
        }
    }
}
