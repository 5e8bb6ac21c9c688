//! Something that was done, and its fields in the profiler and the log.

use std::time::Duration;

use frond_db::Error;
use frond_db::request_profile::{Plan, StatementOutcome};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::examined::Examined;

use super::execution;
use crate::authorization;
use crate::commands::latches;
use crate::log::{SlowOperation, append_failure, shortened};
use crate::operations::{Operation, kind_of};
use crate::request::{Answer, split_namespace};
use crate::shared::Shared;

/// A command, or a statement of one.
pub(super) struct ProfiledOperation<'a> {
    pub operation: &'a Operation,
    /// The name of the command, or of the one that would do what the statement does.
    pub name: &'static str,
    /// Whether it is a statement of a write.
    pub is_statement: bool,
    /// As it was sent.
    pub command: DocumentBuf,
    pub namespace: String,
    pub time: Duration,
    pub plan: &'a Plan,
    pub examined: Examined,
    pub counts: Counts,
    pub error: Option<&'a Error>,
    /// The number of bytes the answer has, if there is one.
    pub answer_bytes: Option<usize>,
}

/// The number of documents something was about.
#[derive(Default)]
pub(super) struct Counts {
    cursor_id: Option<i64>,
    matched: Option<i64>,
    modified: Option<i64>,
    inserted: Option<i64>,
    deleted: Option<i64>,
    upserted: Option<i64>,
    is_exhausted: bool,
    returned: Option<i64>,
    /// The number of documents that a `count` has, or of values that a `distinct` has.
    counted: Option<i64>,
}

impl Counts {
    /// As a command's answer has it.
    pub fn of_answer(command: &str, done: &Answer) -> Counts {
        let Ok(answer) = done else { return Counts::default() };
        let answer = answer.clone().build();
        let count = |name: &str| answer.get(name).and_then(|value| value.as_integer());
        match command {
            "insert" => Counts { inserted: count("n"), ..Counts::default() },
            "delete" => Counts { deleted: count("n"), ..Counts::default() },
            "count" => Counts { counted: count("n"), ..Counts::default() },
            "distinct" => {
                let values = answer.get("values").and_then(|values| values.as_array());
                let counted = values.map(|values| values.iter().count() as i64);
                Counts { counted, ..Counts::default() }
            }
            "update" => {
                let upserted = answer.get("upserted").and_then(|upserted| upserted.as_array());
                let upserted = upserted.map_or(0, |upserted| upserted.iter().count() as i64);
                Counts {
                    matched: count("n").map(|matched| matched - upserted),
                    modified: count("nModified"),
                    upserted: Some(upserted),
                    ..Counts::default()
                }
            }
            _ => Counts::of_batch(answer.view()),
        }
    }

    fn of_batch(answer: Document<'_>) -> Counts {
        let Some(cursor) = answer.get("cursor").and_then(|cursor| cursor.as_document()) else {
            return Counts::default();
        };
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
        let batch = batch.and_then(|batch| batch.as_array());
        let id = cursor.get("id").and_then(|id| id.as_integer());
        Counts {
            returned: batch.map(|batch| batch.iter().count() as i64),
            cursor_id: id.filter(|id| *id != 0),
            is_exhausted: id == Some(0),
            ..Counts::default()
        }
    }

    /// Returns how many documents or values a whole answer has.
    pub fn found(&self) -> Option<u64> {
        let found = self.returned.filter(|_| self.is_exhausted).or(self.counted)?;
        u64::try_from(found).ok()
    }

    /// As a statement of a write has it.
    pub fn of_statement(command: &str, outcome: &Result<StatementOutcome, Error>) -> Counts {
        let outcome = outcome.as_ref().copied().unwrap_or_default();
        let number = |count: u64| i64::try_from(count).ok();
        match command {
            "insert" => Counts { inserted: number(outcome.count), ..Counts::default() },
            "delete" => Counts { deleted: number(outcome.count), ..Counts::default() },
            _ => Counts {
                matched: number(outcome.count),
                modified: number(outcome.modified),
                upserted: Some(i64::from(outcome.has_upserted)),
                ..Counts::default()
            },
        }
    }
}

impl ProfiledOperation<'_> {
    /// The database whose profiler is asked about it.
    pub fn database(&self) -> &str {
        match split_namespace(&self.namespace) {
            Ok((database, _)) if self.name != self.operation.command => database,
            _ => &self.operation.database,
        }
    }

    /// Returns the profiler's document about it.
    pub fn entry(&self, server: &Shared, hashes: Option<&[String; 2]>) -> DocumentBuf {
        let (operation, peer) = (self.operation, &self.operation.peer);
        let mut entry = DocumentBuilder::new();
        let command = authorization::without_secrets(self.command.view());
        entry
            .append("op", Value::String(kind_of(self.name)))
            .append("ns", Value::String(&self.namespace))
            .append("command", Value::from(&shortened(command.view())));
        if let Some(origin) = operation.origin() {
            let command = authorization::without_secrets(origin.command.view());
            entry.append("originatingCommand", Value::from(&shortened(command.view())));
        }
        self.append_facts(&mut entry, "numYield", hashes);
        if let Some(error) = self.error {
            append_failure(&mut entry, error);
        }
        let millis = i32::try_from(self.time.as_millis()).unwrap_or(i32::MAX);
        if let Some(bytes) = self.answer_bytes {
            let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
            entry.append("responseLength", Value::Int32(bytes));
        }
        if !self.is_statement {
            entry.append("protocol", Value::String("op_msg"));
        }
        entry.append("millis", Value::Int32(millis));
        if let Some(plan) = self.plan.summary() {
            entry.append("planSummary", Value::String(&plan));
        }
        if let Some(stages) = execution::stages(server, self) {
            entry.append("execStats", Value::from(&stages));
        }
        entry
            .append("ts", Value::DateTime(server.frond.engine().now_millis()))
            .append("client", Value::String(&peer.address.ip().to_string()));
        if let Some(name) = peer.app_name() {
            entry.append("appName", Value::String(&name));
        }
        let login = peer.login();
        entry.begin_array("allUsers");
        if let Some(login) = &login {
            entry
                .push_begin_document()
                .append("user", Value::String(&login.user.user))
                .append("db", Value::String(&login.user.database))
                .end();
        }
        let user = login.map_or_else(String::new, |login| login.user.to_string());
        entry.end().append("user", Value::String(&user));
        entry.build()
    }

    /// Logs it.
    pub fn log(&self, server: &Shared, hashes: Option<&[String; 2]>) {
        let (operation, peer) = (self.operation, &self.operation.peer);
        let mut facts = DocumentBuilder::new();
        self.append_facts(&mut facts, "numYields", hashes);
        let command = authorization::without_secrets(self.command.view());
        let origin = operation.origin();
        let origin = origin.map(|origin| authorization::without_secrets(origin.command.view()));
        server.log.write_slow(&SlowOperation {
            connection: peer.id,
            client: &peer.address.to_string(),
            app_name: peer.app_name().as_deref(),
            kind: if self.is_statement { kind_of(self.name) } else { "command" },
            namespace: &self.namespace,
            command: command.view(),
            origin: origin.as_ref().map(DocumentBuf::view),
            plan: self.plan.summary().as_deref(),
            facts: facts.build().view(),
            error: self.error,
            answer_bytes: self.answer_bytes,
            time: self.time,
        });
    }

    /// Appends what it examined and changed; `yields` is the name of how often it let others go
    /// first, which nothing does here.
    fn append_facts(
        &self,
        entry: &mut DocumentBuilder,
        yields: &str,
        hashes: Option<&[String; 2]>,
    ) {
        let Counts { cursor_id, matched, modified, inserted, .. } = self.counts;
        let Counts { deleted, upserted, is_exhausted, returned, .. } = self.counts;
        let Examined { keys, documents, has_sorted, used_disk, .. } = self.examined;
        let written = |count: u64| i64::try_from(count).ok().filter(|count| 0 < *count);
        let has_searched = !matches!(self.plan, Plan::Unknown) || 0 < keys + documents;
        let examined = |count: u64| i64::try_from(count).ok().filter(|_| has_searched);
        append_count(entry, "cursorid", cursor_id);
        append_count(entry, "keysExamined", examined(keys));
        append_count(entry, "docsExamined", examined(documents));
        append_if(entry, "hasSortStage", has_sorted);
        append_if(entry, "usedDisk", used_disk);
        append_count(entry, "nMatched", matched);
        append_count(entry, "nModified", modified);
        append_count(entry, "ninserted", inserted);
        append_count(entry, "ndeleted", deleted);
        append_count(entry, "nUpserted", upserted);
        append_count(entry, "keysInserted", written(self.examined.keys_inserted));
        append_count(entry, "keysDeleted", written(self.examined.keys_deleted));
        append_if(entry, "cursorExhausted", is_exhausted);
        entry.append(yields, Value::Int32(0));
        append_count(entry, "nreturned", returned);
        if let Some([shape, key]) = hashes {
            entry
                .append("queryHash", Value::String(shape))
                .append("planCacheShapeHash", Value::String(shape))
                .append("planCacheKey", Value::String(key));
        }
        if has_searched {
            entry.append("queryFramework", Value::String("classic"));
        }
        latches::append(entry, self.examined.latches);
        // MongoDB has a field there for each thing that was read from the disk.
        entry.begin_document("storage").end();
    }
}

/// Appends a count as MongoDB does: an int where it fits.
fn append_count(entry: &mut DocumentBuilder, name: &str, count: Option<i64>) {
    let Some(count) = count else { return };
    entry.append(name, i32::try_from(count).map_or(Value::Int64(count), Value::Int32));
}

fn append_if(entry: &mut DocumentBuilder, name: &str, is_so: bool) {
    if is_so {
        entry.append(name, Value::Boolean(true));
    }
}
