//! `getClusterParameter` and `setClusterParameter`: settings of the data directory. There is one,
//! `changeStreamOptions`: how long former documents are kept for change streams.

use frond_db::{AccessChange, AccessKind, CHANGE_STREAM_OPTIONS, Error};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Timestamp, Value};
use frond_query::Code;

use crate::fields::Fields;
use crate::request::{Answer, Request};
use crate::tables;

const IMAGES: &str = "preAndPostImages";
const EXPIRE: &str = "expireAfterSeconds";
/// They are kept as long as the log.
const OFF: &str = "off";

/// Answers with parameters: one by its name, several, or all.
pub fn get(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    fields.ignore(&["omitInFTDC"]);
    fields.finish()?;
    let names = match request.argument() {
        Value::String("*") => vec![CHANGE_STREAM_OPTIONS],
        Value::String(name) => vec![name],
        Value::Array(names) => {
            let name = |name: Value<'_>| {
                let path = "getClusterParameter.getClusterParameter";
                tables::wrong_type(path, name, "type 'string'")
            };
            let names = names.iter().map(|it| it.as_str().ok_or_else(|| name(it)));
            names.collect::<Result<Vec<_>, _>>()?
        }
        other => {
            let path = "getClusterParameter.getClusterParameter";
            return Err(tables::wrong_type(path, other, "types '[array, string]'"));
        }
    };
    if names.is_empty() {
        let message =
            "Must supply at least one cluster server parameter name to getClusterParameter";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let mut answer = DocumentBuilder::new();
    answer.begin_array("clusterParameters");
    for name in names {
        check_known(name)?;
        answer.push(Value::from(&change_stream_options(request)?));
    }
    answer.end();
    Ok(answer)
}

/// Sets a parameter. It holds from the answer on, on all members.
pub fn set(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut parameters = request.own_document().iter();
    let Some((name, value)) = parameters.next() else {
        return Err(Error::invalid(Code::NoSuchKey, "No cluster parameter provided"));
    };
    if parameters.next().is_some() {
        let message = "setClusterParameter only supports setting exactly one parameter";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    check_known(name)?;
    let Value::Document(options) = value else {
        let message = "Cluster parameter value must be an object";
        return Err(Error::invalid(Code::BadValue, message));
    };
    let expires = read_expiry(options).map_err(|error| {
        let message = format!("Failed parsing new {name} value: {}", error.message);
        Error::invalid(Code::BadValue, message)
    })?;
    let document = options_document(request.server.operation_time(), expires);
    let change = AccessChange {
        kind: AccessKind::Setting,
        database: String::new(),
        name: CHANGE_STREAM_OPTIONS.to_owned(),
        document: Some(document),
    };
    request.server.frond.change_access(&[change])?;
    Ok(DocumentBuilder::new())
}

fn check_known(name: &str) -> Result<(), Error> {
    if name == CHANGE_STREAM_OPTIONS {
        return Ok(());
    }
    Err(Error::invalid(Code::NoSuchKey, format!("Unknown server parameter: {name}")))
}

/// Returns the options in force.
fn change_stream_options(request: &Request<'_>) -> Result<DocumentBuf, Error> {
    let frond = &request.server.frond;
    let stored = frond.access_document(AccessKind::Setting, "", CHANGE_STREAM_OPTIONS)?;
    Ok(stored.unwrap_or_else(|| options_document(Timestamp(0), Value::String(OFF))))
}

fn options_document(set_at: Timestamp, expires: Value<'_>) -> DocumentBuf {
    let mut options = DocumentBuilder::new();
    options
        .append("_id", Value::String(CHANGE_STREAM_OPTIONS))
        .append("clusterParameterTime", Value::Timestamp(set_at))
        .begin_document(IMAGES)
        .append(EXPIRE, expires)
        .end();
    options.build()
}

/// Seconds, or `off`.
fn read_expiry(options: Document<'_>) -> Result<Value<'_>, Error> {
    let refused = |message: &str| Err(Error::invalid(Code::BadValue, message));
    let mut fields = Fields::of_part(CHANGE_STREAM_OPTIONS, options)?;
    let images = fields.required_document(IMAGES)?;
    fields.finish()?;
    let mut fields = Fields::of_part("changeStreamOptions.preAndPostImages", images)?;
    let expires = fields.value(EXPIRE).ok_or_else(|| fields.missing(EXPIRE))?;
    let read = match expires {
        Value::String(OFF) => expires,
        Value::String(_) => {
            return refused("Non-numeric value of 'expireAfterSeconds' should be 'off'");
        }
        other => match tables::integer(other) {
            Some(seconds) if 0 < seconds => Value::Int64(seconds),
            Some(_) => return refused("Numeric value of 'expireAfterSeconds' should be positive"),
            None => {
                let expected = "types '[string, decimal, double, long, int]'";
                return Err(fields.wrong_type(EXPIRE, other, expected));
            }
        },
    };
    fields.finish()?;
    Ok(read)
}
