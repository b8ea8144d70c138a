//! Writes the engine's own values as MessagePack, a struct as a map with field names: the same bytes as rmp-serde, for
//! fewer instructions. It writes to memory, so no single byte can fail.

use serde::de::value::Error;
use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

/// The markers of what has a length.
struct Lengths {
    /// The marker of the shortest form, which holds the length itself, and the longest length that it holds.
    short: Option<(u8, u8)>,
    /// Whose length takes one byte.
    one: Option<u8>,
    /// Whose length takes two bytes.
    two: u8,
    /// Whose length takes four bytes.
    four: u8,
}

const TEXT: Lengths = Lengths {
    short: Some((0xa0, 31)),
    one: Some(0xd9),
    two: 0xda,
    four: 0xdb,
};
const BYTES: Lengths = Lengths {
    short: None,
    one: Some(0xc4),
    two: 0xc5,
    four: 0xc6,
};
const ARRAY: Lengths = Lengths {
    short: Some((0x90, 15)),
    one: None,
    two: 0xdc,
    four: 0xdd,
};
const MAP: Lengths = Lengths {
    short: Some((0x80, 15)),
    one: None,
    two: 0xde,
    four: 0xdf,
};

/// Writes behind what the buffer holds.
pub(super) struct MessagePack<'a>(&'a mut Vec<u8>);

impl<'a> MessagePack<'a> {
    pub(super) const fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self(bytes)
    }

    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.0.extend_from_slice(&bytes);
    }

    /// Writes a length in the shortest form that holds it.
    #[inline]
    fn length(&mut self, forms: &Lengths, length: usize) -> Result<(), Error> {
        let length = u32::try_from(length).map_err(|_| Error::custom("more than 4 GiB"))?;
        let [a, b, c, d] = length.to_be_bytes();
        match (forms.short, forms.one) {
            (Some((marker, longest)), _) if length <= u32::from(longest) => self.put([marker | d]),
            (_, Some(marker)) if length <= 0xff => self.put([marker, d]),
            _ if length <= 0xffff => self.put([forms.two, c, d]),
            _ => self.put([forms.four, a, b, c, d]),
        }
        Ok(())
    }

    /// Puts the length of a list or a map at the place of the one byte that was kept free for it, and is too short.
    fn insert_length(&mut self, forms: &Lengths, begin: usize, length: usize) -> Result<(), Error> {
        let length = u32::try_from(length).map_err(|_| Error::custom("more than 4 GiB"))?;
        let [a, b, c, d] = length.to_be_bytes();
        if length <= 0xffff {
            drop(self.0.splice(begin..=begin, [forms.two, c, d]));
        } else {
            drop(self.0.splice(begin..=begin, [forms.four, a, b, c, d]));
        }
        Ok(())
    }

    /// Writes a text. Most are names of fields, and most of those have one letter.
    #[inline]
    fn text(&mut self, text: &str) -> Result<(), Error> {
        match text.as_bytes() {
            [letter] => self.put([0xa1, *letter]),
            bytes => {
                self.length(&TEXT, bytes.len())?;
                self.0.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    #[inline]
    fn unsigned(&mut self, number: u64) {
        let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
        match number {
            0..=0x7f => self.put([h]),
            0x80..=0xff => self.put([0xcc, h]),
            0x100..=0xffff => self.put([0xcd, g, h]),
            0x1_0000..=0xffff_ffff => self.put([0xce, e, f, g, h]),
            _ => self.put([0xcf, a, b, c, d, e, f, g, h]),
        }
    }

    #[inline]
    fn negative(&mut self, number: i64) {
        let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
        match number {
            -0x20.. => self.put([h]),
            -0x80..=-0x21 => self.put([0xd0, h]),
            -0x8000..=-0x81 => self.put([0xd1, g, h]),
            -0x8000_0000..=-0x8001 => self.put([0xd2, e, f, g, h]),
            _ => self.put([0xd3, a, b, c, d, e, f, g, h]),
        }
    }

    /// Begins the value of a variant that has one.
    #[inline]
    fn variant(&mut self, name: &'static str) -> Result<(), Error> {
        self.length(&MAP, 1)?;
        self.text(name)
    }
}

/// A list or a map under way. Of some the length is known once all has been written: one byte is kept free for it, which
/// is enough for most.
pub(super) struct Items<'w, 'a> {
    to: &'w mut MessagePack<'a>,
    /// Where the length is to be, and how many items there are so far.
    unknown: Option<(usize, usize)>,
}

impl<'w, 'a> Items<'w, 'a> {
    #[inline]
    fn begin(to: &'w mut MessagePack<'a>, forms: &Lengths, length: Option<usize>) -> Result<Self, Error> {
        let unknown = match length {
            Some(length) => {
                to.length(forms, length)?;
                None
            }
            None => {
                let begin = to.0.len();
                to.put([0]);
                Some((begin, 0))
            }
        };
        Ok(Self { to, unknown })
    }

    #[inline]
    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Error> {
        if let Some((_, count)) = &mut self.unknown {
            *count += 1;
        }
        item.serialize(&mut *self.to)
    }

    /// Puts the length in front of the items, if it was not known.
    #[inline]
    fn finish(self, forms: &Lengths) -> Result<(), Error> {
        let Some((begin, items)) = self.unknown else {
            return Ok(());
        };
        match (forms.short, u8::try_from(items), self.to.0.get_mut(begin)) {
            (Some((marker, longest)), Ok(items), Some(place)) if items <= longest => {
                *place = marker | items;
                Ok(())
            }
            _ => self.to.insert_length(forms, begin, items),
        }
    }
}

impl<'w, 'a> Serializer for &'w mut MessagePack<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Items<'w, 'a>;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Items<'w, 'a>;
    type SerializeStruct = Items<'w, 'a>;
    type SerializeStructVariant = Self;

    fn is_human_readable(&self) -> bool {
        false
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        self.put([0xc2 | u8::from(value)]);
        Ok(())
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(value),
            Err(_) => self.negative(value),
        }
        Ok(())
    }

    #[inline]
    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    #[inline]
    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    #[inline]
    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    #[inline]
    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.unsigned(value);
        Ok(())
    }

    /// As bytes, since MessagePack has no such number.
    fn serialize_i128(self, value: i128) -> Result<(), Error> {
        self.serialize_bytes(&value.to_be_bytes())
    }

    /// As bytes, since MessagePack has no such number.
    fn serialize_u128(self, value: u128) -> Result<(), Error> {
        self.serialize_bytes(&value.to_be_bytes())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.put([0xca]);
        self.put(value.to_be_bytes());
        Ok(())
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.put([0xcb]);
        self.put(value.to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.text(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.text(value)
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.length(&BYTES, value.len())?;
        self.0.extend_from_slice(value);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Error> {
        self.put([0xc0]);
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.length(&ARRAY, 0)
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.text(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(variant)?;
        value.serialize(self)
    }

    #[inline]
    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'w, 'a>, Error> {
        Items::begin(self, &ARRAY, length)
    }

    #[inline]
    fn serialize_tuple(self, length: usize) -> Result<Self, Error> {
        self.length(&ARRAY, length)?;
        Ok(self)
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<Self, Error> {
        self.serialize_tuple(length)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self, Error> {
        self.variant(variant)?;
        self.serialize_tuple(length)
    }

    #[inline]
    fn serialize_map(self, length: Option<usize>) -> Result<Items<'w, 'a>, Error> {
        Items::begin(self, &MAP, length)
    }

    /// The length that is said is not used: to say it, a struct asks each of its fields whether it is written, and then once
    /// more to write it.
    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Items<'w, 'a>, Error> {
        Items::begin(self, &MAP, None)
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self, Error> {
        self.variant(variant)?;
        self.length(&MAP, length)?;
        Ok(self)
    }
}

/// What has a known length is written one value behind the other.
macro_rules! one_behind_the_other {
    ($($shape:ident::$each:ident($($name:ident)?)),*) => {$(
        impl $shape for &mut MessagePack<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $each<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), Error> {
                $(self.text($name)?;)?
                value.serialize(&mut **self)
            }

            #[inline]
            fn end(self) -> Result<(), Error> {
                Ok(())
            }
        }
    )*};
}

one_behind_the_other!(
    SerializeStructVariant::serialize_field(name),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field()
);

impl SerializeSeq for Items<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.item(value)
    }

    #[inline]
    fn end(self) -> Result<(), Error> {
        self.finish(&ARRAY)
    }
}

impl SerializeStruct for Items<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        self.to.text(name)?;
        self.item(value)
    }

    #[inline]
    fn end(self) -> Result<(), Error> {
        self.finish(&MAP)
    }
}

impl SerializeMap for Items<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.item(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.to)
    }

    #[inline]
    fn end(self) -> Result<(), Error> {
        self.finish(&MAP)
    }
}

#[cfg(test)]
mod tests;
