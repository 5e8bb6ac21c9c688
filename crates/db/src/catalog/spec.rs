//! What an index is asked to be: parsing, with MongoDB's refusals by name, and the stored form.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document, order};
use frond_query::Code;
use frond_query::sort::SortField;

use crate::error::Error;

/// The index that every collection has without asking: the documents' own tree.
pub const ID_INDEX_NAME: &str = "_id_";
/// Fields of an index at most.
const FIELDS_MAX: usize = 32;
/// Options that MongoDB has and we don't yet: asking for one is an error that names it.
const UNSUPPORTED_OPTIONS: &[&str] = &[
    "2dsphereIndexVersion",
    "bits",
    "bucketSize",
    "clustered",
    "default_language",
    "expireAfterSeconds",
    "language_override",
    "max",
    "min",
    "partialFilterExpression",
    "prepareUnique",
    "storageEngine",
    "textIndexVersion",
    "weights",
    "wildcardProjection",
];
/// Kinds of index that MongoDB has and we don't yet.
const UNSUPPORTED_KINDS: &[&str] =
    &["2d", "2dsphere", "columnstore", "geoHaystack", "hashed", "text"];

/// An index as it was asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexSpec {
    /// Its name; made from the key (`a_1_b_-1`) where absent in the request.
    pub name: String,
    /// `{path: 1 | -1, ...}`.
    pub key: DocumentBuf,
    /// No two documents with the same key.
    pub unique: bool,
    /// Documents without the fields are left out.
    pub sparse: bool,
}

impl IndexSpec {
    /// The index of `_id`.
    pub fn of_id() -> IndexSpec {
        IndexSpec {
            name: ID_INDEX_NAME.to_owned(),
            key: document! { "_id": 1 },
            unique: false,
            sparse: false,
        }
    }

    /// Parses one element of `createIndexes`' `indexes`; options and index types that aren't
    /// supported are refused by name.
    pub fn parse(spec: Document<'_>) -> Result<IndexSpec, Error> {
        let mut key = None;
        let mut name = None;
        let (mut unique, mut sparse) = (false, false);
        for (option, value) in spec.iter() {
            match option {
                "key" => {
                    let document =
                        value.as_document().ok_or_else(|| wrong_type("key", value, "object"))?;
                    check_key(document)?;
                    key = Some(document);
                }
                "name" => {
                    name = Some(value.as_str().ok_or_else(|| wrong_type("name", value, "string"))?);
                }
                "unique" => unique = boolean(option, value)?,
                "sparse" => sparse = boolean(option, value)?,
                "v" if matches!(value.as_integer(), Some(1 | 2)) => {}
                "v" => return Err(refused(format!("index version {value:?} is not supported"))),
                "background" | "ns" | "dropDups" => {}
                "hidden" if !boolean(option, value)? => {}
                "collation" if is_simple_collation(value) => {}
                "hidden" | "collation" => return Err(unsupported(option)),
                _ if UNSUPPORTED_OPTIONS.contains(&option) => return Err(unsupported(option)),
                _ => {
                    let message = format!(
                        "The field '{option}' is not valid for an index specification. \
                         Specification: {spec:?}"
                    );
                    return Err(Error::invalid(Code::InvalidIndexSpecificationOption, message));
                }
            }
        }
        let key = key.ok_or_else(|| {
            let message = "The 'key' field is a required property of an index specification";
            Error::invalid(Code::FailedToParse, message)
        })?;
        let name = name.map_or_else(|| default_name(key), str::to_owned);
        let spec = IndexSpec { name, key: key.to_buf(), unique, sparse };
        spec.check_name()?;
        Ok(spec)
    }

    fn check_name(&self) -> Result<(), Error> {
        if self.name.is_empty() {
            return Err(refused("The index name cannot be empty".to_owned()));
        }
        if self.name == "*" {
            return Err(Error::invalid(Code::BadValue, "The index name '*' is not valid."));
        }
        if self.name.contains('\0') {
            return Err(refused("The index name holds a NUL".to_owned()));
        }
        if self.name == ID_INDEX_NAME && !self.is_id() {
            let message = format!(
                "The index name '_id_' is reserved for the _id index, which must have key pattern \
                 {{_id: 1}}, found key: {:?}",
                self.key
            );
            return Err(Error::invalid(Code::BadValue, message));
        }
        if self.is_id() && self.sparse {
            let message = "The field 'sparse' is not valid for an _id index specification";
            return Err(Error::invalid(Code::InvalidIndexSpecificationOption, message));
        }
        Ok(())
    }

    /// Whether this is the index of `_id` that every collection has.
    pub fn is_id(&self) -> bool {
        self.has_key(document! { "_id": 1 }.view())
    }

    /// Whether the index has this key, numbers of another type being the same.
    pub(crate) fn has_key(&self, key: Document<'_>) -> bool {
        order::compare_documents(self.key.view(), key).is_eq()
    }

    /// Whether this is the same index under perhaps another name. Two indexes of one key may stand
    /// side by side if only one is unique or sparse.
    pub(crate) fn is_same_index(&self, other: &IndexSpec) -> bool {
        self.has_key(other.key.view()) && (self.unique, self.sparse) == (other.unique, other.sparse)
    }

    /// Paths and directions.
    pub(crate) fn fields(&self) -> Vec<SortField> {
        let field = |(path, direction): (&str, Value<'_>)| SortField {
            path: path.to_owned(),
            descending: number(direction).is_some_and(|number| number < 0.0),
        };
        self.key.iter().map(field).collect()
    }

    /// The form that `listIndexes` answers: `{v: 2, key, name, unique?, sparse?}`.
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
        builder.build()
    }

    /// Appends the fields in which it is stored, in working entries and catalog entries.
    pub(crate) fn append_stored(&self, builder: &mut DocumentBuilder) {
        builder.append("name", Value::String(&self.name));
        builder.append("key", Value::from(&self.key));
        builder.append("unique", Value::Boolean(self.unique));
        builder.append("sparse", Value::Boolean(self.sparse));
    }

    /// Reads what `append_stored` wrote.
    pub(crate) fn decode_stored(stored: Document<'_>) -> Result<IndexSpec, Error> {
        let damaged = || Error::damaged("a stored index has no proper name, key or options");
        let text = |name| stored.get(name).and_then(|value| value.as_str());
        let flag = |name| match stored.get(name) {
            Some(Value::Boolean(flag)) => Ok(flag),
            _ => Err(damaged()),
        };
        let key = stored.get("key").and_then(|value| value.as_document());
        Ok(IndexSpec {
            name: text("name").ok_or_else(damaged)?.to_owned(),
            key: key.ok_or_else(damaged)?.to_buf(),
            unique: flag("unique")?,
            sparse: flag("sparse")?,
        })
    }
}

fn refused(message: String) -> Error {
    Error::invalid(Code::CannotCreateIndex, message)
}

fn unsupported(option: &str) -> Error {
    refused(format!("index option '{option}' is not supported yet"))
}

fn wrong_type(option: &str, value: Value<'_>, expected: &str) -> Error {
    let found = value.element_type().alias();
    let message =
        format!("The field '{option}' must be of type {expected}, but found {found} instead");
    Error::invalid(Code::TypeMismatch, message)
}

fn boolean(option: &str, value: Value<'_>) -> Result<bool, Error> {
    match value {
        Value::Boolean(flag) => Ok(flag),
        number if number.is_number() => Ok(number.is_truthy()),
        _ => Err(wrong_type(option, value, "bool")),
    }
}

fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(number),
        _ => value.as_integer().map(|number| number as f64),
    }
}

fn is_simple_collation(value: Value<'_>) -> bool {
    let locale = value.as_document().and_then(|collation| collation.get("locale"));
    locale.and_then(|locale| locale.as_str()) == Some("simple")
}

fn check_key(key: Document<'_>) -> Result<(), Error> {
    if key.is_empty() {
        return Err(refused("Index keys cannot be empty.".to_owned()));
    }
    if key.iter().count() > FIELDS_MAX {
        return Err(refused(format!(
            "Index has too many fields, at most {FIELDS_MAX} are allowed"
        )));
    }
    for (position, (path, direction)) in key.iter().enumerate() {
        if key.iter().take(position).any(|(before, _)| before == path) {
            return Err(refused(format!("Index key names the field '{path}' twice")));
        }
        if path.contains("$**") {
            return Err(refused("wildcard indexes are not supported yet".to_owned()));
        }
        if path.split('.').any(str::is_empty) {
            return Err(refused("Index keys cannot contain an empty field.".to_owned()));
        }
        if path.split('.').any(|part| part.starts_with('$')) {
            let message = "Index key contains an illegal field name: field name starts with '$'.";
            return Err(refused(message.to_owned()));
        }
        check_direction(direction)?;
    }
    Ok(())
}

fn check_direction(direction: Value<'_>) -> Result<(), Error> {
    if let Some(kind) = direction.as_str() {
        return Err(refused(if UNSUPPORTED_KINDS.contains(&kind) {
            format!("'{kind}' indexes are not supported yet")
        } else {
            format!("Unknown index plugin '{kind}'")
        }));
    }
    match number(direction) {
        Some(0.0) => Err(refused("Values in the index key pattern cannot be 0.".to_owned())),
        Some(number) if !number.is_nan() => Ok(()),
        _ => Err(refused(format!(
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, \
             and strings are allowed.",
            direction.element_type().alias()
        ))),
    }
}

/// `a_1_b_-1`, as drivers make it.
pub(crate) fn default_name(key: Document<'_>) -> String {
    let part = |(path, direction): (&str, Value<'_>)| match number(direction) {
        Some(number) => format!("{path}_{number}"),
        None => path.to_owned(),
    };
    key.iter().map(part).collect::<Vec<_>>().join("_")
}
