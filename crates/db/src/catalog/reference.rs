//! The parts of MongoDB's indexes, and the support for each: for COMPATIBILITY.md.

use frond_query::reference::{Family, Feature, SupportLevel};

/// Kinds of index. The parser is asked by the test whether it is so.
const KINDS: &[Feature] = &[
    Feature::works("1"),
    Feature::works("-1"),
    Feature::works("hashed"),
    Feature::works("$**"),
    Feature::new("2dsphere", SupportLevel::Differs("cells of its own, not S2's")),
    Feature::works("text"),
    Feature::works("2d"),
];

/// Options of an index.
const OPTIONS: &[Feature] = &[
    Feature::new(
        "2dsphereIndexVersion",
        SupportLevel::Differs("1 to 3 are taken, all are version 3"),
    ),
    Feature::new("background", SupportLevel::Differs("no effect, as in MongoDB")),
    Feature::works("bits"),
    Feature::works("collation"),
    Feature::works("default_language"),
    Feature::works("expireAfterSeconds"),
    Feature::works("hidden"),
    Feature::works("language_override"),
    Feature::works("max"),
    Feature::works("min"),
    Feature::works("name"),
    Feature::works("partialFilterExpression"),
    Feature::works("prepareUnique"),
    Feature::works("sparse"),
    Feature::new("storageEngine", SupportLevel::Refused("67")),
    Feature::new("textIndexVersion", SupportLevel::Differs("only 3")),
    Feature::works("unique"),
    Feature::works("weights"),
    Feature::works("wildcardProjection"),
    Feature::new("clustering", SupportLevel::Own),
    Feature::new("include", SupportLevel::Own),
];

/// The families of indexes.
pub fn families() -> Vec<Family> {
    vec![
        Family::new("Index kinds", KINDS.iter().copied()),
        Family::new("Index options", OPTIONS.iter().copied()),
    ]
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuilder, Value};

    use super::*;
    use crate::definition::IndexSpec;

    /// Whether an index of this key with this option is refused because it isn't supported. Any
    /// other refusal (of the value) shows that the option is known.
    fn is_unsupported(path: &str, kind: Value<'_>, option: Option<&str>) -> bool {
        let mut spec = DocumentBuilder::new();
        spec.begin_document("key").append(path, kind).end();
        if let Some(option) = option.filter(|option| *option != "name") {
            spec.append(option, Value::Boolean(true));
        }
        match IndexSpec::parse(spec.build().view()) {
            Ok(_) => false,
            Err(error) => {
                assert_ne!(error.code.number(), 197, "{option:?} isn't known");
                error.message.contains("supported yet")
            }
        }
    }

    #[test]
    fn the_lists_say_what_the_parser_does() {
        for Feature { name, standing } in KINDS {
            let kind = name.parse().map(Value::Int32).unwrap_or(Value::String(name));
            let (path, kind) = if *name == "$**" { (*name, Value::Int32(1)) } else { ("a", kind) };
            let is_refused = matches!(standing, SupportLevel::Refused(_));
            assert_eq!(is_unsupported(path, kind, None), is_refused, "{name}");
        }
        for Feature { name, standing } in OPTIONS {
            let is_refused = matches!(standing, SupportLevel::Refused(_));
            assert_eq!(is_unsupported("a", Value::Int32(1), Some(name)), is_refused, "{name}");
        }
    }
}
