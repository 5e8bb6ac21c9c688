//! Merging a field by its rule: numbers as sums of their changes, arrays as sets.
//!
//! Both are the same in both directions. A sum is `base + (ours - base) + (theirs - base)`, an
//! absent base being zero; integers stay integers and never wrap: what doesn't fit is a conflict,
//! as is everything that isn't a number. Of a set, what the base had and no side removed comes
//! first, in its order, then what a side added, by the order of keys.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use frond_db::inside::merge_rules::FieldRule;
use frond_doc::{Array, DocumentBuilder, Value, ValueBuf, key};

/// Applies the rule to three sides; returns nothing if it can't.
pub(crate) fn apply(
    rule: FieldRule,
    base: Option<Value<'_>>,
    ours: Option<Value<'_>>,
    theirs: Option<Value<'_>>,
) -> Option<ValueBuf> {
    match rule {
        FieldRule::Delta => sum(base.unwrap_or(Value::Int32(0)), ours?, theirs?),
        FieldRule::Union => {
            let empty = Array::from_validated(&frond_doc::document::EMPTY);
            let base = base.map_or(Some(empty), |base| base.as_array())?;
            Some(union(base, ours?.as_array()?, theirs?.as_array()?))
        }
    }
}

fn sum(base: Value<'_>, ours: Value<'_>, theirs: Value<'_>) -> Option<ValueBuf> {
    let sides = [base, ours, theirs];
    if let [Some(base), Some(ours), Some(theirs)] = sides.map(integer) {
        let sum = i128::from(ours) + i128::from(theirs) - i128::from(base);
        let is_long = sides.iter().any(|side| matches!(side, Value::Int64(_)));
        return match (i32::try_from(sum), i64::try_from(sum)) {
            (Ok(sum), _) if !is_long => Some(Value::Int32(sum).to_buf()),
            (_, Ok(sum)) => Some(Value::Int64(sum).to_buf()),
            _ => None,
        };
    }
    let double = |side: Value<'_>| match side {
        Value::Double(number) => Some(number),
        other => integer(other).map(|number| number as f64),
    };
    let (base, ours, theirs) = (double(base)?, double(ours)?, double(theirs)?);
    let sum = base + ((ours - base) + (theirs - base));
    sum.is_finite().then(|| Value::Double(sum).to_buf())
}

fn integer(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(i64::from(number)),
        Value::Int64(number) => Some(number),
        _ => None,
    }
}

fn union(base: Array<'_>, ours: Array<'_>, theirs: Array<'_>) -> ValueBuf {
    let keys = |array: Array<'_>| -> BTreeSet<Bytes> { array.iter().map(key::of_value).collect() };
    let (had, in_ours, in_theirs) = (keys(base), keys(ours), keys(theirs));
    let mut builder = DocumentBuilder::new();
    builder.begin_array("set");
    let mut put: BTreeSet<Bytes> = BTreeSet::new();
    for element in base.iter() {
        let key = key::of_value(element);
        if in_ours.contains(&key) && in_theirs.contains(&key) && put.insert(key) {
            builder.push(element);
        }
    }
    let mut added: BTreeMap<Bytes, Value<'_>> = BTreeMap::new();
    for element in ours.iter().chain(theirs.iter()) {
        let key = key::of_value(element);
        if had.contains(&key) {
            continue;
        }
        // Both directions keep the same one of 1 and 1.0, which are the same element.
        let kept = added.entry(key).or_insert(element);
        if bytes_of(element) < bytes_of(*kept) {
            *kept = element;
        }
    }
    added.values().for_each(|element| {
        builder.push(*element);
    });
    builder.end();
    let built = builder.build();
    built.get("set").map(|set| set.to_buf()).unwrap_or(Value::Null.to_buf())
}

/// Type and bytes of a value, to choose one of two that are equal.
fn bytes_of(value: Value<'_>) -> Bytes {
    frond_doc::document! { "": value }.into_bytes()
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn check(rule: FieldRule, base: &str, ours: &str, theirs: &str, expected: Option<&str>) {
        let text = format!("{{\"b\": {base}, \"o\": {ours}, \"t\": {theirs}}}");
        let sides = extended_json::parse(&text).expect("JSON");
        let side = |name| sides.get(name).filter(|value| *value != Value::Null);
        for (ours, theirs) in [("o", "t"), ("t", "o")] {
            let found = apply(rule, side("b"), side(ours), side(theirs));
            let outcome = found.map(|found| {
                let mut outcome = String::new();
                extended_json::write_value(
                    found.as_value(),
                    extended_json::Form::Relaxed,
                    &mut outcome,
                );
                outcome
            });
            assert_eq!(outcome.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_get_both_changes() {
        use FieldRule::Delta;
        check(Delta, "10", "12", "7", Some("9"));
        check(Delta, "null", "2", "3", Some("5"));
        check(Delta, "1.5", "2.5", "1", Some("2.0"));
        check(Delta, "0", "2000000000", "2000000000", Some("4000000000"));
        let max = "9223372036854775807";
        check(Delta, "0", max, max, None);
        check(Delta, "1", "\"x\"", "2", None);
        check(Delta, "1", "null", "2", None);
    }

    #[test]
    fn arrays_are_sets() {
        use FieldRule::Union;
        check(Union, "[1, 2, 3]", "[1, 3, 9]", "[5, 1, 2, 3]", Some("[1,3,5,9]"));
        check(Union, "null", "[\"b\"]", "[\"a\"]", Some("[\"a\",\"b\"]"));
        check(Union, "[]", "[1]", "[1.0]", Some("[1]"));
        check(Union, "[1]", "[]", "[1, 1]", Some("[]"));
        check(Union, "[1]", "5", "[1, 2]", None);
    }
}
