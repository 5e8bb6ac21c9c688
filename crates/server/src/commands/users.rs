//! createUser, updateUser, dropUser, dropAllUsersFromDatabase, grantRolesToUser,
//! revokeRolesFromUser, usersInfo, invalidateUserCache.
//!
//! A user belongs to a database, not to a version of it: on `shop@dev` these commands are about
//! `shop`'s users.

use frond_db::{AccessChange, AccessKind, Error};
use frond_doc::{DocumentBuf, DocumentBuilder, Value, document};
use frond_query::{Code, Filter};

use crate::access::{
    Directory, EXTERNAL, Privilege, RESTRICTIONS, Restriction, RoleName, User, UserName,
    append_roles, new_user_id,
};
use crate::authorization;
use crate::commands::login::home;
use crate::commands::reply;
use crate::fields::Fields;
use crate::request::{Answer, Request};
use crate::scram::{Credentials, Mechanism};

/// The version of MongoDB's documents of users and roles that these have: tools refuse others.
pub const AUTH_SCHEMA_VERSION: i32 = 5;

const USER_EXISTS: Code = Code::Location(51_003);

/// The fields of `createUser` and `updateUser` about a user.
struct CredentialFields {
    credentials: Option<Vec<(Mechanism, Credentials)>>,
    mechanisms: Option<Vec<Mechanism>>,
    roles: Option<Vec<RoleName>>,
    custom_data: Option<DocumentBuf>,
    restrictions: Option<Vec<Restriction>>,
}

/// The user that a command names by its own field.
fn named(request: &Request<'_>) -> Result<UserName, Error> {
    let user = request.own_text();
    if user.is_empty() || user.contains('\0') {
        return Err(Error::invalid(Code::BadValue, "a user needs a name"));
    }
    Ok(UserName { database: home(request.database_name)?, user: user.to_owned() })
}

fn read(fields: &mut Fields<'_>, user: &UserName) -> Result<CredentialFields, Error> {
    let password = fields.string("pwd")?;
    let digests = fields.optional_boolean("digestPassword")?.unwrap_or(true);
    let digestor = fields.string("passwordDigestor")?;
    let mechanisms = fields.array("mechanisms")?.map(|names| read_mechanisms(names.iter()));
    let mechanisms = mechanisms.transpose()?;
    let roles = fields.array("roles")?;
    let roles = roles.map(|roles| RoleName::read_all(roles.iter(), &user.database)).transpose()?;
    let custom_data = fields.document("customData")?.map(|data| data.to_buf());
    let restrictions = read_restrictions(fields)?;
    // Named for older servers; `digestPassword` is what counts.
    if digestor.is_some_and(|digestor| !["client", "server"].contains(&digestor)) {
        let message = "passwordDigestor must be 'client' or 'server'";
        return Err(Error::invalid(Code::BadValue, message));
    }
    if user.database == EXTERNAL && (password.is_some() || mechanisms.is_some()) {
        let message = "Cannot set the password for users defined on the '$external' database";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let is_digested = !digests || digestor == Some("client");
    let chosen = mechanisms.clone().unwrap_or_else(|| Mechanism::ALL.to_vec());
    let credentials = password.map(|password| credentials(user, password, &chosen, is_digested));
    let credentials = credentials.transpose()?;
    Ok(CredentialFields { credentials, mechanisms, roles, custom_data, restrictions })
}

/// Takes `authenticationRestrictions`.
///
/// # Errors
/// As [`Restriction::read_all`].
pub fn read_restrictions(fields: &mut Fields<'_>) -> Result<Option<Vec<Restriction>>, Error> {
    let list = fields.array(RESTRICTIONS)?;
    list.map(|list| Restriction::read_all(list.iter())).transpose()
}

fn read_mechanisms<'a>(names: impl Iterator<Item = Value<'a>>) -> Result<Vec<Mechanism>, Error> {
    let mut mechanisms = Vec::new();
    for name in names {
        let mechanism = name.as_str().and_then(Mechanism::named).ok_or_else(|| {
            let message = "Unknown auth mechanism: SCRAM-SHA-1 and SCRAM-SHA-256 are there";
            Error::invalid(Code::BadValue, message)
        })?;
        mechanisms.push(mechanism);
    }
    mechanisms.sort_unstable();
    mechanisms.dedup();
    if mechanisms.is_empty() {
        return Err(Error::invalid(Code::BadValue, "mechanisms field must not be empty"));
    }
    Ok(mechanisms)
}

fn credentials(
    user: &UserName,
    password: &str,
    mechanisms: &[Mechanism],
    is_digested: bool,
) -> Result<Vec<(Mechanism, Credentials)>, Error> {
    if password.is_empty() {
        return Err(Error::invalid(Code::BadValue, "Password cannot be empty"));
    }
    let mut credentials = Vec::new();
    for mechanism in mechanisms {
        let prepared = match (mechanism, is_digested) {
            (_, false) => mechanism.prepare(&user.user, password)?,
            (Mechanism::Sha1, true) => password.to_owned(),
            (Mechanism::Sha256, true) => {
                let message = "Use of SCRAM-SHA-256 requires undigested passwords";
                return Err(Error::invalid(Code::BadValue, message));
            }
        };
        credentials.push((*mechanism, Credentials::new(*mechanism, &prepared)?));
    }
    Ok(credentials)
}

/// Fails unless all roles are there.
///
/// # Errors
/// `RoleNotFound` (31).
pub fn check_roles(directory: &Directory, roles: &[RoleName]) -> Result<(), Error> {
    match roles.iter().find(|role| !directory.has_role(role)) {
        None => Ok(()),
        Some(role) => {
            let message = format!("Could not find role: {role}");
            Err(Error::invalid(Code::RoleNotFound, message))
        }
    }
}

/// Fails unless all roles are there and may be granted: roles belong to databases, and one of
/// `shop@dev` would grant nothing. Users and roles that have such a role keep it, until it is
/// revoked.
///
/// # Errors
/// `RoleNotFound` (31); `BadValue` (2) for a role of a version.
pub fn check_granted(directory: &Directory, roles: &[RoleName]) -> Result<(), Error> {
    if let Some(RoleName { database, role }) =
        roles.iter().find(|role| role.database.contains(['@', '%']))
    {
        let message = format!(
            "{database} is a version of a database, and roles belong to databases: grant {role} of \
             the database, or a role of your own whose privileges name branches by 'branch'"
        );
        return Err(Error::invalid(Code::BadValue, message));
    }
    check_roles(directory, roles)
}

/// The change that stores a user.
pub fn stored(user: &User) -> AccessChange {
    changed(&user.name, Some(user.to_document()))
}

/// The change that stores a user's document, or takes the user away.
pub fn changed(name: &UserName, document: Option<DocumentBuf>) -> AccessChange {
    let (database, name) = (name.database.clone(), name.user.clone());
    AccessChange { kind: AccessKind::User, database, name, document }
}

/// Changes a user that is there.
fn change(
    request: &Request<'_>,
    name: &UserName,
    work: impl FnOnce(&Directory, &mut User) -> Result<(), Error>,
) -> Answer {
    let server = request.server;
    server.accounts.change(&server.frond, |directory| {
        let mut user = directory.users.get(name).ok_or_else(|| not_found(name))?.clone();
        work(directory, &mut user)?;
        Ok((vec![stored(&user)], ()))
    })?;
    Ok(DocumentBuilder::new())
}

fn not_found(name: &UserName) -> Error {
    Error::invalid(Code::UserNotFound, format!("User '{name}' not found"))
}

/// `createUser`
pub fn create(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = named(request)?;
    if ["config", "local"].contains(&name.database.as_str()) {
        let message = format!("Cannot create users in the {} database", name.database);
        return Err(Error::invalid(Code::BadValue, message));
    }
    let given = read(&mut fields, &name)?;
    let missing = fields.missing("roles");
    fields.finish()?;
    let roles = given.roles.ok_or(missing)?;
    let credentials = match given.credentials {
        // Its certificate proves who it is.
        None if name.database == EXTERNAL => Vec::new(),
        credentials => credentials.ok_or_else(|| {
            let message = "Must provide a 'pwd' field for all user documents, except those with \
                           '$external' as the user's source db";
            Error::invalid(Code::BadValue, message)
        })?,
    };
    let (id, custom_data) = (new_user_id()?, given.custom_data);
    let restrictions = given.restrictions.unwrap_or_default();
    let user = User { name, id, credentials, roles, custom_data, restrictions };
    let server = request.server;
    server.accounts.change(&server.frond, |directory| {
        if request.rights.is_none()
            && server.accounts.is_enforced()
            && !authorization::is_first_user(server, request.peer, request.database_name)?
        {
            // Two may have come at once: one of them is the first.
            let message = "Command createUser requires authentication";
            return Err(Error::invalid(Code::Unauthorized, message));
        }
        if directory.users.contains_key(&user.name) {
            let message = format!("User \"{}\" already exists", user.name);
            return Err(Error::invalid(USER_EXISTS, message));
        }
        check_granted(directory, &user.roles)?;
        Ok((vec![stored(&user)], ()))
    })?;
    Ok(DocumentBuilder::new())
}

/// `updateUser`
pub fn update(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = named(request)?;
    let given = read(&mut fields, &name)?;
    fields.finish()?;
    let CredentialFields { credentials, mechanisms, roles, custom_data, restrictions } = given;
    let changes_login = credentials.is_some() || mechanisms.is_some() || restrictions.is_some();
    if !changes_login && roles.is_none() && custom_data.is_none() {
        let message = "Must specify at least one field to update in updateUser";
        return Err(Error::invalid(Code::BadValue, message));
    }
    change(request, &name, |directory, user| {
        if let Some(roles) = roles {
            check_granted(directory, &roles)?;
            user.roles = roles;
        }
        if let Some(data) = custom_data {
            user.custom_data = Some(data);
        }
        if let Some(restrictions) = restrictions {
            user.restrictions = restrictions;
        }
        match (credentials, mechanisms) {
            (Some(credentials), _) => user.credentials = credentials,
            (None, Some(mechanisms)) => {
                if mechanisms.iter().any(|of| user.credentials_of(*of).is_none()) {
                    let message = "mechanisms field must be a subset of previously set mechanisms";
                    return Err(Error::invalid(Code::BadValue, message));
                }
                user.credentials.retain(|(mechanism, _)| mechanisms.contains(mechanism));
            }
            (None, None) => {}
        }
        Ok(())
    })
}

/// `dropUser`
pub fn drop(request: &Request<'_>) -> Answer {
    let fields = request.fields()?;
    let name = named(request)?;
    fields.finish()?;
    let server = request.server;
    server.accounts.change(&server.frond, |directory| {
        if !directory.users.contains_key(&name) {
            return Err(not_found(&name));
        }
        Ok((vec![changed(&name, None)], ()))
    })?;
    Ok(DocumentBuilder::new())
}

/// `dropAllUsersFromDatabase`
pub fn drop_all(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let database = home(request.database_name)?;
    let server = request.server;
    let count = server.accounts.change(&server.frond, |directory| {
        let names = directory.users.keys().filter(|name| name.database == database);
        let changes: Vec<AccessChange> = names.map(|name| changed(name, None)).collect();
        let count = changes.len() as u64;
        Ok((changes, count))
    })?;
    let mut answer = DocumentBuilder::new();
    answer.append("n", reply::number(count));
    Ok(answer)
}

/// Takes `roles`, of the database that the command is for.
///
/// # Errors
/// `BadValue` if there are none.
pub fn read_roles(request: &Request<'_>, fields: &mut Fields<'_>) -> Result<Vec<RoleName>, Error> {
    let roles = fields.array("roles")?.ok_or_else(|| fields.missing("roles"))?;
    let roles = RoleName::read_all(roles.iter(), &home(request.database_name)?)?;
    if roles.is_empty() {
        let message = format!("{} command requires a non-empty \"roles\" array", request.name);
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok(roles)
}

/// Reads all that a command takes which grants or revokes roles.
fn named_with_roles(request: &Request<'_>) -> Result<(UserName, Vec<RoleName>), Error> {
    let mut fields = request.fields()?;
    let name = named(request)?;
    let roles = read_roles(request, &mut fields)?;
    fields.finish()?;
    Ok((name, roles))
}

/// Adds those of `roles` that aren't there.
pub fn grant(granted: &mut Vec<RoleName>, roles: Vec<RoleName>) {
    let new: Vec<RoleName> = roles.into_iter().filter(|role| !granted.contains(role)).collect();
    granted.extend(new);
}

/// `grantRolesToUser`
pub fn grant_roles(request: &Request<'_>) -> Answer {
    let (name, roles) = named_with_roles(request)?;
    change(request, &name, |directory, user| {
        check_granted(directory, &roles)?;
        grant(&mut user.roles, roles);
        Ok(())
    })
}

/// `revokeRolesFromUser`
pub fn revoke_roles(request: &Request<'_>) -> Answer {
    let (name, roles) = named_with_roles(request)?;
    change(request, &name, |directory, user| {
        check_roles(directory, &roles)?;
        user.roles.retain(|role| !roles.contains(role));
        Ok(())
    })
}

/// `invalidateUserCache`: what is remembered is what is stored, so there is nothing to do.
pub fn invalidate_cache(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    Ok(DocumentBuilder::new())
}

/// The parts of a user that `usersInfo` shows.
struct Shown {
    credentials: bool,
    privileges: bool,
    custom_data: bool,
    restrictions: bool,
}

/// `usersInfo`
pub fn users(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let shown = Shown {
        credentials: fields.boolean("showCredentials")?,
        privileges: fields.boolean("showPrivileges")?,
        custom_data: fields.optional_boolean("showCustomData")?.unwrap_or(true),
        restrictions: fields.boolean("showAuthenticationRestrictions")?,
    };
    let filter = fields.document("filter")?.map(Filter::parse_test).transpose()?;
    fields.finish()?;
    let server = request.server;
    let directory = server.accounts.directory(&server.frond)?;
    let home = home(request.database_name)?;
    let wanted: Option<Vec<UserName>> = match request.argument() {
        Value::Array(users) => {
            Some(users.iter().map(|user| UserName::read(user, &home)).collect::<Result<_, _>>()?)
        }
        Value::Document(all) if all.get("forAllDBs").is_some() => None,
        user @ (Value::String(_) | Value::Document(_)) => Some(vec![UserName::read(user, &home)?]),
        other if other.is_number() => {
            let of_home = |name: &&UserName| name.database == home;
            Some(directory.users.keys().filter(of_home).cloned().collect())
        }
        _ => return Err(Error::invalid(Code::BadValue, "usersInfo takes 1, a user or users")),
    };
    let found = directory.users.values();
    let found = found.filter(|user| wanted.as_ref().is_none_or(|all| all.contains(&user.name)));
    let mut answer = DocumentBuilder::new();
    answer.begin_array("users");
    for user in found {
        let described = describe(&directory, user, &shown);
        if filter.as_ref().is_none_or(|filter| filter.matches(described.view())) {
            answer.push(Value::from(&described));
        }
    }
    answer.end();
    Ok(answer)
}

fn describe(directory: &Directory, user: &User, shown: &Shown) -> DocumentBuf {
    let mut description = DocumentBuilder::new();
    let id = format!("{}.{}", user.name.database, user.name.user);
    description.append("_id", Value::String(&id));
    user.append_id(&mut description);
    user.name.append(&mut description);
    if let Some(data) = user.custom_data.as_ref().filter(|_| shown.custom_data) {
        description.append("customData", Value::from(data));
    }
    if shown.credentials {
        user.append_credentials(&mut description);
    }
    append_roles(&mut description, "roles", &user.roles);
    description.begin_array("mechanisms");
    for (mechanism, _) in &user.credentials {
        description.push(Value::String(mechanism.name()));
    }
    description.end();
    if shown.privileges || shown.restrictions {
        append_roles(&mut description, "inheritedRoles", &directory.with_included(&user.roles));
        let privileges = directory.privileges_of(&user.roles);
        Privilege::append_all(&mut description, "inheritedPrivileges", &privileges);
        append_inherited(&mut description, directory, &user.roles);
    }
    if shown.restrictions {
        Restriction::append_all(&mut description, &user.restrictions);
    }
    description.build()
}

/// Appends the restrictions of roles and of all that they include, a list for each.
pub fn append_inherited(
    description: &mut DocumentBuilder,
    directory: &Directory,
    roles: &[RoleName],
) {
    description.begin_array("inheritedAuthenticationRestrictions");
    for role in directory.with_included(roles) {
        let role = directory.roles.get(&role).filter(|role| !role.restrictions.is_empty());
        if let Some(role) = role {
            description.push_begin_array();
            Restriction::push_all(description, &role.restrictions);
            description.end();
        }
    }
    description.end();
}

/// The documents of `admin.system.users`, `admin.system.roles` or `admin.system.version`, as tools
/// copy them; `None` of any other collection. Where there are no accounts their version isn't
/// shown.
///
/// # Errors
/// An error of reading the users.
pub fn documents_of(
    request: &Request<'_>,
    collection: Option<&str>,
) -> Result<Option<Vec<DocumentBuf>>, Error> {
    let Some(collection @ ("system.users" | "system.roles" | "system.version")) = collection else {
        return Ok(None);
    };
    if request.database_name != "admin" {
        return Ok(None);
    }
    request.refuse_moment(&format!("A read of admin.{collection}"))?;
    let server = request.server;
    let directory = server.accounts.directory(&server.frond)?;
    Ok(Some(match collection {
        "system.users" => directory.users.values().map(User::to_document).collect(),
        "system.version" if directory.users.is_empty() && directory.roles.is_empty() => Vec::new(),
        "system.version" => {
            vec![document! { "_id": "authSchema", "currentVersion": AUTH_SCHEMA_VERSION }]
        }
        _ => directory.roles.values().map(|role| role.to_document()).collect(),
    }))
}
