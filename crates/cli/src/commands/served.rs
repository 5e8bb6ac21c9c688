//! `frond remote`, `clone`, `fetch`, `pull` and `push` where a server has the data directory: it
//! does the work, by its own commands.
//!
//! 1. A server opens no directory that a client names, and trusts what it was told to trust: such
//!    a place, and `--ca-file`, are refused, with what to do instead.
//! 2. The token goes with the command, for this one transfer.
//! 3. An answer is made into the document that the command makes of its own work: so both are
//!    printed alike.

use std::path::Path;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value};

use crate::arguments::Target;
use crate::backend::Backend;
use crate::commands::transfer::Connection;
use crate::failure::Failure;
use crate::output::{array_of, documents_of, text_of};

/// The server that has a data directory.
pub struct Served {
    backend: Box<dyn Backend>,
}

impl Served {
    /// The server that runs on `data`, if one does and takes commands without a login.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it doesn't answer as a server of Frond.
    pub fn on(data: &Path) -> Result<Option<Served>, Failure> {
        let target = Target { data: data.to_owned(), uri: None };
        let connected = target.connected()?;
        Ok(connected.map(|server| Served { backend: Box::new(server) }))
    }

    /// Runs a command that moves nothing.
    ///
    /// # Errors
    /// [`Failure::Refused`] with the server's answer; [`Failure::Lost`] if it is gone.
    pub fn execute(
        &mut self,
        database: &str,
        command: &DocumentBuf,
    ) -> Result<DocumentBuf, Failure> {
        self.backend.execute(database, command)
    }

    /// Runs a command that talks to another place, with the token for it.
    ///
    /// # Errors
    /// As [`Served::execute`]; [`Failure::Usage`] for certificates that only this process knows.
    pub fn transfer(
        &mut self,
        database: &str,
        mut command: DocumentBuilder,
        connection: &Connection,
    ) -> Result<DocumentBuf, Failure> {
        let options = connection.options()?;
        if options.authorities.is_some() {
            return Err(Failure::Usage(
                "--ca-file: a server runs on the data directory and does this itself: it trusts \
                 what its own --place-ca-file names"
                    .to_owned(),
            ));
        }
        if let Some(token) = &options.token {
            command.append("token", Value::String(token));
        }
        self.execute(database, &command.build())
    }

    /// The server itself, for what prints the answers of commands.
    pub fn into_backend(self) -> Box<dyn Backend> {
        self.backend
    }
}

/// Appends an answer's `moved`, beside its other fields.
fn append_moved(report: &mut DocumentBuilder, answer: Document<'_>) {
    let moved = answer.get("moved").and_then(|moved| moved.as_document());
    for (name, count) in moved.iter().flat_map(|moved| moved.iter()) {
        report.append(name, count);
    }
}

fn append_array(report: &mut DocumentBuilder, name: &str, array: Array<'_>) {
    report.begin_array(name);
    for value in array.iter() {
        report.push(value);
    }
    report.end();
}

/// The report of a fetch that a server made.
pub fn fetched(answer: Document<'_>) -> DocumentBuilder {
    let mut report = DocumentBuilder::new();
    report.begin_array("branches");
    for branch in documents_of(answer, "branches") {
        report.push_begin_document().append("branch", Value::String(text_of(branch, "name")));
        if let Some(from) = branch.get("from") {
            report.append("from", from);
        }
        report.append("to", Value::String(text_of(branch, "commitId"))).end();
    }
    report.end();
    for name in ["tags", "tagsKept"] {
        append_array(&mut report, name, array_of(answer, name));
    }
    append_moved(&mut report, answer);
    report
}

/// The report of a pull that a server made.
pub fn pulled(answer: Document<'_>) -> DocumentBuf {
    let mut report = fetched(answer);
    for name in ["result", "commitId"] {
        if let Some(value) = answer.get(name) {
            report.append(name, value);
        }
    }
    if answer.get("conflicts").is_some() {
        append_array(&mut report, "conflicts", array_of(answer, "conflicts"));
    }
    report.build()
}

/// The report of a push that a server made.
pub fn pushed(answer: Document<'_>) -> DocumentBuf {
    let mut report = DocumentBuilder::new();
    report.append("branch", Value::String(text_of(answer, "branch")));
    if let Some(from) = answer.get("from") {
        report.append("from", from);
    }
    report.append("to", Value::String(text_of(answer, "commitId")));
    append_array(&mut report, "tags", array_of(answer, "tags"));
    append_moved(&mut report, answer);
    report.append("mended", answer.get("mended").unwrap_or(Value::Int64(0)));
    report.build()
}
