//! Access control: users, roles, privileges.
//!
//! A *user* has roles. A *role* grants privileges, and other roles. A *privilege* is a resource and
//! actions on it. Some roles are built in ([`builtin_roles`]); others, and the users, are documents
//! in the data directory ([`Directory`]). All of it together gives a user's rights ([`Grants`]),
//! which are worked out once for a connection, and again when users or roles have changed.
//!
//! [`crate::authorization`] says which rights a command needs.

mod accounts;
mod action;
mod branch_pattern;
pub mod builtin_roles;
mod directory;
mod granted;
mod grants;
pub mod login_failures;
mod name;
pub mod privilege;
mod restriction;

pub use accounts::Accounts;
pub use action::{Action, ActionSet};
pub use branch_pattern::BranchPattern;
pub use directory::{Directory, Role, User, new_user_id};
pub use granted::Granted;
pub use grants::{Branch, Grants, Target};
pub use name::{EXTERNAL, RoleName, UserName, append_roles, user_roles_value};
pub use privilege::{Privilege, Resource};
pub use restriction::{Endpoints, RESTRICTIONS, Restriction};
