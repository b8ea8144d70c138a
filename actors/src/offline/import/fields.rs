//! Names of the row fields that this release knows. An import rewrites rows, and would silently lose fields that it
//! does not know.

use std::collections::BTreeMap;

use procession_kernel::Row;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, IgnoredAny, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::journal::codec;

/// Returns a field of a stored row that this release does not know, if there is one.
pub(super) fn unknown_field(bytes: &[u8]) -> Option<String> {
    let fields: BTreeMap<String, IgnoredAny> = codec::decode(bytes).ok()?;
    let mut known: &[&str] = &[];
    // This only collects the names of the fields; the error is expected.
    Row::deserialize(Ask(&mut known)).err();
    fields.into_keys().find(|name| !known.contains(&name.as_str()))
}

/// Collects the fields of a structure.
struct Ask<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("only its fields were asked for"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("it is no structure"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
