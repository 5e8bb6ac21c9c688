//! `testDeprecation`, `testDeprecationInVersion2`, `testRemoval`, `testVersion2` and
//! `testVersions1And2`: commands of certain versions of the stable API, for tests of drivers. Which
//! are in which version: [`crate::stable_api`].

use frond_doc::DocumentBuilder;

use crate::request::{Answer, Request};

/// Answers with the fields of the stable API that the command has.
pub fn run(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let mut answer = DocumentBuilder::new();
    request.common.api.append(&mut answer);
    Ok(answer)
}
