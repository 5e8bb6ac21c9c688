//! `frondReflog` and `frondUndo`: what changed refs, and how to take it back.
//!
//! A database that was dropped is gone, but for what brings it back: `frondReflog {dropped: true}`
//! lists such, and `frondUndo` on a database that doesn't exist brings back the one that was
//! dropped last under its name, or under the name that `dropped` gives.

use frond_doc::{DocumentBuilder, Value};

use crate::commands::merge::append_set_aside;
use crate::commands::{history, reply};
use crate::request::{Answer, Request};

/// Lists the changes of this branch's ref, newest first.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let branch = fields.string("branch")?;
    let all = fields.boolean("all")?;
    let dropped = fields.boolean("dropped")?;
    let expires = history::date(&mut fields, "expireBefore")?;
    let limit = fields.count("limit")?.filter(|limit| *limit > 0).unwrap_or(u64::MAX);
    fields.finish()?;
    let database = request.database()?;
    let mut answer = DocumentBuilder::new();
    if let Some(before) = expires {
        let forgotten = if dropped {
            database.expire_dropped(before)?
        } else {
            database.expire_reflog(before)?
        };
        answer.append("forgotten", reply::number(forgotten));
        return Ok(answer);
    }
    if dropped {
        answer.begin_array("databases");
        for database in database.dropped_databases()? {
            answer
                .push_begin_document()
                .append("database", Value::String(&database.name))
                .append("change", Value::Int64(reply::long(database.change)))
                .append("time", Value::DateTime(database.time_millis));
            append_heads(&mut answer, &database.branches);
            answer.end();
        }
        answer.end();
        return Ok(answer);
    }
    let branch = branch.or(if all { None } else { database.branch() });
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let changes = database.reflog(branch)?;
    if changes.is_empty() {
        database.check_exists()?;
    }
    answer.begin_array("changes");
    for change in changes.iter().take(limit) {
        answer.push_begin_document();
        change.append_to(&mut answer);
        answer.end();
    }
    answer.end();
    Ok(answer)
}

fn append_heads(answer: &mut DocumentBuilder, branches: &[(String, Option<frond_vcs::CommitId>)]) {
    answer.begin_array("branches");
    for (branch, head) in branches {
        answer.push_begin_document().append("branch", Value::String(branch));
        match head {
            Some(head) => answer.append("commitId", Value::String(&head.to_string())),
            None => answer.append("commitId", Value::Null),
        };
        answer.end();
    }
    answer.end();
}

/// Undoes a change of a branch's ref, or brings a dropped database back.
pub fn undo(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let branch = fields.string("branch")?;
    let change = fields.count("change")?;
    let dropped = fields.string("dropped")?;
    fields.finish()?;
    let database = request.database()?;
    let name = &database.name().name;
    let mut answer = DocumentBuilder::new();
    if dropped.is_some() || !database.exists()? {
        let back = database.undrop(dropped.unwrap_or(name))?;
        answer.append("database", Value::String(name));
        append_heads(&mut answer, &back.branches);
        return Ok(answer);
    }
    let undone = database.undo(branch, change)?;
    answer.begin_document("undone");
    undone.change.append_to(&mut answer);
    answer.end();
    match &undone.head {
        Some(head) => answer.append("commitId", Value::String(&head.to_string())),
        None => answer.append("commitId", Value::Null),
    };
    answer.append("branch", Value::String(&undone.change.branch));
    append_set_aside(&mut answer, &undone.set_aside);
    Ok(answer)
}
