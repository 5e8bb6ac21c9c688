//! Users and roles.

use frond_doc::ElementType;

use super::field::Field;
use super::kind::{ARRAY, FLAG, Kind, OBJECT, TEXT};
use super::table::Table;

const fn field(name: &'static str, kind: Kind) -> Field {
    Field::new(name, kind)
}

/// The roles, each a name, or a name and a database.
const ROLES: Field = Field::new("roles", ARRAY);
const PRIVILEGES: Field = Field::new("privileges", Kind::EachOf(ElementType::Document));
const RESTRICTIONS: Field =
    Field::new("authenticationRestrictions", Kind::EachOf(ElementType::Document));

const fn on_user(command: &'static str, fields: &'static [Field]) -> Table {
    Table::of(command, fields).taking(TEXT).writing()
}

pub static CREATE_USER: Table = on_user(
    "createUser",
    &[
        ROLES.required(),
        RESTRICTIONS,
        field("customData", OBJECT),
        field("digestPassword", FLAG),
        field("mechanisms", Kind::EachOf(ElementType::String)),
        field("passwordDigestor", TEXT).internal(),
        field("pwd", TEXT),
    ],
);

pub static UPDATE_USER: Table = on_user(
    "updateUser",
    &[
        RESTRICTIONS,
        field("customData", OBJECT),
        field("digestPassword", FLAG),
        field("mechanisms", Kind::EachOf(ElementType::String)),
        field("passwordDigestor", TEXT).internal(),
        field("pwd", TEXT),
        ROLES,
    ],
);

pub static CREATE_ROLE: Table =
    on_user("createRole", &[PRIVILEGES.required(), ROLES.required(), RESTRICTIONS]);

pub static UPDATE_ROLE: Table = on_user("updateRole", &[RESTRICTIONS, PRIVILEGES, ROLES]);

pub static DROP_ALL_ROLES: Table = Table::of("dropAllRolesFromDatabase", &[]).writing();
pub static DROP_ALL_USERS: Table = Table::of("dropAllUsersFromDatabase", &[]).writing();
pub static DROP_ROLE: Table = on_user("dropRole", &[]);
pub static DROP_USER: Table = on_user("dropUser", &[]);

pub static GRANT_PRIVILEGES_TO_ROLE: Table =
    on_user("grantPrivilegesToRole", &[PRIVILEGES.required()]);
pub static GRANT_ROLES_TO_ROLE: Table = on_user("grantRolesToRole", &[ROLES.required()]);
pub static GRANT_ROLES_TO_USER: Table = on_user("grantRolesToUser", &[ROLES.required()]);
pub static REVOKE_PRIVILEGES_FROM_ROLE: Table =
    on_user("revokePrivilegesFromRole", &[PRIVILEGES.required()]);
pub static REVOKE_ROLES_FROM_ROLE: Table = on_user("revokeRolesFromRole", &[ROLES.required()]);
pub static REVOKE_ROLES_FROM_USER: Table = on_user("revokeRolesFromUser", &[ROLES.required()]);

/// The last command of mongorestore.
pub static MERGE_ACCOUNTS: Table = Table::of(
    "_mergeAuthzCollections",
    &[
        field("db", TEXT).required(),
        field("drop", FLAG).required(),
        field("tempRolesCollection", TEXT),
        field("tempUsersCollection", TEXT),
    ],
)
.writing();

pub static INVALIDATE_USER_CACHE: Table = Table::of("invalidateUserCache", &[]);

pub static ROLES_INFO: Table = Table::of(
    "rolesInfo",
    &[
        field("showAuthenticationRestrictions", FLAG),
        field("showBuiltinRoles", FLAG),
        field("showPrivileges", Kind::Any),
    ],
);

pub static USERS_INFO: Table = Table::of(
    "usersInfo",
    &[
        field("filter", OBJECT),
        field("showAuthenticationRestrictions", FLAG),
        field("showCredentials", FLAG),
        field("showCustomData", FLAG),
        field("showPrivileges", FLAG),
    ],
);
