//! Checks the fields of a document whose fields MongoDB declares: others are refused, and so is a
//! field that is there twice.

use std::collections::HashSet;

use frond_doc::Document;

use crate::code::Code;
use crate::error::QueryError;

/// Refuses fields of the document at `path` that aren't `known`, or were seen before.
///
/// # Errors
/// 40415 for the first unknown one, 40413 for a duplicate.
pub fn check_fields(path: &str, document: Document<'_>, known: &[&str]) -> Result<(), QueryError> {
    let mut seen = HashSet::new();
    for (name, _) in document.iter() {
        let (code, what) = match (known.contains(&name), seen.insert(name)) {
            (true, true) => continue,
            (false, _) => (40415, "an unknown field."),
            (true, false) => (40413, "a duplicate field"),
        };
        let message = format!("BSON field '{path}.{name}' is {what}");
        return Err(QueryError::new(Code::Location(code), message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuilder, Value};

    use super::*;

    #[test]
    fn unknown_and_duplicate_fields_are_refused() {
        for (names, code) in [
            (&["a", "b"][..], None),
            (&["a", "a"], Some(40413)),
            (&["a", "c", "a"], Some(40415)),
            (&["b", "a", "b", "c"], Some(40413)),
        ] {
            let mut builder = DocumentBuilder::new();
            for name in names {
                builder.append(name, Value::Null);
            }
            let document = builder.build();
            let checked = check_fields("x", document.view(), &["a", "b"]);
            assert_eq!(checked.err().map(|error| error.code.number()), code, "{names:?}");
        }
    }
}
