//! `frondCommit`, `frondLog`, `frondHistory`, `frondBlame`, `frondBranch` and `frondReset`.
//!
//! All commands of versions run on the version of the database that `$db` names: `shop` is the
//! default branch, `shop@feature` another one. The same commands with the prefixes `dolt` and
//! `dumbo` are for clients of other versioned databases.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::{BranchInfo, BranchPolicy, CommitInfo, CommitRequest, LogRequest, Repository};

use crate::access::Action;
use crate::authorization::VersionScope;
use crate::commands::reply;
use crate::fields::Fields;
use crate::hooks::{Act, HookEvent};
use crate::request::{Answer, Request};

/// The author of a commit whose client names none: the user who has logged in.
pub fn author_default(request: &Request<'_>) -> String {
    match request.peer.login() {
        Some(login) => login.user.user.clone(),
        None => "anonymous".to_owned(),
    }
}

/// The committer: the user who has logged in, before the one that a client names. Without access
/// control the one that the client names.
fn committer(request: &Request<'_>, named: Option<&str>) -> Option<String> {
    let user = request.peer.login().map(|login| login.user.user.clone());
    match (user, named) {
        (Some(user), Some(named)) => Some(format!("{named}, by {user}")),
        (user, named) => user.or_else(|| named.map(str::to_owned)),
    }
}

/// Records the branch's working state as a commit.
pub fn commit(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let amend = fields.boolean("amend")?;
    let message =
        if amend { fields.string("message")? } else { Some(fields.required_string("message")?) };
    let author = fields.string("author")?;
    let commit = CommitRequest {
        message: message.map(str::to_owned),
        author: author.map(str::to_owned).or_else(|| (!amend).then(|| author_default(request))),
        committer: committer(request, fields.string("committer")?),
        time_millis: date(&mut fields, "time")?,
        amend,
        allow_empty: fields.boolean("allowEmpty")?,
        merges: merges(&mut fields)?,
        automatic: false,
    };
    fields.finish()?;
    if commit.amend && !commit.merges.is_empty() {
        let message = "frondCommit takes either 'amend' or 'merges'";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let database = request.database()?;
    if !commit.allow_empty {
        database.check_exists()?;
    }
    let branch = database.branch().unwrap_or_default().to_owned();
    let facts = vec![("branch", branch), ("message", message.unwrap_or_default().to_owned())];
    let mut occasion = occasion(request, Act::Commit, facts);
    let hooks = &request.server.hooks;
    let made = if hooks.judge(Act::Commit) {
        // It reads what it judges by the commit's id: what is written meanwhile is another change.
        let made = database.commit_to_judge(&commit)?;
        occasion.facts.push(("commitId", made.id().to_string()));
        hooks.before(&occasion)?;
        database.commit_judged(&made)?
    } else {
        let made = database.commit_as(&commit)?;
        occasion.facts.push(("commitId", made.id.to_string()));
        made
    };
    let mut answer = DocumentBuilder::new();
    append_commit(&mut answer, &made, database.branch());
    hooks.after(&occasion, &mut answer);
    Ok(answer)
}

/// Takes the versions that a commit says it has merged; the table has checked the types.
fn merges(fields: &mut Fields<'_>) -> Result<Vec<String>, Error> {
    let versions = fields.array("merges")?;
    let texts = versions.iter().flat_map(|versions| versions.iter());
    Ok(texts.filter_map(|version| version.as_str().map(str::to_owned)).collect())
}

/// Returns the event by which hooks see a command.
pub fn occasion<'r>(
    request: &Request<'r>,
    act: Act,
    facts: Vec<(&'static str, String)>,
) -> HookEvent<'r> {
    let user = request.peer.login().map(|login| login.user.user.clone()).unwrap_or_default();
    let interrupt = request.operation.interrupt();
    HookEvent { act, database: request.database_name, user, facts, interrupt }
}

/// Takes a date, as milliseconds since 1970.
///
/// # Errors
/// `TypeMismatch` (14) if it is of another type.
pub fn date(fields: &mut Fields<'_>, name: &str) -> Result<Option<i64>, Error> {
    match fields.value(name) {
        None => Ok(None),
        Some(Value::DateTime(millis)) => Ok(Some(millis)),
        Some(other) => Err(fields.wrong_type(name, other, "type 'date'")),
    }
}

/// Appends the facts about a commit; with `branch`, the branch on which it was made.
pub fn append_commit(answer: &mut DocumentBuilder, commit: &CommitInfo, branch: Option<&str>) {
    if let Some(branch) = branch {
        answer.append("branch", Value::String(branch));
    }
    commit.append_to(answer);
}

/// Takes the fields that say which commits are wanted.
fn log_request(fields: &mut Fields<'_>) -> Result<LogRequest, Error> {
    let text = |text: Option<&str>| text.map(str::to_owned);
    Ok(LogRequest {
        range: text(fields.string("range")?),
        collection: text(fields.string("collection")?),
        document: fields.value_or_null("document").map(|id| id.to_buf()),
        author: text(fields.string("author")?),
        message: text(fields.string("message")?),
        since_millis: date(fields, "since")?,
        until_millis: date(fields, "until")?,
        first_parent: fields.boolean("firstParent")?,
        after: text(fields.string("after")?),
        skip: fields.count("skip")?.unwrap_or(0),
        limit: fields.count("limit")?.filter(|limit| *limit > 0),
    })
}

/// A page of the log ends once it is so large: one more commit, of 1 MB at most, fits.
const PAGE_BYTES_MAX: usize = 40 << 20;

/// Lists the commits that this version comes from, newest first. A page that is not the last ends
/// with `next`: what the next one is asked for with as `after`.
pub fn log(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let wanted = log_request(&mut fields)?;
    let text = fields.string("text")?;
    fields.finish()?;
    if wanted.document.is_some() && wanted.collection.is_none() {
        let message = "frondLog takes 'document' only together with 'collection'";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let limit = wanted.limit;
    // One more than asked for shows whether there are more.
    let one_more = LogRequest { limit: limit.map(|limit| limit.saturating_add(1)), ..wanted };
    let mut answer = DocumentBuilder::new();
    answer.begin_array("commits");
    let (mut count, mut bytes, mut last, mut has_more) = (0, 0, String::new(), false);
    let database = request.existing_database()?;
    let commits: Box<dyn Iterator<Item = _>> = match text {
        Some(text) => Box::new(database.log_of_text(one_more, text)?),
        None => Box::new(database.log_of(one_more)?),
    };
    for commit in commits {
        let commit = commit?;
        request.operation.check()?;
        if limit == Some(count) || PAGE_BYTES_MAX <= bytes {
            has_more = true;
            break;
        }
        count += 1;
        bytes += commit.to_row().as_bytes().len();
        last = commit.id.to_string();
        answer.push_begin_document();
        append_commit(&mut answer, &commit, None);
        answer.end();
    }
    answer.end();
    if has_more {
        answer.append("next", Value::String(&last));
    }
    Ok(answer)
}

/// Lists the versions of a document, newest first.
pub fn document_history(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let wanted = log_request(&mut fields)?;
    let missing = (fields.missing("collection"), fields.missing("document"));
    fields.finish()?;
    let collection = wanted.collection.clone().ok_or(missing.0)?;
    let id = wanted.document.clone().ok_or(missing.1)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("versions");
    for version in request.existing_database()?.document_history(&collection, &id, wanted)? {
        answer.push(Value::from(&version?.to_row()));
        request.operation.check()?;
    }
    answer.end();
    Ok(answer)
}

/// Answers which commit each field of a document comes from.
pub fn blame(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let collection = fields.required_string("collection")?;
    let id = fields.value_or_null("document").map(|id| id.to_buf());
    let id = id.ok_or_else(|| fields.missing("document"))?;
    fields.finish()?;
    let blame = request.existing_database()?.blame(collection, &id)?;
    let mut answer = DocumentBuilder::new();
    answer.append("dirty", Value::Boolean(blame.is_dirty));
    answer.begin_array("fields");
    for row in blame.to_rows() {
        answer.push(Value::from(&row));
    }
    answer.end();
    Ok(answer)
}

/// The requested changes of a branch's policy.
#[derive(Clone, Copy)]
struct PolicyChange {
    protects: Option<bool>,
    closes: Option<bool>,
    lives_seconds: Option<u64>,
}

impl PolicyChange {
    fn read(fields: &mut Fields<'_>) -> Result<PolicyChange, Error> {
        let protects = fields.optional_boolean("protected")?;
        let closes = fields.optional_boolean("closed")?;
        let lives_seconds = fields.count("expireAfterSeconds")?;
        Ok(PolicyChange { protects, closes, lives_seconds })
    }

    fn is_any(&self) -> bool {
        self.protects.is_some() || self.closes.is_some() || self.lives_seconds.is_some()
    }

    fn change(&self, policy: &mut BranchPolicy, now_millis: i64) {
        policy.protected = self.protects.unwrap_or(policy.protected);
        policy.closed = self.closes.unwrap_or(policy.closed);
        if let Some(seconds) = self.lives_seconds {
            policy.expires_millis = expiry_in(seconds, now_millis);
        }
    }
}

/// Lists, makes or deletes branches.
pub fn branch(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = fields.string("branch")?;
    let start = fields.string("start")?;
    let forces = fields.boolean("forceDelete")?;
    let change = PolicyChange::read(&mut fields)?;
    let removes_expired = fields.boolean("removeExpired")?;
    let shows_details = fields.boolean("details")?;
    let (name, deletes) = read_deleted(&mut fields, name, forces)?;
    let rename = fields.string("rename")?;
    let name_missing = fields.missing("branch");
    fields.finish()?;
    let database = request.existing_database()?;
    let mut answer = DocumentBuilder::new();
    if removes_expired {
        answer.begin_array("removed");
        for branch in database.remove_expired_branches()? {
            answer.push(Value::String(&branch));
        }
        answer.end();
        return Ok(answer);
    }
    match name {
        None if change.is_any() || deletes || start.is_some() || rename.is_some() => {
            return Err(name_missing);
        }
        None => {
            answer.begin_array("branches");
            for branch in database.list_branches()? {
                answer.push_begin_document();
                append_branch(&mut answer, &branch);
                append_policy(&mut answer, &database.branch_policy(&branch.name)?);
                if shows_details {
                    append_details(&mut answer, request, &database, &branch)?;
                }
                answer.end();
            }
            answer.end();
        }
        Some(name) if deletes => {
            if rename.is_some() {
                return Err(contradicts_rename("delete"));
            }
            database.delete_branch(name, forces)?;
            answer.append("deleted", Value::String(name));
        }
        Some(name) => match rename {
            Some(_) if start.is_some() => return Err(contradicts_rename("start")),
            Some(_) if change.is_any() => return Err(contradicts_rename("a policy")),
            Some(new) => append_branch(&mut answer, &database.rename_branch(name, new)?),
            None => make_or_change(&mut answer, &database, name, start, change)?,
        },
    }
    Ok(answer)
}

fn contradicts_rename(what: &str) -> Error {
    let message = format!("'rename' can't be given together with {what}");
    Error::invalid(Code::BadValue, message)
}

/// Makes a branch, or changes the policy of one that is there.
fn make_or_change(
    answer: &mut DocumentBuilder,
    database: &Repository,
    name: &str,
    start: Option<&str>,
    change: PolicyChange,
) -> Result<(), Error> {
    let known = database.list_branches()?.into_iter().find(|branch| branch.name == name);
    let branch = match known {
        // A policy alone is of a branch that is there.
        Some(branch) if change.is_any() && start.is_none() => branch,
        _ => database.create_branch(name, start)?,
    };
    append_branch(answer, &branch);
    if change.is_any() {
        let mut policy = database.branch_policy(name)?;
        change.change(&mut policy, database.frond().time_millis());
        database.set_branch_policy(name, policy)?;
        append_policy(answer, &policy);
    }
    Ok(())
}

/// Returns when a branch expires that lives for so long from now; `None`: never.
fn expiry_in(seconds: u64, now_millis: i64) -> Option<i64> {
    let millis = i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
    (seconds > 0).then_some(now_millis.saturating_add(millis))
}

/// Reads the branch to delete, and whether there is one: `delete: true, branch: "x"` or, shorter,
/// `delete: "x"`.
fn read_deleted<'a>(
    fields: &mut Fields<'a>,
    name: Option<&'a str>,
    forces: bool,
) -> Result<(Option<&'a str>, bool), Error> {
    match fields.value("delete") {
        Some(Value::String(deleted)) if name.is_none() => Ok((Some(deleted), true)),
        Some(value @ Value::String(_)) => {
            Err(fields.wrong_type("delete", value, "type 'bool' beside 'branch'"))
        }
        Some(value) => Ok((name, value.is_truthy() || forces)),
        None => Ok((name, forces)),
    }
}

fn append_policy(answer: &mut DocumentBuilder, policy: &BranchPolicy) {
    if policy.protected {
        answer.append("protected", Value::Boolean(true));
    }
    if policy.closed {
        answer.append("closed", Value::Boolean(true));
    }
    if let Some(expires) = policy.expires_millis {
        answer.append("expires", Value::DateTime(expires));
    }
}

fn append_branch(answer: &mut DocumentBuilder, branch: &BranchInfo) {
    answer.append("branch", Value::String(&branch.name));
    match &branch.head {
        Some(head) => answer.append("commitId", Value::String(&head.to_string())),
        None => answer.append("commitId", Value::Null),
    };
}

/// Appends when a branch's last commit was made and what it says, and how many commits the branch
/// has that the default branch lacks (`ahead`), and lacks (`behind`): as far as the client may read
/// both.
fn append_details(
    answer: &mut DocumentBuilder,
    request: &Request<'_>,
    database: &Repository,
    branch: &BranchInfo,
) -> Result<(), Error> {
    let is_readable = |name: &str| match &request.rights {
        Some(rights) => request.authorization(rights).may(
            Action::Find,
            request.database_name,
            VersionScope::Branch(name),
            None,
        ),
        None => Ok(true),
    };
    if branch.head.is_none() || !is_readable(&branch.name)? {
        return Ok(());
    }
    let last =
        LogRequest { range: Some(branch.name.clone()), limit: Some(1), ..LogRequest::default() };
    for commit in database.log_of(last)? {
        let commit = commit?;
        answer
            .append("timestamp", Value::DateTime(commit.timestamp_millis))
            .append("message", Value::String(&commit.message));
    }
    let default = Repository::open(database.frond(), &database.name().name)?;
    let Some(default) = default.branch().filter(|default| *default != branch.name) else {
        return Ok(());
    };
    if !is_readable(default)? {
        return Ok(());
    }
    for (name, left, right) in
        [("ahead", default, branch.name.as_str()), ("behind", branch.name.as_str(), default)]
    {
        let range = Some(format!("{left}..{right}"));
        let mut count = 0;
        for commit in database.log_of(LogRequest { range, ..LogRequest::default() })? {
            commit?;
            request.operation.check()?;
            count += 1;
        }
        answer.append(name, reply::number(count));
    }
    Ok(())
}

/// Moves the branch to another commit.
pub fn reset(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let target = fields.string("target")?;
    let hard = fields.optional_boolean("hard")?;
    let is_hard = match (fields.string("mode")?, hard) {
        (None, hard) => hard.unwrap_or(false),
        (Some("hard"), None | Some(true)) => true,
        (Some("soft"), None | Some(false)) => false,
        (Some(mode), _) => {
            let message =
                format!("frondReset: mode '{mode}' is not 'hard' or 'soft', or contradicts 'hard'");
            return Err(Error::invalid(Code::BadValue, message));
        }
    };
    fields.finish()?;
    let database = request.database()?;
    let head = database.reset(target, is_hard)?;
    let mut answer = DocumentBuilder::new();
    if let Some(head) = head {
        answer.append("commitId", Value::String(&head.to_string()));
    }
    if let Some(branch) = database.branch() {
        answer.append("branch", Value::String(branch));
    }
    answer.append("mode", Value::String(if is_hard { "hard" } else { "soft" }));
    Ok(answer)
}
