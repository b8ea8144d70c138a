//! Values of users' types as JSON. `serde_json` turns a number that JSON lacks into null without a word, so each value is
//! looked at before.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Serializer};
use serde_json::Value;

/// Deepest nesting of lists and objects, of values that come from outside and of those that a saga makes of them. Rows are read
/// with 127 levels, those of a machine and of what encloses the row in exports included.
pub(in crate::saga) const DEPTH_MAX: usize = 100;

/// Returns a value as JSON.
///
/// # Errors
///
/// A sentence about what has no form in JSON, with its JSON pointer, or what the value's own `Serialize` says.
pub(in crate::saga) fn value_of<T: Serialize + ?Sized>(value: &T) -> Result<Value, String> {
    check(value)?;
    serde_json::to_value(value).map_err(|error| error.to_string())
}

/// Checks that a value has a form in JSON, as [`value_of`] does.
pub(in crate::saga) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), String> {
    let look = Look { left: DEPTH_MAX };
    value.serialize(look).map_err(|unfit| unfit.to_string())
}

/// Returns whether a value is nested too deep to be kept.
pub(in crate::saga) fn is_too_deep(value: &Value) -> bool {
    !nests_within(value, DEPTH_MAX)
}

fn nests_within(value: &Value, left: usize) -> bool {
    match (value, left.checked_sub(1)) {
        (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => true,
        (Value::Array(_) | Value::Object(_), None) => false,
        (Value::Array(items), Some(left)) => items.iter().all(|item| nests_within(item, left)),
        (Value::Object(members), Some(left)) => members.values().all(|member| nests_within(member, left)),
    }
}

/// What has no form in JSON.
#[derive(Debug)]
struct Unfit {
    /// From the inside out.
    path: Vec<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    Number(f64),
    Deep,
    Custom(String),
}

impl Unfit {
    const fn new(what: What) -> Self {
        Self { path: Vec::new(), what }
    }

    fn under(mut self, key: impl fmt::Display) -> Self {
        // The path to something that is too deep says nothing.
        if !matches!(self.what, What::Deep) {
            self.path.push(key.to_string());
        }
        self
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Number(number) => write!(f, "it is {number}")?,
            What::Deep => write!(f, "it is nested more than {DEPTH_MAX} deep")?,
            What::Custom(text) => f.write_str(text)?,
        }
        if !self.path.is_empty() {
            f.write_str(" at ")?;
        }
        self.path.iter().rev().try_for_each(|key| write!(f, "/{key}"))?;
        match self.what {
            What::Number(_) => f.write_str(", which JSON lacks; return null or a text instead"),
            What::Deep | What::Custom(_) => Ok(()),
        }
    }
}

impl std::error::Error for Unfit {}

impl ser::Error for Unfit {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::new(What::Custom(text.to_string()))
    }
}

/// Looks at a value and keeps nothing of it.
#[derive(Clone, Copy)]
struct Look {
    left: usize,
}

impl Look {
    fn deeper(self) -> Result<Self, Unfit> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Self { left }),
            None => Err(Unfit::new(What::Deep)),
        }
    }

    fn parts(self) -> Result<Parts, Unfit> {
        let look = self.deeper()?;
        Ok(Parts { look, index: 0 })
    }
}

/// The parts of a list or an object.
struct Parts {
    look: Look,
    index: usize,
}

impl Parts {
    fn next<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        let index = self.index;
        self.index += 1;
        value.serialize(self.look).map_err(|unfit| unfit.under(index))
    }

    fn named<T: Serialize + ?Sized>(&self, key: impl fmt::Display, value: &T) -> Result<(), Unfit> {
        value.serialize(self.look).map_err(|unfit| unfit.under(key))
    }
}

/// Each of these types has a form in JSON, or `serde_json` says that it has none.
macro_rules! fit {
    ($($name:ident: $type:ty),+) => {
        $(fn $name(self, _: $type) -> Result<(), Unfit> {
            Ok(())
        })+
    };
}

impl Serializer for Look {
    type Ok = ();
    type Error = Unfit;
    type SerializeSeq = Parts;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Parts;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    fit!(serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8]);
    fit!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128);
    fit!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128);
    fit!(serialize_unit_struct: &'static str);

    fn serialize_f32(self, number: f32) -> Result<(), Unfit> {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<(), Unfit> {
        match number.is_finite() {
            true => Ok(()),
            false => Err(Unfit::new(What::Number(number))),
        }
    }

    fn serialize_none(self) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Unfit> {
        value.serialize(self.deeper()?)
    }

    fn serialize_unit(self) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Unfit> {
        value.serialize(self.deeper()?)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Unfit> {
        self.parts()?.named(variant, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts, Unfit> {
        self.parts()
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts, Unfit> {
        self.parts()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts, Unfit> {
        self.parts()
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Parts, Unfit> {
        self.deeper()?.parts()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts, Unfit> {
        self.parts()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Parts, Unfit> {
        self.parts()
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Parts, Unfit> {
        self.deeper()?.parts()
    }

    /// A text that is longer than memory is not asked for twice.
    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Unfit> {
        Ok(())
    }
}

/// Lists: each part is known by its index.
macro_rules! lists {
    ($($of:ident::$part:ident),+) => {
        $(impl ser::$of for Parts {
            type Ok = ();
            type Error = Unfit;

            fn $part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
                self.next(value)
            }

            fn end(self) -> Result<(), Unfit> {
                Ok(())
            }
        })+
    };
}

lists!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

macro_rules! structs {
    ($($of:ident),+) => {
        $(impl ser::$of for Parts {
            type Ok = ();
            type Error = Unfit;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Unfit> {
                self.named(key, value)
            }

            fn end(self) -> Result<(), Unfit> {
                Ok(())
            }
        })+
    };
}

structs!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Parts {
    type Ok = ();
    type Error = Unfit;

    /// `serde_json` says itself which keys have no form in JSON.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Unfit> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Unfit> {
        self.next(value)
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), Unfit> {
        let unfit = match value.serialize(self.look) {
            Ok(()) => return Ok(()),
            Err(unfit) => unfit,
        };
        let key = serde_json::to_value(key).unwrap_or_default();
        Err(match key {
            Value::String(key) => unfit.under(key),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                unfit.under(other)
            }
        })
    }

    fn end(self) -> Result<(), Unfit> {
        Ok(())
    }
}
