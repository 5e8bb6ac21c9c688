//! `commitTransaction` and `abortTransaction`.

use frond_db::Error;
use frond_doc::DocumentBuilder;
use frond_query::Code;

use crate::common_fields::Part;
use crate::common_fields::SessionId;
use crate::request::{Answer, Request};
use crate::transactions;

/// Commits the session's transaction; a second time too.
pub fn commit(request: &Request<'_>) -> Answer {
    let (session, number) = read(request)?;
    let waits = (&request.operation.interrupt(), request.commits);
    let durability = request.common.durability;
    transactions::commit(request.server, (session, number), durability, waits)?;
    Ok(DocumentBuilder::new())
}

/// Aborts the session's transaction.
pub fn abort(request: &Request<'_>) -> Answer {
    let (session, number) = read(request)?;
    transactions::abort(request.server, session, number)?;
    Ok(DocumentBuilder::new())
}

fn read(request: &Request<'_>) -> Result<(SessionId, i64), Error> {
    let mut fields = request.fields()?;
    // A token by which a cluster's router finds the transaction again: one server needs none.
    fields.document("recoveryToken")?;
    fields.finish()?;
    match request.common.part {
        Some(Part::Statement { session, number, .. }) => Ok((session, number)),
        _ => {
            let message = format!("{} must be run within a transaction", request.name);
            Err(Error::invalid(Code::InvalidOptions, message))
        }
    }
}
