//! Names under which stages are counted.

use serde::Serialize;

use super::{describe, encode_user, stage_name};

#[derive(Serialize)]
enum Stage {
    Plain,
    Fields { left: u32 },
    Tuple(u8, u8),
}

#[derive(Serialize)]
struct Newtype(u32);

fn named(stage: &impl Serialize) -> String {
    let bytes = encode_user(stage).expect("it can be encoded");
    stage_name(bytes.as_slice()).into_owned()
}

#[test]
fn a_stage_is_counted_by_its_variant_or_its_number() {
    assert_eq!(named(&Stage::Plain), "Plain");
    assert_eq!(named(&Stage::Fields { left: 7 }), "Fields");
    assert_eq!(named(&Stage::Tuple(1, 2)), "Tuple");
    assert_eq!(named(&"a text"), "a text");
    assert_eq!(named(&()), "()");
    for number in [0, 127, 128, 70_000, i64::MAX, -1, -40, -70_000, i64::MIN] {
        assert_eq!(named(&number), number.to_string());
    }
    assert_eq!(named(&u64::MAX), u64::MAX.to_string());
    assert_eq!(named(&Newtype(3)), "3");
}

#[test]
fn what_is_neither_has_no_name() {
    assert_eq!(named(&(1, 2)), "-");
    assert_eq!(named(&true), "-");
    assert_eq!(named(&1.5), "-");
    assert_eq!(stage_name(&[]), "-");
    // A number that is cut off.
    assert_eq!(stage_name(&[0xcf, 1]), "-");
}

#[test]
fn a_number_is_described_as_it_is_counted() {
    let bytes = encode_user(&70_000).expect("it can be encoded");
    assert_eq!(describe(bytes.as_slice()), stage_name(bytes.as_slice()));
}
