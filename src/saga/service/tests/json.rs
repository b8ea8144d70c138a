//! What has a form in JSON, and what has none, with its place.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::super::json::{is_too_deep, value_of};

#[derive(Serialize)]
enum Shape {
    Point,
    Circle(f64),
    Line(f64, f64),
    Square { side: f64 },
}

#[derive(Serialize)]
struct Priced<T> {
    name: &'static str,
    prices: T,
}

#[derive(Serialize)]
struct Metres(f32);

/// The value as JSON, or why there is none.
fn shown<T: Serialize>(value: T) -> String {
    value_of(&value).map_or_else(|why| why, |value| value.to_string())
}

fn lacking(what: &str) -> String {
    format!("it is {what}, which JSON lacks; return null or a text instead")
}

#[test]
fn each_value_is_json_or_says_what_is_not() {
    let nan = f64::NAN;
    let by_name = |value: f64| BTreeMap::from([("a", vec![1.0]), ("b", vec![0.0, value])]);
    let rows = [
        (shown(()), "null".to_owned()),
        (shown(None::<u8>), "null".to_owned()),
        (shown(Some("x")), "\"x\"".to_owned()),
        (shown(1.5), "1.5".to_owned()),
        (shown(u64::MAX), u64::MAX.to_string()),
        (shown((1, 'c', true, b"ab")), "[1,\"c\",true,[97,98]]".to_owned()),
        (shown(by_name(2.0)), "{\"a\":[1.0],\"b\":[0.0,2.0]}".to_owned()),
        (shown(Shape::Point), "\"Point\"".to_owned()),
        (shown(Shape::Circle(1.0)), "{\"Circle\":1.0}".to_owned()),
        (shown(Shape::Line(1.0, 2.0)), "{\"Line\":[1.0,2.0]}".to_owned()),
        (
            shown(Shape::Square { side: 1.0 }),
            "{\"Square\":{\"side\":1.0}}".to_owned(),
        ),
        (shown(BTreeMap::from([(7, "seven")])), "{\"7\":\"seven\"}".to_owned()),
        (shown(nan), lacking("NaN")),
        (shown(f64::NEG_INFINITY), lacking("-inf")),
        (shown(Some(f32::INFINITY)), lacking("inf")),
        (shown(Metres(f32::NAN)), lacking("NaN")),
        (shown(Shape::Circle(nan)), lacking("NaN at /Circle")),
        (shown(Shape::Line(0.0, nan)), lacking("NaN at /1")),
        (shown(Shape::Square { side: nan }), lacking("NaN at /side")),
        (shown((0, [1.0, nan])), lacking("NaN at /1/1")),
        (shown(by_name(nan)), lacking("NaN at /b/1")),
        (shown(BTreeMap::from([(7, nan)])), lacking("NaN at /7")),
        (
            shown(Priced {
                name: "tea",
                prices: by_name(nan),
            }),
            lacking("NaN at /prices/b/1"),
        ),
        (shown(BTreeMap::from([((1, 2), 3)])), "key must be a string".to_owned()),
        (shown(u128::MAX), "number out of range".to_owned()),
    ];
    for (found, expected) in rows {
        assert_eq!(found, expected);
    }
}

/// What a type itself says, at its place.
#[test]
fn a_type_that_refuses_says_why() {
    struct Sealed;
    impl Serialize for Sealed {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("it is sealed"))
        }
    }
    assert_eq!(shown(Sealed), "it is sealed");
    let nested = Priced {
        name: "box",
        prices: [Sealed],
    };
    assert_eq!(shown(nested), "it is sealed at /prices/0");
}

#[test]
fn nesting_has_a_deepest_one() {
    fn nested(depth: usize) -> Value {
        (0..depth).fold(Value::Null, |inner, level| match level % 2 {
            0 => json!([inner]),
            _ => json!({ "in": inner }),
        })
    }
    assert_eq!(value_of(&nested(100)), Ok(nested(100)));
    let deeper = value_of(&nested(101));
    assert!(!is_too_deep(&nested(100)) && is_too_deep(&nested(101)));
    assert_eq!(deeper, Err("it is nested more than 100 deep".to_owned()));

    /// Has no end, as a value that refers to itself.
    struct Endless;
    impl Serialize for Endless {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_some(&Endless)
        }
    }
    assert_eq!(shown(Endless), "it is nested more than 100 deep");
}
