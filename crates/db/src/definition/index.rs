//! What an index is asked to be: parsing, with MongoDB's refusals by name, and the stored form.
//!
//! What a key and its options mean is `frond_query::index`'s: [`IndexSpec::shape`]. Two options are
//! Frond's own: `include: ["path", ...]` keeps these fields in the index's entries, and
//! `clustering: true` whole documents, so that a query needn't fetch them.

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document, order};
use frond_query::collation::DATA_VERSION;
use frond_query::index::{FieldKind, IndexShape, ShapeOptions};
use frond_query::{Code, Collation, Filter, Grid, GridFault, search};
use frond_store::ChunkHash;
use frond_tree::{Tree, TreeFormat};

use crate::definition::text::{self, TextOptions};
use crate::error::Error;

/// The index that every collection has without asking: the documents' own tree.
pub const ID_INDEX_NAME: &str = "_id_";
/// Under which the version of the rules is stored that made an index's keys.
const COLLATION_DATA: &str = "collationData";
/// Fields of an index at most.
const FIELDS_MAX: usize = 32;
/// Included fields at most.
const INCLUDED_MAX: usize = 32;
/// `expireAfterSeconds` at most, as MongoDB's.
const EXPIRE_SECONDS_MAX: f64 = 2_147_483_647.0;
/// What may be said of the index of `_id`, beside its key: not even `unique: true`.
const ID_INDEX_OPTIONS: &[&str] = &["collation", "name", "ns", "v"];
/// Options that MongoDB has and we don't yet: asking for one is an error that names it.
const UNSUPPORTED_OPTIONS: &[&str] = &["bucketSize", "clustered", "storageEngine"];
/// What a 2d index takes, in the order of [`IndexSpec::grid`].
const GRID_OPTIONS: [&str; 3] = ["bits", "min", "max"];
/// The names in a DBRef, which paths may have.
const REFERENCE_NAMES: [&str; 3] = ["$ref", "$id", "$db"];
/// Kinds of index that MongoDB has and we don't yet.
const UNSUPPORTED_KINDS: &[&str] = &["columnstore", "geoHaystack"];

/// An index as it was asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexSpec {
    /// Its name; made from the key (`a_1_b_-1`) where absent in the request.
    pub name: String,
    /// `{path: 1 | -1 | "hashed", ...}`.
    pub key: DocumentBuf,
    /// No two documents with the same key.
    pub unique: bool,
    /// Documents without the fields are left out.
    pub sparse: bool,
    /// Kept, but not used by queries.
    pub hidden: bool,
    /// No further documents with a key that another has: on the way to `unique`.
    pub prepare_unique: bool,
    /// Seconds after the time in its field when a document is removed.
    pub expire_after_seconds: Option<i64>,
    /// Only documents that pass it are filed.
    pub partial: Option<DocumentBuf>,
    /// How its keys of strings are ordered; `None` until it is made: as the collection says.
    pub collation: Option<Collation>,
    /// Which leaves a wildcard index files.
    pub wildcard_projection: Option<DocumentBuf>,
    /// `bits`, `min` and `max` of a 2d index, where they were given.
    pub grid: [Option<f64>; 3],
    /// Paths of fields whose values the entries hold.
    pub include: Vec<String>,
    /// Whether the entries hold whole documents.
    pub clustering: bool,
    /// Which texts a text index files.
    pub text: Option<TextOptions>,
    /// `background`, which says nothing and is told as it was said.
    pub background: Option<bool>,
}

/// What becomes of options that no index has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownOptions {
    /// They are an error.
    Refused,
    /// They say nothing: `ignoreUnknownIndexOptions`.
    Ignored,
}

impl IndexSpec {
    /// The index of `_id`.
    pub fn of_id() -> IndexSpec {
        IndexSpec::plain(ID_INDEX_NAME.to_owned(), document! { "_id": 1 })
    }

    /// An index with this name and key, and no options.
    pub fn plain(name: String, key: DocumentBuf) -> IndexSpec {
        IndexSpec {
            name,
            key,
            unique: false,
            sparse: false,
            hidden: false,
            prepare_unique: false,
            expire_after_seconds: None,
            partial: None,
            collation: None,
            wildcard_projection: None,
            grid: [None; 3],
            include: Vec::new(),
            clustering: false,
            text: None,
            background: None,
        }
    }

    /// The format of its tree in a repository whose documents' trees have `documents`: of what the
    /// index is alone, so that the same content has the same root. An edit of a document
    /// changes entries far from each other; where they are small, so are the nodes.
    pub(crate) fn tree_format(&self, documents: TreeFormat) -> TreeFormat {
        let holds_documents = self.clustering || !self.include.is_empty();
        if holds_documents { documents } else { documents.for_scattered_edits() }
    }

    /// Its tree with this root.
    #[doc(hidden)]
    pub fn tree(&self, root: ChunkHash, documents: TreeFormat) -> Tree {
        Tree { root, format: self.tree_format(documents) }
    }

    /// Parses one element of `createIndexes`' `indexes`; options and index types that aren't
    /// supported are refused by name.
    ///
    /// # Errors
    /// `InvalidIndexSpecificationOption` (197), `FailedToParse` (9), `TypeMismatch` (14),
    /// `CannotCreateIndex` (67), each naming the option.
    pub fn parse(spec: Document<'_>) -> Result<IndexSpec, Error> {
        IndexSpec::parse_with(spec, UnknownOptions::Refused)
    }

    /// As [`IndexSpec::parse`], and what no index has is refused or passed over.
    ///
    /// # Errors
    /// As [`IndexSpec::parse`].
    pub fn parse_with(spec: Document<'_>, unknown: UnknownOptions) -> Result<IndexSpec, Error> {
        let mut parsed = IndexSpec::plain(String::new(), DocumentBuf::empty());
        let mut has_key = false;
        let mut taken = Vec::new();
        for (option, value) in spec.iter() {
            if option == "key" {
                let key = value.as_document().ok_or_else(|| wrong_type("key", value, "object"))?;
                check_key(key)?;
                parsed.key = key.to_buf();
                has_key = true;
            } else if parsed.take_option(option, value)? {
                taken.push(option);
            } else if unknown == UnknownOptions::Refused {
                let message = format!(
                    "The field '{option}' is not valid for an index specification. \
                     Specification: {spec:?}"
                );
                return Err(Error::invalid(Code::InvalidIndexSpecificationOption, message));
            }
        }
        if !has_key {
            let message = "The 'key' field is a required property of an index specification";
            return Err(Error::invalid(Code::FailedToParse, message));
        }
        if spec.get("name").is_none() {
            parsed.name = default_name(parsed.key.view());
        }
        parsed.key = text::settle(parsed.key, &mut parsed.text)?;
        parsed.check_name()?;
        let other = taken.into_iter().find(|option| !ID_INDEX_OPTIONS.contains(option));
        if let (true, Some(option)) = (parsed.is_id(), other) {
            return Err(no_id_option(option));
        }
        parsed.check()?;
        Ok(parsed)
    }

    /// Takes one option but the key; `false` if there is none of that name.
    fn take_option(&mut self, option: &str, value: Value<'_>) -> Result<bool, Error> {
        let document = || {
            let document = value.as_document().ok_or_else(|| wrong_type(option, value, "object"));
            document.map(|document| Some(document.to_buf()))
        };
        match option {
            "name" => {
                let name = value.as_str().ok_or_else(|| wrong_type("name", value, "string"))?;
                name.clone_into(&mut self.name);
            }
            "unique" => self.unique = boolean(option, value)?,
            "sparse" => self.sparse = boolean(option, value)?,
            "hidden" => self.hidden = boolean(option, value)?,
            "prepareUnique" => self.prepare_unique = boolean(option, value)?,
            "clustering" => self.clustering = boolean(option, value)?,
            "expireAfterSeconds" => self.expire_after_seconds = Some(expire_after(value)?),
            "partialFilterExpression" => self.partial = document()?,
            "wildcardProjection" => self.wildcard_projection = document()?,
            "include" => self.include = included(value)?,
            "v" if matches!(value.as_integer(), Some(1 | 2)) => {}
            "v" => return Err(refused(format!("index version {value:?} is not supported"))),
            "2dsphereIndexVersion" if matches!(value.as_integer(), Some(1..=3)) => {}
            "2dsphereIndexVersion" => {
                let shown = frond_query::text::field(option, value);
                return Err(refused(format!(
                    "unsupported geo index version {{ {shown} }}, only support versions: [1,2,3]"
                )));
            }
            _ if let Some(place) = GRID_OPTIONS.iter().position(|name| *name == option) => {
                let number = number(value).ok_or_else(|| wrong_type(option, value, "numeric"))?;
                self.grid[place] = Some(number);
            }
            "background" => self.background = Some(boolean(option, value)?),
            "ns" | "dropDups" => {}
            "collation" => {
                let specification =
                    value.as_document().ok_or_else(|| wrong_type(option, value, "object"))?;
                if specification.is_empty() {
                    let message = "The field 'collation' cannot be an empty object.";
                    return Err(Error::invalid(Code::BadValue, message));
                }
                self.collation = Some(Collation::parse(specification)?);
            }
            _ if text::take(&mut self.text, option, value)? => {}
            _ if UNSUPPORTED_OPTIONS.contains(&option) => return Err(unsupported(option)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What the index files.
    ///
    /// # Errors
    /// Keys and options that don't go together, in MongoDB's codes.
    pub fn shape(&self) -> Result<IndexShape, Error> {
        let options = ShapeOptions {
            sparse: self.sparse,
            partial: self.partial.as_ref().map(DocumentBuf::view),
            wildcard_projection: self.wildcard_projection.as_ref().map(DocumentBuf::view),
            text: self.text.as_ref().map(TextOptions::shape),
            grid: self.division()?,
            collation: self.collation.clone().unwrap_or_default(),
        };
        Ok(IndexShape::parse(self.key.view(), options)?)
    }

    /// How a 2d index divides the plane.
    fn division(&self) -> Result<Grid, Error> {
        let [bits, min, max] = self.grid;
        let (bits, min, max) = (bits.unwrap_or(26.0), min.unwrap_or(-180.0), max.unwrap_or(180.0));
        Grid::new(bits.trunc(), min, max).map_err(|fault| {
            let message = match fault {
                GridFault::Bits => {
                    format!("bits for hash must be > 0 and <= 32, but {bits} bits were specified")
                }
                GridFault::Bounds => format!(
                    "region for hash must be valid and have positive area, but [{min}, {max}] was specified"
                ),
            };
            Error::invalid(Code::InvalidOptions, message)
        })
    }

    /// Refuses options that don't go together.
    fn check(&self) -> Result<(), Error> {
        let shape = self.shape()?;
        let is_wildcard = shape.has_kind(FieldKind::Wildcard);
        let is_hashed = shape.has_kind(FieldKind::Hashed);
        if self.partial.is_some() && self.sparse {
            return Err(refused(
                "cannot mix \"partialFilterExpression\" and \"sparse\" options".to_owned(),
            ));
        }
        if is_hashed && (self.unique || self.prepare_unique) {
            let message =
                "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.";
            return Err(Error::invalid(Code::Location(16764), message));
        }
        for (option, is_there) in [
            ("unique", self.unique),
            ("prepareUnique", self.prepare_unique),
            ("sparse", self.sparse),
            ("expireAfterSeconds", self.expire_after_seconds.is_some()),
        ] {
            if is_wildcard && is_there {
                let message = format!("Index type 'wildcard' does not support the {option} option");
                return Err(refused(message));
            }
        }
        if self.expire_after_seconds.is_some() && self.key.iter().count() > 1 {
            let message =
                "TTL indexes are single-field indexes, compound indexes do not support TTL";
            return Err(refused(message.to_owned()));
        }
        if self.expire_after_seconds.is_some() && is_hashed {
            return Err(refused("a hashed index can't have expireAfterSeconds".to_owned()));
        }
        if self.clustering && !self.include.is_empty() {
            let message = "an index with 'clustering' holds all fields and can't 'include' some";
            return Err(refused(message.to_owned()));
        }
        Ok(())
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
        let options = [
            ("sparse", self.sparse),
            ("hidden", self.hidden),
            ("prepareUnique", self.prepare_unique),
            ("expireAfterSeconds", self.expire_after_seconds.is_some()),
            ("partialFilterExpression", self.partial.is_some()),
            ("include", !self.include.is_empty()),
            ("clustering", self.clustering),
        ];
        let option = options.into_iter().find(|(_, is_there)| *is_there);
        if let (true, Some((option, _))) = (self.is_id(), option) {
            return Err(no_id_option(option));
        }
        Ok(())
    }

    /// Whether this is the index of `_id` that every collection has.
    pub fn is_id(&self) -> bool {
        self.has_key(document! { "_id": 1 }.view())
    }

    /// Whether a hint means this index, by its name or its key.
    pub(crate) fn is_hinted(&self, hint: Value<'_>) -> bool {
        match hint {
            Value::String(name) => name == self.name,
            Value::Document(key) => self.has_key(key),
            _ => false,
        }
    }

    /// Whether the index has this key, numbers of another type being the same.
    pub(crate) fn has_key(&self, key: Document<'_>) -> bool {
        order::compare_documents(self.key.view(), key).is_eq()
    }

    /// Whether this is the same index under perhaps another name and with perhaps other options.
    /// Two indexes of one key may stand side by side if only one is unique or sparse, or if they
    /// file other documents.
    #[doc(hidden)]
    pub fn is_same_index(&self, other: &IndexSpec) -> bool {
        self.has_key(other.key.view())
            && (self.unique, self.sparse) == (other.unique, other.sparse)
            && self.collation.clone().unwrap_or_default()
                == other.collation.clone().unwrap_or_default()
            && is_same_filter(&self.partial, &other.partial)
            && is_same_document(&self.wildcard_projection, &other.wildcard_projection)
    }

    /// Whether the other options of the same index are the same, too. Whether it is hidden isn't
    /// asked.
    pub(crate) fn has_same_options(&self, other: &IndexSpec) -> bool {
        self.expire_after_seconds == other.expire_after_seconds
            && self.include == other.include
            && self.clustering == other.clustering
            && self.text == other.text
            && self.grid == other.grid
    }

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
}

impl IndexSpec {
    /// The index as a collection of this collation makes it.
    pub(crate) fn in_collection(&self, collation: &Collation) -> IndexSpec {
        // Hashes of strings know no collation; nor does MongoDB's index of hashes.
        let is_hashed = self.key.iter().any(|(_, kind)| kind == Value::String("hashed"));
        let own = if is_hashed { Collation::SIMPLE } else { collation.clone() };
        IndexSpec { collation: Some(self.collation.clone().unwrap_or(own)), ..self.clone() }
    }
}

/// Whether both filters ask the same in perhaps other words, or nothing.
fn is_same_filter(left: &Option<DocumentBuf>, right: &Option<DocumentBuf>) -> bool {
    let (Some(one), Some(other)) = (left, right) else { return is_same_document(left, right) };
    is_same_document(left, right)
        || match (Filter::parse(one.view()), Filter::parse(other.view())) {
            (Ok(one), Ok(other)) => one.asks_the_same(&other),
            _ => false,
        }
}

/// Whether both say the same, or nothing.
fn is_same_document(left: &Option<DocumentBuf>, right: &Option<DocumentBuf>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => order::compare_documents(left.view(), right.view()).is_eq(),
        (None, None) => true,
        _ => false,
    }
}

/// Reads `expireAfterSeconds`.
///
/// # Errors
/// `TypeMismatch` (14) if it is no number; `CannotCreateIndex` (67) if it is out of range.
pub fn expire_after(value: Value<'_>) -> Result<i64, Error> {
    let Some(seconds) = number(value) else {
        return Err(wrong_type("expireAfterSeconds", value, "numeric"));
    };
    if !(0.0..=EXPIRE_SECONDS_MAX).contains(&seconds) {
        let message = format!(
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different \
             number than {seconds}"
        );
        return Err(refused(message));
    }
    Ok(seconds as i64)
}

fn included(value: Value<'_>) -> Result<Vec<String>, Error> {
    let array = value.as_array().ok_or_else(|| wrong_type("include", value, "array"))?;
    let mut paths: Vec<String> = Vec::new();
    for value in array.iter() {
        let path =
            value.as_str().ok_or_else(|| wrong_type("include", value, "array of strings"))?;
        let is_illegal = |part: &str| {
            part.is_empty() || part.starts_with('$') && !REFERENCE_NAMES.contains(&part)
        };
        if path.split('.').any(is_illegal) {
            return Err(refused(format!("'{path}' can't be included: it is no field's path")));
        }
        let meets = |other: &String| {
            let below = |inner: &str, outer: &str| {
                inner
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            below(path, other) || below(other, path)
        };
        if paths.iter().any(meets) {
            return Err(refused(format!("'include' names '{path}' twice")));
        }
        paths.push(path.to_owned());
    }
    if paths.len() > INCLUDED_MAX {
        return Err(refused(format!("at most {INCLUDED_MAX} fields can be included")));
    }
    Ok(paths)
}

fn refused(message: String) -> Error {
    Error::invalid(Code::CannotCreateIndex, message)
}

fn no_id_option(option: &str) -> Error {
    let message = format!("The field '{option}' is not valid for an _id index specification");
    let code = match option {
        "hidden" => Code::BadValue,
        "expireAfterSeconds" => Code::CannotCreateIndex,
        _ => Code::InvalidIndexSpecificationOption,
    };
    Error::invalid(code, message)
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
        let path = match path.strip_suffix("$**") {
            Some("") => continue,
            Some(outer) => outer.strip_suffix('.').unwrap_or(path),
            None => path,
        };
        if path.split('.').any(str::is_empty) {
            return Err(refused("Index keys cannot contain an empty field.".to_owned()));
        }
        let is_illegal = |part: &str| part.starts_with('$') && !REFERENCE_NAMES.contains(&part);
        if path.split('.').any(is_illegal) {
            let message = "Index key contains an illegal field name: field name starts with '$'.";
            return Err(refused(message.to_owned()));
        }
        if let Some(kind) = direction.as_str().filter(|kind| UNSUPPORTED_KINDS.contains(kind)) {
            return Err(refused(format!("'{kind}' indexes are not supported yet")));
        }
    }
    Ok(())
}

/// `a_1_b_-1`, as drivers make it.
fn default_name(key: Document<'_>) -> String {
    let part = |(path, direction): (&str, Value<'_>)| match (number(direction), direction) {
        (Some(number), _) => format!("{path}_{number}"),
        (None, Value::String(kind)) => format!("{path}_{kind}"),
        (None, _) => path.to_owned(),
    };
    key.iter().map(part).collect::<Vec<_>>().join("_")
}
