//! The files of the page that the package `procession` serves as its dashboard, and the document of its API.
//!
//! The files are made of the page's sources, which are in the repository beside them, before a release: compiling this
//! package needs nothing but Cargo.
//!
//! Applications use the feature `dashboard` of that package. Files have the paths that the page asks for; which there are
//! changes with any version.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{LazyLock, OnceLock};

use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "built/"]
struct Files;

/// The dashboard's API as an OpenAPI document.
pub const OPENAPI: &str = include_str!("openapi.json");

/// A file compressed, once it was asked for; none that would grow.
type Compressed = OnceLock<Option<Vec<u8>>>;

/// The files compressed, by their paths.
static COMPRESSED: LazyLock<BTreeMap<Cow<'static, str>, Compressed>> =
    LazyLock::new(|| paths().map(|path| (path, OnceLock::new())).collect());

/// A file of the page.
#[derive(Clone)]
pub struct File {
    path: String,
    embedded: EmbeddedFile,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File")
            .field("path", &self.path)
            .field("bytes", &self.content().len())
            .finish_non_exhaustive()
    }
}

impl File {
    /// Returns its bytes, as they are in the package.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.embedded.data
    }

    /// Returns its bytes compressed with gzip, if that makes fewer of them. A file is compressed once in the life of the program,
    /// in milliseconds.
    #[must_use]
    pub fn gzip(&self) -> Option<&'static [u8]> {
        let compressed = COMPRESSED.get(self.path.as_str())?;
        compressed.get_or_init(|| smaller(self.content())).as_deref()
    }

    /// Returns the SHA-256 of its bytes.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        self.embedded.metadata.sha256_hash()
    }
}

/// Returns the file of a path, as `page.js`.
#[must_use]
pub fn file(path: &str) -> Option<File> {
    let embedded = Files::get(path)?;
    Some(File {
        path: path.to_owned(),
        embedded,
    })
}

/// Returns the paths of all files, in order.
pub fn paths() -> impl Iterator<Item = Cow<'static, str>> {
    Files::iter()
}

/// Compresses bytes, unless that makes more of them.
fn smaller(content: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).ok()?;
    let compressed = encoder.finish().ok()?;
    (compressed.len() < content.len()).then_some(compressed)
}

#[cfg(test)]
mod tests {
    //! What is compressed is the file.

    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::{file, paths, smaller};

    #[test]
    fn every_file_is_smaller_compressed_and_the_same() {
        for path in paths() {
            let file = file(&path).expect("it is listed");
            let compressed = file.gzip().expect("it is a text");
            assert!(compressed.len() < file.content().len(), "{path}");
            let mut content = Vec::new();
            GzDecoder::new(compressed)
                .read_to_end(&mut content)
                .expect("it was compressed");
            assert_eq!(content, file.content(), "{path}");
            assert!(std::ptr::eq(compressed, file.gzip().expect("it is there")), "{path}");
        }
    }

    #[test]
    fn what_would_grow_is_left_as_it_is() {
        assert_eq!(smaller(b"x"), None);
        assert_eq!(file("no/such.js").map(|file| file.gzip()), None);
    }
}
