//! The failures of commands, their messages, and the exit code.
//!
//! Messages are lower case and say what to do next where we know it.

use std::ffi::OsString;
use std::fmt;
use std::io;

use frond_db::date::WrittenDate;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::notice::{print, print_json};

/// The code of a full disk, and what to do then.
const OUT_OF_DISK_SPACE: i64 = 14031;
const FULL: &str = ": what was acknowledged is kept; free some space and run the command again";

/// The code where there is no such database, branch or version.
pub const NAMESPACE_NOT_FOUND: i64 = 26;
/// The code of most commands for a version that isn't there, and how their messages begin.
const BAD_VALUE: i64 = 2;
const NO_VERSION: &str = "no branch or revision ";
const AS_DOCUMENT: &str = "; documents stand behind --, as in  frond log shop -- items/17; frond \
                           branch DATABASE lists branches";
const AS_DATE: &str = "; where a branch was by a date is main@{yesterday}, main@{2026-11-20}";
/// What such an error names, and where to look for those there are.
const LISTED: &[(&str, &str)] = &[
    (NO_VERSION, "; frond branch DATABASE lists the branches, frond tag DATABASE the tags"),
    ("no tag ", "; frond tag DATABASE lists the tags"),
    ("no branch ", "; frond branch DATABASE lists the branches"),
    ("no remote ", ""),
    ("versioned collection ", "; frond ls DATABASE lists the collections"),
    ("no collection ", "; frond ls DATABASE lists the collections"),
    (
        "doesn't exist yet",
        "; frond ls lists databases, frond reflog DATABASE --dropped those that were dropped",
    ),
    ("", "; frond ls lists databases, frond branch DATABASE branches"),
];

/// The code of a name that no database can have, and what such a name was meant for.
const INVALID_NAMESPACE: i64 = 73;
const APART: &str = "; a collection is named apart from its database: frond diff shop -c items, \
                     frond blame shop items/1";

/// The code of a conflict that isn't there.
const NO_SUCH_KEY: i64 = 4;
const CONFLICTS: &str = "; frond conflicts DATABASE lists them, each with its id";

/// The code of what there is already.
const NAMESPACE_EXISTS: i64 = 48;
/// What can be done where a name is taken, by the beginning of the message.
const TAKEN: &[(&str, &str)] = &[
    ("tag ", "; --force moves it"),
    ("branch ", "; frond branch DATABASE lists the branches, --move renames one"),
];

/// The code where a server wants a user, and how to name one.
const UNAUTHORIZED: i64 = 13;
const LOGIN: &str = "; a user is named by --uri mongodb://USER@HOST:PORT/ and FROND_PASSWORD";
const RIGHTS: &str = "; db.runCommand({connectionStatus: 1, showPrivileges: true}) in frond shell lists what \
                      this user may do";

/// What to add to an error of closing a data directory: what a full disk doesn't take away.
pub fn full_disk_advice(error: &frond_db::Error) -> &'static str {
    if i64::from(error.code.number()) == OUT_OF_DISK_SPACE {
        "; what was acknowledged is safe in the log: make room, and the next start will have it"
    } else {
        ""
    }
}

/// The reason why a command ended before its end.
#[derive(Debug)]
pub enum Failure {
    /// The arguments don't fit together: exit code 2, like clap's own.
    Usage(String),
    /// The database refused a command.
    Refused {
        /// MongoDB's code.
        code: i64,
        /// The error's message.
        message: String,
        /// The whole answer.
        answer: DocumentBuf,
    },
    /// A server can't be reached, or not any more: a whole message.
    Lost(String),
    /// Anything else: a whole message.
    Failed(String),
    /// It was done, and something was found that the user must hear of: exit code 3.
    Warned(String),
    /// All was printed already; only the exit code is left.
    Reported,
    /// The reader of our output stopped reading (`| head`): no error.
    ReaderGone,
}

impl From<frond_db::Error> for Failure {
    fn from(error: frond_db::Error) -> Failure {
        let answer = error.details.unwrap_or_else(DocumentBuf::empty);
        Failure::Refused { code: error.code.number().into(), message: error.message, answer }
    }
}

impl Failure {
    /// A failure with a whole message.
    pub fn failed(message: impl Into<String>) -> Failure {
        Failure::Failed(message.into())
    }

    /// A failure around a file.
    pub fn file(name: &str, error: &io::Error) -> Failure {
        Failure::Failed(format!("{name}: {}", describe(error)))
    }

    /// 2 for usage, 3 for what was done and yet is to be reported, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Warned(_) => 3,
            _ => 1,
        }
    }

    /// Prints it on standard error.
    pub fn print(&self, form: ErrorForm) {
        match (self, form) {
            (Failure::Reported, _) => {}
            (_, ErrorForm::Text) => print(format_args!("frond: {}", self.text())),
            (_, ErrorForm::Json) => print_json(&self.document()),
        }
    }

    /// The message, without the numbers that the operating system gives its reasons.
    fn text(&self) -> String {
        let message = self.to_string();
        let mut parts = message.split(" (os error ");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once(')').map_or("", |(_, rest)| rest))
    }

    /// The message and the exit code; of what the database refused, also MongoDB's code.
    fn document(&self) -> DocumentBuf {
        let mut document = DocumentBuilder::new();
        document.append("errmsg", Value::String(&self.text()));
        if let Failure::Refused { code, answer, .. } = self {
            document.append("code", i32::try_from(*code).map_or(Value::Int64(*code), Value::Int32));
            if let Some(name) = answer.get("codeName") {
                document.append("codeName", name);
            }
        }
        document.append("exitCode", Value::Int32(self.exit_code().into()));
        document.build()
    }
}

/// The form in which an error is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorForm {
    /// A line for people.
    Text,
    /// A line of JSON, last on standard error: what stands before it is progress and notices.
    Json,
}

impl ErrorForm {
    /// The form that a command line asks for: wrong arguments are reported in it, too, so that it
    /// is read before they are understood. What stands behind `--` is another program's.
    pub fn of(arguments: impl Iterator<Item = OsString>) -> ErrorForm {
        let mut own = arguments.skip(1).take_while(|word| word != "--");
        if own.any(|word| word == "--json") { ErrorForm::Json } else { ErrorForm::Text }
    }
}

/// Returns the text of an input or output error, without the operating system's number.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}

/// The command that lists what there is of the kind that an error names; or how a date is written.
fn where_to_look(message: &str) -> &'static str {
    let version = message.strip_prefix(NO_VERSION).and_then(|rest| rest.rsplit_once(" in "));
    if version.is_some_and(|(version, _)| WrittenDate::read(version, 0).is_some()) {
        return AS_DATE;
    }
    let found = LISTED.iter().find(|(named, _)| message.contains(named));
    found.map_or("", |(_, hint)| hint)
}

/// Whether what isn't a version looks like a document: `items/17`.
fn names_a_document(message: &str) -> bool {
    let version = message.strip_prefix(NO_VERSION).and_then(|rest| rest.rsplit_once(" in "));
    version.is_some_and(|(version, _)| version.contains('/'))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message)
            | Failure::Lost(message)
            | Failure::Failed(message)
            | Failure::Warned(message) => f.write_str(message),
            Failure::Refused { code, message, .. } => {
                f.write_str(message)?;
                f.write_str(match *code {
                    OUT_OF_DISK_SPACE => FULL,
                    NAMESPACE_NOT_FOUND => where_to_look(message),
                    BAD_VALUE if names_a_document(message) => AS_DOCUMENT,
                    BAD_VALUE if message.starts_with(NO_VERSION) => where_to_look(message),
                    NAMESPACE_EXISTS => {
                        let taken = TAKEN.iter().find(|(named, _)| message.starts_with(named));
                        taken.map_or("", |(_, advice)| advice)
                    }
                    NO_SUCH_KEY if message.starts_with("no conflict ") => CONFLICTS,
                    INVALID_NAMESPACE if message.ends_with("' is not allowed") => APART,
                    UNAUTHORIZED if message.starts_with("not authorized") => RIGHTS,
                    UNAUTHORIZED if message.contains("requires authentication") => LOGIN,
                    _ => "",
                })
            }
            Failure::Reported => f.write_str("failed"),
            Failure::ReaderGone => f.write_str("the output is closed"),
        }
    }
}

impl From<io::Error> for Failure {
    /// Converts the error of writing to standard output; files are named with [`Failure::file`].
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ => Failure::Failed(format!("output: {}", describe(&error))),
        }
    }
}
