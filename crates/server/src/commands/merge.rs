//! `frondMerge`, `frondMergeRules`, `frondConflicts` and `frondResolveConflict`.
//!
//! A merge with conflicts answers `ok: 0` with `OperationFailed` (96) and the conflicts counted by
//! collection: a client that doesn't look at the answer can't take it for a success. The merge is
//! then going on, until it is continued or aborted.

use frond_db::Error;
use frond_doc::{DocumentBuf, DocumentBuilder, Value};
use frond_query::Code;
use frond_vcs::Repository;
use frond_vcs::{
    ConflictSelection, EqualChanges, Granularity, JudgedMerge, MergeOutcome, MergeRequest,
    MergeRules, MergeSide, Resolution, parse_field_rules,
};

use crate::commands::{history, reply, status};
use crate::fields::Fields;
use crate::hooks::Act;
use crate::request::{Answer, Request};

/// Merges another version into this branch, or continues or aborts a merge.
pub fn run(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let merge_in = fields.string("merge_in")?;
    let message = fields.string("message")?;
    let author = fields.string("author")?;
    let merge = MergeRequest {
        merge_in: merge_in.unwrap_or_default().to_owned(),
        message: message.map(str::to_owned),
        author: Some(author.map_or_else(|| history::author_default(request), str::to_owned)),
        no_fast_forward: fields.boolean("noFF")?,
        fast_forward_only: fields.boolean("ffOnly")?,
        refuse_dirty: fields.boolean("refuseDirty")?,
        squash: fields.boolean("squash")?,
        rules: rules(&mut fields)?,
        judged: None,
    };
    let is_preview = fields.boolean("dryRun")?;
    let (continues, aborts) = (fields.boolean("continue")?, fields.boolean("abort")?);
    fields.finish()?;
    if merge.no_fast_forward && merge.fast_forward_only {
        let message = "frondMerge takes one of 'noFF' and 'ffOnly': they contradict each other";
        return Err(Error::invalid(Code::BadValue, message));
    }
    let database = request.database()?;
    if is_preview {
        if merge_in.is_none() || continues || aborts {
            let message = "frondMerge takes 'dryRun' with 'merge_in' only";
            return Err(Error::invalid(Code::BadValue, message));
        }
        return Ok(preview(&database.preview_merge(&merge)?, database.branch()));
    }
    match (merge_in, continues, aborts) {
        (Some(merge_in), false, false) => {
            let facts = [merge_in, message.unwrap_or("")];
            hooked(request, &database, facts, Some(merge_in), |judged| {
                database.merge(&MergeRequest { judged, ..merge })
            })
        }
        (None, true, false) => {
            hooked(request, &database, ["", message.unwrap_or("")], None, |judged| {
                database.merge_continue_judged(message, author, judged.as_ref())
            })
        }
        (None, false, true) => aborted(&database),
        _ => {
            let message = "frondMerge takes one of 'merge_in', 'continue' and 'abort'";
            Err(Error::invalid(Code::BadValue, message))
        }
    }
}

/// Merges, between the hooks, which get the merged version and the message that was given.
/// `version` is what is merged in; without one, a merge goes on that waits. Where a hook judges,
/// just what it judged is merged.
///
/// # Errors
/// A refusal of the hook before it; as `merge`, and as [`outcome`].
pub fn hooked(
    request: &Request<'_>,
    database: &Repository,
    [merge_in, message]: [&str; 2],
    version: Option<&str>,
    merge: impl FnOnce(Option<JudgedMerge>) -> Result<MergeOutcome, Error>,
) -> Answer {
    let branch = database.branch().unwrap_or_default().to_owned();
    let facts =
        vec![("branch", branch), ("message", message.to_owned()), ("mergeIn", merge_in.to_owned())];
    let mut occasion = history::occasion(request, Act::Merge, facts);
    let hooks = &request.server.hooks;
    let judged = match hooks.judge(Act::Merge) {
        true => Some(database.merge_to_judge(version)?),
        false => None,
    };
    if let Some(theirs) = judged.as_ref().and_then(JudgedMerge::theirs) {
        occasion.facts.push(("mergeInId", theirs.to_string()));
    }
    hooks.before(&occasion)?;
    let done = merge(judged)?;
    let mut answer = outcome(&done, database.branch())?;
    let head = match &done {
        MergeOutcome::FastForward { head } => head.to_string(),
        MergeOutcome::Merged { commit } => commit.id.to_string(),
        MergeOutcome::UpToDate { .. } | MergeOutcome::Conflicts { .. } => return Ok(answer),
    };
    occasion.facts.push(("commitId", head));
    hooks.after(&occasion, &mut answer);
    Ok(answer)
}

/// Returns the answer of a merge that is only tried: conflicts are no error here, and a commit that
/// isn't made has no id.
fn preview(outcome: &MergeOutcome, branch: Option<&str>) -> DocumentBuilder {
    let (result, head, counts) = match outcome {
        MergeOutcome::UpToDate { head } => ("upToDate", Some(head), &[][..]),
        MergeOutcome::FastForward { head } => ("fastForward", Some(head), &[][..]),
        MergeOutcome::Merged { .. } => ("merged", None, &[][..]),
        MergeOutcome::Conflicts { counts } => ("conflicts", None, &counts[..]),
    };
    let mut answer = DocumentBuilder::new();
    answer.append("dryRun", Value::Boolean(true)).append("result", Value::String(result));
    if let Some(head) = head {
        answer.append("commitId", Value::String(&head.to_string()));
    }
    if let Some(branch) = branch {
        answer.append("branch", Value::String(branch));
    }
    status::append_conflict_counts(&mut answer, counts);
    answer
}

/// Gives up a merge, a pick, a revert or a rebase that waits.
pub fn aborted(database: &Repository) -> Answer {
    let set_aside = database.merge_abort()?;
    let mut answer = DocumentBuilder::new();
    answer.append("result", Value::String("aborted"));
    append_set_aside(&mut answer, &set_aside);
    Ok(answer)
}

/// Leaves out the commit at which a rebase, a pick or a revert waits.
pub fn skipped(database: &Repository) -> Answer {
    let (done, set_aside) = database.merge_skip()?;
    match outcome(&done, database.branch()) {
        Ok(mut answer) => {
            append_set_aside(&mut answer, &set_aside);
            Ok(answer)
        }
        Err(error) => {
            let mut details = DocumentBuilder::new();
            for (name, value) in error.details.iter().flat_map(|details| details.iter()) {
                details.append(name, value);
            }
            append_set_aside(&mut details, &set_aside);
            Err(Error { details: Some(details.build()), ..error })
        }
    }
}

/// Appends the collections in which something was written that isn't there any more, if there are
/// any.
pub fn append_set_aside(answer: &mut DocumentBuilder, collections: &[String]) {
    if collections.is_empty() {
        return;
    }
    answer.begin_array("setAside");
    for collection in collections {
        answer.push(Value::String(collection));
    }
    answer.end();
}

/// Takes the fields that say how documents are merged.
///
/// # Errors
/// `TypeMismatch` (14); `BadValue` (2) for a rule or side that there is none of.
pub fn rules(fields: &mut Fields<'_>) -> Result<MergeRules, Error> {
    let mut rules = MergeRules {
        granularity: fields.string("granularity")?.map(Granularity::parse).transpose()?,
        equal_changes: fields.string("equalChanges")?.map(EqualChanges::parse).transpose()?,
        on_conflict: fields.string("onConflict")?.map(MergeSide::parse).transpose()?,
        ..MergeRules::default()
    };
    if let Some(collections) = fields.document("mergeRules")? {
        for (collection, paths) in collections.iter() {
            let Value::Document(paths) = paths else {
                let name = format!("mergeRules.{collection}");
                return Err(fields.wrong_type(&name, paths, "type 'object'"));
            };
            rules.fields.insert(collection.to_owned(), parse_field_rules(paths)?);
        }
    }
    Ok(rules)
}

/// Gives a collection rules by which its documents are merged, or (with null) takes them away.
pub fn collection_rules(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let collection = fields.required_string("collection")?;
    let rules = fields.document("rules")?;
    fields.finish()?;
    request.database()?.set_merge_rules(collection, rules)?;
    Ok(DocumentBuilder::new())
}

/// Returns the answer of a merge, a pick or a revert.
pub fn outcome(outcome: &MergeOutcome, branch: Option<&str>) -> Answer {
    let mut answer = DocumentBuilder::new();
    match outcome {
        MergeOutcome::UpToDate { head } => answer
            .append("result", Value::String("upToDate"))
            .append("commitId", Value::String(&head.to_string())),
        MergeOutcome::FastForward { head } => answer
            .append("result", Value::String("fastForward"))
            .append("commitId", Value::String(&head.to_string())),
        MergeOutcome::Merged { commit } => {
            answer.append("result", Value::String("merged"));
            history::append_commit(&mut answer, commit, branch);
            return Ok(answer);
        }
        MergeOutcome::Conflicts { counts } => return Err(conflicts_error(counts)),
    };
    if let Some(branch) = branch {
        answer.append("branch", Value::String(branch));
    }
    Ok(answer)
}

/// Returns the error that is answered while conflicts wait.
pub fn conflicts_error(counts: &[(String, u64)]) -> Error {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let message = format!(
        "the merge has {total} conflict{}: list them with frondConflicts, resolve them with \
         frondResolveConflict, then frondMerge {{continue: true}} or {{abort: true}}",
        if total == 1 { "" } else { "s" }
    );
    let mut details = DocumentBuilder::new();
    details.append("result", Value::String("conflicts"));
    status::append_conflict_counts(&mut details, counts);
    Error { details: Some(details.build()), ..Error::invalid(Code::OperationFailed, message) }
}

/// Lists the conflicts that wait.
pub fn conflicts(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let collection = fields.string("collection")?;
    fields.finish()?;
    let conflicts = request.existing_database()?.conflicts(collection)?;
    let mut answer = DocumentBuilder::new();
    answer.begin_array("conflicts");
    for conflict in &conflicts {
        answer.push_begin_document();
        conflict.append_to(&mut answer);
        answer.end();
    }
    answer.end();
    Ok(answer)
}

/// Resolves conflicts (one, several, a collection's, all) by a side, by a document, by an update,
/// or by removing the document.
///
/// PyMongo's `db.command(name, value=…)` sends that value in the place of the 1: a document or null
/// there is taken as `value`, where nothing else resolves.
pub fn resolve(request: &Request<'_>) -> Answer {
    let mut fields = request.fields()?;
    let selection = selection(&mut fields)?;
    let side = fields.string("resolution")?;
    let update = fields.value("update").map(|update| update.to_buf());
    let value = fields.value_or_null("value").or_else(|| {
        let is_alone = side.is_none() && update.is_none();
        fields.of_name().filter(|own| is_alone && matches!(own, Value::Document(_) | Value::Null))
    });
    let wrong_type = value.map(|value| fields.wrong_type("value", value, "type 'object'"));
    fields.finish()?;
    let resolution = match (side, value, update) {
        (Some("ours"), None, None) => Resolution::Ours,
        (Some("theirs"), None, None) => Resolution::Theirs,
        (None, None, Some(update)) => Resolution::Update(update),
        (None, Some(Value::Null), None) => Resolution::Value(None),
        (None, Some(Value::Document(document)), None) => {
            let document: DocumentBuf = document.to_buf();
            Resolution::Value(Some(document))
        }
        (None, Some(_), None) => return Err(wrong_type.expect("a value was given")),
        _ => {
            let message = "frondResolveConflict takes one of 'resolution' (\"ours\" or \
                           \"theirs\"), 'value' (a document, or null to remove it) and 'update'";
            return Err(Error::invalid(Code::BadValue, message));
        }
    };
    let left = request.database()?.resolve_conflicts(&selection, &resolution)?;
    let mut answer = DocumentBuilder::new();
    answer.append("remaining", reply::number(left));
    Ok(answer)
}

fn selection(fields: &mut Fields<'_>) -> Result<ConflictSelection, Error> {
    let id = fields.string("id")?;
    let ids = fields.texts("ids")?;
    let collection = fields.string("collection")?;
    match (id, ids, collection, fields.boolean("all")?) {
        (Some(id), None, None, false) => Ok(ConflictSelection::Ids(vec![id.to_owned()])),
        (None, Some(ids), None, false) => Ok(ConflictSelection::Ids(ids)),
        (None, None, Some(name), false) => Ok(ConflictSelection::Collection(name.to_owned())),
        (None, None, None, true) => Ok(ConflictSelection::All),
        _ => {
            let message = "frondResolveConflict takes one of 'id', 'ids', 'collection' and 'all'";
            Err(Error::invalid(Code::BadValue, message))
        }
    }
}
