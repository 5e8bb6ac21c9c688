//! `_mergeAuthzCollections`: users and roles that mongorestore has put into collections of their
//! own, as the last step of restoring them.
//!
//! Existing users and roles stay; with `drop` they are replaced, and those that aren't brought go.
//! All changes are one transaction.

use std::collections::BTreeSet;

use frond_db::{AccessChange, Error, FindRequest};
use frond_doc::{Document, DocumentBuf, DocumentBuilder};
use frond_query::Code;

use crate::access::{Directory, Role, RoleName, User, UserName};
use crate::commands::{roles, users};
use crate::request::{Answer, Request, split_namespace};

/// The users and roles that a tool brings.
struct Brought {
    users: Option<Vec<User>>,
    roles: Option<Vec<Role>>,
    /// The database whose users and roles are meant; empty if all are.
    database: String,
    drops: bool,
}

/// `_mergeAuthzCollections`
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let [users_in, roles_in] =
        [fields.string("tempUsersCollection")?, fields.string("tempRolesCollection")?]
            .map(|name| name.filter(|name| !name.is_empty()));
    let database = fields.required_string("db")?.to_owned();
    let drops = fields.optional_boolean("drop")?.ok_or_else(|| fields.missing("drop"))?;
    fields.finish()?;
    if users_in.is_none() && roles_in.is_none() {
        let message = "Must provide at least one of \"tempUsersCollection\" and \
                       \"tempRolesCollection\"";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let is_meant = |document: &DocumentBuf| {
        let of = document.get("db").and_then(|of| of.as_str());
        database.is_empty() || of == Some(&database)
    };
    let brought = Brought {
        users: users_in.map(|name| read(request, name, &is_meant, User::restored)).transpose()?,
        roles: roles_in.map(|name| read(request, name, &is_meant, Role::restored)).transpose()?,
        database: database.clone(),
        drops,
    };
    let server = request.server;
    server.accounts.change(&server.frond, |directory| Ok((brought.changes(directory), ())))?;
    Ok(DocumentBuilder::new())
}

/// Reads the documents of a collection as users or roles.
fn read<T>(
    request: &Request<'_>,
    namespace: &str,
    is_meant: &dyn Fn(&DocumentBuf) -> bool,
    restored: fn(Document<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let (database, collection) = split_namespace(namespace)?;
    let database = request.database_named(database)?;
    let mut read = Vec::new();
    for document in database.find(collection, &FindRequest::default())? {
        let document = document?;
        if is_meant(&document) {
            read.push(restored(document.view())?);
        }
    }
    Ok(read)
}

impl Brought {
    fn is_meant(&self, database: &str) -> bool {
        self.database.is_empty() || self.database == database
    }

    fn changes(&self, directory: &Directory) -> Vec<AccessChange> {
        let mut changes = Vec::new();
        if let Some(brought) = &self.roles {
            let is_new = |role: &&Role| self.drops || !directory.roles.contains_key(&role.name);
            changes.extend(brought.iter().filter(is_new).map(roles::stored));
            let named: BTreeSet<&RoleName> = brought.iter().map(|role| &role.name).collect();
            let others = directory.roles.keys().filter(|name| !named.contains(name));
            let gone = others.filter(|name| self.drops && self.is_meant(&name.database));
            changes.extend(gone.map(|name| roles::changed(name, None)));
        }
        if let Some(brought) = &self.users {
            let is_new = |user: &&User| self.drops || !directory.users.contains_key(&user.name);
            changes.extend(brought.iter().filter(is_new).map(users::stored));
            let named: BTreeSet<&UserName> = brought.iter().map(|user| &user.name).collect();
            let others = directory.users.keys().filter(|name| !named.contains(name));
            let gone = others.filter(|name| self.drops && self.is_meant(&name.database));
            changes.extend(gone.map(|name| users::changed(name, None)));
        }
        changes
    }
}
