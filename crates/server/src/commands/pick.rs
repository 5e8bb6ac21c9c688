//! `frondCherryPick`, `frondRevert`, `frondRebase` and `frondRestore`.

use frond_db::Error;
use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::{PickKind, PickRequest, Restored};

use crate::commands::{history, merge};
use crate::request::{Answer, Request};

/// Does again what one commit did.
pub fn cherry_pick(request: &Request<'_>) -> Answer {
    run(request, PickKind::Pick)
}

/// Undoes what one commit did.
pub fn revert(request: &Request<'_>) -> Answer {
    run(request, PickKind::Revert)
}

fn run(request: &Request<'_>, kind: PickKind) -> Answer {
    let mut fields = request.fields()?;
    let target = fields.required_string("target")?;
    let parent = fields.count("parent")?;
    let author = fields.string("author")?;
    let pick = PickRequest {
        revision: target.to_owned(),
        kind,
        parent: parent.map(|parent| u32::try_from(parent).unwrap_or(u32::MAX)),
        message: fields.string("message")?.map(str::to_owned),
        author: author
            .map(str::to_owned)
            .or_else(|| (kind == PickKind::Revert).then(|| history::author_default(request))),
        rules: merge::rules(&mut fields)?,
        refuse_dirty: fields.boolean("refuseDirty")?,
    };
    fields.finish()?;
    let database = request.database()?;
    merge::outcome(&database.pick(&pick)?, database.branch())
}

/// Makes this branch's own commits again on top of another version.
pub fn rebase(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let onto = fields.string("onto")?;
    let rules = merge::rules(&mut fields)?;
    let (continues, skips) = (fields.boolean("continue")?, fields.boolean("skip")?);
    let aborts = fields.boolean("abort")?;
    fields.finish()?;
    let database = request.database()?;
    let onto = match (onto, continues, skips, aborts) {
        (Some(onto), false, false, false) => onto,
        (None, true, false, false) => {
            return merge::outcome(&database.merge_continue(None, None)?, database.branch());
        }
        (None, false, true, false) => {
            return merge::skipped(&database);
        }
        (None, false, false, true) => {
            return merge::aborted(&database);
        }
        _ => {
            let message = "frondRebase takes one of 'onto', 'continue', 'skip' and 'abort'";
            return Err(Error::invalid(Code::BadValue, message));
        }
    };
    let rebased = database.rebase(onto, &rules)?;
    if !rebased.conflicts.is_empty() {
        return Err(merge::conflicts_error(&rebased.conflicts));
    }
    let mut answer = DocumentBuilder::new();
    answer.append("commitId", Value::String(&rebased.head.to_string()));
    if let Some(branch) = database.branch() {
        answer.append("branch", Value::String(branch));
    }
    answer.begin_array("commits");
    for commit in &rebased.commits {
        answer.push_begin_document();
        history::append_commit(&mut answer, commit, None);
        answer.end();
    }
    answer.end();
    Ok(answer)
}

/// Makes a collection or a document what another version has.
pub fn restore(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let collection = fields.required_string("collection")?;
    let from = fields.string("from")?;
    let document = fields.value_or_null("document").map(|id| id.to_buf());
    let documents = fields.array("documents")?;
    fields.finish()?;
    let database = request.database()?;
    let ids: Vec<_> = match (document, documents) {
        (None, None) => {
            let restored = database.restore_collection(collection, from)?;
            let mut answer = DocumentBuilder::new();
            answer.append("result", Value::String(name(restored)));
            return Ok(answer);
        }
        (Some(id), None) => vec![id],
        (None, Some(ids)) => ids.iter().map(|id| id.to_buf()).collect(),
        (Some(_), Some(_)) => {
            let message = "frondRestore takes one of 'document' and 'documents'";
            return Err(Error::invalid(Code::BadValue, message));
        }
    };
    let restored = database.restore_documents(collection, &ids, from)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("documents");
    for (id, restored) in ids.iter().zip(restored) {
        answer
            .push_begin_document()
            .append("_id", Value::from(id))
            .append("result", Value::String(name(restored)))
            .end();
    }
    answer.end();
    Ok(answer)
}

fn name(restored: Restored) -> &'static str {
    match restored {
        Restored::Changed => "restored",
        Restored::Unchanged => "unchanged",
        Restored::Removed => "removed",
    }
}
