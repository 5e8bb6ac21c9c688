//! The options of a collection: which there are, and how they are kept.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value as BsonValue};
use frond_query::{Code, Collation};

use crate::definition::{self, capped, clustered, images, merge_rules};
use crate::error::Error;
use crate::timeseries::options as series;

/// Options of `create` that are kept but ask for nothing that isn't so anyway.
const ACCEPTED_OPTIONS: &[&str] = &["autoIndexId", "flags", "storageEngine", "indexOptionDefaults"];
/// Options that say something.
const KEPT_OPTIONS: &[&str] = &[
    "capped",
    clustered::OPTION,
    clustered::EXPIRE_OPTION,
    images::OPTION,
    "max",
    "pipeline",
    "size",
    series::OPTION,
    "validationAction",
    "validationLevel",
    "validator",
    "versioned",
    "viewOn",
];

/// Refuses options that no collection has.
pub(super) fn check_options(options: Document<'_>) -> Result<(), Error> {
    for (option, value) in options.iter() {
        let harmless = match option {
            "collation" => value.as_document().is_some(),
            // The rules by which its documents are merged; refused here if it isn't proper.
            definition::VERSIONED => matches!(value, BsonValue::Boolean(_)),
            merge_rules::OPTION => merge_rules::DocumentRules::parse(value).map(|_| true)?,
            _ => ACCEPTED_OPTIONS.contains(&option) || KEPT_OPTIONS.contains(&option),
        };
        if !harmless {
            let message = format!("the option '{option}' of create is not supported yet");
            return Err(Error::invalid(Code::InvalidOptions, message));
        }
    }
    Ok(())
}

/// The options as they are kept: with every option of their collation (a simple one goes without
/// saying), and with the size that is meant.
pub(crate) fn kept_options(options: Document<'_>) -> Result<DocumentBuf, Error> {
    let mut builder = DocumentBuilder::new();
    for (option, value) in options.iter() {
        match (option, value) {
            ("collation", BsonValue::Document(specification)) => {
                if specification.is_empty() {
                    let message = "'collation' cannot be an empty document";
                    return Err(Error::invalid(Code::BadValue, message));
                }
                if let Some(full) = Collation::parse(specification)?.specification() {
                    builder.append(option, BsonValue::Document(full));
                }
            }
            (clustered::OPTION, BsonValue::Document(index)) => {
                builder.append(option, BsonValue::Document(clustered::described(index).view()));
            }
            (series::OPTION, BsonValue::Document(series)) => {
                builder.append(option, BsonValue::Document(series::kept(series)?.view()));
            }
            ("capped", value) if !value.is_truthy() => {}
            (images::OPTION, _) if !images::are_kept(options) => {}
            // No number of documents is no limit, and isn't shown.
            ("max", value) if value.as_integer() == Some(0) => {}
            ("size", value) => {
                let size = value.as_integer().unwrap_or_default();
                builder.append(option, BsonValue::Int64(capped::rounded(size)));
            }
            _ => {
                builder.append(option, value);
            }
        }
    }
    // A view has stages, be there none.
    if options.get("viewOn").is_some() && options.get("pipeline").is_none() {
        builder.begin_array("pipeline").end();
    }
    Ok(builder.build())
}

/// Options with others in their place, or beside them, and without those that are named.
pub(super) fn changed_options(
    options: Document<'_>,
    changes: Document<'_>,
    gone: &[&str],
) -> DocumentBuf {
    let mut changed = DocumentBuilder::new();
    // As at first: images that aren't kept go without saying.
    let without_images = changes.get(images::OPTION).is_some() && !images::are_kept(changes);
    let is_gone =
        |option: &str| gone.contains(&option) || without_images && option == images::OPTION;
    for (option, value) in options.iter().filter(|(option, _)| !is_gone(option)) {
        changed.append(option, changes.get(option).unwrap_or(value));
    }
    let is_new = |option: &str| options.get(option).is_none() && !is_gone(option);
    for (option, value) in changes.iter().filter(|(option, _)| is_new(option)) {
        changed.append(option, value);
    }
    changed.build()
}
