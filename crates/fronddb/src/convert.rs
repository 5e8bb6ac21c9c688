//! Between the types of an application, of the `bson` crate and of the database: all are BSON's
//! bytes.

use bson::Bson;
use bytes::Bytes;
use frond_db::Collation;
use frond_doc::extended_json::{self, Form};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, ValueBuf};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Document, Error, Result};

/// Makes a document of a value.
///
/// # Errors
/// `FailedToParse` (9) if serde makes no document of it; `InvalidBSON` (22) if that is deeper, or
/// larger, than any can be.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<DocumentBuf> {
    let bytes = bson::serialize_to_vec(&value)
        .map_err(|error| Error::of_bson("the value is not a document", error))?;
    Ok(DocumentBuf::validated(Bytes::from(bytes))?)
}

/// Makes a value of a document.
///
/// # Errors
/// `FailedToParse` (9) with the document's `_id`, the type's name and what serde says.
pub fn decode<T: DeserializeOwned>(document: &DocumentBuf) -> Result<T> {
    bson::deserialize_from_slice(document.as_bytes()).map_err(|error| {
        let mut id = String::new();
        extended_json::write_value(
            document.get("_id").unwrap_or(Value::Null),
            Form::Relaxed,
            &mut id,
        );
        let name = std::any::type_name::<T>();
        Error::of_bson(&format!("the document with _id {id} is not a {name}"), error)
    })
}

/// As [`encode`], where there is something.
///
/// # Errors
/// As [`encode`].
pub fn encode_any(document: Option<&Document>) -> Result<Option<DocumentBuf>> {
    document.map(encode).transpose()
}

/// As [`decode`], where there is something.
///
/// # Errors
/// As [`decode`].
pub fn decode_any<T: DeserializeOwned>(document: Option<&DocumentBuf>) -> Result<Option<T>> {
    document.map(decode).transpose()
}

/// Makes a stored value of any BSON value.
///
/// # Errors
/// `InvalidBSON` if it is deeper, or larger, than any can be.
pub fn value(value: impl Into<Bson>) -> Result<ValueBuf> {
    let mut only = Document::new();
    only.insert("", value);
    Ok(ValueBuf::from_only_field(encode(&only)?))
}

/// As [`value`], where there is something.
///
/// # Errors
/// As [`value`].
pub fn value_any(from: Option<&Bson>) -> Result<Option<ValueBuf>> {
    from.map(value).transpose()
}

/// The array of these values.
///
/// # Errors
/// As [`value`].
pub fn array<'a>(values: impl IntoIterator<Item = &'a Document>) -> Result<ValueBuf> {
    value(Bson::Array(values.into_iter().map(Bson::from).collect()))
}

/// Makes a BSON value of a stored one.
///
/// # Errors
/// As [`decode`].
pub fn bson(value: &ValueBuf) -> Result<Bson> {
    let mut only = DocumentBuilder::new();
    only.append("", Value::from(value));
    let mut only: Document = decode(&only.build())?;
    Ok(only.remove("").unwrap_or(Bson::Null))
}

/// Parses MongoDB's `collation`.
///
/// # Errors
/// `BadValue` and MongoDB's other codes for an invalid collation.
pub fn collation(specification: Option<&Document>) -> Result<Option<Collation>> {
    let Some(specification) = specification else { return Ok(None) };
    let parsed = Collation::parse(encode(specification)?.view());
    Ok(Some(parsed.map_err(frond_db::Error::from)?))
}
