//! `frond mcp`: a server of the Model Context Protocol on standard input and output, for an agent
//! that works on one branch.
//!
//! 1. Messages are JSON-RPC, one a line ([`message`]).
//! 2. The branch is given when it starts. No tool takes the name of another one to write to, nor a
//!    command: what writes has its collection from the agent, and its database from here
//!    ([`tools`]).
//! 3. A proposal is committed, and a merge of it is tried without being made. A person merges.
//!
//! Its argument list is a limit only for the agent's calls. A server's roles say what else the
//! agent may do.

mod message;
mod tools;

use std::io::{self, BufRead, Read, Write};

use frond_db::name::{DatabaseName, VersionName};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};

use crate::arguments::Target;
use crate::backend::Backend;
use crate::commands::mcp::message::{Request, error, result};
use crate::commands::mcp::tools::Bound;
use crate::failure::Failure;
use crate::output::{documents_of, text_of};
use crate::terminal::Terminal;

const EXAMPLES: &str = "\
Examples:
  frond mcp shop@agent/prices                       on ./frond-data; makes the branch from main
  frond mcp shop@agent/prices --uri mongodb://agent:secret@127.0.0.1:27017/shop
  frond mcp shop --read-only                        nothing can be written

In an agent's settings, for example:
  {\"mcpServers\": {\"shop\": {\"command\": \"frond\", \"args\": [\"mcp\", \"shop@agent/prices\"]}}}

The agent reads all versions of the database and writes to that branch alone. A person merges what it \
proposes: frond diff shop main...agent/prices, frond merge shop agent/prices, or the console.";

/// Versions of the protocol; the first is answered to a client that asks for none of them.
const VERSIONS: &[&str] = &["2025-06-18", "2025-03-26", "2024-11-05"];
/// The longest message that is read.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// Serve one branch to an agent by the Model Context Protocol
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Mcp {
    /// DATABASE@BRANCH that is read and written; with --read-only DATABASE will do
    database: String,

    /// Offer no tool that writes
    #[arg(long)]
    read_only: bool,

    /// Author of the commits
    #[arg(long, value_name = "AUTHOR", default_value = "agent")]
    author: String,

    /// How long a tool call may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    max_time: u32,

    #[command(flatten)]
    target: Target,
}

impl Mcp {
    /// Serves until standard input ends.
    ///
    /// # Errors
    /// [`Failure::Usage`] if no branch is named; as [`Target::open`].
    pub fn run(&self, terminal: &mut Terminal) -> Result<(), Failure> {
        let DatabaseName { name, version } = DatabaseName::parse(&self.database)
            .map_err(|error| Failure::Usage(error.message.to_string()))?;
        let (name, branch) = match &version {
            VersionName::Named(branch) => (name.as_str(), Some(branch.as_str())),
            VersionName::Default if self.read_only => (name.as_str(), None),
            VersionName::Default => {
                return Err(Failure::Usage(
                    "name the branch to work on, DATABASE@BRANCH, or use --read-only".to_owned(),
                ));
            }
        };
        let mut backend = self.target.open()?;
        let default = default_branch(&mut *backend, name, branch, self.read_only)?;
        if !self.read_only && branch == Some(&default) {
            return Err(Failure::Usage(format!(
                "{default} is what branches are merged into: name another one, {name}@agent/TASK"
            )));
        }
        let bound = Bound {
            name: name.to_owned(),
            branch: branch.unwrap_or(&default).to_owned(),
            default,
            author: self.author.clone(),
            is_read_only: self.read_only,
            seconds_max: self.max_time,
        };
        let mut input = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut input).take(MESSAGE_BYTES_MAX as u64).read_until(b'\n', &mut line);
            if read.map_err(|error| Failure::file("standard input", &error))? == 0 {
                return backend.close();
            }
            let mut talk = Talk { bound: &bound, backend: &mut *backend, is_lost: false };
            if let Some(answer) = talk.answer(&line) {
                writeln!(terminal, "{answer}")?;
                terminal.flush()?;
            }
            // The next call finds the server again; what was lost may have been done.
            if talk.is_lost
                && backend.embedded().is_none()
                && let Ok(anew) = self.target.open_by_server()
            {
                backend = anew;
            }
        }
    }
}

/// One message and its answer.
struct Talk<'a> {
    bound: &'a Bound,
    backend: &'a mut dyn Backend,
    /// The server is gone.
    is_lost: bool,
}

/// The branch that others are merged into; makes `branch` from it if it isn't there.
fn default_branch(
    backend: &mut dyn Backend,
    name: &str,
    branch: Option<&str>,
    is_read_only: bool,
) -> Result<String, Failure> {
    let status = backend.execute(name, &document! { "frondStatus": 1_i32 })?;
    let default = text_of(status.view(), "branch").to_owned();
    let Some(branch) = branch.filter(|_| !is_read_only) else { return Ok(default) };
    let answer = backend.execute(name, &document! { "frondBranch": 1_i32 })?;
    if documents_of(answer.view(), "branches").all(|known| text_of(known, "branch") != branch) {
        let make = document! { "frondBranch": 1_i32, "branch": branch };
        backend.execute(name, &make)?;
    }
    Ok(default)
}

impl Talk<'_> {
    /// Answers a message; nothing if it is a notification.
    fn answer(&mut self, line: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(line).unwrap_or_default().trim();
        if text.is_empty() && std::str::from_utf8(line).is_ok() {
            return None;
        }
        let request = match Request::read(text) {
            Ok(request) => request,
            Err(message::InvalidMessage::Json(why)) => {
                return Some(error(Value::Null, PARSE_ERROR, &why));
            }
            Err(message::InvalidMessage::Request) => {
                return Some(error(Value::Null, INVALID_REQUEST, "this is not a request"));
            }
        };
        let id = request.id()?;
        if id.as_str().is_none() && !id.is_number() {
            return Some(error(Value::Null, INVALID_REQUEST, "an id is a string or a number"));
        }
        let done = match request.method() {
            "initialize" => Ok(initialize(self.bound, request.params())),
            "ping" => Ok(DocumentBuf::empty()),
            "tools/list" => Ok(list(self.bound)),
            "tools/call" => self.call(request.params()),
            other => Err((METHOD_NOT_FOUND, format!("there is no method {other}"))),
        };
        Some(match done {
            Ok(answer) => result(id, &answer),
            Err((code, why)) => error(id, code, &why),
        })
    }

    /// Calls a tool. An error in it is the tool's answer, so that the agent reads it.
    fn call(&mut self, params: Document<'_>) -> Result<DocumentBuf, (i32, String)> {
        let name = text_of(params, "name");
        if !self.bound.offers(name) {
            return Err((INVALID_PARAMS, format!("there is no tool {name:?}")));
        }
        let arguments = params.get("arguments").and_then(|arguments| arguments.as_document());
        let arguments = arguments.unwrap_or(Document::empty());
        let done = self.bound.call(self.backend, name, arguments);
        self.is_lost |= matches!(done, Err(Failure::Lost(_)));
        let (text, is_error) = match done {
            Ok(text) => (text, false),
            Err(failure) => (failure.to_string(), true),
        };
        let mut answer = DocumentBuilder::new();
        answer.begin_array("content").push_begin_document();
        answer.append("type", Value::String("text")).append("text", Value::String(&text));
        answer.end().end();
        answer.append("isError", Value::Boolean(is_error));
        Ok(answer.build())
    }
}

fn initialize(bound: &Bound, params: Document<'_>) -> DocumentBuf {
    let requested = text_of(params, "protocolVersion");
    let version = VERSIONS.iter().find(|known| **known == requested).unwrap_or(&VERSIONS[0]);
    let mut answer = DocumentBuilder::new();
    answer.append("protocolVersion", Value::String(version));
    answer.begin_document("capabilities").begin_document("tools").end().end();
    answer.begin_document("serverInfo").append("name", Value::String("frond"));
    answer.append("version", Value::String(env!("CARGO_PKG_VERSION"))).end();
    answer.append("instructions", Value::String(&bound.instructions()));
    answer.build()
}

fn list(bound: &Bound) -> DocumentBuf {
    let mut answer = DocumentBuilder::new();
    answer.begin_array("tools");
    for tool in tools::all().filter(|tool| bound.offers(tool.name())) {
        answer.push(Value::Document(tool.description().view()));
    }
    answer.end();
    answer.build()
}
