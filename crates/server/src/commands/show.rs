//! `frondShow`: a commit, and what it changed against its first parent, counted by collection.
//!
//! The changes themselves are a diff: `{$diff: {from: "x^", to: "x"}}` streams them.

use std::collections::BTreeMap;

use frond_doc::{DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::{DiffDetail, DiffRequest};

use crate::commands::{history, reply, tag};
use crate::request::{Answer, Request};

/// The changes of a commit to one collection.
#[derive(Default)]
struct Counts {
    change: &'static str,
    added: u64,
    removed: u64,
    modified: u64,
    /// Indexes and options.
    specifications: u64,
}

/// Answers with a commit's changes.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let target = fields.string("target")?.unwrap_or("HEAD");
    fields.finish()?;
    let database = request.existing_database()?;
    let wanted = frond_vcs::LogRequest {
        range: Some(target.to_owned()),
        limit: Some(1),
        ..Default::default()
    };
    let Some(commit) = database.log_of(wanted)?.next().transpose()? else {
        let message = format!("no commit {target} in {}", database.name());
        return Err(frond_db::Error::invalid(Code::BadValue, message));
    };
    let mut answer = DocumentBuilder::new();
    history::append_commit(&mut answer, &commit, None);
    answer.begin_array("tags");
    for known in database.list_tags()?.iter().filter(|known| known.commit == commit.id) {
        answer.push_begin_document();
        tag::append_tag(&mut answer, known);
        answer.end();
    }
    answer.end();
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    let diff = DiffRequest {
        from: Some(match commit.parents.first() {
            Some(parent) => parent.to_string(),
            None => frond_vcs::NOTHING.to_owned(),
        }),
        to: Some(commit.id.to_string()),
        ..DiffRequest::default()
    };
    for row in database.diff_rows(&diff)? {
        let row = row?;
        request.operation.check()?;
        let count = counts.entry(row.collection).or_default();
        match (row.detail, row.change.name()) {
            (DiffDetail::Collection, change) => count.change = change,
            (DiffDetail::Document { .. }, "added") => count.added += 1,
            (DiffDetail::Document { .. }, "removed") => count.removed += 1,
            (DiffDetail::Document { .. }, _) => count.modified += 1,
            _ => count.specifications += 1,
        }
    }
    answer.begin_array("collections");
    for (collection, count) in counts {
        let change = if count.change.is_empty() { "modified" } else { count.change };
        answer
            .push_begin_document()
            .append("collection", Value::String(&collection))
            .append("change", Value::String(change))
            .append("added", reply::number(count.added))
            .append("removed", reply::number(count.removed))
            .append("modified", reply::number(count.modified))
            .append("specifications", reply::number(count.specifications))
            .end();
    }
    answer.end();
    Ok(answer)
}
