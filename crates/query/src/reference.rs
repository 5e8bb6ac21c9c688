//! The parts of MongoDB's query language, and the support for each.
//!
//! The names come from the parsers' own tables, so that the list can't differ from what is parsed;
//! facts that a table can't express (that something works otherwise than in MongoDB) stand in
//! [`DIFFERS`]. COMPATIBILITY.md is written from this: `cargo xtask compatibility`.

use crate::accumulator::{Place, features as accumulators};
pub use crate::feature::{Feature, SupportLevel};
use crate::{expression, filter, pipeline, projection, update};

/// Features of one kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// The common name of the features.
    pub title: &'static str,
    /// The features in the order of their table.
    pub features: Vec<Feature>,
}

impl Family {
    /// A family of these, some of which differ as [`DIFFERS`] says.
    pub fn new(title: &'static str, features: impl Iterator<Item = Feature>) -> Family {
        let differing = |feature: Feature| {
            let how = DIFFERS.iter().find(|(t, name, _)| (*t, *name) == (title, feature.name));
            how.map_or(feature, |(_, name, how)| Feature::new(name, SupportLevel::Differs(how)))
        };
        Family { title, features: features.map(differing).collect() }
    }
}

/// Features that work otherwise than in MongoDB: family, name, how.
const DIFFERS: &[(&str, &str, &str)] = &[
    (
        FILTERS,
        "$regex",
        "a pattern that exceeds its limits in a string is an error, where `find` takes it as no match",
    ),
    (FILTERS, "$text", "letters by the Unicode of today, where MongoDB has 8.0"),
    (STAGES, "$merge", "batches of 1,000 documents, each one transaction"),
];

/// Titles, as COMPATIBILITY.md names them.
pub const FILTERS: &str = "Query operators";
/// As [`FILTERS`].
pub const PROJECTIONS: &str = "Projection operators";
/// As [`FILTERS`].
pub const EXPRESSIONS: &str = "Expression operators";
/// As [`FILTERS`].
pub const STAGES: &str = "Stages";

/// Returns every family of the query language.
pub fn families() -> Vec<Family> {
    vec![
        Family::new(FILTERS, filter::features()),
        Family::new(PROJECTIONS, projection::features()),
        Family::new("Update operators", update::features()),
        Family::new(STAGES, pipeline::features()),
        Family::new("Accumulators of `$group` and `$bucket`", accumulators(Place::Group)),
        Family::new("Functions of `$setWindowFields`", pipeline::window_features()),
        Family::new(EXPRESSIONS, expression::features()),
        Family::new("System variables", expression::variable_features()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_listed_and_no_name_twice() {
        let families = families();
        for (title, name, _) in DIFFERS {
            let family = families.iter().find(|family| family.title == *title).expect("a title");
            assert!(family.features.iter().any(|feature| feature.name == *name), "{name}");
        }
        for family in &families {
            let mut names: Vec<&str> = family.features.iter().map(|feature| feature.name).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "{}", family.title);
        }
    }
}
