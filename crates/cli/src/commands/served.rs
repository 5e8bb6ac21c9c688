//! `frond remote`, `clone`, `fetch`, `pull` and `push` where a server has the data directory, or is
//! named: it does the work, by its own commands.
//!
//! 1. A server opens no directory that a client names, and trusts what it was told to trust: such
//!    a place, and `--ca-file`, are refused, with what to do instead.
//! 2. The token goes with the command, for this one transfer.
//! 3. An answer is made into the document that the command makes of its own work: so both are
//!    printed alike.
//! 4. While the server works, a second connection asks it how far it is (`currentOp`), by the first
//!    one's number, and shows that as this process's own transfers are shown; only on a terminal.
//!    If that fails, nothing is shown: the transfer goes on.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use frond_doc::{Array, Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_vcs::remote::Moved;

use crate::arguments::Target;
use crate::backend::Backend;
use crate::commands::transfer::{Connection, Progress};
use crate::failure::Failure;
use crate::output::{array_of, count_of, documents_of, text_of};

/// The time between two questions how far a transfer is.
const INTERVAL: Duration = Duration::from_millis(200);

/// The server that has a data directory, or was named.
pub struct Served {
    backend: Box<dyn Backend>,
    target: Target,
}

impl Served {
    /// The server that is named, or runs on the data directory and takes commands without a login.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it doesn't answer as a server of Frond; [`Failure::Lost`] if the one
    /// that is named can't be reached.
    pub fn on(target: &Target) -> Result<Option<Served>, Failure> {
        let connected = target.connected()?;
        Ok(connected.map(|server| Served { backend: Box::new(server), target: target.clone() }))
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
                "--ca-file: the server does this itself: it trusts what its own --place-ca-file \
                 names"
                    .to_owned(),
            ));
        }
        if let Some(token) = &options.token {
            command.append("token", Value::String(token));
        }
        let (command, progress) = (command.build(), Progress::new());
        if progress.is_hidden() {
            return self.execute(database, &command);
        }
        let hello = self.execute("admin", &document! { "hello": 1_i32 })?;
        let connection = hello.get("connectionId").unwrap_or(Value::Null);
        let (end, ended) = mpsc::channel::<()>();
        let (target, shown) = (self.target.clone(), &progress);
        thread::scope(|scope| {
            let target = &target;
            scope.spawn(move || {
                if let Ok(Some(mut server)) = target.connected() {
                    watch(&mut server, connection, &ended, &mut |moved| shown.show(moved));
                }
            });
            let answer = self.backend.execute(database, &command);
            drop(end);
            answer
        })
    }

    /// The server itself, for what prints the answers of commands.
    pub fn into_backend(self) -> Box<dyn Backend> {
        self.backend
    }
}

/// Shows how far the server is with what it does for a connection, until the other end of `ended`
/// is dropped.
fn watch(
    server: &mut dyn Backend,
    connection: Value<'_>,
    ended: &Receiver<()>,
    show: &mut dyn FnMut(&Moved),
) {
    let ask = document! { "currentOp": 1_i32, "$ownOps": true, "connectionId": connection };
    while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let Ok(answer) = server.execute_with("admin", ask.view(), Vec::new()) else { return };
        for operation in documents_of(answer.view(), "inprog") {
            if let Some(moved) = operation.get("moved").and_then(|moved| moved.as_document()) {
                show(&moved_of(moved));
            }
        }
    }
}

/// What has moved, by the `moved` of an operation.
fn moved_of(operation: Document<'_>) -> Moved {
    let count = |name| count_of(operation, name);
    Moved {
        commits: count("commits"),
        commits_done: count("commitsDone"),
        chunks: count("chunks"),
        bytes: count("bytes"),
        known: count("chunksKnown"),
        found: count("chunksFound"),
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;

    use frond_server::wire::DocumentSequence;

    use super::*;

    /// Goes on for two answers, and ends before the third; one of them is of no transfer.
    struct Working {
        answers: usize,
        end: Option<Sender<()>>,
    }

    impl Backend for Working {
        fn execute_with(
            &mut self,
            database: &str,
            command: Document<'_>,
            _: Vec<DocumentSequence>,
        ) -> Result<DocumentBuf, Failure> {
            assert_eq!((database, count_of(command, "connectionId")), ("admin", 17));
            self.answers += 1;
            let mut answer = DocumentBuilder::new();
            answer.begin_array("inprog").push_begin_document();
            if self.answers == 2 {
                let moved = document! { "commits": 5_i64, "commitsDone": 4_i64, "chunks": 90_i64,
                "bytes": 8_191_i64, "chunksKnown": 3_i64, "chunksFound": 211_i64 };
                answer.append("moved", Value::Document(moved.view()));
            }
            if self.answers == 3 {
                self.end = None;
            }
            answer.end().end();
            Ok(answer.build())
        }

        fn close(self: Box<Self>) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_server_is_asked_how_far_it_is_until_it_answers() {
        let (end, ended) = mpsc::channel();
        let mut server = Working { answers: 0, end: Some(end) };
        let mut seen = Vec::new();
        watch(&mut server, Value::Int32(17), &ended, &mut |moved| seen.push(*moved));
        let expected =
            Moved { commits: 5, commits_done: 4, chunks: 90, bytes: 8_191, known: 3, found: 211 };
        assert_eq!((server.answers, seen), (3, vec![expected]));
    }
}
