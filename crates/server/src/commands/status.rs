//! `frondStatus` and `frondDiff`.

use frond_db::version::{CollectionChange, CollectionDiff, DocumentDiff, FieldChangeKind};
use frond_doc::{DocumentBuf, DocumentBuilder, Value};

use crate::commands::reply;
use crate::request::{Answer, Request};

/// How the working state differs from HEAD.
pub fn run(request: &Request<'_>) -> Answer {
    request.no_fields()?;
    let status = request.database()?.status()?;
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
            .append("change", Value::String(change_name(collection.change)))
            .append("added", reply::number(collection.added))
            .append("removed", reply::number(collection.removed))
            .append("modified", reply::number(collection.modified))
            .end();
    }
    answer.end();
    if let Some(merging) = &status.merging {
        answer.append("merging", Value::String(&merging.to_string()));
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

fn change_name(change: CollectionChange) -> &'static str {
    match change {
        CollectionChange::Added => "added",
        CollectionChange::Removed => "removed",
        CollectionChange::Modified => "modified",
    }
}

/// What the fields of a diff are called: clients of other databases have their own words.
struct Names {
    collection: &'static str,
    changes: &'static str,
}

/// How two versions differ.
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
    let collections = request.database()?.diff(from, to)?;
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
        .append("change", Value::String(change_name(diff.change)));
    append_documents(answer, "added", &diff.added);
    append_documents(answer, "removed", &diff.removed);
    answer.begin_array("modified");
    for document in &diff.modified {
        append_document_diff(answer, document, names);
    }
    answer.end();
    answer.begin_array("indexes");
    for index in &diff.indexes {
        answer.push(Value::String(index));
    }
    answer.end().end();
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
    answer.begin_array(names.changes);
    for change in &diff.changes {
        let kind = match change.kind {
            FieldChangeKind::Added => "added",
            FieldChangeKind::Removed => "removed",
            FieldChangeKind::Modified => "modified",
        };
        answer
            .push_begin_document()
            .append("type", Value::String(kind))
            .append("path", Value::String(&change.path));
        if let Some(from) = &change.from {
            answer.append("from", Value::from(from));
        }
        if let Some(to) = &change.to {
            answer.append("to", Value::from(to));
        }
        answer.end();
    }
    answer.end().end();
}
