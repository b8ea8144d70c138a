//! Each shape that a method may take, against lists that fit and lists that do not.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::saga::Arguments;

#[derive(Debug, PartialEq, Deserialize)]
struct Order {
    article: String,
    count: u32,
}

/// The decoded arguments as Rust shows them, or the fault.
fn decoded<A: Arguments + Debug>(arguments: &Value) -> String {
    let list = arguments.as_array().cloned().unwrap_or_default();
    match A::decode(list) {
        Ok(arguments) => format!("{arguments:?}"),
        Err(fault) => fault.to_string(),
    }
}

fn bad(text: &str) -> String {
    format!("procession.BadArguments: {text}")
}

#[test]
fn lists_are_decoded_into_tuples() {
    type Eight = (u8, u8, u8, u8, u8, u8, u8, Option<u8>);
    let rows = [
        (decoded::<()>(&json!([])), "()".to_owned()),
        (decoded::<()>(&json!([1, 2])), "()".to_owned()),
        (decoded::<Vec<Value>>(&json!([1, null])), "[Number(1), Null]".to_owned()),
        (decoded::<(String,)>(&json!(["a"])), "(\"a\",)".to_owned()),
        (decoded::<(String, u32)>(&json!(["a", 7])), "(\"a\", 7)".to_owned()),
        (decoded::<(u8, u8)>(&json!([1, 2, 3, "dropped"])), "(1, 2)".to_owned()),
        (decoded::<(u8, Option<u8>)>(&json!([1])), "(1, None)".to_owned()),
        (decoded::<(Value, Value)>(&json!([])), "(Null, Null)".to_owned()),
        (decoded::<(u8, u8, u8)>(&json!([1, 2, 3])), "(1, 2, 3)".to_owned()),
        (
            decoded::<Eight>(&json!([1, 2, 3, 4, 5, 6, 7])),
            "(1, 2, 3, 4, 5, 6, 7, None)".to_owned(),
        ),
        (
            decoded::<(Order, BTreeMap<String, i8>)>(&json!([{ "article": "tea", "count": 2 }, { "x": -1 }])),
            "(Order { article: \"tea\", count: 2 }, {\"x\": -1})".to_owned(),
        ),
        (
            decoded::<(String, u32)>(&json!(["a", "b"])),
            bad("argument 2: invalid type: string \"b\", expected u32"),
        ),
        (
            decoded::<(String, u32)>(&json!([])),
            bad("argument 1 is missing: invalid type: null, expected a string"),
        ),
        (
            decoded::<(String, u32)>(&json!(["a"])),
            bad("argument 2 is missing: invalid type: null, expected u32"),
        ),
        (
            decoded::<(u8, u8, u8, u8)>(&json!([1, 2, 3, 256])),
            bad("argument 4: invalid value: integer `256`, expected u8"),
        ),
        (
            decoded::<(Order,)>(&json!([{ "article": "tea" }])),
            bad("argument 1: missing field `count`"),
        ),
    ];
    for (found, expected) in rows {
        assert_eq!(found, expected);
    }
}

/// Nothing of a fault is longer than faults are, however long the argument.
#[test]
fn a_long_argument_does_not_make_a_long_fault() {
    let fault = <(u8,)>::decode(vec![json!("ä".repeat(10_000))]).expect_err("it is no number");
    assert!(fault.message().len() <= 2_048);
    assert!(fault.message().starts_with("argument 1: invalid type: string \"ää"));
}

#[test]
fn arguments_are_values_of_own_types() {
    let order = Order {
        article: "tea".to_owned(),
        count: 2,
    };
    let read = <(Order,)>::decode(vec![json!({ "article": "tea", "count": 2 })]);
    assert_eq!(read.map_err(|fault| fault.to_string()), Ok((order,)));
}
