//! Reads the fields of a command, or of a statement inside one, with MongoDB's type errors.
//!
//! A command's fields were checked at the door, by its table ([`crate::tables`]): here they are
//! only read. A command takes each field that it knows, in any order, and then calls
//! [`Fields::finish`], which refuses those that are left. So a field that isn't supported can never
//! be ignored by accident. Null and undefined count as absent.

use frond_db::Error;
use frond_doc::raw::RawElement;
use frond_doc::{Array, Document, Value};
use frond_query::{Code, Collation};

use crate::limits::FIELDS_MAX;
use crate::tables::{self, Table};

const FIELD_UNKNOWN: Code = Code::Location(40415);
const FIELD_DUPLICATE: Code = Code::Location(40413);

/// As many fields as most commands have at most: these are compared with one another, where more
/// would be sorted.
const FEW_FIELDS: usize = 16;

/// The types that MongoDB takes for a boolean and for an integer, as its messages list them.
const BOOLEAN_TYPES: &str = "types '[bool, long, int, decimal, double]'";
const INTEGER_TYPES: &str = "types '[long, int, decimal, double]'";

/// The fields of one document, each taken at most once.
pub struct Fields<'a> {
    /// The prefix of field names in messages: `find`, `update.updates`.
    path: &'a str,
    /// The command's table, where these are a command's fields: the door has checked them by it.
    table: Option<&'static Table>,
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    /// Decoded when it is taken.
    element: RawElement<'a>,
    taken: bool,
}

impl<'a> Fields<'a> {
    /// The fields of a command; the first is its name and counts as taken.
    ///
    /// # Errors
    /// 40413 if a field stands there twice; 40415 if there are too many.
    pub fn of_command(path: &'a str, document: Document<'a>) -> Result<Fields<'a>, Error> {
        let mut fields = Fields::new(path, document)?;
        fields.table = tables::find(path);
        if let Some(first) = fields.fields.first_mut() {
            first.taken = true;
        }
        Ok(fields)
    }

    /// The fields of a document inside a command.
    ///
    /// # Errors
    /// As [`Fields::of_command`].
    pub fn of_part(path: &'a str, document: Document<'a>) -> Result<Fields<'a>, Error> {
        Fields::new(path, document)
    }

    fn new(path: &'a str, document: Document<'a>) -> Result<Fields<'a>, Error> {
        let mut fields: Vec<Field<'a>> = Vec::with_capacity(FEW_FIELDS);
        for element in document.elements() {
            if fields.iter().any(|field| field.element.name == element.name) {
                return Err(duplicate(path, element.name));
            }
            if fields.len() == FIELDS_MAX {
                let message = format!("'{path}' has more than {FIELDS_MAX} fields");
                return Err(Error::invalid(FIELD_UNKNOWN, message));
            }
            fields.push(Field { element, taken: false });
        }
        Ok(Fields { path, table: None, fields })
    }

    /// Takes a field of any type. `None` if it is absent, null or undefined.
    pub fn value(&mut self, name: &str) -> Option<Value<'a>> {
        let value = self.value_or_null(name)?;
        (!matches!(value, Value::Null | Value::Undefined)).then_some(value)
    }

    /// The value of the command's own field, the first, which is mostly 1.
    pub fn of_name(&self) -> Option<Value<'a>> {
        self.fields.first().and_then(|field| field.element.decode())
    }

    /// Takes a field of any type, where null is a value of its own.
    pub fn value_or_null(&mut self, name: &str) -> Option<Value<'a>> {
        debug_assert!(
            self.table.is_none_or(|table| table.has(name)),
            "the table of {} has no field {name}",
            self.path
        );
        let is_it = |field: &&mut Field<'_>| field.element.name == name.as_bytes();
        let field = self.fields.iter_mut().find(is_it)?;
        field.taken = true;
        field.element.decode()
    }

    /// Takes a document.
    ///
    /// # Errors
    /// `TypeMismatch` (14) if it is of another type.
    pub fn document(&mut self, name: &str) -> Result<Option<Document<'a>>, Error> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let document = value.as_document();
        document.map(Some).ok_or_else(|| self.wrong_type(name, value, "type 'object'"))
    }

    /// Takes a document that must be there.
    ///
    /// # Errors
    /// `TypeMismatch` (14); 40414 if it is missing.
    pub fn required_document(&mut self, name: &str) -> Result<Document<'a>, Error> {
        self.document(name)?.ok_or_else(|| self.missing(name))
    }

    /// Takes an array.
    ///
    /// # Errors
    /// `TypeMismatch` (14) if it is of another type.
    pub fn array(&mut self, name: &str) -> Result<Option<Array<'a>>, Error> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_array().map(Some).ok_or_else(|| self.wrong_type(name, value, "type 'array'"))
    }

    /// Takes an array of strings; the command's table takes no other elements.
    ///
    /// # Errors
    /// `TypeMismatch` (14) if it is of another type.
    pub fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Error> {
        let texts = self.array(name)?;
        let text = |value: Value<'_>| value.as_str().map(str::to_owned);
        Ok(texts.map(|texts| texts.iter().filter_map(text).collect()))
    }

    /// Takes a string.
    ///
    /// # Errors
    /// `TypeMismatch` (14) if it is of another type.
    pub fn string(&mut self, name: &str) -> Result<Option<&'a str>, Error> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong_type(name, value, "type 'string'"))
    }

    /// Takes a string that must be there.
    ///
    /// # Errors
    /// `TypeMismatch` (14); 40414 if it is missing.
    pub fn required_string(&mut self, name: &str) -> Result<&'a str, Error> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    /// Takes a boolean or a number; absent is false.
    ///
    /// # Errors
    /// `TypeMismatch` (14) if it is neither.
    pub fn boolean(&mut self, name: &str) -> Result<bool, Error> {
        Ok(self.optional_boolean(name)?.unwrap_or(false))
    }

    /// Takes a boolean or a number.
    ///
    /// # Errors
    /// `TypeMismatch` (14) if it is neither.
    pub fn optional_boolean(&mut self, name: &str) -> Result<Option<bool>, Error> {
        let Some(value) = self.value(name) else { return Ok(None) };
        if !value.is_number() && !matches!(value, Value::Boolean(_)) {
            return Err(self.wrong_type(name, value, BOOLEAN_TYPES));
        }
        Ok(Some(value.is_truthy()))
    }

    /// Takes a number of any type as an integer; fractions are cut off.
    ///
    /// # Errors
    /// `TypeMismatch` (14) if it is no number.
    pub fn integer(&mut self, name: &str) -> Result<Option<i64>, Error> {
        let Some(value) = self.value(name) else { return Ok(None) };
        tables::integer(value).map(Some).ok_or_else(|| self.wrong_type(name, value, INTEGER_TYPES))
    }

    /// Takes an integer that isn't negative.
    ///
    /// # Errors
    /// `TypeMismatch` (14); 51024 if it is below zero.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>, Error> {
        let Some(number) = self.integer(name)? else { return Ok(None) };
        let count =
            u64::try_from(number).map_err(|_| tables::out_of_range(name, ">=", 0, number))?;
        Ok(Some(count))
    }

    /// Takes fields that mean nothing here, and ignores them.
    pub fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.value(name);
        }
    }

    /// Refuses a field that is known but not supported, unless it is absent or says no: null,
    /// false, zero or an empty document or array.
    ///
    /// # Errors
    /// `CommandNotSupported` (115) then.
    pub fn refuse(&mut self, name: &str) -> Result<(), Error> {
        let Some(value) = self.value(name) else { return Ok(()) };
        let is_false = match value {
            Value::Document(document) => document.is_empty(),
            Value::Array(array) => array.is_empty(),
            other => !other.is_truthy(),
        };
        if is_false {
            return Ok(());
        }
        let message = format!("BSON field '{}.{name}' is not supported by Frond", self.path);
        Err(Error::invalid(Code::CommandNotSupported, message))
    }

    /// Refuses each of `names` as [`Fields::refuse`] does.
    ///
    /// # Errors
    /// `CommandNotSupported` (115) for the first that is there.
    pub fn refuse_all(&mut self, names: &[&str]) -> Result<(), Error> {
        names.iter().try_for_each(|name| self.refuse(name))
    }

    /// Takes `collation`; an empty one, as drivers send it, asks for nothing.
    ///
    /// # Errors
    /// `TypeMismatch` (14); what no collation can be.
    pub fn collation(&mut self) -> Result<Option<Collation>, Error> {
        match self.document("collation")? {
            Some(specification) if !specification.is_empty() => {
                Ok(Some(Collation::parse(specification)?))
            }
            _ => Ok(None),
        }
    }

    /// Refuses whatever was not taken.
    ///
    /// # Errors
    /// 40415 that names the first of them.
    pub fn finish(self) -> Result<(), Error> {
        for field in self.fields.iter().filter(|field| !field.taken) {
            let name = String::from_utf8_lossy(field.element.name);
            if !self.table.is_some_and(|table| table.passes_over(&name)) {
                return Err(tables::unknown(self.message_path(), &name));
            }
        }
        Ok(())
    }

    /// The error of a field that must be there.
    pub fn missing(&self, name: &str) -> Error {
        tables::missing_field(self.message_path(), name)
    }

    /// The error of a field of the wrong type; `expected` is `type 'object'` or so.
    pub fn wrong_type(&self, name: &str, found: Value<'_>, expected: &str) -> Error {
        tables::wrong_type(&format!("{}.{name}", self.message_path()), found, expected)
    }

    /// What messages put before a field's name.
    fn message_path(&self) -> &'a str {
        self.table.map_or(self.path, |table| table.path)
    }
}

fn duplicate(path: &str, name: &[u8]) -> Error {
    let name = String::from_utf8_lossy(name);
    let message = format!("BSON field '{path}.{name}' is a duplicate field");
    Error::invalid(FIELD_DUPLICATE, message)
}

/// Refuses a document in which a name stands twice: which of the two counts would be the business
/// of each reader.
///
/// # Errors
/// 40413 then.
pub fn refuse_duplicates(path: &str, document: Document<'_>) -> Result<(), Error> {
    let mut few = [&b""[..]; FEW_FIELDS];
    for (count, RawElement { name, .. }) in document.elements().enumerate() {
        if count == FEW_FIELDS {
            return refuse_among_many(path, document);
        }
        if few[..count].contains(&name) {
            return Err(duplicate(path, name));
        }
        few[count] = name;
    }
    Ok(())
}

fn refuse_among_many(path: &str, document: Document<'_>) -> Result<(), Error> {
    let mut names: Vec<&[u8]> = document.elements().map(|element| element.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(duplicate(path, pair[0])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::{DocumentBuf, ValueBuf, document};

    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> (i32, String) {
        let error = result.expect_err("refused");
        (error.code.number(), error.message)
    }

    fn sample() -> DocumentBuf {
        document! {
            "filter": "x", "limit": -1_i32, "skip": 2.9, "singleBatch": 1_i32,
            "sort": Value::Null, "projection": Value::Undefined, "foo": true,
        }
    }

    #[test]
    fn types_are_checked_and_absent_means_null_too() {
        let document = sample();
        let mut fields = Fields::of_part("find", document.view()).expect("no duplicates");
        let expected = "BSON field 'find.filter' is the wrong type 'string', expected type \
                        'object'";
        assert_eq!(message(fields.document("filter")), (14, expected.to_owned()));
        let expected = "BSON field 'limit' value must be >= 0, actual value '-1'";
        assert_eq!(message(fields.count("limit")), (2, expected.to_owned()));
        assert_eq!(fields.count("skip").expect("a number"), Some(2));
        assert!(fields.boolean("singleBatch").expect("a number is a boolean"));
        assert_eq!(fields.document("sort").expect("null is absent"), None);
        assert_eq!(fields.document("projection").expect("undefined is absent"), None);
        assert!(!fields.boolean("missing").expect("absent is false"));
        let expected = "BSON field 'find.let' is missing but a required field";
        assert_eq!(message(fields.required_document("let")), (40414, expected.to_owned()));
        let expected = "BSON field 'find.foo' is an unknown field.";
        assert_eq!(message(fields.finish()), (40415, expected.to_owned()));
    }

    #[test]
    fn common_fields_pass_in_commands_only() {
        let document = document! { "ping": 1_i32, "$db": "admin", "lsid": 1_i32 };
        let fields = Fields::of_command("ping", document.view()).expect("no duplicates");
        assert!(fields.finish().is_ok());
        let document = document! { "$db": "admin" };
        let fields = Fields::of_part("update.updates", document.view()).expect("no duplicates");
        let expected = "BSON field 'update.updates.$db' is an unknown field.";
        assert_eq!(message(fields.finish()), (40415, expected.to_owned()));
    }

    #[test]
    fn duplicates_and_floods_of_fields_are_refused() {
        let document = document! { "find": "a", "limit": 1_i32, "limit": 2_i32 };
        let result = Fields::of_command("find", document.view()).map(|_| ());
        assert_eq!(message(result).0, 40413);
        let all = refuse_duplicates("find", document.view());
        let expected = "BSON field 'find.limit' is a duplicate field";
        assert_eq!(message(all), (40413, expected.to_owned()));
        assert!(refuse_duplicates("find", sample().view()).is_ok());
        let mut builder = frond_doc::DocumentBuilder::new();
        for position in 0..100_000 {
            builder.append(&format!("f{position}"), Value::Null);
        }
        let document = builder.build();
        let result = Fields::of_command("find", document.view()).map(|_| ());
        assert_eq!(message(result).0, 40415);
    }

    #[test]
    fn an_empty_collation_is_none() {
        let check = |collation: DocumentBuf| {
            let document = document! { "find": "a", "collation": &collation };
            let mut fields = Fields::of_command("find", document.view()).expect("no duplicates");
            let collation = fields.collation().map_err(|error| error.code.number());
            collation.map(|collation| collation.map(|collation| collation.is_simple()))
        };
        assert_eq!(check(document! { "locale": "simple" }), Ok(Some(true)));
        assert_eq!(check(document! {}), Ok(None));
        assert_eq!(check(document! { "locale": "de" }), Ok(Some(false)));
        assert_eq!(check(document! { "strength": 1_i32 }), Err(40414));
    }

    #[test]
    fn unsupported_options_may_be_false() {
        let empty = DocumentBuf::empty();
        for (value, passes) in [
            (Value::Boolean(false), true),
            (Value::Int32(0), true),
            (Value::Document(empty.view()), true),
            (Value::Boolean(true), false),
            (Value::String(""), false),
        ] {
            let value = ValueBuf::from(value);
            let document = document! { "find": "a", "tailable": &value };
            let mut fields = Fields::of_part("find", document.view()).expect("no duplicates");
            assert_eq!(fields.refuse("tailable").is_ok(), passes, "{value:?}");
        }
    }
}
