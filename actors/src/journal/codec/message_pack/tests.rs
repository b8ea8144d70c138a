//! Each value has the bytes that rmp-serde gives it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::super::{read, write_named};
use super::MessagePack;

fn both<T: Serialize>(value: &T) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut own = b"before".to_vec();
    value.serialize(&mut MessagePack::new(&mut own))?;
    let own = own.split_off(b"before".len());
    let mut expected = Vec::new();
    write_named(&mut expected, value)?;
    assert_eq!(own, expected);
    Ok(own)
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn numbers_take_the_shortest_form() -> Outcome {
    for bits in 0..64 {
        for near in -2_i64..=2 {
            let number = (1_i64 << bits).wrapping_add(near);
            both(&number)?;
            both(&number.wrapping_neg())?;
            both(&number.cast_unsigned())?;
        }
    }
    both(&(i128::MIN, -1_i128, 7_u128, u128::MAX))?;
    both(&(i8::MIN, i16::MIN, i32::MIN, u8::MAX, u16::MAX, u32::MAX, u64::MAX))?;
    both(&(1.5_f32, -0.1_f64, f64::NAN, true, false, 'ß', '🦀', ()))?;
    Ok(())
}

#[test]
fn lengths_take_the_shortest_form() -> Outcome {
    for length in [0, 1, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
        both(&"x".repeat(length))?;
        both(&vec![7_u8; length])?;
        both(&Bytes(vec![7; length]))?;
        both(&(0..length).map(|key| (key, ())).collect::<BTreeMap<usize, ()>>())?;
    }
    Ok(())
}

/// A map that does not say how long it is.
struct Untold(u32);

impl Serialize for Untold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for key in 0..self.0 {
            map.serialize_entry(&key, "value")?;
        }
        map.end()
    }
}

#[test]
fn a_length_that_comes_last_takes_the_shortest_form() -> Outcome {
    for length in [0, 1, 15, 16, 17, 65_535, 65_536] {
        both(&(Untold(length), "behind it"))?;
    }
    Ok(())
}

/// Written as bytes, as a blob is.
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Nothing;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wrapped(u32);

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Pair(u32, String);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Each {
    Unit,
    One(Wrapped),
    Two(u8, Pair),
    #[serde(rename = "f")]
    Fields {
        #[serde(rename = "a")]
        first: Option<u64>,
        second: Vec<Each>,
    },
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Whole {
    #[serde(rename = "n")]
    nothing: Nothing,
    wrapped: Wrapped,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skipped: Option<Pair>,
    kept: Option<Pair>,
    each: Vec<Each>,
    took: Duration,
    map: BTreeMap<String, Vec<i64>>,
    /// A struct with this field does not know its length beforehand.
    #[serde(flatten)]
    more: BTreeMap<String, u32>,
}

#[test]
fn every_shape_is_written_as_it_is_read() -> Outcome {
    let mut whole = Whole::default();
    both(&whole)?;
    whole.kept = Some(Pair(3, "three".to_owned()));
    whole.each = vec![
        Each::Unit,
        Each::One(Wrapped(300)),
        Each::Two(9, Pair(4, String::new())),
        Each::Fields {
            first: None,
            second: vec![Each::Unit],
        },
    ];
    whole.took = Duration::from_nanos(1_234_567_890_123);
    whole.map.insert("list".to_owned(), vec![-1, 1]);
    for number in 0..20 {
        whole.more.insert(format!("more {number}"), number);
        let bytes = both(&whole)?;
        assert_eq!(read::<Whole>(&bytes)?, whole);
    }
    Ok(())
}
