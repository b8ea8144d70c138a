//! The files of the page that the package `procession` serves as its dashboard, and the document of its API.
//!
//! Applications use the feature `dashboard` of that package. Files have the paths that the page asks for; which there are
//! changes with any version.

use std::borrow::Cow;

use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "files/"]
struct Files;

/// The dashboard's API as an OpenAPI document.
pub const OPENAPI: &str = include_str!("openapi.json");

/// A file of the page.
#[derive(Clone)]
pub struct File(EmbeddedFile);

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("bytes", &self.content().len()).finish()
    }
}

impl File {
    /// Returns its bytes, as they are in the package.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.0.data
    }

    /// Returns the SHA-256 of its bytes.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        self.0.metadata.sha256_hash()
    }
}

/// Returns the file of a path, as `screens/list.js`.
#[must_use]
pub fn file(path: &str) -> Option<File> {
    Files::get(path).map(File)
}

/// Returns the paths of all files, in order.
pub fn paths() -> impl Iterator<Item = Cow<'static, str>> {
    Files::iter()
}
