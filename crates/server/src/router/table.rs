//! The routing table: which line has which database, from `config.lines` and `config.databases` on
//! the default line.
//!
//! ```text
//! config.lines      {_id: "eu", uri: "mongodb://a:27017,b:27017/?replicaSet=rs0"}
//! config.databases  {_id: "shop", line: "eu"}          a database
//!                   {_id: "shop@sale", line: "us"}     a branch of it that is led elsewhere
//! ```
//!
//! A database that isn't listed lies on the default line, and so do `admin`, `config` and `local`.
//! Every router reads both each second; so two routers may differ for that long. The entry of a
//! database that moves has more fields ([`database_entry`](super::database_entry)), and while there
//! is one routers read more often.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use frond_db::name::{VersionName, is_internal};
use frond_db::{DatabaseName, Error};
use frond_doc::{DocumentBuf, document};
use frond_query::Code;
use rustls::ClientConfig;

use super::line::Line;
use super::upstream::{Upstream, is_ok};

/// The name of the line that the router was started with.
pub(super) const DEFAULT: &str = "default";
/// The most that is read of a table.
const ENTRIES_MAX: i32 = 100_000;

/// The routing table.
pub(super) struct Table {
    default: Arc<Line>,
    lines: BTreeMap<String, Result<Arc<Line>, String>>,
    databases: BTreeMap<String, Place>,
}

/// The line of a database.
#[derive(PartialEq, Eq, Debug)]
struct Place {
    line: String,
    /// The phase of the move.
    phase: Option<Phase>,
}

impl Place {
    fn is_held(&self) -> bool {
        matches!(self.phase, Some(Phase::Stopped | Phase::Switched))
    }
}

/// The phase of a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It is copied, and used at the line that it comes from.
    Copying,
    /// It isn't used: the rest of it is copied.
    Stopped,
    /// The other line has it, and begins to use it.
    Switched,
}

impl Phase {
    /// The phase of this name.
    pub fn of(name: &str) -> Option<Phase> {
        let all = [Phase::Copying, Phase::Stopped, Phase::Switched];
        all.into_iter().find(|phase| phase.name() == name)
    }

    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Copying => "copying",
            Phase::Stopped => "stopped",
            Phase::Switched => "switched",
        }
    }
}

impl Table {
    /// Reads it, by a connection to the default line; lines that are as `before` stay the same.
    ///
    /// # Errors
    /// An error of the socket; what the server refuses.
    pub async fn read(
        upstream: &mut Upstream,
        default: &Arc<Line>,
        before: Option<&Table>,
        tls: &Arc<ClientConfig>,
    ) -> io::Result<Table> {
        let mut lines = BTreeMap::new();
        for entry in documents(upstream, "lines").await? {
            let (Some(name), Some(uri)) = (text(&entry, "_id"), text(&entry, "uri")) else {
                continue;
            };
            let same = before.and_then(|before| before.lines.get(name)?.as_ref().ok());
            let line = match same.filter(|same| same.uri == uri) {
                Some(same) => Ok(Arc::clone(same)),
                None => Line::parse(name, uri, tls).map(Arc::new),
            };
            lines.insert(name.to_owned(), line);
        }
        let mut databases = BTreeMap::new();
        for entry in documents(upstream, "databases").await? {
            if let (Some(name), Some(line)) = (text(&entry, "_id"), text(&entry, "line")) {
                let moving = entry.get("move").and_then(|moving| moving.as_document());
                let phase = moving.and_then(|moving| Phase::of(moving.get("phase")?.as_str()?));
                databases.insert(name.to_owned(), Place { line: line.to_owned(), phase });
            }
        }
        Ok(Table { default: Arc::clone(default), lines, databases })
    }

    /// The line that has the table itself.
    pub fn default_line(&self) -> &Arc<Line> {
        &self.default
    }

    /// Whether any database is on its way.
    pub fn any_moves(&self) -> bool {
        self.databases.values().any(|place| place.phase.is_some())
    }

    /// Whether anything has to wait.
    pub fn any_held(&self) -> bool {
        self.databases.values().any(Place::is_held)
    }

    /// Whether what comes for a database has to wait until its move is over.
    pub fn is_held(&self, database: &str) -> bool {
        self.place(database).is_some_and(Place::is_held)
    }

    /// The default line, then the others that can be used.
    pub fn lines(&self) -> impl Iterator<Item = &Arc<Line>> {
        let others = self.lines.values().filter_map(|line| line.as_ref().ok());
        [&self.default].into_iter().chain(others)
    }

    /// Returns the lines that can't be used, and why.
    pub fn faults(&self) -> impl Iterator<Item = (&str, &str)> {
        let faults = self.lines.iter();
        faults.filter_map(|(name, line)| Some((&**name, &**line.as_ref().err()?)))
    }

    /// The line that leads a database, or a branch, by the name that a client uses.
    ///
    /// # Errors
    /// `BadValue` if the table names a line that it doesn't have.
    pub fn line_of(&self, database: &str) -> Result<&Arc<Line>, Error> {
        match self.place(database).map(|place| &*place.line) {
            None | Some(DEFAULT) => Ok(&self.default),
            Some(name) => self.line(name, database),
        }
    }

    /// Returns the table's entry for a database, or a branch.
    fn place(&self, database: &str) -> Option<&Place> {
        // An invalid name is refused by a server.
        let parsed = DatabaseName::parse(database).ok()?;
        if is_internal(&parsed.name) {
            return None;
        }
        let branch = match &parsed.version {
            VersionName::Named(version) => {
                let moment = version.find("@{").unwrap_or(version.len());
                let branch = version[..moment].split(['~', '^']).next().unwrap_or_default();
                self.databases.get(&format!("{}@{branch}", parsed.name))
            }
            VersionName::Default => None,
        };
        branch.or_else(|| self.databases.get(&parsed.name))
    }

    fn line(&self, name: &str, database: &str) -> Result<&Arc<Line>, Error> {
        match self.lines.get(name) {
            Some(Ok(line)) => Ok(line),
            Some(Err(why)) => Err(Error::bad_value(format!("the line {name}: {why}"))),
            None => {
                let message = format!(
                    "config.databases has {database} on the line {name}, which isn't in config.lines"
                );
                Err(Error::bad_value(message))
            }
        }
    }

    /// Refuses what names two lines at once: `first` is where the command goes.
    ///
    /// # Errors
    /// `IllegalOperation`, which says which databases lie on which lines; as [`Table::line_of`].
    pub fn check_same(
        &self,
        what: &str,
        (database, first): (&str, &Line),
        other: &str,
    ) -> Result<(), Error> {
        let second = self.line_of(other)?;
        if second.name == first.name {
            return Ok(());
        }
        let message = format!(
            "{what} works within one line: {database} is led by the line {}, {other} by {}",
            first.name, second.name
        );
        Err(Error::invalid(Code::IllegalOperation, message))
    }

    /// The branches of a database that have an entry of their own.
    pub fn branches_of<'a>(&'a self, database: &'a str) -> impl Iterator<Item = &'a str> {
        let entries = self.databases.keys();
        entries.filter_map(move |entry| entry.strip_prefix(database)?.strip_prefix('@'))
    }
}

fn text<'a>(entry: &'a DocumentBuf, name: &str) -> Option<&'a str> {
    entry.get(name)?.as_str()
}

async fn documents(upstream: &mut Upstream, collection: &str) -> io::Result<Vec<DocumentBuf>> {
    let find = document! {
        "find": collection, "batchSize": ENTRIES_MAX, "singleBatch": true,
    };
    let answer = upstream.command("config", find.view()).await?;
    let batch = answer.get("cursor").and_then(|cursor| cursor.as_document()?.get("firstBatch"));
    match batch.and_then(|batch| batch.as_array()) {
        Some(batch) if is_ok(answer.view()) => {
            Ok(batch.iter().filter_map(|entry| Some(entry.as_document()?.to_buf())).collect())
        }
        _ => {
            let why = answer.get("errmsg").and_then(|why| why.as_str()).unwrap_or_default();
            Err(io::Error::other(format!("config.{collection} can't be read: {why}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientTls;

    fn table() -> Table {
        let tls = ClientTls::default().config().expect("a configuration");
        let line = |name: &str| Arc::new(Line::parse(name, "mongodb://a:1", &tls).expect("a URI"));
        let entries = [
            ("shop", "eu", Some(Phase::Stopped)),
            ("shop@sale", "us", None),
            ("old", DEFAULT, Some(Phase::Copying)),
            ("lost", "nowhere", None),
        ];
        let databases = entries
            .map(|(name, line, phase)| (name.to_owned(), Place { line: line.to_owned(), phase }));
        Table {
            default: line(DEFAULT),
            lines: ["eu", "us"].map(|name| (name.to_owned(), Ok(line(name)))).into(),
            databases: databases.into(),
        }
    }

    #[test]
    fn requests_wait_while_their_database_is_stopped() {
        let table = table();
        assert!(table.any_moves());
        for (database, expected) in [
            ("shop", true),
            ("shop@main", true),
            ("shop@sale", false),
            ("old", false),
            ("other", false),
        ] {
            assert_eq!(table.is_held(database), expected, "{database}");
        }
    }

    #[test]
    fn databases_and_branches_are_found() {
        let table = table();
        for (database, expected) in [
            ("shop", "eu"),
            ("shop@main", "eu"),
            ("shop@sale", "us"),
            ("shop@sale~2", "us"),
            ("shop@sales", "eu"),
            ("shops", DEFAULT),
            ("old", DEFAULT),
            ("config", DEFAULT),
            ("a.b", DEFAULT),
        ] {
            let line = table.line_of(database).expect("known");
            assert_eq!(line.name, expected, "{database}");
        }
        let error = table.line_of("lost").err().expect("no such line");
        assert!(error.message.contains("nowhere"), "{error}");
        assert_eq!(table.branches_of("shop").collect::<Vec<_>>(), ["sale"]);
    }

    #[test]
    fn two_lines_at_once_are_refused_by_name() {
        let table = table();
        let eu = Arc::clone(table.line_of("shop").expect("known"));
        assert!(table.check_same("$out", ("shop", &eu), "shop@main").is_ok());
        let error = table.check_same("$out", ("shop", &eu), "old").expect_err("refused");
        assert_eq!(error.code, Code::IllegalOperation);
        for part in ["$out", "shop", "eu", "old", DEFAULT] {
            assert!(error.message.contains(part), "{error}");
        }
    }
}
