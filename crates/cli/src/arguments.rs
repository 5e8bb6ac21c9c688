//! Arguments that several commands take.

mod name_server;
mod seed_list;
mod server_uri;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use frond_doc::DocumentBuf;
use frond_server::announced::socket_of;

use crate::backend::{self, Backend, ServerUri};
use crate::directory::check_there;
use crate::failure::Failure;
use crate::output::answer_json;
use crate::terminal::Terminal;

/// Where the databases are: a data directory, opened by this process, or a running server.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// Data directory to open; if frond serve is running on it without logins, that server is asked
    #[arg(long, value_name = "DIR", default_value = "./frond-data", conflicts_with = "uri")]
    pub data: PathBuf,

    /// Running server to talk to instead: 127.0.0.1:27017, the path of its socket, or with a user
    /// mongodb://USER:PASSWORD@HOST:PORT/DATABASE (without a password, FROND_PASSWORD is used);
    /// ?tls=true and tlsCAFile=FILE are understood
    #[arg(long, value_name = "HOST:PORT")]
    pub uri: Option<String>,
}

impl Target {
    /// Prepares the process for passing over a collection, before anything is read or opened.
    pub fn prepare_to_stream(&self) {
        if self.uri.is_none() {
            crate::allocator::give_back_soon();
        }
    }

    /// Opens what must be there already.
    ///
    /// # Errors
    /// [`Failure::Failed`] if it isn't there, another process has the directory, or the server
    /// can't be reached.
    pub fn open(&self) -> Result<Box<dyn Backend>, Failure> {
        self.check_there()?;
        self.open_or_make()
    }

    /// As [`Target::open`], to pass over a collection once.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn open_to_stream(&self) -> Result<Box<dyn Backend>, Failure> {
        self.check_there()?;
        self.open_or_make_to_stream()
    }

    fn check_there(&self) -> Result<(), Failure> {
        match self.uri {
            Some(_) => Ok(()),
            None => check_there(
                &self.data,
                ": name one with --data, or a running server with --uri; frond import and frond \
                 serve make a new one",
            ),
        }
    }

    /// As [`Target::open_or_make`], to fill a collection.
    ///
    /// # Errors
    /// As [`Target::open`], but that the directory may be missing.
    pub fn open_or_make_to_stream(&self) -> Result<Box<dyn Backend>, Failure> {
        match self.connected()? {
            Some(server) => Ok(Box::new(server)),
            None => Ok(Box::new(backend::Embedded::open_to_stream(&self.data, backend::USE_URI)?)),
        }
    }

    /// Opens it; makes the data directory where there is none.
    ///
    /// # Errors
    /// As [`Target::open`], but that the directory may be missing.
    pub fn open_or_make(&self) -> Result<Box<dyn Backend>, Failure> {
        match self.connected()? {
            Some(server) => Ok(Box::new(server)),
            None => Ok(Box::new(backend::Embedded::open(&self.data, backend::USE_URI)?)),
        }
    }

    /// Reaches it again whose server was lost, by a server: one that is started again must find the
    /// data directory free.
    ///
    /// # Errors
    /// [`Failure::Lost`] until a server has it.
    pub fn open_by_server(&self) -> Result<Box<dyn Backend>, Failure> {
        match self.connected()? {
            Some(server) => Ok(Box::new(server)),
            None => Err(Failure::Lost(format!(
                "the server that had {} is gone, waiting for another",
                self.data.display()
            ))),
        }
    }

    /// The server to talk to: the one that was named, or the one that has the data directory; one
    /// that ends just now has it no more.
    ///
    /// # Errors
    /// [`Failure::Lost`] if the one that was named can't be reached.
    pub fn connected(&self) -> Result<Option<backend::Remote>, Failure> {
        if let Some(uri) = &self.uri {
            return backend::Remote::connect(&server_of(uri)?).map(Some);
        }
        let Some(socket) = socket_of(&self.data) else { return Ok(None) };
        match backend::Remote::connect(&server_of(&socket.to_string_lossy())?) {
            Err(Failure::Lost(_)) => Ok(None),
            connected => connected.map(Some),
        }
    }
}

/// The server that was given as `--uri`.
///
/// # Errors
/// [`Failure::Usage`] if it is no such URI.
pub fn server_of(uri: &str) -> Result<ServerUri, Failure> {
    ServerUri::parse(uri, std::env::var("FROND_PASSWORD").ok())
}

/// What of a database is asked about: everything, a collection, or one document in it.
#[derive(Args, Clone, Debug)]
pub struct Subject {
    /// Only this collection
    #[arg(short, long)]
    collection: Option<String>,

    /// Only the document with this _id (JSON or plain text)
    #[arg(long, value_name = "ID", requires = "collection")]
    id: Option<String>,

    /// The same after --, like paths in git: a collection, or COLLECTION/ID
    #[arg(last = true, value_name = "COLLECTION/ID", conflicts_with = "collection")]
    path: Option<String>,
}

impl Subject {
    /// The collection, if only one is asked about.
    pub fn collection(&self) -> Option<&str> {
        self.collection.as_deref().or_else(|| self.split_path().map(|(collection, _)| collection))
    }

    /// The document's `_id`, as it was typed.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref().or_else(|| self.split_path()?.1)
    }

    /// Ids hold slashes more often than names of collections do: the first one cuts.
    fn split_path(&self) -> Option<(&str, Option<&str>)> {
        let path = self.path.as_deref()?;
        Some(match path.split_once('/') {
            None | Some((_, "")) => (path.trim_end_matches('/'), None),
            Some((collection, id)) => (collection, Some(id)),
        })
    }
}

/// One document, as two words or as a path.
#[derive(Args, Clone, Debug)]
pub struct OneDocument {
    /// Collection, or COLLECTION/ID
    collection: String,

    /// The document's _id (JSON or plain text)
    id: Option<String>,
}

impl OneDocument {
    /// The collection and the `_id`, as they were typed.
    ///
    /// # Errors
    /// [`Failure::Usage`] if there is no `_id`.
    pub fn parts(&self) -> Result<(&str, &str), Failure> {
        let path = match &self.id {
            Some(id) => Some((self.collection.as_str(), id.as_str())),
            None => self.collection.split_once('/'),
        };
        path.filter(|(_, id)| !id.is_empty()).ok_or_else(|| {
            let collection = self.collection.trim_end_matches('/');
            Failure::Usage(format!("which document? {collection} ID, or {collection}/ID"))
        })
    }
}

/// The form in which an answer is printed.
#[derive(Args, Clone, Copy, Debug)]
pub struct Answer {
    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

impl Answer {
    /// Whether the answer is printed as JSON.
    pub fn is_set(self) -> bool {
        self.json
    }

    /// Prints `answer` as JSON, if that is asked for; returns whether it was.
    ///
    /// # Errors
    /// [`Failure::ReaderGone`] if nothing reads the output.
    pub fn print(self, terminal: &mut Terminal, answer: &DocumentBuf) -> Result<bool, Failure> {
        if self.json {
            writeln!(terminal, "{}", answer_json(answer))?;
        }
        Ok(self.json)
    }
}

/// Who makes a commit.
#[derive(Args, Clone, Debug)]
pub struct Author {
    /// Author of this version, as `NAME <MAIL>`; by default FROND_AUTHOR, the user in --uri, or
    /// your login name, in this order
    #[arg(long, value_name = "AUTHOR")]
    author: Option<String>,
}

impl Author {
    /// As given on the command line.
    pub fn given(&self) -> Option<&str> {
        self.author.as_deref()
    }

    /// As given, or from the environment.
    pub fn name(&self) -> String {
        self.named().unwrap_or_else(login_name)
    }

    /// Returns the author to send with a command to `target`; `None` where the server knows which
    /// user logged in.
    pub fn of(&self, target: &Target) -> Option<String> {
        let logs_in = target.uri.as_ref().is_some_and(|uri| uri.contains('@'));
        if logs_in { self.named() } else { Some(self.name()) }
    }

    fn named(&self) -> Option<String> {
        self.author.clone().or_else(|| variable("FROND_AUTHOR"))
    }
}

/// The name by which the system knows the user.
pub fn login_name() -> String {
    variable("USER")
        .or_else(|| variable("LOGNAME"))
        .or_else(name_of_process)
        .unwrap_or_else(|| "unknown".to_owned())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The name of the user whose process this is: services and containers have no variable for it.
fn name_of_process() -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let own = rustix::process::getuid().as_raw().to_string();
    let mut users = users.lines().map(|user| user.split(':'));
    users.find_map(|mut user| {
        let name = user.next()?;
        (user.nth(1)? == own).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, expected) in [
            ("items", (Some("items"), None)),
            ("items/", (Some("items"), None)),
            ("items/17", (Some("items"), Some("17"))),
            ("items/a/b", (Some("items"), Some("a/b"))),
        ] {
            let subject = Subject { collection: None, id: None, path: Some(path.to_owned()) };
            assert_eq!((subject.collection(), subject.id()), expected, "{path}");
        }
    }
}
