//! The stages of a pipeline as `explain` shows them.
//!
//! A `$match` is taken apart into the conditions that are written beside one another, and each goes
//! as far to the front as [`pushdown`](super::pushdown) lets it; then neighbours are one `$match`
//! again. Which documents come to the planner's notice is decided by the parsed stages alone: this
//! is their shape for readers.

use std::sync::Arc;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use super::needless_orders::is_replaced;
use super::parse::StageParser;
use super::pushdown::{CONDITIONS_MAX, before, condition_before};
use super::stage::Stage;
use super::table;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::filter::Filter;

/// A stage on its way.
enum ExplainedStage {
    Match(DocumentBuf),
    /// As it was written, and what it is parsed to.
    Other(DocumentBuf, Vec<Arc<dyn Stage>>),
}

/// The stages in the order in which they run. They were parsed before.
///
/// # Errors
/// As [`Pipeline::parse_collated`](super::Pipeline::parse_collated).
pub fn explained(stages: Array<'_>, collation: &Collation) -> Result<Vec<DocumentBuf>, QueryError> {
    let mut explained_stages: Vec<ExplainedStage> = Vec::new();
    for stage in stages.iter().filter_map(|stage| stage.as_document()) {
        if let Some(filter) = stage.get("$match").and_then(|filter| filter.as_document()) {
            advance(&mut explained_stages, filter)?;
            continue;
        }
        let mut alone = DocumentBuilder::new();
        alone.begin_array("").push(Value::Document(stage)).end();
        let alone = alone.build();
        let alone = alone.get("").and_then(|alone| alone.as_array());
        let mut parser = StageParser::new(table::find, collation);
        let parsed = alone.map_or(Ok(Vec::new()), |alone| parser.stages(alone))?;
        explained_stages.push(ExplainedStage::Other(stage.to_buf(), parsed));
    }
    let mut documents = Vec::new();
    let mut explained_stages = explained_stages.into_iter().peekable();
    while let Some(stage) = explained_stages.next() {
        let ExplainedStage::Match(first) = stage else {
            let ExplainedStage::Other(document, stages) = stage else { continue };
            let next = match explained_stages.peek() {
                Some(ExplainedStage::Other(_, next)) => next.first(),
                _ => None,
            };
            let is_needless = match (&stages[..], next) {
                ([only], Some(next)) => is_replaced(only.as_ref(), next.as_ref()),
                _ => false,
            };
            if !is_needless {
                documents.push(document);
            }
            continue;
        };
        let mut conditions = vec![first];
        while let Some(ExplainedStage::Match(next)) =
            explained_stages.next_if(|next| matches!(next, ExplainedStage::Match(_)))
        {
            conditions.push(next);
        }
        let mut whole = DocumentBuilder::new();
        whole.append("$match", Value::from(&together(&conditions)));
        documents.push(whole.build());
    }
    Ok(documents)
}

/// Places the conditions of a `$match` that stands behind `explained_stages`.
fn advance(
    explained_stages: &mut Vec<ExplainedStage>,
    filter: Document<'_>,
) -> Result<(), QueryError> {
    let mut conditions = Vec::new();
    take_apart(filter, &mut conditions);
    if conditions.is_empty() || CONDITIONS_MAX < conditions.len() {
        explained_stages.push(ExplainedStage::Match(filter.to_buf()));
        return Ok(());
    }
    let end = explained_stages.len();
    let mut placed: Vec<(usize, DocumentBuf)> = Vec::new();
    for mut condition in conditions {
        let mut place = end;
        for position in (0..end).rev() {
            let ExplainedStage::Other(_, stages) = &explained_stages[position] else { continue };
            let Some(earlier) = moved(stages, &condition)? else { break };
            (place, condition) = (position, earlier);
        }
        placed.push((place, condition));
    }
    // From behind, so that places stay what they are.
    placed.sort_by_key(|(place, _)| *place);
    for (place, condition) in placed.into_iter().rev() {
        explained_stages.insert(place, ExplainedStage::Match(condition));
    }
    Ok(())
}

/// A condition as it is asked before these stages; `None` if it isn't asked there.
fn moved(
    stages: &[Arc<dyn Stage>],
    condition: &DocumentBuf,
) -> Result<Option<DocumentBuf>, QueryError> {
    let mut parsed = Filter::parse_search(condition.view())?;
    let mut written = condition.clone();
    for stage in stages.iter().rev() {
        let Some(earlier) = condition_before(stage.as_ref(), &parsed) else { return Ok(None) };
        if stage.order().is_none() {
            written = renamed(written.view(), stage.as_ref());
        }
        parsed = earlier;
    }
    Ok(Some(written))
}

/// A condition with the paths of before a stage. Recursion follows the document's nesting, which
/// parsing has bounded.
fn renamed(condition: Document<'_>, stage: &dyn Stage) -> DocumentBuf {
    let mut written = DocumentBuilder::new();
    for (name, value) in condition.iter() {
        match value {
            Value::Array(several) if matches!(name, "$and" | "$or" | "$nor") => {
                written.begin_array(name);
                for inner in several.iter().filter_map(|inner| inner.as_document()) {
                    written.push(Value::from(&renamed(inner, stage)));
                }
                written.end();
            }
            _ if name.starts_with('$') => {
                written.append(name, value);
            }
            _ => {
                written.append(&before(stage, name), value);
            }
        }
    }
    written.build()
}

/// The conditions that all must hold, as they are written beside one another. Recursion follows the
/// document's nesting, which parsing has bounded.
fn take_apart(filter: Document<'_>, conditions: &mut Vec<DocumentBuf>) {
    for (name, value) in filter.iter() {
        match value {
            Value::Array(several) if name == "$and" => {
                several
                    .iter()
                    .filter_map(|inner| inner.as_document())
                    .for_each(|inner| take_apart(inner, conditions));
            }
            _ => {
                let mut condition = DocumentBuilder::new();
                condition.append(name, value);
                conditions.push(condition.build());
            }
        }
    }
}

/// One filter of several: their fields, if no name comes twice, else an `$and`.
fn together(conditions: &[DocumentBuf]) -> DocumentBuf {
    if let [only] = conditions {
        return only.clone();
    }
    let mut names: Vec<&str> =
        conditions.iter().flat_map(|condition| condition.iter().map(|(name, _)| name)).collect();
    names.sort_unstable();
    let mut whole = DocumentBuilder::new();
    if names.windows(2).all(|pair| pair[0] != pair[1]) {
        for (name, value) in conditions.iter().flat_map(DocumentBuf::iter) {
            whole.append(name, value);
        }
    } else {
        whole.begin_array("$and");
        for condition in conditions.iter().filter(|condition| !condition.view().is_empty()) {
            whole.push(Value::from(condition));
        }
        whole.end();
    }
    whole.build()
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    #[test]
    fn stages_are_explained_in_the_order_in_which_they_run() {
        for (written, expected) in [
            (
                r#"[{"$match": {"a": 1}}, {"$match": {"b": 2}}]"#,
                r#"[{"$match": {"a": 1, "b": 2}}]"#,
            ),
            (
                r#"[{"$match": {"a": 1}}, {"$match": {"a": {"$gt": 0}}}]"#,
                r#"[{"$match": {"$and": [{"a": 1}, {"a": {"$gt": 0}}]}}]"#,
            ),
            (
                r#"[{"$sort": {"c": 1}}, {"$set": {"b": 3}}, {"$match": {"$and": [{"a": 1}, {"b": 3}]}}]"#,
                r#"[{"$match": {"a": 1}}, {"$sort": {"c": 1}}, {"$set": {"b": 3}}, {"$match": {"b": 3}}]"#,
            ),
            (
                r#"[{"$group": {"_id": "$a"}}, {"$match": {"_id": 1}}]"#,
                r#"[{"$match": {"a": 1}}, {"$group": {"_id": "$a"}}]"#,
            ),
            (
                r#"[{"$group": {"_id": "$a"}}, {"$match": {"_id": {"$type": "int"}}}]"#,
                r#"[{"$group": {"_id": "$a"}}, {"$match": {"_id": {"$type": "int"}}}]"#,
            ),
            (
                r#"[{"$project": {"b": "$a", "c": "$d.e"}}, {"$match": {"$or": [{"b.x": 1}, {"_id": 2}], "c": 3}}]"#,
                r#"[{"$match": {"$or": [{"a.x": 1}, {"_id": 2}]}}, {"$project": {"b": "$a", "c": "$d.e"}}, {"$match": {"c": 3}}]"#,
            ),
            (
                r#"[{"$sort": {"a": 1}}, {"$match": {"b": 1}}, {"$sort": {"c": 1}}, {"$limit": 1}]"#,
                r#"[{"$match": {"b": 1}}, {"$sort": {"c": 1}}, {"$limit": 1}]"#,
            ),
            (
                r#"[{"$sortByCount": "$a"}, {"$sort": {"_id": 1}}]"#,
                r#"[{"$sortByCount": "$a"}, {"$sort": {"_id": 1}}]"#,
            ),
            (
                r#"[{"$limit": 2}, {"$match": {"a": 1}}, {"$match": {}}]"#,
                r#"[{"$limit": 2}, {"$match": {"a": 1}}]"#,
            ),
        ] {
            let parse =
                |text: &str| extended_json::parse(&format!("{{\"v\": {text}}}")).expect("an array");
            let (written, expected) = (parse(written), parse(expected));
            let stages = written.get("v").and_then(|stages| stages.as_array()).expect("stages");
            let found = explained(stages, &Collation::SIMPLE).expect("right");
            let mut array = DocumentBuilder::new();
            array.begin_array("v");
            found.iter().for_each(|stage| {
                array.push(Value::from(stage));
            });
            array.end();
            assert_eq!(array.build(), expected);
        }
    }
}
