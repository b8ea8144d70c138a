//! Encodes values as a version byte and MessagePack with field names. The only file that names rmp-serde.

mod message_pack;

use std::cell::Cell;
use std::io;

use procession_kernel::Blob;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::message_pack::MessagePack;
use crate::error::CodecError;

/// Version of the engine's own values. Readers know every version up to it.
pub const VALUE_VERSION: u8 = 1;

/// Deepest nesting of a value that is read. Deeper values are refused before they exhaust the stack.
const MAX_DEPTH: usize = 128;

/// Encodes a user's value as MessagePack with field names. It has no version byte: the row stores the kind's version.
///
/// # Errors
///
/// [`CodecError`] if the value's own `Serialize` fails.
pub fn encode_user<T: Serialize + ?Sized>(value: &T) -> Result<Blob, CodecError> {
    // Taken, not borrowed: the value's `Serialize` may call this function again.
    let mut bytes = SCRATCH.take();
    bytes.clear();
    let encoded = write_named(&mut bytes, value).map(|()| Blob::from(bytes.as_slice()));
    if bytes.capacity() <= SCRATCH_MAX {
        SCRATCH.set(bytes);
    }
    encoded.map_err(|why| CodecError {
        what: "the value cannot be encoded",
        why,
    })
}

/// Largest buffer that a thread keeps for encoding; most values fit.
const SCRATCH_MAX: usize = 64 * 1024;

thread_local! {
    /// Buffer in which values are encoded, to be copied once when their size is known.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Decodes a user's value.
///
/// # Errors
///
/// [`CodecError`] if the bytes are not of this type.
pub fn decode_user<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    read(bytes).map_err(|why| CodecError {
        what: "the stored value is not of the type asked for",
        why,
    })
}

/// Appends an engine value with its version byte.
///
/// # Errors
///
/// [`CodecError`] if the value cannot be encoded.
pub fn encode_into<T: Serialize>(bytes: &mut Vec<u8>, value: &T) -> Result<(), CodecError> {
    bytes.push(VALUE_VERSION);
    value.serialize(&mut MessagePack::new(bytes)).map_err(|why| CodecError {
        what: "an engine value cannot be encoded",
        why: why.to_string(),
    })
}

/// Decodes an engine value.
///
/// # Errors
///
/// [`CodecError`] if the version is unknown or the bytes are damaged.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let what = "a value of the journal cannot be read";
    match bytes.split_first() {
        Some((&VALUE_VERSION, rest)) => read(rest).map_err(|why| CodecError { what, why }),
        Some((version, _)) => Err(CodecError {
            what,
            why: format!("it has version {version}, this release reads {VALUE_VERSION}"),
        }),
        None => Err(CodecError {
            what,
            why: "it is empty".to_owned(),
        }),
    }
}

fn write_named<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) -> Result<(), String> {
    let mut serializer = rmp_serde::Serializer::new(Buffer(bytes)).with_struct_map();
    value.serialize(&mut serializer).map_err(|error| error.to_string())
}

/// Most of what MessagePack writes at once is one byte: markers, short numbers, names of fields. A byte that is pushed costs
/// a fraction of a slice that is copied.
struct Buffer<'a>(&'a mut Vec<u8>);

impl io::Write for Buffer<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [byte] => self.0.push(*byte),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(MAX_DEPTH);
    T::deserialize(&mut deserializer).map_err(|error| error.to_string())
}

/// Returns the name of the variant that these bytes of a stage encode: `()` for a unit, and `-` for bytes that are no
/// variant, such as a number. Only the beginning is read.
#[must_use]
pub fn variant(bytes: &[u8]) -> &str {
    match bytes {
        [0xc0, ..] => "()",
        [0x81, rest @ ..] => text(rest).unwrap_or("-"),
        _ => text(bytes).unwrap_or("-"),
    }
}

/// Returns the text at the beginning of the bytes, if it is a short text.
fn text(bytes: &[u8]) -> Option<&str> {
    let (length, rest) = match bytes {
        [length @ 0xa0..=0xbf, rest @ ..] => (length & 0x1f, rest),
        [0xd9, length, rest @ ..] => (*length, rest),
        _ => return None,
    };
    std::str::from_utf8(rest.get(..usize::from(length))?).ok()
}

/// Returns a short text for the stage that these bytes encode: the variant's name, a number, or `()`.
#[must_use]
pub fn describe(bytes: &[u8]) -> String {
    if bytes == [0xc0] {
        return "()".to_owned();
    }
    if let Ok(name) = read::<String>(bytes) {
        return name;
    }
    if let Ok(number) = read::<i64>(bytes) {
        return number.to_string();
    }
    if let Ok(number) = read::<u64>(bytes) {
        return number.to_string();
    }
    match read::<std::collections::BTreeMap<String, serde::de::IgnoredAny>>(bytes) {
        Ok(variant) => variant.into_keys().next().unwrap_or_default(),
        Err(_) => format!("{} bytes", bytes.len()),
    }
}

#[cfg(test)]
mod tests;
