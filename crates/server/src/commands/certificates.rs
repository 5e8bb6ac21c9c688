//! `rotateCertificates`: reads the files of certificates again.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::log::{Component, Event, Severity};
use crate::request::{Answer, Request};
use crate::sweep;

/// MongoDB's `InvalidSSLConfiguration`.
const TLS_INVALID: Code = Code::Location(140);

/// Serves connections from now on with what the files hold; those that are there stay as they are.
pub fn rotate(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let message = fields.string("message")?;
    fields.finish()?;
    let Some(tls) = &request.server.tls else {
        let message = "there are no certificates: the server was started without TLS";
        return Err(Error::invalid(Code::IllegalOperation, message));
    };
    tls.rotate().map_err(|error| Error::invalid(TLS_INVALID, error.to_string()))?;
    let context = format!("conn{}", request.peer.id);
    let event = Event {
        severity: Severity::Info,
        component: Component::Network,
        id: 0,
        context: &context,
        message: "the certificates were reread",
    };
    request.server.log.write(&event, |attributes| {
        if let Some(message) = message {
            attributes.append("message", Value::String(message));
        }
    });
    sweep::warn_of_certificate(request.server);
    Ok(DocumentBuilder::new())
}
