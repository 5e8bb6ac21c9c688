//! The rights that commands of versions need: on the branch of `$db`, and on every version that a
//! field names.

use frond_db::Error;
use frond_vcs::Repository;

use super::{AuthorizationRequest, VersionScope};
use crate::access::Action;

/// The sides of a range, `a..b` or `a...b`, or the one revision that it is. A side that is left out
/// is HEAD.
pub fn ends(range: &str) -> impl Iterator<Item = &str> {
    // No revision begins with a dot.
    range.split("..").map(|end| end.trim_start_matches('.'))
}

impl<'a> AuthorizationRequest<'a> {
    /// Checks that the client may read every version that a field names.
    fn reads(&self, field: &str, collection: Option<&str>) -> Result<(), Error> {
        let Some(revision) = self.fields()?.string(field)? else { return Ok(()) };
        ends(revision).try_for_each(|end| {
            self.on(&[Action::Find], self.database, VersionScope::Revision(end), collection)
        })
    }

    /// Checks that the client may take what a version has: by the right to read it, or to do with
    /// it what `action` says.
    fn takes(&self, field: &str, action: Action) -> Result<(), Error> {
        let Some(revision) = self.fields()?.string(field)? else { return Ok(()) };
        let at = VersionScope::Revision(revision);
        match self.may(Action::Find, self.database, at, None)? {
            true => Ok(()),
            false => self.on(&[action], self.database, at, None),
        }
    }

    /// The collection that `collection` names; `None`, the database itself, where it doesn't.
    fn collection(&self) -> Result<Option<&'a str>, Error> {
        self.fields()?.string("collection")
    }

    /// Checks by `on` what is done with the changes of a ref: on the branch of that name, or on all
    /// where it is a tag's, which belongs to all.
    ///
    /// # Errors
    /// Errors of `on` and of reading.
    pub fn of_ref(
        &self,
        database: &str,
        name: &str,
        on: impl Fn(VersionScope<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.rights.grants.limits_branches() {
            let open = Repository::open(&self.server.frond, database);
            let changes = open.and_then(|open| open.reflog(Some(name)));
            if changes.is_ok_and(|changes| changes.iter().any(|change| change.tag.is_some())) {
                return on(VersionScope::All);
            }
        }
        on(VersionScope::Branch(name))
    }
}

/// Checks the rights of commands that show a collection's history, or that of all collections:
/// `collection`, and the range of history by `range`, `from` and `to`.
///
/// # Errors
/// `Unauthorized` (13).
pub fn reading(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let collection = request.collection()?;
    request.here(&[Action::Find], collection)?;
    ["range", "from", "to", "target"].iter().try_for_each(|field| request.reads(field, collection))
}

/// `frondBranch`: lists, for readers; what changes a branch is judged by that branch's name, or by
/// both.
///
/// # Errors
/// `Unauthorized` (13).
pub fn branch(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let manage = [Action::ManageBranches];
    let mut fields = request.fields()?;
    let (named, start) = (fields.string("branch")?, fields.string("start")?);
    let delete = fields.value("delete");
    let deletes = fields.boolean("forceDelete")? || delete.is_some_and(|delete| delete.is_truthy());
    if fields.boolean("removeExpired")? {
        request.on(&manage, request.database, VersionScope::All, None)?;
    }
    let rename = fields.string("rename")?;
    let names = [named, rename, delete.and_then(|delete| delete.as_str())];
    for name in names.iter().flatten() {
        request.on(&manage, request.database, VersionScope::Branch(name), None)?;
    }
    let has_name = names.iter().any(Option::is_some);
    if !has_name
        && !request.may(Action::ManageBranches, request.database, VersionScope::Open, None)?
    {
        return request.here(&[Action::Find], None);
    }
    if start.is_none() && has_name && !deletes && rename.is_none() {
        // It begins where this database is open.
        if !request.may(Action::Find, request.database, VersionScope::Open, None)? {
            request.here(&manage, None)?;
        }
    }
    request.takes("start", Action::ManageBranches)
}

/// `frondCommit`: what it says it has merged is read, and becomes a part of the branch's history.
///
/// # Errors
/// `Unauthorized` (13).
pub fn commit(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.here(&[Action::Commit], None)?;
    let merged = request.fields()?.array("merges")?;
    let mut versions = merged.iter().flat_map(|merged| merged.iter());
    let Some(first) = versions.next() else { return Ok(()) };
    request.here(&[Action::Merge], None)?;
    let mut named = std::iter::once(first).chain(versions).filter_map(|version| version.as_str());
    named.try_for_each(|version| {
        request.on(&[Action::Find], request.database, VersionScope::Revision(version), None)
    })
}

/// `frondMerge`; a preview changes nothing.
///
/// # Errors
/// `Unauthorized` (13).
pub fn merge(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    if request.is_set("dryRun")? {
        request.here(&[Action::Find], None)?;
        return request.reads("merge_in", None);
    }
    merging(request)
}

/// `frondCherryPick`, `frondRevert`, `frondRebase`: what they take is read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn merging(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.here(&[Action::Merge], None)?;
    for field in ["merge_in", "target", "onto"] {
        request.reads(field, None)?;
    }
    Ok(())
}

/// `frondReset`
///
/// # Errors
/// `Unauthorized` (13).
pub fn reset(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.here(&[Action::ResetBranch], None)?;
    request.takes("target", Action::ResetBranch)
}

/// `frondRestore`
///
/// # Errors
/// `Unauthorized` (13).
pub fn restore(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let collection = request.collection()?;
    request.here(&[Action::Insert, Action::Update, Action::Remove], collection)?;
    request.reads("from", collection)
}

/// `frondTag`: a tag belongs to all branches, so only a user who isn't limited to some removes or
/// moves it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn tag(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = request.fields()?;
    if fields.string("tag")?.is_none() {
        return request.here(&[Action::Find], None);
    }
    if fields.boolean("delete")? || fields.boolean("force")? {
        request.on(&[Action::Tag], request.database, VersionScope::All, None)?;
    }
    request.here(&[Action::Tag], None)?;
    request.reads("target", None)
}

/// `frondReflog`
///
/// # Errors
/// `Unauthorized` (13).
pub fn reflog(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = request.fields()?;
    if fields.value("expireBefore").is_some() {
        request.on(&[Action::SetPolicy], request.database, VersionScope::All, None)?;
    }
    let find = [Action::Find];
    if fields.boolean("all")? || fields.boolean("dropped")? {
        request.on(&find, request.database, VersionScope::All, None)?;
    }
    if let Some(branch) = fields.string("branch")? {
        return request
            .of_ref(request.database, branch, |at| request.on(&find, request.database, at, None));
    }
    // A version that is no branch has no changes: those of all are reported then.
    let open = request.server.frond.database(request.database);
    let is_branch = open.is_ok_and(|open| open.branch().is_some());
    let at = if is_branch { VersionScope::Open } else { VersionScope::All };
    request.on(&find, request.database, at, None)
}

/// `frondUndo`: of a branch's change, or of a drop: of this database or of another, which comes
/// back under this name.
///
/// # Errors
/// `Unauthorized` (13).
pub fn undo(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let exists =
        Repository::open(&request.server.frond, request.database).and_then(|open| open.exists());
    let mut fields = request.fields()?;
    let dropped = fields.string("dropped")?;
    if dropped.is_some() || !exists.unwrap_or(true) {
        let own = [Action::DropDatabase, Action::Insert];
        request.on(&own, request.database, VersionScope::All, None)?;
        return match dropped {
            Some(dropped) => {
                request.on(&[Action::DropDatabase, Action::Find], dropped, VersionScope::All, None)
            }
            None => Ok(()),
        };
    }
    let action = [Action::ResetBranch];
    match fields.string("branch")? {
        Some(branch) => request
            .of_ref(request.database, branch, |at| request.on(&action, request.database, at, None)),
        None => request.here(&action, None),
    }
}

/// `frondErase`: from all branches.
///
/// # Errors
/// `Unauthorized` (13).
pub fn erase(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.on(&[Action::Erase], request.database, VersionScope::All, None)
}

/// `frondPolicy`: a client that reads the database may look at it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn policy(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = request.fields()?;
    let sets = fields.document("set")?.is_some();
    let changes = fields.boolean("remove")? || fields.boolean("thin")?;
    if sets || changes || !request.may(Action::Find, request.database, VersionScope::Open, None)? {
        return request.on(&[Action::SetPolicy], request.database, VersionScope::All, None);
    }
    Ok(())
}

/// `frondMergeRules`
///
/// # Errors
/// `Unauthorized` (13).
pub fn merge_rules(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.here(&[Action::CollMod], request.collection()?)
}

/// `frondRemote`, and listing them: what reaches other machines.
///
/// # Errors
/// `Unauthorized` (13).
pub fn remotes(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.cluster(Action::UseRemotes)
}

/// `frondPush`: the whole database may go.
///
/// # Errors
/// `Unauthorized` (13).
pub fn push(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.cluster(Action::UseRemotes)?;
    request.on(&[Action::Find], request.database, VersionScope::All, None)
}

/// `frondClone`, `frondFetch`, `frondPull`: any part of the database may come.
///
/// # Errors
/// `Unauthorized` (13).
pub fn fetch(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.cluster(Action::UseRemotes)?;
    request.on(
        &[Action::Find, Action::Insert, Action::Merge],
        request.database,
        VersionScope::All,
        None,
    )
}

/// `frondHandOver`: brings a database here from another place, with what clients of all databases
/// were answered.
///
/// # Errors
/// `Unauthorized` (13).
pub fn hand_over(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.cluster(Action::UseRemotes)?;
    request.cluster(Action::ReplSetConfigure)?;
    request.on(
        &[Action::Find, Action::Insert, Action::Merge],
        request.database,
        VersionScope::All,
        None,
    )
}

/// `dropDatabase`: with all branches.
///
/// # Errors
/// `Unauthorized` (13).
pub fn drop_database(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.on(&[Action::DropDatabase], request.database, VersionScope::All, None)
}
