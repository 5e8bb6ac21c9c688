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
use super::{
    EXTERNAL, Endpoints, Grants, Privilege, RESTRICTIONS, Restriction, RoleName, UserName,
    builtin_roles, privilege,
};
use crate::common_fields::UUID_SUBTYPE;
use crate::scram::{Credentials, Mechanism, random_bytes};

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
    /// From where it may log in.
    pub restrictions: Vec<Restriction>,
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
    /// From where those may log in who have it.
    pub restrictions: Vec<Restriction>,
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
        if !self.restrictions.is_empty() {
            Restriction::append_all(&mut builder, &self.restrictions);
        }
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

    /// The user of a document that a tool brings; it gets an id if it has none, as users of
    /// servers before 4.0.9 have.
    ///
    /// # Errors
    /// `BadValue` if it is none of a user; an error of the source of random numbers.
    pub fn restored(document: Document<'_>) -> Result<User, Error> {
        let id = match document.get("userId") {
            None => Some(new_user_id()?),
            Some(_) => None,
        };
        User::decode_with(document, id).map_err(|error| brought(document, &error))
    }

    fn decode(document: Document<'_>) -> Result<User, Error> {
        User::decode_with(document, None)
    }

    /// Reads a user, who gets this id if they have none.
    fn decode_with(document: Document<'_>, id: Option<[u8; 16]>) -> Result<User, Error> {
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
            Some(_) => None,
            None => id,
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
            restrictions: restrictions(document)?,
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
        if !self.restrictions.is_empty() {
            Restriction::append_all(&mut builder, &self.restrictions);
        }
        builder.build()
    }

    /// The role of a document that a tool brings.
    ///
    /// # Errors
    /// `BadValue` if it is none of a role.
    pub fn restored(document: Document<'_>) -> Result<Role, Error> {
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
            restrictions: restrictions(document)?,
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

    /// Whether a user may log in over such a connection.
    pub fn may_log_in(&self, user: &User, ends: Endpoints) -> bool {
        let roles = self.with_included(&user.roles);
        let of_roles = roles.iter().filter_map(|role| self.roles.get(role));
        let of_roles = of_roles.map(|role| &role.restrictions);
        of_roles.chain([&user.restrictions]).all(|list| Restriction::is_any_met(list, ends))
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

/// Makes the id of a new user: a random UUID.
///
/// # Errors
/// As [`random_bytes`].
pub fn new_user_id() -> Result<[u8; 16], Error> {
    let bytes = random_bytes(16)?;
    let mut id: [u8; 16] =
        bytes.try_into().map_err(|_| Error::internal("sixteen bytes were asked for"))?;
    (id[6], id[8]) = (id[6] & 0x0f | 0x40, id[8] & 0x3f | 0x80);
    Ok(id)
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

fn restrictions(document: Document<'_>) -> Result<Vec<Restriction>, Error> {
    match document.get(RESTRICTIONS) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            Restriction::read_all(list.iter()).map_err(|_| damaged(RESTRICTIONS))
        }
        Some(_) => Err(damaged(RESTRICTIONS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Action, Branch, Resource, Target};

    fn role(name: &str, roles: &[&str], privileges: Vec<Privilege>) -> Role {
        let name_of = |role: &str| RoleName { database: "shop".to_owned(), role: role.to_owned() };
        let roles = roles.iter().map(|role| name_of(role)).collect();
        Role { name: name_of(name), privileges, roles, restrictions: Vec::new() }
    }

    fn restriction(client: &str) -> Vec<Restriction> {
        let document =
            frond_doc::extended_json::parse(&format!(r#"{{"clientSource": ["{client}"]}}"#));
        let document = document.expect("JSON");
        Restriction::read_all([Value::from(&document)].into_iter()).expect("a restriction")
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
            restrictions: restriction("192.0.2.0/24"),
        };
        assert_eq!(User::decode(user.to_document().view()).expect("read"), user);
        let find = Privilege::new(Resource::namespace("shop", "a"), &[Action::Find]);
        let role =
            Role { restrictions: restriction("::1"), ..role("sales", &["read"], vec![find]) };
        assert_eq!(Role::decode(role.to_document().view()).expect("read"), role);
        assert!(User::decode(role.to_document().view()).is_err());
        assert!(Role::decode(user.to_document().view()).is_err());
    }

    /// Users of old servers have no id: each that is brought gets one of its own.
    #[test]
    fn a_user_without_an_id_gets_one_where_a_tool_brings_it_and_only_there() {
        let credentials = DocumentBuf::empty();
        let name = |database: &str, user: &str| {
            let mut document = DocumentBuilder::new();
            document.append("db", Value::String(database)).append("user", Value::String(user));
            document.append("credentials", Value::from(&credentials));
            document.begin_array("roles").end();
            document.build()
        };
        let old = name("shop", "ann");
        let [one, two] = [User::restored(old.view()), User::restored(old.view())];
        let (one, two) = (one.expect("restored"), two.expect("restored"));
        assert_ne!(one.id, two.id);
        assert_eq!((one.id[6] >> 4, one.id[8] >> 6), (4, 2), "it is a random UUID");
        assert!(User::decode(old.view()).is_err());
    }

    /// The restrictions of a user and of all roles must be met, included ones, too.
    #[test]
    fn roles_restrict_those_who_have_them() {
        let mut directory = Directory::default();
        let inner =
            Role { restrictions: restriction("192.0.2.0/24"), ..role("b", &[], Vec::new()) };
        for role in [role("a", &["b"], Vec::new()), inner] {
            directory.roles.insert(role.name.clone(), role);
        }
        let user = |roles: &[&str], restrictions| User {
            name: UserName { database: "shop".to_owned(), user: "ann".to_owned() },
            id: [7; 16],
            credentials: Vec::new(),
            roles: role("", roles, Vec::new()).roles,
            custom_data: None,
            restrictions,
        };
        let from = |client: &str| Endpoints { client: client.parse().ok(), server: None };
        let free = user(&[], Vec::new());
        assert!(directory.may_log_in(&free, Endpoints::default()));
        let by_role = user(&["a"], Vec::new());
        assert!(directory.may_log_in(&by_role, from("192.0.2.9")));
        assert!(!directory.may_log_in(&by_role, from("192.0.3.9")));
        assert!(!directory.may_log_in(&by_role, Endpoints::default()));
        let never = user(&["a"], restriction("::1"));
        assert!(!directory.may_log_in(&never, from("192.0.2.9")));
        assert!(!directory.may_log_in(&never, from("::1")));
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
