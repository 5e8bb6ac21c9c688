//! What commands of versions need: on the branch of `$db`, and on every version that a field names.

use frond_db::Error;

use super::{Asked, At};
use crate::access::Action;

/// The sides of a range, `a..b`, or the one revision that it is. A side that is left out is HEAD.
pub fn ends(range: &str) -> impl Iterator<Item = &str> {
    range.split("..")
}

impl Asked<'_> {
    /// Checks that the client may read every version that a field names.
    fn reads(&self, field: &'static str, collection: Option<&str>) -> Result<(), Error> {
        for revision in self.values(field).filter_map(|value| value.as_str()) {
            for end in ends(revision) {
                self.on(&[Action::Find], self.database, At::Revision(end), collection)?;
            }
        }
        Ok(())
    }

    /// Checks that the client may take what a version has: as somebody who reads it or who does
    /// with it what `action` says.
    fn takes(&self, field: &'static str, action: Action) -> Result<(), Error> {
        for revision in self.values(field).filter_map(|value| value.as_str()) {
            let at = At::Revision(revision);
            if !self.may(Action::Find, self.database, at, None)? {
                self.on(&[action], self.database, at, None)?;
            }
        }
        Ok(())
    }

    /// The collections that a field names; the database itself where none does.
    fn collections(&self, field: &'static str) -> Vec<Option<&str>> {
        let mut named: Vec<Option<&str>> = self.values(field).map(|value| value.as_str()).collect();
        if named.is_empty() {
            named.push(None);
        }
        named
    }
}

/// What tells of a collection's history, or of that of all: `collection`, and what of history by
/// `range`, `from` and `to`.
///
/// # Errors
/// `Unauthorized` (13).
pub fn reading(asked: &Asked<'_>) -> Result<(), Error> {
    for collection in asked.collections("collection") {
        asked.here(&[Action::Find], collection)?;
        for field in ["range", "from", "to", "target"] {
            asked.reads(field, collection)?;
        }
    }
    Ok(())
}

/// `frondBranch`: lists for who reads; what changes a branch is judged by that branch's name.
///
/// # Errors
/// `Unauthorized` (13).
pub fn branch(asked: &Asked<'_>) -> Result<(), Error> {
    let manage = [Action::ManageBranches];
    if asked.says("removeExpired") {
        asked.on(&manage, asked.database, At::All, None)?;
    }
    let named = asked.values("branch").chain(asked.values("delete"));
    let names: Vec<&str> = named.filter_map(|value| value.as_str()).collect();
    for name in &names {
        asked.on(&manage, asked.database, At::Branch(name), None)?;
    }
    if names.is_empty() && !asked.may(Action::ManageBranches, asked.database, At::Open, None)? {
        return asked.here(&[Action::Find], None);
    }
    let deletes = asked.says("delete") || asked.says("forceDelete");
    if asked.values("start").next().is_none() && !names.is_empty() && !deletes {
        // It begins where this database is open.
        if !asked.may(Action::Find, asked.database, At::Open, None)? {
            asked.here(&manage, None)?;
        }
    }
    asked.takes("start", Action::ManageBranches)
}

/// `frondMerge`, `frondCherryPick`, `frondRevert`, `frondRebase`: what they take is read.
///
/// # Errors
/// `Unauthorized` (13).
pub fn merging(asked: &Asked<'_>) -> Result<(), Error> {
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
pub fn reset(asked: &Asked<'_>) -> Result<(), Error> {
    asked.here(&[Action::ResetBranch], None)?;
    asked.takes("target", Action::ResetBranch)
}

/// `frondRestore`
///
/// # Errors
/// `Unauthorized` (13).
pub fn restore(asked: &Asked<'_>) -> Result<(), Error> {
    for collection in asked.collections("collection") {
        asked.here(&[Action::Insert, Action::Update, Action::Remove], collection)?;
        asked.reads("from", collection)?;
    }
    Ok(())
}

/// `frondTag`: a tag belongs to all branches, so only who isn't limited to some takes one away or
/// moves it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn tag(asked: &Asked<'_>) -> Result<(), Error> {
    if asked.values("tag").next().is_none() {
        return asked.here(&[Action::Find], None);
    }
    if asked.says("delete") || asked.says("force") {
        asked.on(&[Action::Tag], asked.database, At::All, None)?;
    }
    asked.here(&[Action::Tag], None)?;
    asked.reads("target", None)
}

/// `frondReflog`
///
/// # Errors
/// `Unauthorized` (13).
pub fn reflog(asked: &Asked<'_>) -> Result<(), Error> {
    if asked.values("expireBefore").next().is_some() {
        asked.on(&[Action::SetPolicy], asked.database, At::All, None)?;
    }
    let find = [Action::Find];
    if asked.says("all") || asked.says("dropped") {
        asked.on(&find, asked.database, At::All, None)?;
    }
    let mut branches = asked.values("branch").filter_map(|value| value.as_str()).peekable();
    if branches.peek().is_none() {
        // A version that is no branch has no changes: those of all are told then.
        let open = asked.server.frond.database(asked.database);
        let is_branch = open.is_ok_and(|open| open.branch().is_some());
        let at = if is_branch { At::Open } else { At::All };
        return asked.on(&find, asked.database, at, None);
    }
    branches.try_for_each(|branch| asked.on(&find, asked.database, At::Branch(branch), None))
}

/// `frondUndo`: of a branch's change, or of a drop: of this database or of another, which comes
/// back under this name.
///
/// # Errors
/// `Unauthorized` (13).
pub fn undo(asked: &Asked<'_>) -> Result<(), Error> {
    let exists = asked.server.frond.database(asked.database).and_then(|open| open.exists());
    let dropped: Vec<&str> = asked.values("dropped").filter_map(|value| value.as_str()).collect();
    if !dropped.is_empty() || !exists.unwrap_or(true) {
        let own = [Action::DropDatabase, Action::Insert];
        asked.on(&own, asked.database, At::All, None)?;
        for database in dropped {
            asked.on(&[Action::DropDatabase, Action::Find], database, At::All, None)?;
        }
        return Ok(());
    }
    let mut branches = asked.values("branch").filter_map(|value| value.as_str()).peekable();
    if branches.peek().is_none() {
        return asked.here(&[Action::ResetBranch], None);
    }
    branches.try_for_each(|branch| {
        asked.on(&[Action::ResetBranch], asked.database, At::Branch(branch), None)
    })
}

/// `frondErase`: from all branches.
///
/// # Errors
/// `Unauthorized` (13).
pub fn erase(asked: &Asked<'_>) -> Result<(), Error> {
    asked.on(&[Action::Erase], asked.database, At::All, None)
}

/// `frondPolicy`: who reads the database may look at it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn policy(asked: &Asked<'_>) -> Result<(), Error> {
    let changes = ["set", "remove", "thin"].into_iter().any(|field| asked.says(field));
    if changes || !asked.may(Action::Find, asked.database, At::Open, None)? {
        return asked.on(&[Action::SetPolicy], asked.database, At::All, None);
    }
    Ok(())
}

/// `frondMergeRules`
///
/// # Errors
/// `Unauthorized` (13).
pub fn merge_rules(asked: &Asked<'_>) -> Result<(), Error> {
    let mut collections = asked.collections("collection").into_iter();
    collections.try_for_each(|collection| asked.here(&[Action::CollMod], collection))
}

/// `frondRemote`, and listing them: what reaches other machines.
///
/// # Errors
/// `Unauthorized` (13).
pub fn remotes(asked: &Asked<'_>) -> Result<(), Error> {
    asked.cluster(Action::UseRemotes)
}

/// `frondPush`: the whole database may go.
///
/// # Errors
/// `Unauthorized` (13).
pub fn push(asked: &Asked<'_>) -> Result<(), Error> {
    asked.cluster(Action::UseRemotes)?;
    asked.on(&[Action::Find], asked.database, At::All, None)
}

/// `frondClone`, `frondFetch`, `frondPull`: any part of the database may come.
///
/// # Errors
/// `Unauthorized` (13).
pub fn fetch(asked: &Asked<'_>) -> Result<(), Error> {
    asked.cluster(Action::UseRemotes)?;
    asked.on(&[Action::Find, Action::Insert, Action::Merge], asked.database, At::All, None)
}

/// `dropDatabase`: with all branches.
///
/// # Errors
/// `Unauthorized` (13).
pub fn drop_database(asked: &Asked<'_>) -> Result<(), Error> {
    asked.on(&[Action::DropDatabase], asked.database, At::All, None)
}
