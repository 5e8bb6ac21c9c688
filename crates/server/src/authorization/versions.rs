//! What commands of versions need: on the branch of `$db`, and on every version that a field names.

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
    /// What `on` and a read may meet.
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

/// What tells of a collection's history, or of that of all: `collection`, and what of history by
/// `range`, `from` and `to`.
///
/// # Errors
/// `Unauthorized` (13).
pub fn reading(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let collection = asked.collection()?;
    asked.here(&[Action::Find], collection)?;
    ["range", "from", "to", "target"].iter().try_for_each(|field| asked.reads(field, collection))
}

/// `frondBranch`: lists, for readers; what changes a branch is judged by that branch's name, or by
/// both.
///
/// # Errors
/// `Unauthorized` (13).
pub fn branch(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let manage = [Action::ManageBranches];
    let mut fields = asked.fields()?;
    let (named, start) = (fields.string("branch")?, fields.string("start")?);
    let delete = fields.value("delete");
    let deletes = fields.boolean("forceDelete")? || delete.is_some_and(|delete| delete.is_truthy());
    if fields.boolean("removeExpired")? {
        asked.on(&manage, asked.database, VersionScope::All, None)?;
    }
    let rename = fields.string("rename")?;
    let names = [named, rename, delete.and_then(|delete| delete.as_str())];
    for name in names.iter().flatten() {
        asked.on(&manage, asked.database, VersionScope::Branch(name), None)?;
    }
    let has_name = names.iter().any(Option::is_some);
    if !has_name && !asked.may(Action::ManageBranches, asked.database, VersionScope::Open, None)? {
        return asked.here(&[Action::Find], None);
    }
    if start.is_none() && has_name && !deletes && rename.is_none() {
        // It begins where this database is open.
        if !asked.may(Action::Find, asked.database, VersionScope::Open, None)? {
            asked.here(&manage, None)?;
        }
    }
    asked.takes("start", Action::ManageBranches)
}

/// `frondCommit`: what it says it has merged is read, and becomes a part of the branch's history.
///
/// # Errors
/// `Unauthorized` (13).
pub fn commit(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.here(&[Action::Commit], None)?;
    let merged = asked.fields()?.array("merges")?;
    let mut versions = merged.iter().flat_map(|merged| merged.iter());
    let Some(first) = versions.next() else { return Ok(()) };
    asked.here(&[Action::Merge], None)?;
    let mut named = std::iter::once(first).chain(versions).filter_map(|version| version.as_str());
    named.try_for_each(|version| {
        asked.on(&[Action::Find], asked.database, VersionScope::Revision(version), None)
    })
}

/// `frondMerge`; a preview changes nothing.
///
/// # Errors
/// `Unauthorized` (13).
pub fn merge(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    if asked.says("dryRun")? {
        asked.here(&[Action::Find], None)?;
        return asked.reads("merge_in", None);
    }
    merging(asked)
}

/// `frondCherryPick`, `frondRevert`, `frondRebase`: what they take is read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn merging(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.here(&[Action::Merge], None)?;
    for field in ["merge_in", "target", "onto"] {
        asked.reads(field, None)?;
    }
    Ok(())
}

/// `frondReset`
///
/// # Errors
/// `Unauthorized` (13).
pub fn reset(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.here(&[Action::ResetBranch], None)?;
    asked.takes("target", Action::ResetBranch)
}

/// `frondRestore`
///
/// # Errors
/// `Unauthorized` (13).
pub fn restore(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let collection = asked.collection()?;
    asked.here(&[Action::Insert, Action::Update, Action::Remove], collection)?;
    asked.reads("from", collection)
}

/// `frondTag`: a tag belongs to all branches, so only a user who isn't limited to some takes one
/// away or moves it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn tag(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = asked.fields()?;
    if fields.string("tag")?.is_none() {
        return asked.here(&[Action::Find], None);
    }
    if fields.boolean("delete")? || fields.boolean("force")? {
        asked.on(&[Action::Tag], asked.database, VersionScope::All, None)?;
    }
    asked.here(&[Action::Tag], None)?;
    asked.reads("target", None)
}

/// `frondReflog`
///
/// # Errors
/// `Unauthorized` (13).
pub fn reflog(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = asked.fields()?;
    if fields.value("expireBefore").is_some() {
        asked.on(&[Action::SetPolicy], asked.database, VersionScope::All, None)?;
    }
    let find = [Action::Find];
    if fields.boolean("all")? || fields.boolean("dropped")? {
        asked.on(&find, asked.database, VersionScope::All, None)?;
    }
    if let Some(branch) = fields.string("branch")? {
        return asked
            .of_ref(asked.database, branch, |at| asked.on(&find, asked.database, at, None));
    }
    // A version that is no branch has no changes: those of all are told then.
    let open = asked.server.frond.database(asked.database);
    let is_branch = open.is_ok_and(|open| open.branch().is_some());
    let at = if is_branch { VersionScope::Open } else { VersionScope::All };
    asked.on(&find, asked.database, at, None)
}

/// `frondUndo`: of a branch's change, or of a drop: of this database or of another, which comes
/// back under this name.
///
/// # Errors
/// `Unauthorized` (13).
pub fn undo(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let exists =
        Repository::open(&asked.server.frond, asked.database).and_then(|open| open.exists());
    let mut fields = asked.fields()?;
    let dropped = fields.string("dropped")?;
    if dropped.is_some() || !exists.unwrap_or(true) {
        let own = [Action::DropDatabase, Action::Insert];
        asked.on(&own, asked.database, VersionScope::All, None)?;
        return match dropped {
            Some(dropped) => {
                asked.on(&[Action::DropDatabase, Action::Find], dropped, VersionScope::All, None)
            }
            None => Ok(()),
        };
    }
    let action = [Action::ResetBranch];
    match fields.string("branch")? {
        Some(branch) => {
            asked.of_ref(asked.database, branch, |at| asked.on(&action, asked.database, at, None))
        }
        None => asked.here(&action, None),
    }
}

/// `frondErase`: from all branches.
///
/// # Errors
/// `Unauthorized` (13).
pub fn erase(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.on(&[Action::Erase], asked.database, VersionScope::All, None)
}

/// `frondPolicy`: a client that reads the database may look at it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn policy(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let mut fields = asked.fields()?;
    let sets = fields.document("set")?.is_some();
    let changes = fields.boolean("remove")? || fields.boolean("thin")?;
    if sets || changes || !asked.may(Action::Find, asked.database, VersionScope::Open, None)? {
        return asked.on(&[Action::SetPolicy], asked.database, VersionScope::All, None);
    }
    Ok(())
}

/// `frondMergeRules`
///
/// # Errors
/// `Unauthorized` (13).
pub fn merge_rules(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.here(&[Action::CollMod], asked.collection()?)
}

/// `frondRemote`, and listing them: what reaches other machines.
///
/// # Errors
/// `Unauthorized` (13).
pub fn remotes(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.cluster(Action::UseRemotes)
}

/// `frondPush`: the whole database may go.
///
/// # Errors
/// `Unauthorized` (13).
pub fn push(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.cluster(Action::UseRemotes)?;
    asked.on(&[Action::Find], asked.database, VersionScope::All, None)
}

/// `frondClone`, `frondFetch`, `frondPull`: any part of the database may come.
///
/// # Errors
/// `Unauthorized` (13).
pub fn fetch(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.cluster(Action::UseRemotes)?;
    asked.on(
        &[Action::Find, Action::Insert, Action::Merge],
        asked.database,
        VersionScope::All,
        None,
    )
}

/// `frondHandOver`: brings a database here from another place, with what clients of all databases
/// were answered.
///
/// # Errors
/// `Unauthorized` (13).
pub fn hand_over(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.cluster(Action::UseRemotes)?;
    asked.cluster(Action::ReplSetConfigure)?;
    asked.on(
        &[Action::Find, Action::Insert, Action::Merge],
        asked.database,
        VersionScope::All,
        None,
    )
}

/// `dropDatabase`: with all branches.
///
/// # Errors
/// `Unauthorized` (13).
pub fn drop_database(asked: &AuthorizationRequest<'_>) -> Result<(), Error> {
    asked.on(&[Action::DropDatabase], asked.database, VersionScope::All, None)
}
