//! Stages that show the server, first in the pipeline of a `$lookup` or `$unionWith`: `$collStats`,
//! `$indexStats` and `$planCacheStats` of the collection that the stage names.
//!
//! Their results are put in their place as `$documents`, and the stage no longer names the
//! collection. They are those of the command's beginning, as the same for each document.

use frond_db::Error;
use frond_doc::{Array, Document, DocumentBuilder, Value, ValueBuf};

use crate::commands::sources;
use crate::request::Request;

/// The stages that may stand there.
const NESTED: [&str; 3] = ["$collStats", "$indexStats", "$planCacheStats"];

/// Replaces them in a pipeline; `None` if there are none.
///
/// # Errors
/// The reason for which one is refused.
pub fn rewrite(request: &Request<'_>, stages: Array<'_>) -> Result<Option<ValueBuf>, Error> {
    if !stages.iter().any(|stage| stage.as_document().is_some_and(has_any)) {
        return Ok(None);
    }
    let mut pipeline = DocumentBuilder::new();
    pipeline.begin_array("pipeline");
    for stage in stages.iter() {
        match stage.as_document() {
            Some(document) => {
                let stage = pipeline.push_begin_document();
                for (name, options) in document.iter() {
                    append_stage(request, stage, name, options)?;
                }
                stage.end();
            }
            None => {
                pipeline.push(stage);
            }
        }
    }
    pipeline.end();
    Ok(pipeline.build().get("pipeline").map(|pipeline| pipeline.to_buf()))
}

/// Whether a stage has a pipeline that begins with one of these, however deep within it.
fn has_any(stage: Document<'_>) -> bool {
    let (name, options) = match stage.iter().next() {
        Some((name, Value::Document(options))) => (name, options),
        _ => return false,
    };
    let has = |stages: Array<'_>| {
        let first = sources::first_stage(stages);
        let is_first = name != "$facet" && first.is_some_and(|(name, _)| NESTED.contains(&name));
        is_first || stages.iter().any(|stage| stage.as_document().is_some_and(has_any))
    };
    pipelines(name, options).any(|(_, stages)| has(stages))
}

/// The pipelines within a stage, by the names of the fields that have them.
fn pipelines<'a>(
    name: &str,
    options: Document<'a>,
) -> impl Iterator<Item = (&'a str, Array<'a>)> + use<'a> {
    let (is_facet, is_named) = (name == "$facet", matches!(name, "$lookup" | "$unionWith"));
    let fields =
        options.iter().filter(move |(field, _)| is_facet || is_named && *field == "pipeline");
    fields.filter_map(|(field, value)| Some((field, value.as_array()?)))
}

/// Appends a stage, rewritten.
fn append_stage(
    request: &Request<'_>,
    stage: &mut DocumentBuilder,
    name: &str,
    options: Value<'_>,
) -> Result<(), Error> {
    let Value::Document(fields) = options else {
        stage.append(name, options);
        return Ok(());
    };
    let source = match name {
        "$lookup" => fields.get("from").and_then(|from| from.as_str()),
        "$unionWith" if fields.get("db").is_none() => {
            fields.get("coll").and_then(|collection| collection.as_str())
        }
        _ => None,
    };
    let mut rewritten = Vec::new();
    let mut is_replaced = false;
    for (field, stages) in pipelines(name, fields) {
        let nested = rewrite(request, stages)?;
        let nested = nested.unwrap_or_else(|| Value::Array(stages).to_buf());
        let stages = nested.as_value().as_array().unwrap_or(stages);
        let documents = match (source, sources::first_stage(stages)) {
            (Some(_), Some((first, options))) if NESTED.contains(&first) => {
                sources::documents(request, source, first, options)?
            }
            _ => None,
        };
        is_replaced |= documents.is_some();
        rewritten.push((
            field,
            match documents {
                Some(documents) => sources::with_documents(&documents, stages.iter().skip(1)),
                None => nested,
            },
        ));
    }
    stage.begin_document(name);
    for (field, value) in fields.iter() {
        // The documents are those of no collection.
        if is_replaced && matches!(field, "from" | "coll") {
            continue;
        }
        let pipeline = rewritten.iter().find(|(known, _)| *known == field);
        stage.append(field, pipeline.map_or(value, |(_, pipeline)| pipeline.as_value()));
    }
    stage.end();
    Ok(())
}
