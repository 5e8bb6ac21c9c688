//! The branch that the name of a version begins with: rights on branches are judged by it.
//!
//! `shop` and `shop@{yesterday}` are named by its default branch, `shop@dev/x`, `dev/x~2` and
//! `dev/x@{yesterday}` by `dev/x`, `HEAD~1` and `@{yesterday}` by whatever the database is open at.
//! A commit's id, a tag and where a remote's branch was are no branch's: such a commit may be in
//! any.

use frond_db::inside::refs::revision::{of_version, start_of};
use frond_db::inside::{DatabaseName, Error, Frond, Reader, VersionName, refs, system};

/// The branch by whose name a version of a database is named; `None` if it is by none.
///
/// # Errors
/// An error of reading.
pub fn naming_branch(frond: &Frond, name: &DatabaseName) -> Result<Option<String>, Error> {
    let reader = Reader::now(frond.engine());
    let repository = refs::repository(&reader, &name.name)?;
    let default =
        repository.as_ref().map_or(system::DEFAULT_BRANCH, |repository| &repository.default_branch);
    match &name.version {
        VersionName::Default => Ok(Some(default.to_owned())),
        // As it is found when the database is opened: a branch of the whole name comes first.
        VersionName::Named(version) => {
            let revision = of_version(version);
            for named in [version.as_str(), start_of(&revision)] {
                if [default, refs::history::HEAD, ""].contains(&named) {
                    return Ok(Some(default.to_owned()));
                }
                if refs::branch_ref(&reader, &name.name, named)?.is_some() {
                    return Ok(Some(named.to_owned()));
                }
            }
            Ok(None)
        }
    }
}

/// The branch by whose name `revision` is named, in a database that is open at `name`; `None`
/// if it is by none.
///
/// # Errors
/// An error of reading.
pub fn naming_branch_of(
    frond: &Frond,
    name: &DatabaseName,
    revision: &str,
) -> Result<Option<String>, Error> {
    let start = start_of(revision);
    if ["", refs::history::HEAD, refs::history::WORKING, refs::history::NOTHING].contains(&start) {
        return naming_branch(frond, name);
    }
    let reader = Reader::now(frond.engine());
    let is_branch = refs::branch_ref(&reader, &name.name, start)?.is_some();
    Ok(is_branch.then(|| start.to_owned()))
}
