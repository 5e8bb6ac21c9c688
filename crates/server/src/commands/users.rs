//! `usersInfo` and `rolesInfo`, which shells and tools ask for by themselves: there is nobody to tell of.

use frond_db::Error;
use frond_doc::DocumentBuilder;
use frond_query::Code;

use crate::request::{Answer, Request};

/// Tells the users: there are none, whoever is asked for.
pub fn users(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    for name in
        ["showCredentials", "showPrivileges", "showCustomData", "showAuthenticationRestrictions"]
    {
        fields.boolean(name)?;
    }
    fields.document("filter")?;
    fields.finish()?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("users").end();
    Ok(answer)
}

/// Tells the roles that somebody has made: there are none. Those that MongoDB brings along don't exist here.
pub fn roles(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let wants_all = request.argument().is_number();
    let wants_built_in = fields.boolean("showBuiltinRoles")?;
    fields.ignore(&["showPrivileges", "showAuthenticationRestrictions"]);
    fields.finish()?;
    if !wants_all || wants_built_in {
        let message = "there are no built-in roles in Frond: it has no authentication yet";
        return Err(Error::invalid(Code::CommandNotSupported, message));
    }
    let mut answer = DocumentBuilder::new();
    answer.begin_array("roles").end();
    Ok(answer)
}
