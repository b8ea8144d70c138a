//! How values are shown in a difference.

use std::collections::BTreeMap;

use procession_kernel::Blob;
use serde::Serialize;

use super::{compared, key, value};

fn encoded<T: Serialize>(value: &T) -> Result<Blob, procession_actors::CodecError> {
    procession_actors::journal::codec::encode_user(value)
}

#[test]
fn a_value_is_shown_with_the_names_of_its_fields() -> Result<(), procession_actors::CodecError> {
    #[derive(Serialize)]
    struct Order {
        customer: &'static str,
        lines: Vec<u32>,
    }
    let order = Order {
        customer: "kim",
        lines: vec![1, 2],
    };
    assert_eq!(
        value(encoded(&order)?.as_slice()),
        r#"{"customer":"kim","lines":[1,2]}"#
    );
    Ok(())
}

#[test]
fn a_value_that_json_cannot_hold_is_shown_as_far_as_it_is_text() -> Result<(), procession_actors::CodecError> {
    let pairs = encoded(&BTreeMap::from([((1, 2), "kim")]))?;
    let shown = value(pairs.as_slice());
    assert!(shown.contains("kim"), "{shown}");
    Ok(())
}

#[test]
fn a_map_is_the_same_in_any_order_and_a_list_is_not() -> Result<(), procession_actors::CodecError> {
    /// A map that is written in this order.
    struct Map([(&'static str, u8); 2]);

    impl Serialize for Map {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0)
        }
    }

    let both = |bytes: Blob| (value(bytes.as_slice()), compared(bytes.as_slice()));
    let map = |entries| Ok::<_, procession_actors::CodecError>(both(encoded(&Map(entries))?));
    assert_eq!(map([("a", 1), ("b", 2)])?, map([("b", 2), ("a", 1)])?);
    assert_ne!(map([("a", 1), ("b", 2)])?, map([("a", 2), ("b", 1)])?);
    assert_ne!(both(encoded(&[1, 2])?), both(encoded(&[2, 1])?));
    Ok(())
}

#[test]
fn keys_that_are_no_text_are_told_apart() {
    assert_eq!(key(b"orders/7"), "orders/7");
    assert_eq!(key(&7_u32.to_be_bytes()), "0x00000007");
    assert_ne!(key(&[0xff, 1]), key(&[0xff, 2]));
    assert_ne!(key(&[7]), key(b"0x07"));
}
