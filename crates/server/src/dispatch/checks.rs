//! The checks of any command before it runs.

use frond_db::Error;
use frond_doc::{Document, Value};
use frond_query::Code;

use crate::commands::{self, Command, suggestion};
use crate::limits::COMMAND_BYTES_MARGIN;
use crate::shared::Shared;
use crate::wire::DocumentSequence;

/// The command of that name; one for tests only where these are enabled.
pub(super) fn command_of(server: &Shared, name: &str) -> Result<&'static Command, Error> {
    let is_there = |command: &&Command| !command.is_for_tests || server.fail_points.is_enabled();
    commands::find(name).filter(is_there).ok_or_else(|| command_not_found(name))
}

pub(super) fn command_not_found(name: &str) -> Error {
    let hint = suggestion::did_you_mean(name, commands::names());
    Error::invalid(Code::CommandNotFound, format!("no such command: '{name}'{hint}"))
}

/// The database that a command names.
pub(super) fn database_of(body: Document<'_>) -> Result<&str, Error> {
    match body.get("$db") {
        Some(Value::String(name)) => Ok(name),
        Some(other) => {
            let found = other.element_type().alias();
            let message =
                format!("BSON field '$db' is the wrong type '{found}', expected type 'string'");
            Err(Error::invalid(Code::TypeMismatch, message))
        }
        None => {
            let message = "OP_MSG requests require a $db argument";
            Err(Error::invalid(Code::Location(40571), message))
        }
    }
}

/// Refuses a command that is too large.
pub(super) fn check_size(server: &Shared, body: Document<'_>) -> Result<(), Error> {
    let bytes = body.as_bytes().len() as u64;
    let max = server.frond.document_bytes_max() + COMMAND_BYTES_MARGIN;
    if bytes > max {
        let message = format!("command of {bytes} bytes is too large, at most {max} are allowed");
        return Err(Error::invalid(Code::BSONObjectTooLarge, message));
    }
    Ok(())
}

/// Refuses a command of the `admin` database on any other.
pub(super) fn check_allowed(command: &Command, database: &str) -> Result<(), Error> {
    if command.admin_only && database != "admin" {
        let message = format!("{} may only be run against the admin database.", command.name);
        return Err(Error::invalid(Code::Unauthorized, message));
    }
    Ok(())
}

/// Refuses documents beside a command that it doesn't take.
pub(super) fn check_sequences(
    command: &Command,
    sequences: &[DocumentSequence],
) -> Result<(), Error> {
    for sequence in sequences {
        if !command.sequences.contains(&sequence.name.as_str()) {
            let message =
                format!("BSON field '{}.{}' is an unknown field.", command.name, sequence.name);
            return Err(Error::invalid(Code::Location(40415), message));
        }
    }
    Ok(())
}
