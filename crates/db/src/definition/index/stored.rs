//! An index's definition as a document: as `listIndexes` answers it, and as it is stored.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::collation::DATA_VERSION;
use frond_query::{Code, Collation, search};

use super::{GRID_OPTIONS, IndexSpec};
use crate::definition::text;
use crate::error::Error;

/// Under which the version of the rules is stored that made an index's keys.
const COLLATION_DATA: &str = "collationData";

impl IndexSpec {
    /// The form that `listIndexes` answers: `{v: 2, key, name, unique?, ...}`.
    pub fn to_document(&self) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        builder.append("v", Value::Int32(2));
        builder.append("key", Value::from(&self.key));
        builder.append("name", Value::String(&self.name));
        if self.unique {
            builder.append("unique", Value::Boolean(true));
        }
        if self.sparse {
            builder.append("sparse", Value::Boolean(true));
        }
        self.append_options(&mut builder);
        if self.key.iter().any(|(_, kind)| kind == Value::String("2dsphere")) {
            builder.append("2dsphereIndexVersion", Value::Int32(3));
        }
        builder.build()
    }

    /// Appends the fields in which it is stored, in working entries and catalog entries.
    pub(crate) fn append_stored(&self, builder: &mut DocumentBuilder) {
        builder.append("name", Value::String(&self.name));
        builder.append("key", Value::from(&self.key));
        builder.append("unique", Value::Boolean(self.unique));
        builder.append("sparse", Value::Boolean(self.sparse));
        self.append_options(builder);
        if self.collation.as_ref().is_some_and(|collation| !collation.is_simple()) {
            builder.append(COLLATION_DATA, Value::String(DATA_VERSION));
        }
        if self.text.is_some() {
            builder.append(text::DATA, Value::String(search::DATA_VERSION));
        }
    }

    /// Reads what `append_stored` wrote.
    pub(crate) fn decode_stored(stored: Document<'_>) -> Result<IndexSpec, Error> {
        let damaged = || Error::damaged("a stored index has no proper name, key or options");
        let name = stored.get("name").and_then(|value| value.as_str()).ok_or_else(damaged)?;
        let key = stored.get("key").and_then(|value| value.as_document()).ok_or_else(damaged)?;
        let mut spec = IndexSpec::plain(name.to_owned(), key.to_buf());
        if let Some(made_by) = stored.get(COLLATION_DATA)
            && made_by != Value::String(DATA_VERSION)
        {
            let message = format!(
                "the collated index '{name}' was made with other rules than this version has \
                 ({DATA_VERSION}): use the version that made it, drop the index there, and make it \
                 again"
            );
            return Err(Error::invalid(Code::IncompatibleCollationVersion, message));
        }
        text::check_data(name, stored)?;
        let is_known = |(option, value): (&str, Value<'_>)| {
            matches!(option, "name" | "key" | "tree" | COLLATION_DATA | text::DATA)
                || spec.take_option(option, value).unwrap_or(false)
        };
        if !stored.iter().all(is_known) || spec.shape().is_err() {
            return Err(damaged());
        }
        Ok(spec)
    }

    /// Appends those of the rarer options that are there.
    fn append_options(&self, builder: &mut DocumentBuilder) {
        let flags = [
            ("hidden", self.hidden),
            ("prepareUnique", self.prepare_unique),
            ("clustering", self.clustering),
        ];
        for (option, _) in flags.iter().filter(|(_, is_there)| *is_there) {
            builder.append(option, Value::Boolean(true));
        }
        if let Some(background) = self.background {
            builder.append("background", Value::Boolean(background));
        }
        if let Some(seconds) = self.expire_after_seconds {
            let short = i32::try_from(seconds).map(Value::Int32);
            builder.append("expireAfterSeconds", short.unwrap_or(Value::Int64(seconds)));
        }
        if let Some(partial) = &self.partial {
            builder.append("partialFilterExpression", Value::from(partial));
        }
        if let Some(collation) = self.collation.as_ref().and_then(Collation::specification) {
            builder.append("collation", Value::Document(collation));
        }
        if let Some(projection) = &self.wildcard_projection {
            builder.append("wildcardProjection", Value::from(projection));
        }
        if let Some(text) = &self.text {
            text.append(builder);
        }
        for (option, number) in GRID_OPTIONS.iter().zip(self.grid) {
            let Some(number) = number else { continue };
            let is_whole = number.fract() == 0.0 && number.abs() <= f64::from(i32::MAX);
            let value = if is_whole { Value::Int32(number as i32) } else { Value::Double(number) };
            builder.append(option, value);
        }
        if !self.include.is_empty() {
            builder.begin_array("include");
            for path in &self.include {
                builder.push(Value::String(path));
            }
            builder.end();
        }
    }
}
