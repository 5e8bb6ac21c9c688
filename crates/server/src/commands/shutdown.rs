//! `shutdown`: the server stops as it does on SIGTERM.

use std::time::Duration;

use frond_db::Error;
use frond_doc::DocumentBuilder;
use frond_query::Code;

use crate::limits::{SHUTDOWN_DEFAULT, SHUTDOWN_MAX};
use crate::request::{Answer, Request};

/// Lets what runs go on for `timeoutSecs`; `force` ends it at once. The answer comes before the
/// server stops.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let is_forced = fields.boolean("force")?;
    let seconds = fields.count("timeoutSecs")?;
    fields.finish()?;
    let time_max = match (is_forced, seconds) {
        (true, _) => Duration::ZERO,
        (false, Some(seconds)) => Duration::from_secs(seconds).min(SHUTDOWN_MAX),
        (false, None) => SHUTDOWN_DEFAULT,
    };
    match request.server.drain.ask(time_max) {
        true => Ok(DocumentBuilder::new()),
        false => {
            let message = "there is no server to shut down: the data directory was opened directly";
            Err(Error::invalid(Code::IllegalOperation, message))
        }
    }
}
