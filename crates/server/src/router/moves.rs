//! `movePrimary` and `frondAbortMove`: the moves that this router carries out.
//!
//! A move is a task of its own: it goes on when its client has gone. The same command sent again
//! waits for the same move. Each step is a line in the router's output, and `currentOp` shows the
//! last one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use frond_db::name::{VersionName, is_internal};
use frond_db::{DatabaseName, Error};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document};
use frond_query::Code;
use tokio::sync::watch;

use super::local_answers::ok_reply;
use super::login::Identity;
use super::mover::Mover;
use super::routed_request::RoutedRequest;
use super::shared::Shared;
use crate::log::{self, Severity};

/// Fields that drivers add to any command.
const COMMON: &[&str] = &[
    "$clusterTime",
    "$db",
    "$readPreference",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "comment",
    "lsid",
    "maxTimeMS",
    "writeConcern",
];

/// The moves in progress, by database.
#[derive(Default)]
pub(super) struct Moves(Mutex<BTreeMap<String, Running>>);

struct Running {
    /// `None` of one that is taken back.
    to: Option<String>,
    begun: Instant,
    step: String,
    is_cancelled: Arc<AtomicBool>,
    end: End,
}

/// The outcome of a move, once it has ended.
type End = watch::Receiver<Option<Result<(), Error>>>;

/// The outcome of an attempt to begin a move.
enum Begun {
    /// It runs, maybe since before.
    Running(End),
    /// Another move has to end first, and was interrupted.
    Behind(End),
}

impl Moves {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, database: &str, step: &str) {
        if let Some(running) = self.lock().get_mut(database) {
            step.clone_into(&mut running.step);
        }
    }

    /// The operations in the form of `currentOp`.
    pub fn operations(&self) -> Vec<DocumentBuf> {
        let lock = self.lock();
        let operations = lock.iter().map(|(database, running)| {
            let micros = i64::try_from(running.begun.elapsed().as_micros()).unwrap_or(i64::MAX);
            let mut command = DocumentBuilder::new();
            match &running.to {
                Some(to) => command
                    .append("movePrimary", Value::String(database))
                    .append("to", Value::String(to)),
                None => command.append("frondAbortMove", Value::String(database)),
            };
            document! {
                "type": "op", "op": "command", "ns": "admin.$cmd", "active": true,
                "desc": "move", "command": &command.build(), "msg": &*running.step,
                "secs_running": micros / 1_000_000, "microsecs_running": micros,
            }
        });
        operations.collect()
    }
}

/// `movePrimary` or `frondAbortMove`.
///
/// # Errors
/// As MongoDB's of `movePrimary`; as [`Mover::run`] and [`Mover::abort`].
pub(super) async fn run(
    shared: &Arc<Shared>,
    identity: Option<&Identity>,
    ask: &RoutedRequest<'_>,
) -> Result<DocumentBuf, Error> {
    let (database, to) = parse(ask)?;
    let mut end = loop {
        match begin(shared, identity, &database, to.as_deref())? {
            Begun::Running(end) => break end,
            Begun::Behind(mut end) => {
                // One that ended without a word is there for good.
                let ended = end.wait_for(Option::is_some).await;
                ended.map_err(|_| Error::internal("the move has ended without a word"))?;
            }
        }
    };
    let ended = end.wait_for(Option::is_some).await;
    match ended.ok().and_then(|ended| ended.clone()) {
        Some(ended) => ended.map(|()| ok_reply()),
        None => Err(Error::internal("the move has ended without a word")),
    }
}

/// The database that a command names, and where it is to go to, if anywhere.
fn parse(ask: &RoutedRequest<'_>) -> Result<(String, Option<String>), Error> {
    if ask.database != "admin" {
        let message = format!("{} may only be run against the admin database.", ask.name);
        return Err(Error::invalid(Code::Unauthorized, message));
    }
    let moves = ask.name != "frondAbortMove";
    let mut to = None;
    for (name, value) in ask.body.iter().skip(1) {
        match name {
            "to" if moves => to = Some(text(ask, "to", value)?),
            _ if COMMON.contains(&name) => {}
            _ => {
                let message = format!("BSON field '{}.{name}' is an unknown field.", ask.name);
                return Err(Error::invalid(Code::Location(40415), message));
            }
        }
    }
    let database = ask.body.get(ask.name).unwrap_or(Value::Null);
    let database = text(ask, ask.name, database)?;
    let named = DatabaseName::parse(database).ok();
    let named = named.filter(|named| matches!(named.version, VersionName::Default));
    let Some(named) = named else {
        let message = format!("invalid db name specified: {database}");
        return Err(Error::invalid(Code::InvalidNamespace, message));
    };
    if is_internal(&named.name) {
        let message = format!("Can't move primary for {database} database");
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    if moves && to.is_none() {
        let message = format!("BSON field '{}.to' is missing but a required field", ask.name);
        return Err(Error::invalid(Code::Location(40414), message));
    }
    if to == Some("") {
        let message = "you have to specify where you want to move it";
        return Err(Error::invalid(Code::InvalidOptions, message));
    }
    Ok((named.name, to.map(str::to_owned)))
}

fn text<'a>(ask: &RoutedRequest<'_>, field: &str, value: Value<'a>) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| {
        let message = format!(
            "BSON field '{}.{field}' is the wrong type '{}', expected type 'string'",
            ask.name,
            value.element_type().alias()
        );
        Error::invalid(Code::TypeMismatch, message)
    })
}

/// Begins a move, or joins the same one. One that is to be taken back ends first.
fn begin(
    shared: &Arc<Shared>,
    identity: Option<&Identity>,
    database: &str,
    to: Option<&str>,
) -> Result<Begun, Error> {
    let mut moves = shared.moves.lock();
    if let Some(running) = moves.get(database) {
        if running.to.as_deref() == to {
            return Ok(Begun::Running(running.end.clone()));
        }
        if to.is_none() {
            running.is_cancelled.store(true, Ordering::Relaxed);
            return Ok(Begun::Behind(running.end.clone()));
        }
        let message =
            format!("database {database} is being moved by this router: {}", running.step);
        return Err(Error::invalid(Code::ConflictingOperationInProgress, message));
    }
    let (ended, end) = watch::channel(None);
    let step = "begins".to_owned();
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let (database, to) = (database.to_owned(), to.map(str::to_owned));
    let running = Running {
        to: to.clone(),
        begun: Instant::now(),
        step,
        is_cancelled: Arc::clone(&is_cancelled),
        end: end.clone(),
    };
    moves.insert(database.clone(), running);
    drop(moves);
    let (shared, identity) = (Arc::clone(shared), identity.cloned());
    tokio::spawn(async move {
        let (name, reporter) = (database.clone(), Arc::clone(&shared));
        let report = Box::new(move |step: &str| {
            let event = log::router(Severity::Info, "A database moves to another line");
            reporter.log.write(&event, |attributes| {
                attributes.append("database", Value::String(&name));
                attributes.append("step", Value::String(step));
            });
            reporter.moves.note(&name, step);
        });
        let mover = Mover { shared: Arc::clone(&shared), identity, database, report, is_cancelled };
        let result = match &to {
            Some(to) => mover.run(to).await,
            None => mover.abort().await,
        };
        match &result {
            Ok(()) => (mover.report)("done"),
            Err(error) => (mover.report)(&format!("failed: {}", error.message)),
        }
        shared.refresh.notify_one();
        shared.moves.lock().remove(&mover.database);
        ended.send_replace(Some(result));
    });
    Ok(Begun::Running(end))
}

/// Whether a row of `currentOp` may be shown to the client: a match of the command's fields.
pub(super) fn is_on_its_shard(operation: Document<'_>, ask: &RoutedRequest<'_>) -> bool {
    let fields = ask.body.iter().skip(1).filter(|(name, _)| !name.starts_with('$'));
    let mut fields = fields.filter(|(name, _)| !COMMON.contains(name));
    fields.all(|(name, value)| operation.get(name).is_some_and(|wanted| wanted == value))
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;

    fn parsed(command: &str) -> Result<(String, Option<String>), Error> {
        let command = extended_json::parse(command).expect("JSON");
        parse(&RoutedRequest::read(command.view()).expect("a command"))
    }

    #[test]
    fn commands_are_read_as_mongodb_reads_them() {
        let moved = parsed(r#"{"movePrimary": "shop", "to": "eu", "$db": "admin", "comment": 1}"#);
        assert_eq!(moved.expect("right"), ("shop".to_owned(), Some("eu".to_owned())));
        let taken_back = parsed(r#"{"frondAbortMove": "shop", "$db": "admin"}"#);
        assert_eq!(taken_back.expect("right"), ("shop".to_owned(), None));
        for (wrong, code) in [
            (r#"{"movePrimary": "shop", "to": "eu", "$db": "shop"}"#, 13),
            (r#"{"movePrimary": 1, "to": "eu", "$db": "admin"}"#, 14),
            (r#"{"movePrimary": "shop", "to": 1, "$db": "admin"}"#, 14),
            (r#"{"movePrimary": "shop", "$db": "admin"}"#, 40414),
            (r#"{"movePrimary": "shop", "to": "", "$db": "admin"}"#, 72),
            (r#"{"movePrimary": "config", "to": "eu", "$db": "admin"}"#, 72),
            (r#"{"movePrimary": "a.b", "to": "eu", "$db": "admin"}"#, 73),
            (r#"{"movePrimary": "shop@sale", "to": "eu", "$db": "admin"}"#, 73),
            (r#"{"movePrimary": "shop", "to": "eu", "fast": 1, "$db": "admin"}"#, 40415),
            (r#"{"frondAbortMove": "shop", "to": "eu", "$db": "admin"}"#, 40415),
        ] {
            let error = parsed(wrong).expect_err(wrong);
            assert_eq!(error.code.number(), code, "{wrong}: {error}");
        }
    }
}
