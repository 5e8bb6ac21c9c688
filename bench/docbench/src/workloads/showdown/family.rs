//! The family of documents: each holds all earlier ones, as the von Neumann ordinals do.

use bson::{Bson, Document};

use crate::target::Failure;

/// The largest member of at most `bytes` as BSON, with `level` its number.
pub fn largest_within(bytes: usize) -> Result<Document, Failure> {
    let mut members: Vec<Document> = Vec::new();
    loop {
        let mut next = Document::new();
        next.insert("level", members.len() as i64);
        for (number, member) in members.iter().enumerate() {
            next.insert(format!("member_{number}"), member.clone());
        }
        // The size doubles: making the one that is too large costs as much as all before it.
        if next.to_vec()?.len() > bytes && !members.is_empty() {
            break;
        }
        members.push(next);
    }
    Ok(members.pop().unwrap_or_default())
}

/// The same document with its names in order, at every depth.
pub fn ordered(document: &Document) -> Document {
    let mut fields: Vec<(&String, &Bson)> = document.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    let value = |value: &Bson| match value {
        Bson::Document(inner) => Bson::Document(ordered(inner)),
        Bson::Int32(number) => Bson::Int64(i64::from(*number)),
        other => other.clone(),
    };
    fields.into_iter().map(|(name, of)| (name.clone(), value(of))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double_and_stay_within() {
        let mut before = 0;
        for bytes in [100, 1_000, 64 << 10, 1 << 20] {
            let document = largest_within(bytes).expect("it can be encoded");
            let size = document.to_vec().expect("it can be encoded").len();
            assert!(bytes / 3 <= size && size <= bytes, "{size} of {bytes}");
            assert!(before < size);
            before = size;
            let level = document.get_i64("level").expect("it has a level");
            assert_eq!(document.len() as i64, level + 1);
        }
    }

    #[test]
    fn order_of_names_is_left_out() {
        let (one, other) = (
            bson::doc! { "b": 1_i64, "a": { "d": 1, "c": 2 } },
            bson::doc! { "a": { "c": 2_i64, "d": 1_i64 }, "b": 1 },
        );
        assert_ne!(one, other);
        assert_eq!(ordered(&one), ordered(&other));
    }
}
