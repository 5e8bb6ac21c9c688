//! Lines about operations that took long. A long command is cut off, and only the name is given of
//! one that holds credentials.

use std::time::Duration;

use frond_db::Error;
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};

use super::{Component, Event, Log, Severity};

/// A slow operation's command is logged up to so many bytes.
const COMMAND_BYTES_MAX: usize = 4 << 10;

/// Commands that hold credentials.
const SECRET: &[&str] = &["saslStart", "saslContinue", "authenticate", "createUser", "updateUser"];

/// An operation that took long.
pub struct SlowOperation<'a> {
    /// The connection on which it came.
    pub connection: i32,
    /// The client's address.
    pub client: &'a str,
    /// The name that the client's application gives itself.
    pub app_name: Option<&'a str>,
    /// `command`, or which sort of statement it is.
    pub kind: &'a str,
    /// The namespace of the operation.
    pub namespace: &'a str,
    /// The command, as it was sent.
    pub command: Document<'a>,
    /// The command whose cursor it reads on.
    pub origin: Option<Document<'a>>,
    /// The plan by which it found documents.
    pub plan: Option<&'a str>,
    /// The counts of what it examined and changed.
    pub facts: Document<'a>,
    /// The reason why it failed, if it did.
    pub error: Option<&'a Error>,
    /// The number of bytes its answer has.
    pub answer_bytes: Option<usize>,
    /// The time that it took.
    pub time: Duration,
}

impl Log {
    /// Writes that an operation was slow.
    pub fn write_slow(&self, operation: &SlowOperation<'_>) {
        let context = format!("conn{}", operation.connection);
        let event = Event {
            severity: Severity::Info,
            component: Component::Command,
            id: 51803,
            context: &context,
            message: "Slow query",
        };
        self.write(&event, |attributes| operation.append_to(attributes));
    }
}

impl SlowOperation<'_> {
    fn append_to(&self, attributes: &mut DocumentBuilder) {
        attributes
            .append("type", Value::String(self.kind))
            .append("ns", Value::String(self.namespace));
        if let Some(name) = self.app_name {
            attributes.append("appName", Value::String(name));
        }
        attributes.append("command", Value::from(&shortened(self.command)));
        if let Some(origin) = self.origin {
            attributes.append("originatingCommand", Value::from(&shortened(origin)));
        }
        if let Some(plan) = self.plan {
            attributes.append("planSummary", Value::String(plan));
        }
        for (name, value) in self.facts.iter() {
            attributes.append(name, value);
        }
        if let Some(error) = self.error {
            append_failure(attributes, error);
        }
        if let Some(bytes) = self.answer_bytes {
            attributes.append("reslen", Value::Int32(i32::try_from(bytes).unwrap_or(i32::MAX)));
        }
        attributes.append("remote", Value::String(self.client));
        if self.kind == "command" {
            attributes.append("protocol", Value::String("op_msg"));
        }
        let millis = i64::try_from(self.time.as_millis()).unwrap_or(i64::MAX);
        attributes.append("durationMillis", Value::Int64(millis));
    }
}

/// Appends that an operation failed, and why.
pub fn append_failure(entry: &mut DocumentBuilder, error: &Error) {
    entry
        .append("ok", Value::Int32(0))
        .append("errMsg", Value::String(&error.message))
        .append("errName", Value::String(&error.code.name()))
        .append("errCode", Value::Int32(error.code.number()));
}

/// A command without what is long, and without credentials.
pub fn shortened(command: Document<'_>) -> DocumentBuf {
    let mut short = DocumentBuilder::new();
    let mut left = COMMAND_BYTES_MAX;
    let name = command.iter().next().map_or("", |(name, _)| name);
    for (position, (field, value)) in command.iter().enumerate() {
        if SECRET.contains(&name) && 0 < position || field == "$clusterTime" {
            continue;
        }
        let mut alone = DocumentBuilder::new();
        alone.append(field, value);
        let bytes = alone.bytes();
        match left.checked_sub(bytes) {
            Some(rest) => {
                left = rest;
                short.append(field, value);
            }
            None => drop(short.append(field, Value::String(&format!("{bytes} bytes")))),
        }
    }
    short.build()
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    #[test]
    fn a_slow_command_is_shortened_and_shows_no_password() {
        let long = "x".repeat(COMMAND_BYTES_MAX);
        let command = document! { "find": "things", "filter": long.as_str(), "limit": 1 };
        let short = shortened(command.view());
        assert!(short.get("filter").and_then(|it| it.as_str()).expect("a text").ends_with("bytes"));
        assert_eq!(short.get("limit"), Some(Value::Int32(1)));
        let secret = document! { "createUser": "ada", "pwd": "lovelace" };
        assert_eq!(shortened(secret.view()), document! { "createUser": "ada" });
    }
}
