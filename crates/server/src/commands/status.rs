//! `frondStatus` and `frondDiff`.

use frond_db::Error;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_vcs::Repository;
use frond_vcs::rows::append_field_changes;
use frond_vcs::{CollectionDiff, DiffDetail, DiffRequest, DocumentDiff};

use crate::commands::reply;
use crate::limits::REPLY_BYTES_MAX;
use crate::request::{Answer, Request};

/// Returns how the working state differs from HEAD.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let documents = fields.count("documents")?.unwrap_or(0);
    fields.finish()?;
    let database = request.existing_database()?;
    let status = database.status()?;
    let mut answer = DocumentBuilder::new();
    answer.append("branch", Value::String(&status.branch));
    match &status.head {
        Some(head) => answer.append("head", Value::String(&head.to_string())),
        None => answer.append("head", Value::Null),
    };
    answer.append("dirty", Value::Boolean(!status.collections.is_empty()));
    answer.begin_array("collections");
    for collection in &status.collections {
        answer
            .push_begin_document()
            .append("collection", Value::String(&collection.collection))
            .append("change", Value::String(collection.change.name()))
            .append("added", reply::number(collection.added))
            .append("removed", reply::number(collection.removed))
            .append("modified", reply::number(collection.modified));
        if documents > 0 {
            append_changed(&mut answer, &database, &collection.collection, documents)?;
        }
        answer.end();
    }
    answer.end();
    if let Some(merging) = &status.merging {
        answer.append("merging", Value::String(&merging.to_string()));
        answer.append("operation", Value::String(status.operation.unwrap_or_default()));
    }
    append_conflict_counts(&mut answer, &status.conflicts);
    Ok(answer)
}

/// Appends `conflicts: [{collection, count}]`.
pub fn append_conflict_counts(answer: &mut DocumentBuilder, counts: &[(String, u64)]) {
    answer.begin_array("conflicts");
    for (collection, count) in counts {
        answer
            .push_begin_document()
            .append("collection", Value::String(collection))
            .append("count", reply::number(*count))
            .end();
    }
    answer.end();
}

/// Appends `documents: [{_id, change}]`, at most `limit`; `more` says that there are others.
fn append_changed(
    answer: &mut DocumentBuilder,
    database: &Repository,
    collection: &str,
    limit: u64,
) -> Result<(), Error> {
    let request = DiffRequest { collection: Some(collection.to_owned()), ..DiffRequest::default() };
    answer.begin_array("documents");
    let (mut shown, mut has_more) = (0, false);
    for row in database.diff_rows(&request)? {
        let row = row?;
        let DiffDetail::Document { from, to } = &row.detail else { continue };
        if shown == limit {
            has_more = true;
            break;
        }
        shown += 1;
        let id = to.as_ref().or(from.as_ref()).and_then(|document| document.get("_id"));
        answer
            .push_begin_document()
            .append("_id", id.unwrap_or(Value::Null))
            .append("change", Value::String(row.change.name()))
            .end();
    }
    answer.end();
    if has_more {
        answer.append("more", Value::Boolean(true));
    }
    Ok(())
}

/// The names of a diff's fields: clients of other databases have their own words.
struct Names {
    collection: &'static str,
    changes: &'static str,
}

/// Returns how two versions differ.
pub fn diff(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let from = fields.string("from")?;
    let to = fields.string("to")?;
    fields.finish()?;
    let names = if request.sent_name == request.name {
        Names { collection: "collection", changes: "changes" }
    } else {
        Names { collection: "name", changes: "diff" }
    };
    // A diff that doesn't fit into one answer is refused before it is gathered.
    let collections = request.existing_database()?.diff_within(from, to, REPLY_BYTES_MAX as u64)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("collections");
    for collection in &collections {
        append_collection(&mut answer, collection, &names);
    }
    answer.end();
    Ok(answer)
}

fn append_collection(answer: &mut DocumentBuilder, diff: &CollectionDiff, names: &Names) {
    answer
        .push_begin_document()
        .append(names.collection, Value::String(&diff.collection))
        .append("change", Value::String(diff.change.name()));
    append_documents(answer, "added", &diff.added);
    append_documents(answer, "removed", &diff.removed);
    answer.begin_array("modified");
    for document in &diff.modified {
        append_document_diff(answer, document, names);
    }
    answer.end();
    answer.begin_array("indexes");
    for index in &diff.indexes {
        answer.push(Value::String(&index.name));
    }
    answer.end();
    if !diff.indexes.is_empty() {
        answer.begin_array("indexChanges");
        for index in &diff.indexes {
            answer.push_begin_document().append("name", Value::String(&index.name));
            append_sides(answer, index.from.as_ref(), index.to.as_ref());
            answer.end();
        }
        answer.end();
    }
    if let Some((from, to)) = &diff.options {
        answer.begin_document("options");
        append_sides(answer, Some(from), Some(to));
        answer.end();
    }
    answer.end();
}

fn append_sides(
    answer: &mut DocumentBuilder,
    from: Option<&DocumentBuf>,
    to: Option<&DocumentBuf>,
) {
    for (name, side) in [("from", from), ("to", to)] {
        if let Some(side) = side {
            answer.append(name, Value::from(side));
        }
    }
}

fn append_documents(answer: &mut DocumentBuilder, name: &str, documents: &[DocumentBuf]) {
    answer.begin_array(name);
    for document in documents {
        answer.push(Value::from(document));
    }
    answer.end();
}

fn append_document_diff(answer: &mut DocumentBuilder, diff: &DocumentDiff, names: &Names) {
    answer.push_begin_document().append("_id", Value::from(&diff.id));
    append_field_changes(answer, names.changes, &diff.changes);
    answer.end();
}
