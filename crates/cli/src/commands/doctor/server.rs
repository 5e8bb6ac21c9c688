//! `frond doctor --uri`: how a running server is, by what `serverStatus` tells of it.

use frond_db::ClockState;
use frond_doc::{Document, Value};

use super::Report;
use super::price::Plan;
use crate::failure::Failure;
use crate::output::counted;

impl Report<'_> {
    /// Tells how a server is, by its `serverStatus`.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn server(&mut self, status: Document<'_>, plan: &Plan) -> Result<(), Failure> {
        let part = |parent: Document<'_>, name: &str| {
            parent
                .get(name)
                .and_then(|part| part.as_document())
                .unwrap_or(Document::empty())
                .to_buf()
        };
        let frond = part(status, "frond");
        let text = |document: Document<'_>, name: &str| {
            document.get(name).and_then(|value| value.as_str()).unwrap_or("").to_owned()
        };
        let number = |document: Document<'_>, name: &str| {
            document.get(name).and_then(|value| value.as_integer()).unwrap_or(0)
        };
        let seconds = number(status, "uptimeMillis") / 1_000;
        let connections = number(part(status, "connections").view(), "current");
        let connections = counted(u64::try_from(connections).unwrap_or(0), "connection");
        let version = text(frond.view(), "version");
        let host = text(status, "host");
        self.finding(
            "server",
            &format!("frond {version} on {host}, up {seconds} s, {connections}"),
        )?;
        let health = part(frond.view(), "health");
        let set = part(status, "repl");
        let name = text(set.view(), "setName");
        if health.get("ok") == Some(Value::Boolean(true)) {
            let what = match set.get("isWritablePrimary") {
                Some(Value::Boolean(false)) => format!("by the primary of set {name}, not by this"),
                _ => "taken".to_owned(),
            };
            self.finding("writes", &what)?;
        } else {
            let reason = text(health.view(), "reason");
            let advice = text(health.view(), "advice");
            let is_taken = text(health.view(), "state").starts_with("writable");
            let are = if is_taken { "taken as yet" } else { "refused" };
            self.problem("writes", &format!("{are}: {reason}"), &advice)?;
        }
        self.price(part(frond.view(), "store").view(), seconds, plan)?;
        let clock = part(frond.view(), "clock");
        let date = |name: &str| match clock.get(name) {
            Some(Value::DateTime(millis)) => Some(millis),
            _ => None,
        };
        if let (Some(clock_millis), Some(believed_millis)) = (date("clock"), date("believed")) {
            let is_doubted = clock.get("doubted") == Some(Value::Boolean(true));
            self.clock(&ClockState { clock_millis, believed_millis, is_doubted })?;
        }
        let engine = part(frond.view(), "engine");
        let failures = number(engine.view(), "backgroundFailures");
        if failures > 0 {
            let last = part(engine.view(), "lastBackgroundFailure");
            let (work, message) = (text(last.view(), "work"), text(last.view(), "message"));
            self.finding(
                "background",
                &format!("{failures} failures, the last of a {work}: {message}"),
            )?;
            self.advice(
                "what failed is tried again; if it goes on, frond doctor --data tells more",
            )?;
        }
        Ok(())
    }
}
