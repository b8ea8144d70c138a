//! The name of a stream: its scene, and its group within the scene.

use std::fmt;

use procession_actors::StageError;

/// Most characters of a scene: it is the name of a limit.
const SCENE_MAX: usize = 30;
/// Most characters of a group: one customer, account, device or document.
const GROUP_MAX: usize = 100;
/// What stands between the two, so a scene has none.
const BETWEEN: char = ':';

/// The name of a stream: a scene of 1 to 30 characters, such as `invoices`, and a group of 1 to 100, such as
/// `customer-17`. It is shown as `invoices:customer-17`.
///
/// ```
/// use procession::flow::StreamName;
///
/// # fn main() -> Result<(), procession::flow::StreamNameError> {
/// let name = StreamName::new("invoices", "customer-17")?;
/// assert_eq!(name.to_string(), "invoices:customer-17");
/// assert!(StreamName::new("in:voices", "customer-17").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName {
    scene: String,
    group: String,
}

impl StreamName {
    /// Checks a scene and a group.
    ///
    /// # Errors
    ///
    /// [`StreamNameError`] says what is wrong.
    pub fn new(scene: impl Into<String>, group: impl Into<String>) -> Result<Self, StreamNameError> {
        let (scene, group) = (scene.into(), group.into());
        check("scene", &scene, SCENE_MAX)?;
        check("group", &group, GROUP_MAX)?;
        if scene.contains(BETWEEN) {
            return Err(StreamNameError::Colon { scene });
        }
        Ok(Self { scene, group })
    }

    /// Returns the scene.
    #[must_use]
    pub fn scene(&self) -> &str {
        &self.scene
    }

    /// Returns the group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the idempotency key of the stream's root: what [`Executor::find`](crate::Executor::find), the page and the
    /// command line know it by.
    #[must_use]
    pub fn key(&self) -> String {
        format!("procession.stream/{self}")
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{BETWEEN}{}", self.scene, self.group)
    }
}

fn check(part: &'static str, text: &str, limit: usize) -> Result<(), StreamNameError> {
    let characters = text.chars().count();
    if characters == 0 {
        return Err(StreamNameError::Empty { part, limit });
    }
    if characters > limit {
        return Err(StreamNameError::TooLong {
            part,
            characters,
            limit,
        });
    }
    if text.chars().any(char::is_control) {
        let text = text.escape_debug().to_string();
        return Err(StreamNameError::ControlCharacter { part, text });
    }
    Ok(())
}

/// Why a scene and a group name no stream. With `?` it fails a node: another attempt would find the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamNameError {
    /// A part is empty.
    #[error("{part} is empty: give it 1 to {limit} characters")]
    Empty {
        /// `scene` or `group`.
        part: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A part is too long.
    #[error("{part} has {characters} characters, at most {limit}")]
    TooLong {
        /// `scene` or `group`.
        part: &'static str,
        /// Its characters.
        characters: usize,
        /// The bound.
        limit: usize,
    },
    /// The scene has a colon.
    #[error("scene \"{scene}\" contains ':', which separates scene and group")]
    Colon {
        /// The scene.
        scene: String,
    },
    /// A part has a control character, such as a line break.
    #[error("{part} \"{text}\" has a control character: leave it out")]
    ControlCharacter {
        /// `scene` or `group`.
        part: &'static str,
        /// The text, with the character escaped.
        text: String,
    },
}

impl From<StreamNameError> for StageError {
    fn from(error: StreamNameError) -> Self {
        Self::fail(error)
    }
}
