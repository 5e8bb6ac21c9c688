//! `configureFailPoint`: turns on faults that a client wants to meet. See [`crate::fail_points`].

use frond_db::Error;
use frond_doc::{Document, DocumentBuilder, Value};
use frond_query::Code;

use crate::fail_points::{
    FailCommand, FailGetMore, FailWrite, Fault, Mode, TimeLimitFault, read_code,
};
use crate::fields::Fields;
use crate::request::{Answer, Request};

/// The command's name.
pub const NAME: &str = "configureFailPoint";

/// Turns a fail point on or off; answers how often it has failed.
pub fn configure(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = request.own_text();
    let mode = fields.value("mode").ok_or_else(|| fields.missing("mode"))?;
    let mode = Mode::read(mode)?;
    let data = fields.document("data")?.unwrap_or(Document::empty());
    fields.finish()?;
    let fault = match name {
        "failCommand" => Fault::Command(FailCommand::read(data)?),
        "failGetMoreAfterCursorCheckout" => Fault::GetMore(read_get_more(data)?),
        "onPrimaryTransactionalWrite" => Fault::Write(read_write(data)?),
        "maxTimeAlwaysTimeOut" => Fault::TimeLimit(TimeLimitFault::Always),
        "maxTimeNeverTimeOut" => Fault::TimeLimit(TimeLimitFault::Never),
        other => {
            let message = format!("fail point not found: {other}");
            return Err(Error::invalid(Code::FailPointSetFailed, message));
        }
    };
    let hits = request.server.fail_points.set(mode, fault);
    let mut answer = DocumentBuilder::new();
    answer.append("count", Value::Int64(i64::try_from(hits).unwrap_or(i64::MAX)));
    Ok(answer)
}

fn read_get_more(data: Document<'_>) -> Result<FailGetMore, Error> {
    let mut fields = Fields::of_part("configureFailPoint.data", data)?;
    let code = read_code(&mut fields, "errorCode")?;
    fields.refuse("closeConnection")?;
    fields.finish()?;
    Ok(FailGetMore { code })
}

fn read_write(data: Document<'_>) -> Result<FailWrite, Error> {
    let mut fields = Fields::of_part("configureFailPoint.data", data)?;
    let code_before = read_code(&mut fields, "failBeforeCommitExceptionCode")?;
    let closes = fields.optional_boolean("closeConnection")?.unwrap_or(true);
    fields.finish()?;
    Ok(FailWrite { code_before, closes })
}
