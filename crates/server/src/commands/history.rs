//! `frondCommit`, `frondLog`, `frondBranch` and `frondReset`.
//!
//! All commands of versions run on the version of the database that `$db` names: `shop` is the
//! default branch, `shop@feature` another one. The same commands with the prefixes `dolt` and
//! `dumbo` are for clients of other versioned databases.

use frond_db::Error;
use frond_db::version::{BranchInfo, CommitInfo};
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;

use crate::request::{Answer, Request};

/// The author of a commit whose client names none: there are no users yet.
pub const AUTHOR_DEFAULT: &str = "anonymous";

/// Records the branch's working state as a commit.
pub fn commit(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let message = fields.required_string("message")?;
    let author = fields.string("author")?.unwrap_or(AUTHOR_DEFAULT);
    fields.finish()?;
    let database = request.database()?;
    let commit = database.commit(message, author)?;
    let mut answer = DocumentBuilder::new();
    append_commit(&mut answer, &commit, database.branch());
    Ok(answer)
}

/// Appends what is told of a commit; with `branch`, the branch on which it was made.
pub fn append_commit(answer: &mut DocumentBuilder, commit: &CommitInfo, branch: Option<&str>) {
    answer.append("commitId", Value::String(&commit.id.to_string()));
    if let Some(branch) = branch {
        answer.append("branch", Value::String(branch));
    }
    answer.begin_array("parents");
    for parent in &commit.parents {
        answer.push(Value::String(&parent.to_string()));
    }
    answer
        .end()
        .append("message", Value::String(&commit.message))
        .append("author", Value::String(&commit.author))
        .append("timestamp", Value::DateTime(commit.timestamp_millis));
}

/// Lists the commits that this version comes from, newest first.
pub fn log(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let limit = fields.count("limit")?.filter(|limit| *limit > 0);
    let collection = fields.string("collection")?;
    let id = fields.value_or_null("document").map(|id| id.to_buf());
    let path = match (collection, &id) {
        (Some(collection), id) => Some((collection, id.as_ref())),
        (None, None) => None,
        (None, Some(_)) => {
            let message = "frondLog takes 'document' only together with 'collection'";
            return Err(Error::invalid(Code::BadValue, message));
        }
    };
    fields.finish()?;
    let commits = request.database()?.log(limit, path)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("commits");
    for commit in &commits {
        answer.push_begin_document();
        append_commit(&mut answer, commit, None);
        answer.end();
    }
    answer.end();
    Ok(answer)
}

/// Lists, makes or deletes branches.
pub fn branch(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let name = fields.string("branch")?;
    let start = fields.string("start")?;
    // `delete: true, branch: "x"` or, shorter, `delete: "x"`.
    let delete = fields.value("delete");
    let forces = fields.boolean("forceDelete")?;
    let (name, deletes) = match delete {
        Some(Value::String(deleted)) if name.is_none() => (Some(deleted), true),
        Some(value @ Value::String(_)) => {
            return Err(fields.wrong_type("delete", value, "type 'bool' beside 'branch'"));
        }
        Some(value) => (name, value.is_truthy() || forces),
        None => (name, forces),
    };
    let name_missing = fields.missing("branch");
    fields.finish()?;
    let database = request.database()?;
    let mut answer = DocumentBuilder::new();
    match name {
        None if deletes || start.is_some() => return Err(name_missing),
        None => {
            answer.begin_array("branches");
            for branch in database.list_branches()? {
                answer.push_begin_document();
                append_branch(&mut answer, &branch);
                answer.end();
            }
            answer.end();
        }
        Some(name) if deletes => {
            database.delete_branch(name, forces)?;
            answer.append("deleted", Value::String(name));
        }
        Some(name) => append_branch(&mut answer, &database.create_branch(name, start)?),
    }
    Ok(answer)
}

fn append_branch(answer: &mut DocumentBuilder, branch: &BranchInfo) {
    answer.append("branch", Value::String(&branch.name));
    match &branch.head {
        Some(head) => answer.append("commitId", Value::String(&head.to_string())),
        None => answer.append("commitId", Value::Null),
    };
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
    answer.append("commitId", Value::String(&head.to_string()));
    if let Some(branch) = database.branch() {
        answer.append("branch", Value::String(branch));
    }
    answer.append("mode", Value::String(if is_hard { "hard" } else { "soft" }));
    Ok(answer)
}
