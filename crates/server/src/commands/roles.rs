//! createRole, updateRole, dropRole, dropAllRolesFromDatabase, grantPrivilegesToRole,
//! revokePrivilegesFromRole, grantRolesToRole, revokeRolesFromRole, rolesInfo.

use frond_db::{AccessChange, AccessKind, Error};
use frond_doc::{Array, DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;

use crate::access::{
    Directory, EXTERNAL, Privilege, RESTRICTIONS, Restriction, Role, RoleName, append_roles,
    builtin_roles, privilege,
};
use crate::commands::login::home;
use crate::commands::reply;
use crate::commands::users::{
    append_inherited, check_granted, check_roles, grant, read_restrictions, read_roles,
};
use crate::request::{Answer, Request};

const ROLE_EXISTS: Code = Code::Location(51_002);

/// The role that a command names by its own field.
fn named(request: &Request<'_>) -> Result<RoleName, Error> {
    let role = request.own_text();
    if role.is_empty() || role.contains('\0') {
        return Err(Error::invalid(Code::BadValue, "Role name must be non-empty"));
    }
    Ok(RoleName { database: home(request.database_name)?, role: role.to_owned() })
}

/// The change that stores a role.
pub fn stored(role: &Role) -> AccessChange {
    changed(&role.name, Some(role.to_document()))
}

/// The change that stores a role's document, or takes the role away.
pub fn changed(name: &RoleName, document: Option<DocumentBuf>) -> AccessChange {
    let (database, name) = (name.database.clone(), name.role.clone());
    AccessChange { kind: AccessKind::Role, database, name, document }
}

/// A role that is there and isn't built in.
fn own<'a>(directory: &'a Directory, name: &RoleName) -> Result<&'a Role, Error> {
    if builtin_roles::is_builtin(name) {
        let message = format!("Cannot change built-in role: {name}");
        return Err(Error::invalid(Code::InvalidRoleModification, message));
    }
    directory
        .roles
        .get(name)
        .ok_or_else(|| Error::invalid(Code::RoleNotFound, format!("Role {name} not found")))
}

fn change(
    request: &Request<'_>,
    name: &RoleName,
    work: impl FnOnce(&Directory, &mut Role) -> Result<(), Error>,
) -> Answer {
    let server = request.server;
    server.accounts.change(&server.frond, |directory| {
        let mut role = own(directory, name)?.clone();
        work(directory, &mut role)?;
        Ok((vec![stored(&role)], ()))
    })?;
    Ok(DocumentBuilder::new())
}

/// Checks what a role includes: it may be granted, doesn't lead back to the role, and a role of
/// another database than `admin` reaches no further than its own.
fn check_included(directory: &Directory, name: &RoleName, roles: &[RoleName]) -> Result<(), Error> {
    check_granted(directory, roles)?;
    if let Some(role) =
        roles.iter().find(|role| name.database != "admin" && role.database != name.database)
    {
        let message = format!(
            "Roles on the '{}' database cannot be granted roles from other databases: {role}",
            name.database
        );
        return Err(Error::invalid(Code::InvalidRoleModification, message));
    }
    if directory.with_included(roles).contains(name) {
        let message = format!("Granting roles to {name} would introduce a cycle in the role graph");
        return Err(Error::invalid(Code::InvalidRoleModification, message));
    }
    Ok(())
}

fn read_privileges(name: &RoleName, values: Array<'_>) -> Result<Vec<Privilege>, Error> {
    let privileges = Privilege::read_all(values.iter())?;
    let is_own = |privilege: &Privilege| match &privilege.resource {
        privilege::Resource::Namespace { database, .. } => *database == name.database,
        _ => false,
    };
    if name.database != "admin" && !privileges.iter().all(is_own) {
        let message = format!(
            "Roles on the '{}' database cannot be granted privileges that target other databases \
             or the cluster",
            name.database
        );
        return Err(Error::invalid(Code::InvalidRoleModification, message));
    }
    Ok(privileges)
}

/// `createRole`
pub fn create(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = named(request)?;
    if name.database == EXTERNAL {
        let message = "Cannot create roles in the $external database";
        return Err(Error::invalid(Code::BadValue, message));
    }
    if builtin_roles::is_builtin(&name) {
        let message = "Cannot create roles with the same name as a built-in role";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let privileges = fields.array("privileges")?.ok_or_else(|| fields.missing("privileges"))?;
    let privileges = read_privileges(&name, privileges)?;
    let roles = fields.array("roles")?.ok_or_else(|| fields.missing("roles"))?;
    let roles = RoleName::read_all(roles.iter(), &name.database)?;
    let restrictions = read_restrictions(&mut fields)?.unwrap_or_default();
    fields.finish()?;
    let server = request.server;
    server.accounts.change(&server.frond, |directory| {
        if directory.has_role(&name) {
            let message = format!("Role \"{name}\" already exists");
            return Err(Error::invalid(ROLE_EXISTS, message));
        }
        check_included(directory, &name, &roles)?;
        let role = Role { name, privileges, roles, restrictions };
        Ok((vec![stored(&role)], ()))
    })?;
    Ok(DocumentBuilder::new())
}

/// `updateRole`
pub fn update(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = named(request)?;
    let privileges = fields.array("privileges")?;
    let privileges = privileges.map(|values| read_privileges(&name, values)).transpose()?;
    let roles = fields.array("roles")?;
    let roles = roles.map(|roles| RoleName::read_all(roles.iter(), &name.database)).transpose()?;
    let restrictions = read_restrictions(&mut fields)?;
    fields.finish()?;
    if privileges.is_none() && roles.is_none() && restrictions.is_none() {
        let message = "updateRole command requires at least one field to update";
        return Err(Error::invalid(Code::BadValue, message));
    }
    change(request, &name, |directory, role| {
        if let Some(roles) = roles {
            check_included(directory, &name, &roles)?;
            role.roles = roles;
        }
        if let Some(privileges) = privileges {
            role.privileges = privileges;
        }
        if let Some(restrictions) = restrictions {
            role.restrictions = restrictions;
        }
        Ok(())
    })
}

/// The changes by which roles go, from those that have them too.
fn dropping(directory: &Directory, gone: &[RoleName]) -> Vec<AccessChange> {
    let mut changes: Vec<AccessChange> = gone.iter().map(|name| changed(name, None)).collect();
    for role in directory.roles.values().filter(|role| !gone.contains(&role.name)) {
        if role.roles.iter().any(|included| gone.contains(included)) {
            let mut role = role.clone();
            role.roles.retain(|included| !gone.contains(included));
            changes.push(stored(&role));
        }
    }
    for user in directory.users.values() {
        if user.roles.iter().any(|role| gone.contains(role)) {
            let mut user = user.clone();
            user.roles.retain(|role| !gone.contains(role));
            changes.push(AccessChange {
                kind: AccessKind::User,
                database: user.name.database.clone(),
                name: user.name.user.clone(),
                document: Some(user.to_document()),
            });
        }
    }
    changes
}

/// `dropRole`
pub fn drop(request: &Request<'_>) -> Answer {
    let fields = request.fields()?;
    let name = named(request)?;
    fields.finish()?;
    let server = request.server;
    server.accounts.change(&server.frond, |directory| {
        own(directory, &name)?;
        Ok((dropping(directory, std::slice::from_ref(&name)), ()))
    })?;
    Ok(DocumentBuilder::new())
}

/// `dropAllRolesFromDatabase`
pub fn drop_all(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let database = home(request.database_name)?;
    let server = request.server;
    let count = server.accounts.change(&server.frond, |directory| {
        let names = directory.roles.keys().filter(|name| name.database == database);
        let names: Vec<RoleName> = names.cloned().collect();
        Ok((dropping(directory, &names), names.len() as u64))
    })?;
    let mut answer = DocumentBuilder::new();
    answer.append("n", reply::number(count));
    Ok(answer)
}

fn privileges_of(request: &Request<'_>) -> Result<(RoleName, Vec<Privilege>), Error> {
    let mut fields = request.fields()?;
    let name = named(request)?;
    let privileges = fields.array("privileges")?.ok_or_else(|| fields.missing("privileges"))?;
    let privileges = read_privileges(&name, privileges)?;
    fields.finish()?;
    if privileges.is_empty() {
        let message = format!("{} command requires a non-empty \"privileges\" array", request.name);
        return Err(Error::invalid(Code::BadValue, message));
    }
    Ok((name, privileges))
}

/// `grantPrivilegesToRole`
pub fn grant_privileges(request: &Request<'_>) -> Answer {
    let (name, privileges) = privileges_of(request)?;
    change(request, &name, |_, role| {
        privileges.into_iter().for_each(|new| privilege::add(&mut role.privileges, new));
        Ok(())
    })
}

/// `revokePrivilegesFromRole`
pub fn revoke_privileges(request: &Request<'_>) -> Answer {
    let (name, privileges) = privileges_of(request)?;
    change(request, &name, |_, role| {
        privileges.iter().for_each(|old| privilege::remove(&mut role.privileges, old));
        Ok(())
    })
}

/// Reads all that a command takes which grants or revokes roles.
fn named_with_roles(request: &Request<'_>) -> Result<(RoleName, Vec<RoleName>), Error> {
    let mut fields = request.fields()?;
    let name = named(request)?;
    let roles = read_roles(request, &mut fields)?;
    fields.finish()?;
    Ok((name, roles))
}

/// `grantRolesToRole`
pub fn grant_roles(request: &Request<'_>) -> Answer {
    let (name, roles) = named_with_roles(request)?;
    change(request, &name, |directory, role| {
        check_included(directory, &name, &roles)?;
        grant(&mut role.roles, roles);
        Ok(())
    })
}

/// `revokeRolesFromRole`
pub fn revoke_roles(request: &Request<'_>) -> Answer {
    let (name, roles) = named_with_roles(request)?;
    change(request, &name, |directory, role| {
        check_roles(directory, &roles)?;
        role.roles.retain(|included| !roles.contains(included));
        Ok(())
    })
}

/// `rolesInfo`
pub fn roles(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let shows_privileges = match fields.value("showPrivileges") {
        Some(Value::String("asUserFragment")) => {
            let message = "showPrivileges: \"asUserFragment\" is not supported by Frond";
            return Err(Error::invalid(Code::CommandNotSupported, message));
        }
        other => other.is_some_and(|value| value.is_truthy()),
    };
    let shows_builtin = fields.boolean("showBuiltinRoles")?;
    let shows_restrictions = fields.boolean("showAuthenticationRestrictions")?;
    fields.finish()?;
    let server = request.server;
    let directory = server.accounts.directory(&server.frond)?;
    let home = home(request.database_name)?;
    let wanted: Vec<RoleName> = match request.argument() {
        Value::Array(roles) => RoleName::read_all(roles.iter(), &home)?,
        role @ (Value::String(_) | Value::Document(_)) => vec![RoleName::read(role, &home)?],
        other if other.is_number() => {
            let made = directory.roles.keys().filter(|name| name.database == home).cloned();
            let builtin = builtin_roles::names(&home)
                .filter(|_| shows_builtin)
                .map(|role| RoleName { database: home.clone(), role: role.to_owned() });
            made.chain(builtin).collect()
        }
        _ => return Err(Error::invalid(Code::BadValue, "rolesInfo takes 1, a role or roles")),
    };
    let mut answer = DocumentBuilder::new();
    answer.begin_array("roles");
    for name in wanted.iter().filter(|name| directory.has_role(name)) {
        let shown = (shows_privileges, shows_restrictions);
        answer.push(Value::from(&describe(&directory, name, shown)));
    }
    answer.end();
    Ok(answer)
}

fn describe(
    directory: &Directory,
    name: &RoleName,
    (shows_privileges, shows_restrictions): (bool, bool),
) -> DocumentBuf {
    let made = directory.roles.get(name);
    let included = made.map_or(&[][..], |role| &role.roles);
    let mut role_document = DocumentBuilder::new();
    let id = format!("{}.{}", name.database, name.role);
    role_document.append("_id", Value::String(&id));
    name.append(&mut role_document);
    role_document.append("isBuiltin", Value::Boolean(made.is_none()));
    append_roles(&mut role_document, "roles", included);
    append_roles(&mut role_document, "inheritedRoles", &directory.with_included(included));
    if shows_privileges {
        let builtin = || builtin_roles::privileges(name).unwrap_or_default();
        let own = made.map_or_else(builtin, |role| role.privileges.clone());
        Privilege::append_all(&mut role_document, "privileges", &own);
        let all = directory.privileges_of(std::slice::from_ref(name));
        Privilege::append_all(&mut role_document, "inheritedPrivileges", &all);
    }
    if shows_restrictions {
        let own = made.map_or(&[][..], |role| &role.restrictions);
        role_document.begin_array(RESTRICTIONS);
        if !own.is_empty() {
            role_document.push_begin_array();
            Restriction::push_all(&mut role_document, own);
            role_document.end();
        }
        role_document.end();
        append_inherited(&mut role_document, directory, std::slice::from_ref(name));
    }
    role_document.build()
}
