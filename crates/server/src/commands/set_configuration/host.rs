//! Reads one member of a configuration.

use frond_db::Error;
use frond_doc::{Document, Value};
use frond_query::Code;

use crate::fields::Fields;
use crate::replica::members::Host;

/// A member's `_id` is at most this, as in MongoDB.
const ID_MAX: i64 = 255;
/// And so is its priority.
const PRIORITY_MAX: f64 = 1000.0;

/// Reads a member.
///
/// # Errors
/// What can't be, by MongoDB's codes; `CommandNotSupported` (115) for what isn't built.
pub fn parse(member: Value<'_>) -> Result<Host, Error> {
    let Some(member) = member.as_document() else {
        let message = "a member of a replica set's configuration is a document";
        return Err(Error::invalid(Code::TypeMismatch, message));
    };
    let mut fields = Fields::of_part("MemberConfig", member)?;
    let id = fields.integer("_id")?.ok_or_else(|| fields.missing("_id"))?;
    let address = fields.required_string("host")?;
    fields.refuse_all(&["arbiterOnly", "slaveDelay", "secondaryDelaySecs", "horizons"])?;
    let votes = fields.integer("votes")?.unwrap_or(1);
    let priority = fields.value("priority");
    let hidden = fields.optional_boolean("hidden")?.unwrap_or(false);
    let tags = fields.document("tags")?.map(tags).transpose()?.unwrap_or_default();
    if !fields.optional_boolean("buildIndexes")?.unwrap_or(true) {
        return Err(unsupported("buildIndexes: false"));
    }
    fields.finish()?;
    if !(0..=ID_MAX).contains(&id) {
        let message = format!("_id field value of {id} is out of range [0, {ID_MAX}]");
        return Err(Error::invalid(Code::BadValue, message));
    }
    if !(0..=1).contains(&votes) {
        let message = format!("votes field value is {votes} but must be 0 or 1");
        return Err(Error::invalid(Code::BadValue, message));
    }
    let priority = priority.map_or(Ok(1.0), self::priority)?;
    let host = Host {
        votes: votes == 1,
        priority,
        hidden,
        tags,
        ..Host::new(id as i32, normalized(address)?)
    };
    check(&host)?;
    Ok(host)
}

/// Checks what only a member may have that is never the primary.
fn check(host: &Host) -> Result<(), Error> {
    let message = match host.priority != 0.0 {
        true if !host.votes => "priority must be 0 when non-voting (votes:0)",
        true if host.hidden => "priority must be 0 when hidden=true",
        _ => return Ok(()),
    };
    Err(Error::invalid(Code::BadValue, message))
}

fn priority(value: Value<'_>) -> Result<f64, Error> {
    let priority = match value {
        Value::Double(priority) => priority,
        Value::Int32(priority) => f64::from(priority),
        Value::Int64(priority) => priority as f64,
        Value::Decimal128(priority) => frond_doc::decimal::to_f64(priority),
        other => {
            let found = other.element_type().alias();
            let message = format!(
                "BSON field 'MemberConfig.priority' is the wrong type '{found}', expected types \
                 '[long, int, decimal, double]'"
            );
            return Err(Error::invalid(Code::TypeMismatch, message));
        }
    };
    if (0.0..=PRIORITY_MAX).contains(&priority) {
        return Ok(priority);
    }
    let message = format!(
        "BSON field 'priority' value must be >= 0 and <= {PRIORITY_MAX}, actual value '{priority}'"
    );
    Err(Error::invalid(Code::BadValue, message))
}

fn tags(tags: Document<'_>) -> Result<Vec<(String, String)>, Error> {
    let tag = |(name, value): (&str, Value<'_>)| match value.as_str() {
        Some(value) => Ok((name.to_owned(), value.to_owned())),
        None => {
            let found = value.element_type().alias();
            let message = format!("tags.{name} field has non-string value of type {found}");
            Err(Error::invalid(Code::TypeMismatch, message))
        }
    };
    tags.iter().map(tag).collect()
}

/// An address with its port.
fn normalized(address: &str) -> Result<String, Error> {
    match address.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|it| it != 0) => {
            Ok(address.to_owned())
        }
        None if !address.is_empty() => Ok(format!("{address}:27017")),
        _ => {
            let message = format!("host field value '{address}' is not HOST:PORT");
            Err(Error::invalid(Code::FailedToParse, message))
        }
    }
}

/// What a configuration asks for and isn't built.
pub fn unsupported(what: &str) -> Error {
    let message = format!("a replica set's member with {what} is not supported by Frond");
    Error::invalid(Code::CommandNotSupported, message)
}
