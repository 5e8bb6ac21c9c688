//! The rights that commands of users and roles need. Rights over users and roles are MongoDB's: on
//! the database that a user or role belongs to, on all its branches; a user who grants a role must
//! be allowed to grant roles of its database.

use frond_db::{DatabaseName, Error};
use frond_doc::Value;

use super::{AuthorizationRequest, VersionScope};
use crate::access::{Action, EXTERNAL, Privilege, RESTRICTIONS, Resource, RoleName, UserName};

impl AuthorizationRequest<'_> {
    /// The database that the users of this command belong to.
    fn home(&self) -> Result<String, Error> {
        if self.database == EXTERNAL {
            return Ok(EXTERNAL.to_owned());
        }
        Ok(DatabaseName::parse(self.database)?.name)
    }

    fn manage(&self, action: Action) -> Result<(), Error> {
        self.on(&[action], &self.home()?, VersionScope::All, None)
    }

    /// Checks the right to say from where users log in, if the command does.
    fn restrict(&self) -> Result<(), Error> {
        match self.fields()?.value(RESTRICTIONS) {
            Some(_) => self.manage(Action::SetAuthenticationRestriction),
            None => Ok(()),
        }
    }

    /// Checks an action on the databases of all roles that a field names.
    fn on_roles(&self, field: &'static str, action: Action) -> Result<(), Error> {
        let home = self.home()?;
        let roles = self.fields()?.array(field)?;
        for role in roles.iter().flat_map(|roles| roles.iter()) {
            let role = RoleName::read(role, &home)?;
            self.on(&[action], &role.database, VersionScope::All, None)?;
        }
        Ok(())
    }

    /// Checks an action on the databases of all privileges that the command names; on `admin` for
    /// what belongs to none.
    fn on_privileges(&self, action: Action) -> Result<(), Error> {
        let privileges = self.fields()?.array("privileges")?;
        for value in privileges.iter().flat_map(|privileges| privileges.iter()) {
            let database = match Privilege::read(value)?.resource {
                Resource::Namespace { database, .. } if !database.is_empty() => database,
                _ => "admin".to_owned(),
            };
            self.on(&[action], &database, VersionScope::All, None)?;
        }
        Ok(())
    }

    /// Checks an action on all databases.
    fn everywhere(&self, action: Action) -> Result<(), Error> {
        // Only roles for all databases cover one that no client can name.
        let all = crate::access::Target::Namespace {
            database: "",
            collection: None,
            branch: crate::access::Branch::All,
        };
        match self.rights.grants.allow(action, all) {
            true => Ok(()),
            false => Err(self.refused(self.database)),
        }
    }

    /// Whether the command's own field names who has logged in.
    fn is_self(&self) -> Result<bool, Error> {
        let home = self.home()?;
        let named = UserName::read(self.argument(), &home);
        Ok(named.is_ok_and(|user| user == self.rights.login.user))
    }
}

/// `createUser`
///
/// # Errors
/// `Unauthorized` (13).
pub fn create_user(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::CreateUser)?;
    request.restrict()?;
    request.on_roles("roles", Action::GrantRole)
}

/// `_mergeAuthzCollections`
///
/// # Errors
/// `Unauthorized` (13).
pub fn merge_accounts(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let made = [Action::CreateUser, Action::CreateRole, Action::GrantRole, Action::RevokeRole];
    made.into_iter().try_for_each(|action| request.everywhere(action))?;
    let mut fields = request.fields()?;
    if fields.boolean("drop")? {
        [Action::DropUser, Action::DropRole]
            .into_iter()
            .try_for_each(|it| request.everywhere(it))?;
    }
    for name in ["tempUsersCollection", "tempRolesCollection"] {
        let Some((database, collection)) = fields.string(name)?.and_then(|it| it.split_once('.'))
        else {
            continue;
        };
        request.on(&[Action::Find], database, VersionScope::Open, Some(collection))?;
    }
    Ok(())
}

/// `updateUser`: a user with the right to change their own password or data may do that.
///
/// # Errors
/// `Unauthorized` (13).
pub fn update_user(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let is_self = request.is_self()?;
    let home = request.home()?;
    let own = |action| -> Result<bool, Error> {
        Ok(is_self && request.may(action, &home, VersionScope::All, None)?)
    };
    let mut fields = request.fields()?;
    let names = ["pwd", "customData", "mechanisms", "roles"];
    let [password, data, mechanisms, roles] = names.map(|name| fields.value(name).is_some());
    if password && !own(Action::ChangeOwnPassword)? {
        request.manage(Action::ChangePassword)?;
    }
    if data && !own(Action::ChangeOwnCustomData)? {
        request.manage(Action::ChangeCustomData)?;
    }
    if mechanisms && !password {
        request.manage(Action::ChangePassword)?;
    }
    if roles {
        request.everywhere(Action::RevokeRole)?;
        request.on_roles("roles", Action::GrantRole)?;
    }
    request.restrict()?;
    let restricts = fields.value(RESTRICTIONS).is_some();
    if !(password || data || mechanisms || roles || restricts) {
        request.manage(Action::ChangePassword)?;
    }
    Ok(())
}

/// `dropUser`, `dropAllUsersFromDatabase`
///
/// # Errors
/// `Unauthorized` (13).
pub fn drop_user(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::DropUser)
}

/// `grantRolesToUser`, `grantRolesToRole`
///
/// # Errors
/// `Unauthorized` (13).
pub fn grant_roles(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::GrantRole)?;
    request.on_roles("roles", Action::GrantRole)
}

/// `revokeRolesFromUser`, `revokeRolesFromRole`
///
/// # Errors
/// `Unauthorized` (13).
pub fn revoke_roles(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::RevokeRole)?;
    request.on_roles("roles", Action::RevokeRole)
}

/// `createRole`
///
/// # Errors
/// `Unauthorized` (13).
pub fn create_role(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::CreateRole)?;
    request.restrict()?;
    request.on_privileges(Action::GrantRole)?;
    request.on_roles("roles", Action::GrantRole)
}

/// `updateRole`
///
/// # Errors
/// `Unauthorized` (13).
pub fn update_role(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.everywhere(Action::RevokeRole)?;
    request.restrict()?;
    request.on_privileges(Action::GrantRole)?;
    request.on_roles("roles", Action::GrantRole)
}

/// `dropRole`, `dropAllRolesFromDatabase`
///
/// # Errors
/// `Unauthorized` (13).
pub fn drop_role(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::DropRole)
}

/// `grantPrivilegesToRole`
///
/// # Errors
/// `Unauthorized` (13).
pub fn grant_privileges(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::GrantRole)?;
    request.on_privileges(Action::GrantRole)
}

/// `revokePrivilegesFromRole`
///
/// # Errors
/// `Unauthorized` (13).
pub fn revoke_privileges(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.manage(Action::RevokeRole)?;
    request.on_privileges(Action::RevokeRole)
}

/// `usersInfo`: each user may look at themselves, but not at their credentials.
///
/// # Errors
/// `Unauthorized` (13).
pub fn users_info(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let home = request.home()?;
    let shows_credentials = request.is_set("showCredentials")?;
    let one = |value: Value<'_>| {
        let user = UserName::read(value, &home)?;
        match user == request.rights.login.user && !shows_credentials {
            true => Ok(()),
            false => request.on(&[Action::ViewUser], &user.database, VersionScope::All, None),
        }
    };
    match request.argument() {
        Value::Array(users) => users.iter().try_for_each(one),
        Value::Document(all) if all.get("forAllDBs").is_some() => {
            request.everywhere(Action::ViewUser)
        }
        value @ (Value::String(_) | Value::Document(_)) => one(value),
        _ => request.manage(Action::ViewUser),
    }
}

/// `rolesInfo`: each user may look at their own roles.
///
/// # Errors
/// `Unauthorized` (13).
pub fn roles_info(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let home = request.home()?;
    let one = |value: Value<'_>| {
        let role = RoleName::read(value, &home)?;
        match request.rights.roles.contains(&role) {
            true => Ok(()),
            false => request.on(&[Action::ViewRole], &role.database, VersionScope::All, None),
        }
    };
    match request.argument() {
        Value::Array(roles) => roles.iter().try_for_each(one),
        value @ (Value::String(_) | Value::Document(_)) => one(value),
        _ => request.manage(Action::ViewRole),
    }
}
