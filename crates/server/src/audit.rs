//! The audit log: logins, refusals, and changes of users, roles, collections, indexes, branches or
//! the server. A line of JSON an event, with the fields of mongod's: `atype`, `ts`, `local`,
//! `remote`, `users`, `roles`, `param`, `result` (0, or the error's code).
//!
//! 1. No line holds documents, filters, passwords or tokens: `param` is what was changed, by name.
//! 2. An event is written when its outcome is known, before the client gets the answer.
//! 3. Once a line couldn't be written, logins and commands that would be recorded are refused until
//!    one can be: none of them happens without a trace, except for those that ran when the log
//!    failed.
//!
//! A filter may leave events out ([`crate::audit_log`]). Only commands are events: a collection
//! that an insert or `$out` makes is none.

use std::net::SocketAddr;

use frond_db::Error;
use frond_doc::extended_json::{self, Form};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::access::UserName;
use crate::log;
use crate::peer::Peer;
use crate::shared::Shared;

/// The kind of thing that a command changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Subject {
    /// The user that it names.
    User,
    /// The role that it names.
    Role,
    /// The collection that it names.
    Collection,
    /// The collection that it renames.
    Name,
    /// The database of `$db`, or its branch.
    Database,
    /// The server.
    Server,
}

/// A command that is recorded.
struct Audited {
    command: &'static str,
    /// mongod's name of the event; names of Frond's own are the commands'.
    event: &'static str,
    subject: Subject,
    /// Fields of the command that are recorded.
    fields: &'static [&'static str],
    /// Whether it is recorded only where it has one of them: others only look.
    needs_field: bool,
}

const fn audited(
    command: &'static str,
    event: &'static str,
    subject: Subject,
    fields: &'static [&'static str],
) -> Audited {
    Audited { command, event, subject, fields, needs_field: false }
}

impl Audited {
    const fn with_fields(self) -> Audited {
        Audited { needs_field: true, ..self }
    }
}

use Subject::{Collection, Database, Name, Role, Server, User};

const BRANCH_FIELDS: &[&str] = &[
    "branch",
    "closed",
    "delete",
    "expireAfterSeconds",
    "forceDelete",
    "protected",
    "removeExpired",
    "rename",
    "start",
];

/// All of them, sorted.
const AUDITED: &[Audited] = &[
    audited("_mergeAuthzCollections", "mergeAuthzCollections", Server, &["db", "drop"]),
    audited("cloneCollectionAsCapped", "createCollection", Collection, &["toCollection"]),
    audited("collMod", "collMod", Collection, &[]),
    audited("convertToCapped", "convertToCapped", Collection, &[]),
    audited("create", "createCollection", Collection, &["viewOn"]),
    audited("createIndexes", "createIndex", Collection, &["indexes"]),
    audited("createRole", "createRole", Role, &["privileges", "roles"]),
    audited("createUser", "createUser", User, &["roles"]),
    audited("drop", "dropCollection", Collection, &[]),
    audited("dropAllRolesFromDatabase", "dropAllRolesFromDatabase", Database, &[]),
    audited("dropAllUsersFromDatabase", "dropAllUsersFromDatabase", Database, &[]),
    audited("dropDatabase", "dropDatabase", Database, &[]),
    audited("dropIndexes", "dropIndex", Collection, &["index"]),
    audited("dropRole", "dropRole", Role, &[]),
    audited("dropUser", "dropUser", User, &[]),
    audited("frondBranch", "frondBranch", Database, BRANCH_FIELDS).with_fields(),
    audited("frondClock", "frondClock", Server, &["accept"]).with_fields(),
    audited("frondClone", "frondClone", Database, &[]),
    audited("frondErase", "frondErase", Database, &["collection", "confirm", "dryRun", "fields"]),
    audited("frondFetch", "frondFetch", Database, &["remote"]),
    audited("frondGc", "frondGc", Server, &["purge", "undoSeconds"]),
    audited("frondHandOver", "frondHandOver", Server, &["generation", "step"]),
    audited("frondMergeRules", "frondMergeRules", Database, &["collection", "rules"]),
    audited("frondPolicy", "frondPolicy", Database, &["remove", "set", "thin"]).with_fields(),
    audited("frondPull", "frondPull", Database, &["branch", "remote"]),
    audited("frondPush", "frondPush", Database, &["branch", "forceWithLease", "remote", "tags"]),
    audited("frondReflog", "frondReflog", Database, &["expireBefore"]).with_fields(),
    audited("frondRemote", "frondRemote", Database, &["name", "remove"]).with_fields(),
    audited("frondReset", "frondReset", Database, &["hard", "mode", "target"]),
    audited("frondRestore", "frondRestore", Database, &["collection", "from"]),
    audited("frondTag", "frondTag", Database, &["delete", "force", "tag", "target"]).with_fields(),
    audited("frondUndo", "frondUndo", Database, &["branch", "change", "dropped"]),
    audited("grantPrivilegesToRole", "grantPrivilegesToRole", Role, &["privileges"]),
    audited("grantRolesToRole", "grantRolesToRole", Role, &["roles"]),
    audited("grantRolesToUser", "grantRolesToUser", User, &["roles"]),
    audited("logRotate", "rotateLog", Server, &[]),
    audited("logout", "logout", Server, &[]),
    audited("renameCollection", "renameCollection", Name, &[]),
    audited("revokePrivilegesFromRole", "revokePrivilegesFromRole", Role, &["privileges"]),
    audited("revokeRolesFromRole", "revokeRolesFromRole", Role, &["roles"]),
    audited("revokeRolesFromUser", "revokeRolesFromUser", User, &["roles"]),
    audited("rotateCertificates", "rotateCertificates", Server, &[]),
    audited("setClusterParameter", "setClusterParameter", Server, &[]),
    audited("setParameter", "setParameter", Server, &[]),
    audited("shutdown", "shutdown", Server, &[]),
    audited("updateRole", "updateRole", Role, &["privileges", "roles"]),
    audited("updateUser", "updateUser", User, &["roles"]),
];

fn find(command: &str, body: Document<'_>) -> Option<&'static Audited> {
    let found = AUDITED.binary_search_by_key(&command, |audited| audited.command);
    let audited = &AUDITED[found.ok()?];
    let has_field = || audited.fields.iter().any(|field| body.get(field).is_some());
    (!audited.needs_field || has_field()).then_some(audited)
}

/// A command that may have to be recorded.
pub struct Watched<'a> {
    server: &'a Shared,
    peer: &'a Peer,
    command: &'static str,
    database: &'a str,
    body: Document<'a>,
    audited: Option<&'static Audited>,
    /// The logged-in user before the command runs, as the line has it.
    before: Option<DocumentBuilder>,
}

/// Writes a line, unless the filter leaves it out.
fn append(server: &Shared, line: &DocumentBuf) {
    if !server.audit_log.records(line.view()) {
        return;
    }
    let mut text = String::new();
    extended_json::write(line.view(), Form::Relaxed, &mut text);
    if let Err(error) = server.audit_log.append(&text) {
        server.log.write(&log::audit_failed(), |attributes| {
            attributes.append("error", Value::String(&error.to_string()));
        });
    }
}

/// Begins to watch a command: it may be one to record.
///
/// # Errors
/// `OperationFailed` (96) if it is and the log can't be written.
pub fn watch<'a>(
    server: &'a Shared,
    peer: &'a Peer,
    command: &'static str,
    (database, body): (&'a str, Document<'a>),
) -> Result<Option<Watched<'a>>, Error> {
    if !server.audit_log.is_on() {
        return Ok(None);
    }
    let audited = find(command, body);
    if audited.is_some() || matches!(command, "saslStart" | "saslContinue") {
        server.audit_log.check().map_err(|error| {
            let message = format!("the audit log can't be written: {error}");
            Error::invalid(Code::OperationFailed, message)
        })?;
    }
    // A client that logs out, or drops its own user, has no name afterwards.
    let before = audited.map(|_| head(server, peer));
    Ok(Some(Watched { server, peer, command, database, body, audited, before }))
}

impl Watched<'_> {
    /// Records how it ended, if it is to be recorded.
    pub fn end(self, error: Option<&Error>) {
        let code = error.map_or(0, |error| error.code.number());
        let is_refused = error.is_some_and(|error| error.code == Code::Unauthorized);
        let line = if is_refused {
            let mut line = head(self.server, self.peer);
            let param = |param: &mut DocumentBuilder| {
                let namespace = self.namespace();
                param
                    .append("command", Value::String(self.command))
                    .append("ns", Value::String(&namespace));
            };
            finish(&mut line, "authCheck", param, code)
        } else {
            let (Some(audited), Some(mut line)) = (self.audited, self.before.clone()) else {
                return;
            };
            finish(&mut line, audited.event, |param| self.append_param(audited, param), code)
        };
        append(self.server, &line);
    }

    /// `database.collection`, as far as the command names one.
    fn namespace(&self) -> String {
        match self.body.iter().next() {
            Some((_, Value::String(name))) => format!("{}.{name}", self.database),
            _ => self.database.to_owned(),
        }
    }

    fn append_param(&self, audited: &Audited, param: &mut DocumentBuilder) {
        let own = self.body.iter().next().and_then(|(_, own)| own.as_str()).unwrap_or_default();
        match audited.subject {
            User | Role => {
                let name = if audited.subject == User { "user" } else { "role" };
                param.append(name, Value::String(own)).append("db", Value::String(self.database));
                if audited.command == "updateUser" {
                    let has_password = self.body.get("pwd").is_some();
                    param.append("passwordChanged", Value::Boolean(has_password));
                }
            }
            Collection => {
                param.append("ns", Value::String(&self.namespace()));
            }
            Name => {
                let new = self.body.get("to").and_then(|to| to.as_str()).unwrap_or_default();
                param.append("old", Value::String(own)).append("new", Value::String(new));
            }
            Database => {
                param.append("ns", Value::String(self.database));
            }
            Server => {}
        }
        for field in audited.fields {
            match (*field, self.body.get(field)) {
                ("indexes", Some(Value::Array(specs))) => {
                    param.begin_array("indexes");
                    for spec in specs.iter().filter_map(|spec| spec.as_document()) {
                        param.push(spec.get("name").unwrap_or(Value::Null));
                    }
                    param.end();
                }
                (field, Some(value)) => {
                    param.append(field, value);
                }
                (_, None) => {}
            }
        }
    }
}

/// Records a login: `error` is why it failed.
pub fn login(
    server: &Shared,
    peer: &Peer,
    (user, mechanism): (Option<&UserName>, &str),
    error: Option<&Error>,
) {
    if !server.audit_log.is_on() {
        return;
    }
    let mut line = head(server, peer);
    let param = |param: &mut DocumentBuilder| {
        if let Some(user) = user {
            param
                .append("user", Value::String(&user.user))
                .append("db", Value::String(&user.database));
        }
        param.append("mechanism", Value::String(mechanism));
    };
    let code = error.map_or(0, |error| error.code.number());
    let line = finish(&mut line, "authenticate", param, code);
    append(server, &line);
}

/// The fields that every line begins with: when, where, and who.
fn head(server: &Shared, peer: &Peer) -> DocumentBuilder {
    let mut line = DocumentBuilder::new();
    line.append("ts", Value::DateTime(server.frond.wall_clock()()));
    append_address(&mut line, "local", server.address);
    append_address(&mut line, "remote", peer.address);
    let login = peer.login();
    line.begin_array("users");
    for login in login.iter() {
        line.push_begin_document()
            .append("user", Value::String(&login.user.user))
            .append("db", Value::String(&login.user.database))
            .end();
    }
    line.end();
    let rights = peer.rights(&server.accounts, &server.frond).ok().flatten();
    line.begin_array("roles");
    for role in rights.iter().flat_map(|rights| &rights.roles) {
        line.push_begin_document()
            .append("role", Value::String(&role.role))
            .append("db", Value::String(&role.database))
            .end();
    }
    line.end();
    line
}

fn append_address(line: &mut DocumentBuilder, name: &str, address: SocketAddr) {
    line.begin_document(name)
        .append("ip", Value::String(&address.ip().to_string()))
        .append("port", Value::Int32(address.port().into()))
        .end();
}

/// The whole line: `atype` is its first field, as mongod has it.
fn finish(
    head: &mut DocumentBuilder,
    event: &str,
    param: impl FnOnce(&mut DocumentBuilder),
    code: i32,
) -> DocumentBuf {
    let mut line = DocumentBuilder::new();
    line.append("atype", Value::String(event));
    for (name, value) in std::mem::take(head).build().view().iter() {
        line.append(name, value);
    }
    line.begin_document("param");
    param(&mut line);
    line.end().append("result", Value::Int32(code));
    line.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;

    #[test]
    fn the_table_is_sorted_and_has_commands_that_are_there() {
        assert!(AUDITED.is_sorted_by_key(|audited| audited.command));
        for audited in AUDITED {
            assert!(tables::find(audited.command).is_some(), "{}", audited.command);
        }
    }
}
