//! Keys against the comparison that they stand for: goal: bytes compare as values do, and come
//! back.

use std::cmp::Ordering;

use frond_doc::{Value, ValueBuf, key, order};
use frond_testkit::{Random, random::for_seeds};

use crate::generate;

fn encode(value: Value<'_>, descending: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::append(&mut bytes, value, descending);
    bytes
}

/// As `==` but of the bytes, so that NaN equals itself and -0 isn't 0.
fn identical(left: &ValueBuf, right: &ValueBuf) -> bool {
    let raw = |it: &ValueBuf| frond_doc::document! { "": it }.into_bytes();
    raw(left) == raw(right)
}

fn check_order(left: Value<'_>, right: Value<'_>) {
    let expected = order::compare(left, right);
    assert_eq!(expected, order::compare(right, left).reverse(), "{left:?} and {right:?}");
    let (left_key, right_key) = (encode(left, false), encode(right, false));
    assert_eq!(
        left_key.cmp(&right_key),
        expected,
        "{left:?} and {right:?}: {left_key:02x?} and {right_key:02x?}"
    );
    let (left_key, right_key) = (encode(left, true), encode(right, true));
    assert_eq!(right_key.cmp(&left_key), expected, "{left:?} and {right:?}, descending");
    let (start, end) = key::bracket(left);
    assert!(start <= encode(left, false) && encode(left, false) < end, "bracket of {left:?}");
    let (start, end) = key::bracket_descending(left);
    assert!(start <= encode(left, true) && encode(left, true) < end, "bracket of {left:?}");
    let same_type =
        order::type_order(left.element_type()) == order::type_order(right.element_type());
    let in_bracket = start <= encode(right, true) && encode(right, true) < end;
    assert_eq!(in_bracket, same_type, "bracket of {left:?} and {right:?}");
}

#[test]
fn numbers_order_exactly() {
    for_seeds(150, |mut random| {
        let mut numbers: Vec<Value<'_>> = (0..60).map(|_| generate::number(&mut random)).collect();
        for left in &numbers {
            for right in &numbers {
                check_order(*left, *right);
            }
        }
        // Sorted by the comparison, the keys ascend: the comparison is an order.
        numbers.sort_by(|left, right| order::compare(*left, *right));
        assert!(numbers.is_sorted_by_key(|number| encode(*number, false)));
    });
}

#[test]
fn values_order() {
    for_seeds(150, |mut random| {
        let values: Vec<ValueBuf> = (0..40).map(|_| generate::value(&mut random, 3)).collect();
        for left in &values {
            for right in &values {
                check_order(left.as_value(), right.as_value());
            }
        }
    });
}

/// Compound keys: several values, each ascending or descending, decoded in their order.
#[test]
fn values_come_back() {
    for_seeds(8000, |mut random| {
        let values: Vec<(ValueBuf, bool)> = (0..1 + random.below(3))
            .map(|_| (generate::value(&mut random, 4), random.one_in(2)))
            .collect();
        let (mut key, mut bits) = (Vec::new(), Vec::new());
        for (value, descending) in &values {
            key::append(&mut key, value.as_value(), *descending);
            key::append_type_bits(&mut bits, value.as_value());
        }
        key::trim_type_bits(&mut bits);
        let (mut key_rest, mut skip_rest, mut bits_rest) = (&key[..], &key[..], &bits[..]);
        for (value, descending) in &values {
            let decoded = key::decode(&mut key_rest, &mut bits_rest, *descending);
            let decoded = decoded.unwrap_or_else(|error| panic!("{error}: {value:?} {key:02x?}"));
            assert!(identical(&decoded, value), "{decoded:?} instead of {value:?}");
            let skipped = key::skip(&mut skip_rest, *descending).expect("a whole value");
            assert_eq!(skipped, encode(value.as_value(), *descending));
        }
        assert_eq!((key_rest.len(), skip_rest.len(), bits_rest.len()), (0, 0, 0));
    });
}

/// Several values order as tuples do.
#[test]
fn compound_keys_order() {
    for_seeds(20_000, |mut random| {
        let pair = |random: &mut Random| (generate::value(random, 1), generate::value(random, 1));
        let (left, right) = (pair(&mut random), pair(&mut random));
        let first = order::compare(left.0.as_value(), right.0.as_value());
        let second = order::compare(left.1.as_value(), right.1.as_value());
        let key = |pair: &(ValueBuf, ValueBuf)| {
            let mut key = encode(pair.0.as_value(), true);
            key::append(&mut key, pair.1.as_value(), false);
            key
        };
        let expected: Ordering = first.reverse().then(second);
        assert_eq!(key(&left).cmp(&key(&right)), expected, "{left:?} and {right:?}");
    });
}

/// Damaged keys end in an error or another value, never in a panic.
#[test]
fn damage_is_survived() {
    for_seeds(20_000, |mut random| {
        let value = generate::value(&mut random, 3);
        let mut bytes = encode(value.as_value(), false);
        let mut bits = Vec::new();
        key::append_type_bits(&mut bits, value.as_value());
        let damaged = if random.one_in(2) || bits.is_empty() { &mut bytes } else { &mut bits };
        let position = random.below(damaged.len());
        if random.one_in(3) {
            damaged.truncate(position);
        } else {
            damaged[position] = random.next() as u8;
        }
        let (mut key_rest, mut bits_rest) = (&bytes[..], &bits[..]);
        let decoded = key::decode(&mut key_rest, &mut bits_rest, false);
        let skipped = key::skip(&mut &bytes[..], false);
        if let Ok(decoded) = decoded {
            assert!(skipped.is_ok(), "decoded, not skipped: {bytes:02x?}");
            let bytes = frond_doc::document! { "": &decoded }.into_bytes();
            frond_doc::DocumentBuf::validated(bytes).expect("a decoded value is valid");
        }
    });
}
