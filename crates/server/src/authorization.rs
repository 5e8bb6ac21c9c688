//! May a client run a command?
//!
//! Each command's row in the table says what it [`RequiredRights`]. With `--auth`, [`check`] asks
//! before the command is run:
//!
//! 1. The connection's login, and what it may do (worked out once, and again when users or roles
//!    change).
//! 2. The target of the command: the database of `$db`, the collection that the command names, or
//!    whatever a function finds in its fields. Such a function reads them as the command's handler
//!    does, by [`Fields`]: what is absent to the one is absent to the other, and a field of the
//!    wrong type is refused by both. Where it can't, it takes more than the handler for a request.
//!    A name that stands twice was refused before.
//! 3. On which branch. `shop` is the default branch, `shop@dev/x~2` is `dev/x`; a version that is
//!    named by no branch may be any branch's, and needs `readVersions`. This is only looked up
//!    where it matters.
//!
//! Without `--auth` it costs one look at a boolean.

pub mod pipelines;
pub mod users;
pub mod versions;
pub mod writes;

use std::cell::RefCell;
use std::sync::Arc;

use frond_db::{DatabaseName, Error, VersionName};
use frond_doc::extended_json::{self, Form};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::access::{Action, Branch, EXTERNAL, Granted, Target};
use crate::fields::Fields;
use crate::peer::{Peer, Rights};
use crate::shared::Shared;
use crate::wire::DocumentSequence;

/// How much of a command stands in the message that refuses it.
const DESCRIBED_BYTES_MAX: usize = 1_000;
/// Fields that aren't logged.
const SECRET_FIELDS: &[&str] = &["payload", "pwd", "speculativeAuthenticate", "token"];

/// Cuts `database.collection` at its first dot.
///
/// # Errors
/// `InvalidNamespace` (73) if it is none.
pub fn split_namespace(namespace: &str) -> Result<(&str, &str), Error> {
    let parts = namespace
        .split_once('.')
        .filter(|(database, name)| !database.is_empty() && !name.is_empty());
    parts.ok_or_else(|| {
        let message = format!("Invalid namespace specified '{namespace}'");
        Error::invalid(Code::InvalidNamespace, message)
    })
}

/// The rights that a command needs.
#[derive(Clone, Copy)]
pub enum RequiredRights {
    /// Nothing, not even a login.
    Nothing,
    /// A login.
    Login,
    /// To do these on the server.
    Cluster(&'static [Action]),
    /// To do these on the database of `$db`, at its branch.
    Database(&'static [Action]),
    /// To do these on the collection that the command's own field names.
    Collection(&'static [Action]),
    /// The rights that this function finds.
    Found(fn(&AuthorizationRequest<'_>) -> Result<(), Error>),
}

/// A command that a client asks for, and what the client may do.
pub struct AuthorizationRequest<'a> {
    /// The server.
    pub server: &'a Shared,
    /// The rights of the user who has logged in.
    pub rights: &'a Rights,
    /// The command's name in the table.
    pub name: &'static str,
    /// `$db`.
    pub database: &'a str,
    /// The command.
    pub body: Document<'a>,
    /// Documents that came beside it.
    pub sequences: &'a [DocumentSequence],
    /// The place to note the rights that were used.
    pub noted: Option<&'a RefCell<Granted>>,
}

/// The part of a database's history that an action is done on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionScope<'a> {
    /// The version that the database's name says.
    Open,
    /// A version that a revision names, in the database that is open.
    Revision(&'a str),
    /// A branch.
    Branch(&'a str),
    /// Everywhere.
    All,
}

/// Checks that a client may run a command. Returns what the client may do; `None` where the server
/// doesn't check that.
///
/// # Errors
/// `Unauthorized` (13).
pub fn check(
    server: &Shared,
    peer: &Peer,
    (name, needs): (&'static str, RequiredRights),
    (database, body, sequences): (&str, Document<'_>, &[DocumentSequence]),
) -> Result<Option<Arc<Rights>>, Error> {
    if !server.accounts.is_enforced() {
        return Ok(None);
    }
    let rights = peer.rights(&server.accounts, &server.frond)?;
    if let RequiredRights::Nothing = needs {
        return Ok(rights);
    }
    let Some(rights) = rights else {
        // A set begins before it has users.
        let is_beginning = ["createUser", "replSetInitiate"].contains(&name);
        if is_beginning && is_first_user(server, peer, database)? {
            return Ok(None);
        }
        let message = format!("Command {name} requires authentication");
        return Err(Error::invalid(Code::Unauthorized, message));
    };
    let request = AuthorizationRequest {
        server,
        rights: &rights,
        name,
        database,
        body,
        sequences,
        noted: None,
    };
    request.meets(needs)?;
    Ok(Some(rights))
}

/// Returns the rights that a command used, which [`check`] has let pass.
///
/// # Errors
/// As [`check`].
pub fn granted(
    request: &AuthorizationRequest<'_>,
    needs: RequiredRights,
) -> Result<Granted, Error> {
    let granted = RefCell::default();
    AuthorizationRequest { noted: Some(&granted), ..*request }.meets(needs)?;
    Ok(granted.into_inner())
}

/// Whether a client may make the first user, or a set, though it can't have logged in: on this
/// machine, in `admin`; unless `enableLocalhostAuthBypass` is off.
///
/// # Errors
/// An error of reading the users.
pub fn is_first_user(server: &Shared, peer: &Peer, database: &str) -> Result<bool, Error> {
    if !server.has_localhost_exception {
        return Ok(false);
    }
    let directory = server.accounts.directory(&server.frond)?;
    let is_empty = directory.users.is_empty() && directory.roles.is_empty();
    Ok(is_empty && peer.address.ip().to_canonical().is_loopback() && database == "admin")
}

impl<'a> AuthorizationRequest<'a> {
    /// Checks that the client may do what `needs` says.
    ///
    /// # Errors
    /// `Unauthorized` (13).
    pub fn meets(&self, needs: RequiredRights) -> Result<(), Error> {
        match needs {
            RequiredRights::Nothing | RequiredRights::Login => Ok(()),
            RequiredRights::Cluster(actions) => {
                actions.iter().try_for_each(|action| self.cluster(*action))
            }
            RequiredRights::Database(actions) => self.here(actions, None),
            RequiredRights::Collection(actions) => match self.argument().as_str() {
                Some(collection) => self.here(actions, Some(collection)),
                // It will be refused for that; until then it is of all.
                None => self.here(actions, None),
            },
            RequiredRights::Found(find) => find(self),
        }
    }

    /// The value of the command's own field.
    pub fn argument(&self) -> Value<'a> {
        self.body.iter().next().map_or(Value::Null, |(_, value)| value)
    }

    /// The command's fields, to be taken as its handler takes them.
    ///
    /// # Errors
    /// `Location40413` if a name stands twice.
    pub fn fields(&self) -> Result<Fields<'a>, Error> {
        Fields::of_part(self.name, self.body)
    }

    /// Whether a field says yes.
    ///
    /// # Errors
    /// `TypeMismatch` if it is neither a boolean nor a number.
    pub fn is_set(&self, name: &str) -> Result<bool, Error> {
        self.fields()?.boolean(name)
    }

    /// The documents that a write has under a name: beside the command, and in it.
    pub fn documents(&self, name: &'a str) -> impl Iterator<Item = Document<'_>> {
        let beside = self.sequences.iter().filter(move |sequence| sequence.name == name);
        let beside = beside.flat_map(|sequence| sequence.documents.iter().map(|of| of.view()));
        let within = self.body.get(name).and_then(|value| value.as_array());
        let within = within.into_iter().flat_map(|array| array.iter());
        beside.chain(within.filter_map(|value| value.as_document()))
    }

    /// Checks an action on the server.
    ///
    /// # Errors
    /// `Unauthorized` (13).
    pub fn cluster(&self, action: Action) -> Result<(), Error> {
        match self.allowed(action, Target::Cluster) {
            true => Ok(()),
            false => Err(self.refused(self.database)),
        }
    }

    /// Checks actions on all databases, those to come too.
    ///
    /// # Errors
    /// `Unauthorized` (13).
    pub fn on_all(&self, actions: &[Action]) -> Result<(), Error> {
        match actions.iter().all(|action| self.rights.grants.allow_everywhere(*action)) {
            true => {
                if let Some(noted) = self.noted {
                    actions.iter().for_each(|action| noted.borrow_mut().note_everywhere(*action));
                }
                Ok(())
            }
            false => Err(self.refused(self.database)),
        }
    }

    /// Checks actions on the database of `$db`, or on a collection of it.
    ///
    /// # Errors
    /// `Unauthorized` (13).
    pub fn here(&self, actions: &[Action], collection: Option<&str>) -> Result<(), Error> {
        self.on(actions, self.database, VersionScope::Open, collection)
    }

    /// Checks actions on a database, as the wire names it, or on a collection of it.
    ///
    /// # Errors
    /// `Unauthorized` (13); `InvalidNamespace` if there can be no such database.
    pub fn on(
        &self,
        actions: &[Action],
        database: &str,
        at: VersionScope<'_>,
        collection: Option<&str>,
    ) -> Result<(), Error> {
        for action in actions {
            if !self.may(*action, database, at, collection)? {
                return Err(self.refused(database));
            }
        }
        Ok(())
    }

    /// Checks whether the client may do something.
    ///
    /// # Errors
    /// `InvalidNamespace` if there can be no such database; errors of reading.
    pub fn may(
        &self,
        action: Action,
        database: &str,
        at: VersionScope<'_>,
        collection: Option<&str>,
    ) -> Result<bool, Error> {
        if database == EXTERNAL {
            // It has users, and nothing that lies in versions.
            let target = Target::Namespace { database, collection, branch: Branch::All };
            return Ok(self.allowed(action, target));
        }
        let name = DatabaseName::parse(database)?;
        let grants = &self.rights.grants;
        let is_plain = at == VersionScope::Open && name.version == VersionName::Default;
        let found;
        let branch = match at {
            VersionScope::All => Branch::All,
            VersionScope::Branch(branch) => Branch::Named(branch),
            // Whatever its name is; unless other roles may be asked about it later.
            _ if is_plain && !grants.limits_branches() && self.noted.is_none() => Branch::Named(""),
            VersionScope::Open => {
                found = frond_vcs::naming_branch(&self.server.frond, &name)?;
                found.as_deref().map_or(Branch::Version, Branch::Named)
            }
            VersionScope::Revision(revision) => {
                found = frond_vcs::naming_branch_of(&self.server.frond, &name, revision)?;
                found.as_deref().map_or(Branch::Version, Branch::Named)
            }
        };
        Ok(self.allowed(action, Target::Namespace { database: &name.name, collection, branch }))
    }

    /// Whether the client may do something, which is noted then.
    fn allowed(&self, action: Action, target: Target<'_>) -> bool {
        let is_allowed = self.rights.grants.allow(action, target);
        if let Some(noted) = self.noted.filter(|_| is_allowed) {
            noted.borrow_mut().note(action, target);
        }
        is_allowed
    }

    /// Returns the error for a client that may not do something.
    pub fn refused(&self, database: &str) -> Error {
        let message =
            format!("not authorized on {database} to execute command {}", describe(self.body));
        Error::invalid(Code::Unauthorized, message)
    }
}

fn is_large(value: Value<'_>) -> bool {
    let bytes = match value {
        Value::Document(document) => document.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::String(text) => text.len(),
        Value::Binary(binary) => binary.bytes.len(),
        _ => 0,
    };
    bytes > DESCRIBED_BYTES_MAX
}

/// A command for the log: what is secret of it replaced, also in the command that it explains.
pub fn without_secrets(command: Document<'_>) -> DocumentBuf {
    let mut described = DocumentBuilder::new();
    for (position, (name, value)) in command.iter().enumerate() {
        match value {
            _ if SECRET_FIELDS.contains(&name) => described.append(name, Value::String("xxx")),
            Value::Document(explained) if position == 0 => {
                described.append(name, Value::from(&without_secrets(explained)))
            }
            value => described.append(name, value),
        };
    }
    described.build()
}

/// A command for people: without what is secret, and shortened.
pub fn describe(command: Document<'_>) -> String {
    let mut text = String::from("{ ");
    for (position, (name, value)) in command.iter().enumerate() {
        if position > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
        text.push_str(": ");
        if SECRET_FIELDS.contains(&name) {
            text.push_str("\"xxx\"");
        } else if is_large(value) {
            text.push_str("...");
        } else if let (0, Value::Document(explained)) = (position, value) {
            let explained = without_secrets(explained);
            extended_json::write_value(Value::from(&explained), Form::Relaxed, &mut text);
        } else {
            extended_json::write_value(value, Form::Relaxed, &mut text);
        }
        if text.len() > DESCRIBED_BYTES_MAX {
            let end = (0..=DESCRIBED_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
            text.push_str("...");
            break;
        }
    }
    text.push_str(" }");
    text
}

#[cfg(test)]
mod tests {
    use frond_doc::document;

    use super::*;

    fn text(document: &DocumentBuf) -> String {
        frond_query::text::value(Value::from(document))
    }

    #[test]
    fn commands_are_logged_without_their_secrets() {
        let command = document! {
            "createUser": "ann", "pwd": "geheim", "token": "geheim", "roles": "x", "pwd": "geheim",
            "payload": "geheim", "speculativeAuthenticate": "geheim",
        };
        let described = describe(command.view());
        assert!(described.contains("ann") && !described.contains("geheim"), "{described}");
        let described = describe(without_secrets(command.view()).view());
        assert!(described.contains("ann") && !described.contains("geheim"), "{described}");
        let explained = document! { "explain": &command };
        let explained = [describe(explained.view()), text(&without_secrets(explained.view()))];
        for described in explained {
            assert!(described.contains("ann") && !described.contains("geheim"), "{described}");
        }
        let long = document! { "insert": "ä".repeat(600).as_str(), "x": "y".repeat(990).as_str() };
        let described = describe(long.view());
        assert!(described.len() < 1_100 && described.ends_with(" }"), "{described}");
    }
}
