//! The users and roles of a data directory, read into memory as a whole: there are some thousands
//! at most, and they change rarely.
//!
//! Their documents have MongoDB's form, so that its tools can carry them from one server to
//! another.

use std::collections::{BTreeMap, BTreeSet};

use frond_db::{AccessKind, Error, Frond};
use frond_doc::{Binary, Document, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use super::name::append_roles;
use super::{EXTERNAL, Grants, Privilege, RoleName, UserName, builtin_roles, privilege};
use crate::common_fields::UUID_SUBTYPE;
use crate::scram::{Credentials, Mechanism};

/// A user.
#[derive(Clone, PartialEq, Debug)]
pub struct User {
    /// Its name.
    pub name: UserName,
    /// A UUID that another user of this name, made later, wouldn't have.
    pub id: [u8; 16],
    /// The credentials by which it logs in.
    pub credentials: Vec<(Mechanism, Credentials)>,
    /// The roles that were granted to it.
    pub roles: Vec<RoleName>,
    /// A client's notes about it.
    pub custom_data: Option<DocumentBuf>,
}

/// A user-defined role.
#[derive(Clone, PartialEq, Debug)]
pub struct Role {
    /// Its name.
    pub name: RoleName,
    /// The privileges it grants by itself.
    pub privileges: Vec<Privilege>,
    /// The roles it includes.
    pub roles: Vec<RoleName>,
}

/// All users and roles.
#[derive(Clone, Default)]
pub struct Directory {
    /// The users.
    pub users: BTreeMap<UserName, User>,
    /// The user-defined roles.
    pub roles: BTreeMap<RoleName, Role>,
    /// The secret by which logins of users that don't exist are answered; empty before there are
    /// any users.
    pub secret: Vec<u8>,
}

impl User {
    /// Returns the credentials by which the server checks its password.
    pub fn credentials_of(&self, mechanism: Mechanism) -> Option<&Credentials> {
        self.credentials.iter().find(|(known, _)| *known == mechanism).map(|(_, known)| known)
    }

    /// Its document, as it is stored and as `admin.system.users` has it.
    pub fn to_document(&self) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        let id = format!("{}.{}", self.name.database, self.name.user);
        builder.append("_id", Value::String(&id));
        self.append_id(&mut builder);
        self.name.append(&mut builder);
        self.append_credentials(&mut builder);
        if let Some(data) = &self.custom_data {
            builder.append("customData", Value::from(data));
        }
        append_roles(&mut builder, "roles", &self.roles);
        builder.build()
    }

    /// Appends `userId`.
    pub fn append_id(&self, builder: &mut DocumentBuilder) {
        let binary = Binary { subtype: UUID_SUBTYPE, bytes: &self.id };
        builder.append("userId", Value::Binary(binary));
    }

    /// Appends `credentials`.
    pub fn append_credentials(&self, builder: &mut DocumentBuilder) {
        builder.begin_document("credentials");
        if self.name.database == EXTERNAL {
            builder.append("external", Value::Boolean(true));
        }
        for (mechanism, credentials) in &self.credentials {
            credentials.append(builder, *mechanism);
        }
        builder.end();
    }

    /// The user of a document that a tool brings.
    ///
    /// # Errors
    /// `BadValue` if it is none of a user; `CommandNotSupported` if Frond lacks what it asks for.
    pub fn restored(document: Document<'_>) -> Result<User, Error> {
        refuse_restrictions(document)?;
        User::decode(document).map_err(|error| brought(document, &error))
    }

    fn decode(document: Document<'_>) -> Result<User, Error> {
        let stored = document.get("credentials").and_then(|value| value.as_document());
        let stored = stored.ok_or_else(|| damaged("credentials"))?;
        let mut credentials = Vec::new();
        for mechanism in Mechanism::ALL {
            if let Some(Value::Document(of_one)) = stored.get(mechanism.name()) {
                let of_one = Credentials::read(of_one, mechanism);
                credentials.push((mechanism, of_one.ok_or_else(|| damaged(mechanism.name()))?));
            }
        }
        let id = match document.get("userId") {
            Some(Value::Binary(binary)) => binary.bytes.try_into().ok(),
            _ => None,
        };
        Ok(User {
            name: UserName { database: text(document, "db")?, user: text(document, "user")? },
            id: id.ok_or_else(|| damaged("userId"))?,
            credentials,
            roles: roles(document)?,
            custom_data: document
                .get("customData")
                .and_then(|data| data.as_document())
                .map(|data| data.to_buf()),
        })
    }
}

impl Role {
    /// Its document, as it is stored and as `admin.system.roles` has it.
    pub fn to_document(&self) -> DocumentBuf {
        let mut builder = DocumentBuilder::new();
        let id = format!("{}.{}", self.name.database, self.name.role);
        builder.append("_id", Value::String(&id));
        self.name.append(&mut builder);
        Privilege::append_all(&mut builder, "privileges", &self.privileges);
        append_roles(&mut builder, "roles", &self.roles);
        builder.build()
    }

    /// The role of a document that a tool brings.
    ///
    /// # Errors
    /// `BadValue` if it is none of a role; `CommandNotSupported` if Frond lacks what it asks for.
    pub fn restored(document: Document<'_>) -> Result<Role, Error> {
        refuse_restrictions(document)?;
        Role::decode(document).map_err(|error| brought(document, &error))
    }

    fn decode(document: Document<'_>) -> Result<Role, Error> {
        let privileges = document.get("privileges").and_then(|value| value.as_array());
        let privileges = privileges.ok_or_else(|| damaged("privileges"))?;
        Ok(Role {
            name: RoleName { database: text(document, "db")?, role: text(document, "role")? },
            privileges: Privilege::read_all(privileges.iter())
                .map_err(|error| Error::damaged(format!("a stored role: {}", error.message)))?,
            roles: roles(document)?,
        })
    }
}

impl Directory {
    /// Reads the users and roles of a data directory.
    ///
    /// # Errors
    /// An error of reading; damage if a document is none of a user or role.
    pub fn read(frond: &Frond) -> Result<Directory, Error> {
        let mut directory = Directory::default();
        for document in frond.access_documents(AccessKind::User)? {
            let user = User::decode(document.view())?;
            directory.users.insert(user.name.clone(), user);
        }
        for document in frond.access_documents(AccessKind::Role)? {
            let role = Role::decode(document.view())?;
            directory.roles.insert(role.name.clone(), role);
        }
        for document in frond.access_documents(AccessKind::Secret)? {
            if let Some(Value::Binary(secret)) = document.get("secret") {
                directory.secret = secret.bytes.to_vec();
            }
        }
        Ok(directory)
    }

    /// Whether there is such a role, built in or not.
    pub fn has_role(&self, role: &RoleName) -> bool {
        self.roles.contains_key(role) || builtin_roles::is_builtin(role)
    }

    /// `roles` and all that they include, each once, by name.
    pub fn with_included(&self, roles: &[RoleName]) -> Vec<RoleName> {
        let mut found = BTreeSet::new();
        let mut left: Vec<&RoleName> = roles.iter().collect();
        while let Some(role) = left.pop() {
            if self.has_role(role) && found.insert(role.clone()) {
                left.extend(self.roles.get(role).iter().flat_map(|role| &role.roles));
            }
        }
        found.into_iter().collect()
    }

    /// Returns the privileges that `roles` grant, with all roles that they include.
    pub fn privileges_of(&self, roles: &[RoleName]) -> Vec<Privilege> {
        let mut privileges = Vec::new();
        for role in self.with_included(roles) {
            let of_role = match self.roles.get(&role) {
                Some(role) => role.privileges.clone(),
                None => builtin_roles::privileges(&role).unwrap_or_default(),
            };
            of_role.into_iter().for_each(|of_one| privilege::add(&mut privileges, of_one));
        }
        privileges
    }

    /// Returns the rights of a user with `roles`.
    pub fn grants_of(&self, roles: &[RoleName]) -> Grants {
        Grants::new(self.privileges_of(roles))
    }
}

/// Returns the error for a document of a tool that is wrong.
fn brought(document: Document<'_>, error: &Error) -> Error {
    let id = document.get("_id").and_then(|id| id.as_str()).unwrap_or_default();
    Error::invalid(Code::BadValue, format!("user or role {id}: {}", error.message))
}

/// Refuses restrictions: without them more logins would be taken than before.
fn refuse_restrictions(document: Document<'_>) -> Result<(), Error> {
    let restrictions = document.get("authenticationRestrictions").and_then(|it| it.as_array());
    if restrictions.is_none_or(|restrictions| restrictions.iter().next().is_none()) {
        return Ok(());
    }
    let id = document.get("_id").and_then(|id| id.as_str()).unwrap_or_default();
    let message = format!("{id} has authenticationRestrictions, which Frond doesn't support");
    Err(Error::invalid(Code::CommandNotSupported, message))
}

fn damaged(name: &str) -> Error {
    Error::damaged(format!("a stored user or role has no proper field {name}"))
}

fn text(document: Document<'_>, name: &str) -> Result<String, Error> {
    let text = document.get(name).and_then(|value| value.as_str());
    text.map(str::to_owned).ok_or_else(|| damaged(name))
}

fn roles(document: Document<'_>) -> Result<Vec<RoleName>, Error> {
    let roles = document.get("roles").and_then(|value| value.as_array());
    let roles = roles.ok_or_else(|| damaged("roles"))?;
    RoleName::read_all(roles.iter(), "").map_err(|_| damaged("roles"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Action, Branch, Resource, Target};

    fn role(name: &str, roles: &[&str], privileges: Vec<Privilege>) -> Role {
        let name_of = |role: &str| RoleName { database: "shop".to_owned(), role: role.to_owned() };
        let roles = roles.iter().map(|role| name_of(role)).collect();
        Role { name: name_of(name), privileges, roles }
    }

    #[test]
    fn documents_are_read_as_they_were_written() {
        let credentials = Mechanism::ALL.map(|mechanism| {
            let credentials = Credentials::of_unknown_user(mechanism, &[1], "ann");
            (mechanism, credentials)
        });
        let user = User {
            name: UserName { database: "shop".to_owned(), user: "ann".to_owned() },
            id: [7; 16],
            credentials: credentials.to_vec(),
            roles: vec![RoleName { database: "shop".to_owned(), role: "read".to_owned() }],
            custom_data: Some(frond_doc::document! { "a": 1 }),
        };
        assert_eq!(User::decode(user.to_document().view()).expect("read"), user);
        let find = Privilege::new(Resource::namespace("shop", "a"), &[Action::Find]);
        let role = role("sales", &["read"], vec![find]);
        assert_eq!(Role::decode(role.to_document().view()).expect("read"), role);
        assert!(User::decode(role.to_document().view()).is_err());
        assert!(Role::decode(user.to_document().view()).is_err());
    }

    /// Roles that include each other in a ring, and one that is gone, do no harm.
    #[test]
    fn roles_include_roles() {
        let find = Privilege::new(Resource::namespace("shop", "a"), &[Action::Find]);
        let mut directory = Directory::default();
        for role in [
            role("one", &["two", "gone"], Vec::new()),
            role("two", &["one", "three"], Vec::new()),
            role("three", &[], vec![find]),
        ] {
            directory.roles.insert(role.name.clone(), role);
        }
        let one = [RoleName { database: "shop".to_owned(), role: "one".to_owned() }];
        let included = directory.with_included(&one);
        let names: Vec<&str> = included.iter().map(|role| role.role.as_str()).collect();
        assert_eq!(names, ["one", "three", "two"]);
        let target = Target::Namespace {
            database: "shop",
            collection: Some("a"),
            branch: Branch::Named("main"),
        };
        assert!(directory.grants_of(&one).allow(Action::Find, target));
        assert!(!directory.grants_of(&one).allow(Action::Insert, target));
    }
}
