//! JSON-RPC 2.0, one message a line, as documents: so `{"$oid": ...}` in an argument is an id.

use frond_doc::extended_json::{self, Form};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

/// A request, or a notification: that has no id.
pub struct Request(DocumentBuf);

/// The reason why a line is no request.
pub enum InvalidMessage {
    /// It is no JSON.
    Json(String),
    /// It is JSON of something else.
    Request,
}

impl Request {
    /// Reads a message.
    ///
    /// # Errors
    /// See [`InvalidMessage`].
    pub fn read(text: &str) -> Result<Request, InvalidMessage> {
        let message =
            extended_json::parse(text).map_err(|error| InvalidMessage::Json(error.to_string()))?;
        let request = Request(message);
        let is_request = request.0.get("jsonrpc") == Some(Value::String("2.0"));
        match is_request && !request.method().is_empty() {
            true => Ok(request),
            false => Err(InvalidMessage::Request),
        }
    }

    /// Returns the id of the request, of any type; nothing if there must be no answer.
    pub fn id(&self) -> Option<Value<'_>> {
        self.0.get("id")
    }

    /// Returns the method that is called.
    pub fn method(&self) -> &str {
        self.0.get("method").and_then(|method| method.as_str()).unwrap_or("")
    }

    /// Returns the parameters.
    pub fn params(&self) -> Document<'_> {
        let params = self.0.get("params").and_then(|params| params.as_document());
        params.unwrap_or(Document::empty())
    }
}

/// The message of a result.
pub fn result(id: Value<'_>, result: &DocumentBuf) -> String {
    let mut message = begin(id);
    message.append("result", Value::Document(result.view()));
    text(message)
}

/// The message of an error.
pub fn error(id: Value<'_>, code: i32, why: &str) -> String {
    let mut message = begin(id);
    message.begin_document("error").append("code", Value::Int32(code));
    message.append("message", Value::String(why)).end();
    text(message)
}

fn begin(id: Value<'_>) -> DocumentBuilder {
    let mut message = DocumentBuilder::new();
    message.append("jsonrpc", Value::String("2.0")).append("id", id);
    message
}

fn text(message: DocumentBuilder) -> String {
    let mut text = String::new();
    extended_json::write(message.build().view(), Form::Relaxed, &mut text);
    text
}
