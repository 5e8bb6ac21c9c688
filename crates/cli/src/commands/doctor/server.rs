//! `frond doctor --uri`: the state of a running server, as its `serverStatus` reports it.

use frond_db::ClockState;
use frond_doc::{Document, DocumentBuf, Value};

use super::Report;
use super::price::Plan;
use crate::failure::Failure;
use crate::output::{bytes, count_of, counted, text_of};

impl Report<'_> {
    /// Reports the state of a server, by its `serverStatus`.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn server(&mut self, status: Document<'_>, plan: &Plan) -> Result<(), Failure> {
        let frond = part(status, "frond");
        let seconds = count_of(status, "uptimeMillis") / 1_000;
        let connections = count_of(part(status, "connections").view(), "current");
        let connections = counted(connections, "connection");
        let version = text_of(frond.view(), "version");
        let host = text_of(status, "host");
        self.finding(
            "server",
            &format!("frond {version} on {host}, up {seconds} s, {connections}"),
        )?;
        self.writes(part(frond.view(), "health").view(), part(status, "repl").view())?;
        self.stored(part(frond.view(), "store").view(), part(frond.view(), "disk").view())?;
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
        self.background(part(frond.view(), "engine").view())
    }

    /// Reports whether writes are taken.
    fn writes(&mut self, health: Document<'_>, set: Document<'_>) -> Result<(), Failure> {
        if health.get("ok") == Some(Value::Boolean(true)) {
            let name = text_of(set, "setName");
            let what = match set.get("isWritablePrimary") {
                Some(Value::Boolean(false)) => format!(
                    "by the primary of set {name}, not by \
                                                        this member"
                ),
                _ => "taken".to_owned(),
            };
            return self.finding("writes", &what);
        }
        let (reason, advice) = (text_of(health, "reason"), text_of(health, "advice"));
        let is_taken = text_of(health, "state").starts_with("writable");
        let are = if is_taken { "taken as yet" } else { "refused" };
        self.problem("writes", &format!("{are}: {reason}"), advice)
    }

    /// Reports what is known to be damaged, and whether the disk is as full as it may be.
    fn stored(&mut self, store: Document<'_>, disk: Document<'_>) -> Result<(), Failure> {
        let damages = count_of(store, "damagesNow");
        if damages > 0 {
            let what = format!("{} known to be damaged", counted(damages, "place"));
            let advice = "its log names them; frond fsck lists what is lost, once it has stopped";
            self.problem("damage", &what, advice)?;
        }
        if disk.get("refusesGrowth") == Some(Value::Boolean(true)) {
            let (free, reserve) = (count_of(disk, "bytesFree"), count_of(disk, "bytesReserve"));
            let what = format!("{} free, {} held back", bytes(free), bytes(reserve));
            self.problem("room", &what, "only deletes, drops and frond gc work: free some space")?;
        }
        Ok(())
    }

    /// Reports what failed of the work behind writes.
    fn background(&mut self, engine: Document<'_>) -> Result<(), Failure> {
        let failures = count_of(engine, "backgroundFailures");
        if failures == 0 {
            return Ok(());
        }
        let last = part(engine, "lastBackgroundFailure");
        let (work, message) = (text_of(last.view(), "work"), text_of(last.view(), "message"));
        let what = format!("{failures} failures, the last of a {work}: {message}");
        self.finding("background", &what)?;
        self.advice("what failed is retried; if it keeps failing, frond doctor --data reports more")
    }
}

fn part(parent: Document<'_>, name: &str) -> DocumentBuf {
    let part = parent.get(name).and_then(|part| part.as_document());
    part.unwrap_or(Document::empty()).to_buf()
}
