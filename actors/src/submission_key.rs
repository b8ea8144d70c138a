//! What an idempotency key stands for: the digest of a submission, and the entry in the store.

use std::time::Duration;

use procession_kernel::{Birth, Blob, Brood, KeyAsked, Submission};
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::journal::codec;
use crate::submit::Submit;

/// Returns what the kernel must know of a submission. Whether its key is known has yet to be looked up.
pub(crate) fn submission_of(submit: Submit) -> Submission {
    let key = submit.key.map(|key| KeyAsked {
        key,
        digest: digest(&submit.birth),
        keep: submit.key_for,
    });
    Submission {
        birth: *submit.birth,
        key,
        known: None,
    }
}

/// Returns the longest time that any of these submissions wants its key kept.
pub(crate) fn longest_key(submissions: &[Submission]) -> Option<Duration> {
    let keys = submissions.iter().filter_map(|submission| submission.key.as_ref());
    keys.filter_map(|key| key.keep).max()
}

/// Returns a digest of what a key stands for: kind, version and value, and the children. How the procedure is queued,
/// and its name, are left out.
fn digest(birth: &Birth) -> u128 {
    let mut digest = Xxh3::new();
    digest.update(birth.kind.as_str().as_bytes());
    digest.update(&birth.version.to_be_bytes());
    digest.update(birth.payload.as_slice());
    if let Some(brood) = &birth.brood {
        digest_brood(&mut digest, brood);
    }
    digest.digest128()
}

/// Adds a list of children. Each part is preceded by its length, so that no two lists give the same bytes.
fn digest_brood(digest: &mut Xxh3, brood: &Brood) {
    let mut part = |bytes: &[u8]| {
        digest.update(&(bytes.len() as u64).to_be_bytes());
        digest.update(bytes);
    };
    // Rows have these values in the same encoding, which never changes.
    part(encoded(&(&brood.join, brood.width, brood.output.is_some())).as_slice());
    part(brood.output.as_ref().map_or(&[][..], Blob::as_slice));
    for child in &brood.children {
        part(child.kind.as_str().as_bytes());
        part(&child.version.to_be_bytes());
        part(child.payload.as_slice());
        part(encoded(&(child.on_failure, &child.graph, child.detached)).as_slice());
    }
}

/// Encodes engine values. Plain values like these can always be encoded.
fn encoded(value: &impl Serialize) -> Blob {
    codec::encode_user(value).unwrap_or_default()
}
