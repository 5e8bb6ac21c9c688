//! Updates by an aggregation pipeline: `[{$set: {total: {$add: ["$a", "$b"]}}}]`.
//!
//! The stages make a new document of the old one; `_id` stays, whether they keep it or not.

use frond_doc::{Array, Document, DocumentBuf};

use crate::code::Code;
use crate::collation::Collation;
use crate::error::QueryError;
use crate::expression::Variables;
use crate::large::Large;
use crate::pipeline::{Pipeline, TouchedPaths};

/// A pipeline and the variables that its expressions see.
#[derive(Clone, Debug)]
pub(super) struct PipelineUpdate {
    pipeline: Pipeline,
    places: Option<TouchedPaths>,
    variables: Variables,
}

impl PipelineUpdate {
    /// Parses the stages.
    pub(super) fn parse(
        stages: Array<'_>,
        array_filters: Option<Array<'_>>,
    ) -> Result<PipelineUpdate, QueryError> {
        if array_filters.is_some_and(|filters| !filters.is_empty()) {
            let message = "arrayFilters may not be specified for pipeline-syle updates";
            return Err(QueryError::new(Code::FailedToParse, message));
        }
        let pipeline = Pipeline::parse_update(stages)?;
        let places = pipeline.places();
        Ok(PipelineUpdate { pipeline, places, variables: Variables::default() })
    }

    /// Gives expressions their variables, and `constants`, which hide those of the same names.
    pub(super) fn bind(
        &mut self,
        variables: &Variables,
        constants: Option<Document<'_>>,
    ) -> Result<(), QueryError> {
        let constants = constants.iter().flat_map(|constants| constants.iter());
        let values = constants.map(|(name, value)| (name.to_owned(), Some(value.to_buf())));
        self.variables = variables.with(values.collect());
        self.pipeline.check_bound(&self.variables)
    }

    /// Compares strings by `collation`.
    pub(super) fn collate(&mut self, collation: &Collation) {
        self.variables = self.variables.clone().with_collation(collation.clone());
    }

    /// Reads references by `large`.
    pub(super) fn read_by(&mut self, large: &Large) {
        self.variables = self.variables.clone().with_large(large.clone());
    }

    /// Makes the new document; its `_id` is the caller's to check.
    pub(super) fn apply(&self, document: Document<'_>) -> Result<DocumentBuf, QueryError> {
        let made = self.pipeline.transform(document, &self.variables)?;
        Ok(match &self.places {
            Some(places) => places.restore(document, made.view()),
            None => made,
        })
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json::{self, Form};
    use frond_doc::{DocumentBuf, ObjectId, Value};

    use crate::expression::Variables;
    use crate::filter::Filter;
    use crate::update::{Update, UpdateContext};

    const CONTEXT: UpdateContext = UpdateContext { now_millis: 5, timestamp: 6, position: None };

    fn json(text: &str) -> DocumentBuf {
        extended_json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn shown(document: &DocumentBuf) -> String {
        let mut out = String::new();
        extended_json::write(document.view(), Form::Relaxed, &mut out);
        out
    }

    fn parse(stages: &str) -> Result<Update, i32> {
        let wrapped = json(&format!("{{\"u\": {stages}}}"));
        let constants = json(r#"{"limit": 10}"#);
        let variables = json(r#"{"step": 2, "limit": 1}"#);
        let variables = Variables::new(7, Some(variables.view())).expect("proper variables");
        let parsed = Update::parse(wrapped.get("u").expect("it is there"), None);
        let mut update = parsed.map_err(|error| error.code.number())?;
        update.bind(&variables, Some(constants.view())).map_err(|error| error.code.number())?;
        Ok(update)
    }

    /// `after` is empty where nothing changes, a code where it is refused.
    fn check(before: &str, stages: &str, after: &str) {
        let update = parse(stages).unwrap_or_else(|code| panic!("{stages}: {code}"));
        let result = update.apply(json(before).view(), &CONTEXT);
        let result = match result {
            Ok(None) => String::new(),
            Ok(Some(document)) => shown(&document),
            Err(error) => error.code.number().to_string(),
        };
        let expected = if after.starts_with('{') { shown(&json(after)) } else { after.to_owned() };
        assert_eq!(result, expected, "{before} {stages}");
    }

    #[test]
    fn stages_change_the_document() {
        let before = r#"{"_id": 1, "a": 2, "b": [1, 2]}"#;
        check(
            before,
            r#"[{"$set": {"c": {"$add": ["$a", "$$step"]}}}]"#,
            r#"{"_id": 1, "a": 2, "b": [1, 2], "c": 4}"#,
        );
        check(
            before,
            r#"[{"$addFields": {"a": "$$limit"}}]"#,
            r#"{"_id": 1, "a": 10, "b": [1, 2]}"#,
        );
        check(before, r#"[{"$unset": "b"}, {"$set": {"d": "$b"}}]"#, r#"{"_id": 1, "a": 2}"#);
        check(before, r#"[{"$project": {"a": 1, "_id": 0}}]"#, r#"{"_id": 1, "a": 2}"#);
        check(before, r#"[{"$replaceWith": {"x": "$a"}}]"#, r#"{"_id": 1, "x": 2}"#);
        check(
            before,
            r#"[{"$replaceRoot": {"newRoot": {"x": 1, "_id": "$_id"}}}]"#,
            r#"{"_id": 1, "x": 1}"#,
        );
        check(before, r#"[{"$set": {"a": 2}}]"#, "");
        check(before, r#"[{"$unset": "_id"}]"#, before);
        check(before, "[]", "");
        check(before, r#"[{"$set": {"_id": 5}}]"#, "66");
        check(before, r#"[{"$replaceWith": "$a"}]"#, "40228");
        check(before, r#"[{"$set": {"a": {"$add": ["$b", 1]}}}]"#, "14");
    }

    #[test]
    fn fields_that_are_unset_and_set_again_keep_their_position() {
        let before =
            r#"{"_id": 1, "a": 2, "b": {"x": 1, "y": 2}, "c": [{"x": 1, "y": 2}], "d": 3}"#;
        for (stages, after) in [
            (
                r#"[{"$unset": ["a", "d"]}, {"$set": {"e": 1, "d": 4, "a": 5}}]"#,
                r#"{"_id": 1, "a": 5, "b": {"x": 1, "y": 2}, "c": [{"x": 1, "y": 2}], "d": 4, "e": 1}"#,
            ),
            (
                r#"[{"$project": {"a": 0}}, {"$unset": "d"}, {"$set": {"f": 1}}, {"$set": {"a": 5}}]"#,
                r#"{"_id": 1, "a": 5, "b": {"x": 1, "y": 2}, "c": [{"x": 1, "y": 2}], "f": 1}"#,
            ),
            (
                r#"[{"$unset": ["b.x", "c.x"]}, {"$set": {"b.z": 1, "b.x": 2, "c.x": 3}}]"#,
                r#"{"_id": 1, "a": 2, "b": {"x": 2, "y": 2, "z": 1}, "c": [{"x": 3, "y": 2}], "d": 3}"#,
            ),
            (
                r#"[{"$unset": "b"}, {"$set": {"b.x": 2}}]"#,
                r#"{"_id": 1, "a": 2, "b": {"x": 2}, "c": [{"x": 1, "y": 2}], "d": 3}"#,
            ),
            // A new value has its own order.
            (
                r#"[{"$unset": "b.x"}, {"$set": {"b": {"$literal": {"y": 1, "x": 2}}}}]"#,
                r#"{"_id": 1, "a": 2, "b": {"y": 1, "x": 2}, "c": [{"x": 1, "y": 2}], "d": 3}"#,
            ),
            (
                r#"[{"$set": {"a": "$$REMOVE"}}, {"$set": {"e": 1, "a": 5}}]"#,
                r#"{"_id": 1, "a": 5, "b": {"x": 1, "y": 2}, "c": [{"x": 1, "y": 2}], "d": 3, "e": 1}"#,
            ),
            // So does a new document.
            (
                r#"[{"$replaceWith": {"d": "$d", "a": 2}}, {"$unset": "a"}, {"$set": {"a": 1}}]"#,
                r#"{"_id": 1, "d": 3, "a": 1}"#,
            ),
        ] {
            check(before, stages, after);
        }
    }

    #[test]
    fn many_fields_that_are_unset_and_set_again_keep_their_places() {
        let names: Vec<String> =
            (0..3_000).map(|field| format!("f{}", field * 7 % 3_000)).collect();
        let fields = |value: i32, names: &[String]| {
            names.iter().map(|name| format!("\"{name}\": {value}")).collect::<Vec<_>>().join(", ")
        };
        let mut again = names.clone();
        again.sort();
        let within = |value: i32| format!("{{\"_id\": 1, \"in\": {{{}}}}}", fields(value, &names));
        let below: Vec<String> = again.iter().map(|name| format!("in.{name}")).collect();
        let unset = |names: &[String]| format!("{{\"$unset\": [\"{}\"]}}", names.join("\", \""));
        let stages = format!("[{}, {{\"$set\": {{{}}}}}]", unset(&below), fields(2, &below));
        check(&within(1), &stages, &within(2));
        let outermost = |value: i32| format!("{{\"_id\": 1, {}}}", fields(value, &names));
        let stages = format!("[{}, {{\"$set\": {{{}}}}}]", unset(&again), fields(2, &again));
        check(&outermost(1), &stages, &outermost(2));
    }

    #[test]
    fn wrong_pipelines_are_refused() {
        for (stages, code) in [
            (r#"[{"$match": {}}]"#, 72),
            (r#"[{"$group": {"_id": 1}}]"#, 72),
            (r#"[{"$nope": {}}]"#, 40324),
            (r#"[5]"#, 14),
            (r#"[{"$set": {"a": "$$unknown"}}]"#, 17276),
            (r#"{"$set": {"a": 1}}"#, 51198),
        ] {
            assert_eq!(parse(stages).err(), Some(code), "{stages}");
        }
        let stages = json(r#"{"u": [{"$set": {"a": 1}}], "f": [{"e": 1}]}"#);
        let filters = stages.get("f").and_then(|filters| filters.as_array());
        let error = Update::parse(stages.get("u").expect("there"), filters).unwrap_err();
        assert_eq!(error.code.number(), 9);
    }

    #[test]
    fn an_upsert_runs_the_stages_over_the_equalities() {
        let update = parse(r#"[{"$set": {"n": {"$ifNull": ["$n", 1]}}}]"#).expect("it is right");
        let filter = Filter::parse(json(r#"{"_id": 7, "k": "x", "z": {"$gt": 1}}"#).view());
        let made = update.upsert(&filter.expect("right"), &CONTEXT, &mut || ObjectId([1; 12]));
        assert_eq!(shown(&made.expect("made")), shown(&json(r#"{"_id": 7, "k": "x", "n": 1}"#)));
        let made = update.upsert(&Filter::all(), &CONTEXT, &mut || ObjectId([1; 12]));
        let made = made.expect("made");
        assert_eq!(made.get("_id"), Some(Value::ObjectId(ObjectId([1; 12]))));
    }
}
