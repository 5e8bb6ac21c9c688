//! The commands that may be part of a transaction, or a retryable write, and the fields they may
//! have.

use frond_db::Error;
use frond_query::Code;

use crate::commands::Command;
use crate::common_fields::{Common, Part};

/// Checks that a command may be what it says it is.
///
/// # Errors
/// `NotARetryableWriteCommand` (50768), or what can't be part of a transaction, by MongoDB's codes.
pub fn check(command: &Command, database: &str, common: &Common) -> Result<(), Error> {
    match common.part {
        None => Ok(()),
        Some(Part::Write { .. }) if command.retryable => Ok(()),
        Some(Part::Write { .. }) => {
            let message = format!(
                "txnNumber may only be provided for multi-document transactions and retryable \
                 write commands. autocommit:false was not provided, and {} is not a retryable \
                 write command.",
                command.name
            );
            Err(Error::invalid(Code::NotARetryableWriteCommand, message))
        }
        Some(Part::Statement { starts, .. }) => check_statement(command, database, common, starts),
    }
}

fn check_statement(
    command: &Command,
    database: &str,
    common: &Common,
    starts: bool,
) -> Result<(), Error> {
    let refuse =
        |message: String| Err(Error::invalid(Code::OperationNotSupportedInTransaction, message));
    if command.ends_transaction {
        if starts {
            let message = format!("{} cannot be the first command of a transaction", command.name);
            return refuse(message);
        }
        return Ok(());
    }
    if !command.in_transaction {
        let why = if command.name.starts_with("frond") {
            ": versions are made and changed outside of transactions, commit or abort it first"
        } else {
            "."
        };
        return refuse(format!(
            "Cannot run '{}' in a multi-document transaction{why}",
            command.name
        ));
    }
    // Cursors of the first are read by the last.
    let is_of_no_database = ["bulkWrite", "killCursors", "getMore"].contains(&command.name);
    if ["admin", "config", "local"].contains(&database) && !is_of_no_database {
        return refuse(format!(
            "Cannot run command against the '{database}' database in a transaction."
        ));
    }
    if common.has_write_concern {
        let message = "writeConcern is not allowed within a multi-statement transaction";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if common.has_read_concern && !starts {
        let message = "Only the first command in a transaction may specify a readConcern";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if !common.level.is_of_transactions() {
        let message = "The readConcern level must be either 'local' (default), 'majority' or \
                       'snapshot' in order to run in a transaction";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok(())
}
