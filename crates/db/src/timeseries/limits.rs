//! The operations on points that MongoDB doesn't allow: updates of anything but their source,
//! unique indexes, transactions of several requests.

use frond_doc::{Document, Value};
use frond_query::Code;
use frond_query::Filter;

use super::Series;
use crate::definition::IndexSpec;
use crate::error::Error;

/// The kind of an update.
#[derive(Clone, Copy, Debug)]
pub struct UpdateKind {
    /// Whether all that pass are updated.
    pub is_multi: bool,
    /// Or else one is inserted.
    pub is_upsert: bool,
}

impl Series {
    /// Refuses an update of anything but sources, or of points that are selected by something else.
    ///
    /// # Errors
    /// `InvalidOptions` (72).
    pub fn check_update(
        &self,
        kind: UpdateKind,
        filter: &Filter,
        update: Value<'_>,
    ) -> Result<(), Error> {
        if !kind.is_multi {
            return refuse("Cannot perform a non-multi update on a time-series collection");
        }
        if kind.is_upsert {
            return refuse("Cannot perform an upsert on a time-series collection");
        }
        let Some(meta) = &self.meta else {
            return refuse(
                "Cannot perform an update on a time-series collection that does not have a metaField",
            );
        };
        let is_meta = |name: &[u8]| name == meta.as_bytes();
        if !filter.outermost_names().is_some_and(|mut names| names.all(is_meta)) {
            return refuse(format!(
                "Cannot perform an update or delete on a time-series collection when querying on a \
                 field that is not the metaField '{meta}'"
            ));
        }
        let Value::Document(operators) = update else {
            return refuse(
                "Cannot perform an update on a time-series collection using a pipeline update",
            );
        };
        let changes_only_meta = operators.iter().all(|(operator, fields)| {
            operator.starts_with('$')
                && fields.as_document().is_some_and(|fields| {
                    changed_paths(operator, fields)
                        .iter()
                        .all(|path| path.split_once('.').map_or(*path, |(first, _)| first) == meta)
                })
        });
        if !changes_only_meta {
            return refuse(format!(
                "Cannot perform an update on a time-series collection which updates a field that \
                 is not the metaField '{meta}'"
            ));
        }
        Ok(())
    }

    /// Refuses to change an index to one that a time series can't have, or to say of it whether it
    /// is to become unique.
    ///
    /// # Errors
    /// As [`Series::check_index`].
    pub fn check_change(&self, is_about_unique: bool, after: &IndexSpec) -> Result<(), Error> {
        if is_about_unique {
            return refuse("cannot set 'prepareUnique' for indexes of a time-series collection.");
        }
        self.check_index(after)
    }

    /// Refuses an index that a time series can't have.
    ///
    /// # Errors
    /// `InvalidOptions` (72), `CannotCreateIndex` (67).
    pub fn check_index(&self, spec: &IndexSpec) -> Result<(), Error> {
        let is_meta = |path: &str| {
            let first = path.split_once('.').map_or(path, |(first, _)| first);
            self.meta.as_deref() == Some(first)
        };
        if spec.unique || spec.prepare_unique {
            return refuse("Unique indexes are not supported on time-series collections");
        }
        if spec.text.is_some() {
            return refuse("Text indexes are not supported on time-series collections");
        }
        let is_time = |path: &str| path == self.time;
        for (path, kind) in spec.key.iter() {
            if spec.sparse && !is_meta(path) {
                return refuse("Sparse indexes are not supported on time-series measurements");
            }
            let is_taken = match kind {
                Value::String(kind) => is_meta(path) || kind == "2dsphere" && !is_time(path),
                _ => !path.contains("$**") || is_meta(path),
            };
            if !is_taken {
                let message = format!(
                    "Invalid index spec for time-series collection: Indexes on the time field and \
                     on measurement fields must be ascending or descending (numbers only), or \
                     '2dsphere' on a measurement: {path}"
                );
                return Err(Error::invalid(Code::CannotCreateIndex, message));
            }
        }
        if spec.expire_after_seconds.is_some() {
            let of_meta = |partial: &Document<'_>| partial.iter().all(|(path, _)| is_meta(path));
            let partial = spec.partial.as_ref().map(|partial| partial.view());
            if !partial.as_ref().is_some_and(of_meta) {
                return refuse(
                    "TTL indexes on time-series collections require a partialFilterExpression on \
                     the metaField",
                );
            }
            if !spec.key.iter().next().is_some_and(|(path, _)| is_time(path)) {
                return refuse(
                    "TTL indexes on time-series collections are only supported on the time field",
                );
            }
        }
        Ok(())
    }
}

/// The paths that an operator changes.
fn changed_paths<'u>(operator: &str, fields: Document<'u>) -> Vec<&'u str> {
    let mut paths: Vec<&str> = fields.iter().map(|(path, _)| path).collect();
    if operator == "$rename" {
        paths.extend(fields.iter().filter_map(|(_, to)| to.as_str()));
    }
    paths
}

fn refuse<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::invalid(Code::InvalidOptions, message.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frond_doc::{DocumentBuf, document, extended_json};

    fn json(text: &str) -> DocumentBuf {
        extended_json::parse(&text.replace('\'', "\"")).expect("JSON")
    }

    fn series() -> Series {
        let series = document! { "timeField": "t", "metaField": "m" };
        Series::of(document! { "timeseries": &series }.view()).expect("it is one")
    }

    #[test]
    fn only_sources_are_updated() {
        let check = |filter: &str, update: &str, kind: UpdateKind| {
            let filter = Filter::parse(json(filter).view()).expect("a filter");
            let update = json(update);
            series().check_update(kind, &filter, Value::from(&update)).is_ok()
        };
        let multi = UpdateKind { is_multi: true, is_upsert: false };
        for (filter, update, is_taken) in [
            ("{}", "{'$set': {'m': 1}}", true),
            ("{'m.a': 1}", "{'$unset': {'m.b': ''}}", true),
            ("{'$or': [{'m': 1}, {'m.a': 2}]}", "{'$rename': {'m.a': 'm.b'}}", true),
            ("{'m': 1}", "{'$rename': {'m.a': 'b'}}", false),
            ("{'t': 1}", "{'$set': {'m': 1}}", false),
            ("{'m': 1, 'v': 1}", "{'$set': {'m': 1}}", false),
            ("{}", "{'$set': {'m': 1, 'v': 1}}", false),
            ("{}", "{'$set': {'mm': 1}}", false),
            ("{}", "{'m': 1}", false),
        ] {
            assert_eq!(check(filter, update, multi), is_taken, "{filter} {update}");
        }
        for (is_multi, is_upsert) in [(false, false), (true, true)] {
            let kind = UpdateKind { is_multi, is_upsert };
            assert!(!check("{}", "{'$set': {'m': 1}}", kind));
        }
    }

    #[test]
    fn indexes_are_checked() {
        for (spec, code) in [
            ("{'key': {'m': 1, 't': -1}}", 0),
            ("{'key': {'m.a': 'hashed'}}", 0),
            ("{'key': {'m.a': '2dsphere'}}", 0),
            ("{'key': {'v': 1}}", 0),
            ("{'key': {'v': '2dsphere'}}", 0),
            ("{'key': {'m': 1}, 'sparse': true}", 0),
            ("{'key': {'v': 1}, 'partialFilterExpression': {'v': {'$gt': 1}}}", 0),
            ("{'key': {'m.$**': 1}}", 0),
            ("{'key': {'t': 1}, 'expireAfterSeconds': 5, 'partialFilterExpression': {'m': 1}}", 0),
            ("{'key': {'t': 1}, 'expireAfterSeconds': 5}", 72),
            ("{'key': {'m': 1}, 'expireAfterSeconds': 5, 'partialFilterExpression': {'m': 1}}", 72),
            ("{'key': {'m': 1}, 'unique': true}", 72),
            ("{'key': {'m': 'text'}}", 72),
            ("{'key': {'v': 1}, 'sparse': true}", 72),
            ("{'key': {'t': 'hashed'}}", 67),
            ("{'key': {'v': 'hashed'}}", 67),
            ("{'key': {'$**': 1}}", 67),
        ] {
            let mut named = document! { "name": "x" };
            named = {
                let mut builder = frond_doc::DocumentBuilder::new();
                let spec = json(spec);
                named.iter().chain(spec.iter()).for_each(|(name, value)| {
                    builder.append(name, value);
                });
                builder.build()
            };
            let parsed = IndexSpec::parse(named.view()).expect("a spec");
            let found = series().check_index(&parsed);
            let found = found.map_or_else(|error| error.code.number(), |()| 0);
            assert_eq!(found, code, "{spec}");
        }
    }
}
