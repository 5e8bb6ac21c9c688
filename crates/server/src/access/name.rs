//! Names of users and roles: each belongs to a database.

use std::fmt;

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value, ValueBuf};
use frond_query::Code;

use crate::fields::Fields;

/// The database, so to speak, of users who are known elsewhere: by certificates.
pub const EXTERNAL: &str = "$external";

/// A user's name, `user@database`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct UserName {
    /// The database that the user belongs to.
    pub database: String,
    /// The name within it.
    pub user: String,
}

/// A role's name, `role@database`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RoleName {
    /// The database that the role belongs to.
    pub database: String,
    /// The name within it.
    pub role: String,
}

impl fmt::Display for UserName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.user, self.database)
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.role, self.database)
    }
}

impl UserName {
    /// Reads a user's name as commands have it: a string for a user of `database`, or `{user, db}`.
    ///
    /// # Errors
    /// `BadValue` if it is neither.
    pub fn read(value: Value<'_>, database: &str) -> Result<UserName, Error> {
        let (user, database) = read(value, "user", database)?;
        Ok(UserName { database, user })
    }

    /// Appends `user` and `db` to the document that is being built.
    pub fn append(&self, builder: &mut DocumentBuilder) {
        builder
            .append("user", Value::String(&self.user))
            .append("db", Value::String(&self.database));
    }
}

impl RoleName {
    /// Reads a role's name as commands have it: a string for a role of `database`, or `{role, db}`.
    ///
    /// # Errors
    /// `BadValue` if it is neither.
    pub fn read(value: Value<'_>, database: &str) -> Result<RoleName, Error> {
        let (role, database) = read(value, "role", database)?;
        Ok(RoleName { database, role })
    }

    /// Reads an array of roles.
    ///
    /// # Errors
    /// As [`RoleName::read`].
    pub fn read_all<'a>(
        values: impl Iterator<Item = Value<'a>>,
        database: &str,
    ) -> Result<Vec<RoleName>, Error> {
        values.map(|value| RoleName::read(value, database)).collect()
    }

    /// Appends `role` and `db` to the document that is being built.
    pub fn append(&self, builder: &mut DocumentBuilder) {
        builder
            .append("role", Value::String(&self.role))
            .append("db", Value::String(&self.database));
    }
}

/// Appends an array of roles' names.
pub fn append_roles(builder: &mut DocumentBuilder, name: &str, roles: &[RoleName]) {
    builder.begin_array(name);
    for role in roles {
        builder.push_begin_document();
        role.append(builder);
        builder.end();
    }
    builder.end();
}

/// Roles as `$$USER_ROLES` has them.
pub fn user_roles_value(roles: &[RoleName]) -> ValueBuf {
    let mut roles_array = DocumentBuilder::new();
    roles_array.begin_array("");
    for role in roles {
        let RoleName { database, role } = role;
        roles_array.push_begin_document();
        roles_array.append("_id", Value::String(&format!("{database}.{role}")));
        roles_array.append("role", Value::String(role)).append("db", Value::String(database));
        roles_array.end();
    }
    roles_array.end();
    ValueBuf::from_only_field(roles_array.build())
}

fn read(value: Value<'_>, kind: &str, database: &str) -> Result<(String, String), Error> {
    let (name, database) = match value {
        Value::String(name) => (name.to_owned(), database.to_owned()),
        Value::Document(document) => {
            let mut fields = Fields::of_part(kind, document)?;
            let name = fields.required_string(kind)?.to_owned();
            let database = fields.required_string("db")?.to_owned();
            fields.finish()?;
            (name, database)
        }
        other => {
            let message = format!(
                "a {kind} is named by a string or by {{{kind}, db}}, not by a value of type {}",
                other.element_type().alias()
            );
            return Err(Error::invalid(Code::BadValue, message));
        }
    };
    if name.is_empty() || name.contains('\0') || database.is_empty() || database.contains('\0') {
        let message = format!("a {kind} needs a name and a database, without NULs");
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok((name, database))
}
