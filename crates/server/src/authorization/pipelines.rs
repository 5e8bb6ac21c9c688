//! Checks the reads and writes of a pipeline, in all its stages and the pipelines within them.
//!
//! A stage that isn't known here is refused also to users who may do everything: so a new one
//! needs a row before a client can use it. Stages that there are not at all are left to the parser,
//! which says so.
//!
//! A view is judged by its own name when it is read, as in MongoDB; what it reads, when it is made.

use frond_db::Error;
use frond_doc::{Array, Document, Value};
use frond_query::reference;

use super::{AuthorizationRequest, VersionScope};
use crate::access::Action;

/// Stages that work on the documents that come to them, and on nothing else.
const HARMLESS: &[&str] = &[
    "$addFields",
    "$bucket",
    "$bucketAuto",
    "$changeStreamSplitLargeEvent",
    "$count",
    "$densify",
    "$documents",
    "$fill",
    "$geoNear",
    "$group",
    "$limit",
    "$match",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$sample",
    "$set",
    "$setWindowFields",
    "$skip",
    "$sort",
    "$sortByCount",
    "$unset",
    "$unwind",
];

/// First stages whose documents are not a collection's.
const SOURCES: &[&str] = &[
    "$blame",
    "$changeStream",
    "$collStats",
    "$conflicts",
    "$currentOp",
    "$diff",
    "$documents",
    "$history",
    "$indexStats",
    "$listLocalSessions",
    "$listSessions",
    "$log",
    "$planCacheStats",
    "$reflog",
];

/// The start of a pipeline.
#[derive(Clone, Copy)]
struct Start<'a> {
    /// The database's name, as the wire has it.
    database: &'a str,
    /// `None`: the database itself.
    collection: Option<&'a str>,
}

/// `aggregate`
///
/// # Errors
/// `Unauthorized` (13).
pub fn aggregate(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let start = Start { database: request.database, collection: request.argument().as_str() };
    let mut fields = request.fields()?;
    if let Some(stages) = fields.array("pipeline")? {
        check(request, start, stages)?;
    }
    if fields.boolean("bypassDocumentValidation")? {
        request.here(&[Action::BypassDocumentValidation], None)?;
    }
    Ok(())
}

/// `mapReduce`
///
/// # Errors
/// `Unauthorized` (13).
pub fn map_reduce(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    request.here(&[Action::Find], request.argument().as_str())?;
    let mut fields = request.fields()?;
    if fields.boolean("bypassDocumentValidation")? {
        request.here(&[Action::BypassDocumentValidation], None)?;
    }
    let out = match fields.value("out") {
        Some(Value::String(collection)) => {
            return request.here(&[Action::Insert, Action::Remove], Some(collection));
        }
        Some(Value::Document(out)) => out,
        _ => return Ok(()),
    };
    let named = out.iter().filter(|(field, _)| *field == "db");
    let mut databases: Vec<&str> = named.filter_map(|(_, name)| name.as_str()).collect();
    if databases.is_empty() {
        databases.push(request.database);
    }
    for (how, collection) in out.iter() {
        let actions = match how {
            "replace" => [Action::Insert, Action::Remove],
            "merge" | "reduce" => [Action::Insert, Action::Update],
            _ => continue,
        };
        for database in &databases {
            request.on(&actions, database, VersionScope::Open, collection.as_str())?;
        }
    }
    Ok(())
}

/// Checks the rights for making a view, or changing its source: `viewOn` and `pipeline`. A user who
/// can't read the view learns nothing by it, and needs no right to read its source: `restore`
/// brings views so. With rights that differ by branch it may be readable on another one, and then
/// its maker must be able to read all of it.
///
/// # Errors
/// `Unauthorized` (13).
pub fn of_view(request: &AuthorizationRequest<'_>) -> Result<(), Error> {
    let view = request.argument().as_str();
    let may_read = request.may(Action::Find, request.database, VersionScope::Open, view)?;
    if !may_read && !request.rights.grants.limits_branches() {
        return Ok(());
    }
    let mut fields = request.fields()?;
    if let Some(on) = fields.string("viewOn")? {
        request.here(&[Action::Find], Some(on))?;
    }
    if let Some(stages) = fields.array("pipeline")? {
        check(request, Start { database: request.database, collection: None }, stages)?;
    }
    Ok(())
}

/// Checks a pipeline: its first stage, or the collection that it reads, then each stage.
fn check(
    request: &AuthorizationRequest<'_>,
    start: Start<'_>,
    stages: Array<'_>,
) -> Result<(), Error> {
    let first = stages.get(0).and_then(|stage| stage.as_document());
    let mut has_source = false;
    for (name, options) in first.iter().flat_map(|first| first.iter()) {
        if SOURCES.contains(&name) {
            has_source = true;
            source(request, start, name, options)?;
        }
    }
    if let (false, Some(collection)) = (has_source, start.collection) {
        request.on(&[Action::Find], start.database, VersionScope::Open, Some(collection))?;
    }
    for (position, stage) in stages.iter().enumerate() {
        for (name, options) in stage.as_document().iter().flat_map(|stage| stage.iter()) {
            stage_within(request, name, options, position == 0)?;
        }
    }
    Ok(())
}

/// A first stage that gives documents of its own.
fn source(
    request: &AuthorizationRequest<'_>,
    start: Start<'_>,
    name: &str,
    options: Value<'_>,
) -> Result<(), Error> {
    let on = |action| request.on(&[action], start.database, VersionScope::Open, start.collection);
    let options = options.as_document();
    let has_any = |names: &[&str]| {
        let fields = options.iter().flat_map(|options| options.iter());
        fields.into_iter().any(|(field, value)| names.contains(&field) && is_enabled(value))
    };
    match name {
        "$collStats" => {
            on(Action::CollStats)?;
            // It counts, too.
            if has_any(&["count"]) { on(Action::Find) } else { Ok(()) }
        }
        "$indexStats" => on(Action::IndexStats),
        "$planCacheStats" => on(Action::PlanCacheRead),
        "$currentOp" if has_any(&["allUsers"]) => request.cluster(Action::Inprog),
        "$listSessions" | "$listLocalSessions" if has_any(&["allUsers", "users"]) => {
            request.cluster(Action::ListSessions)
        }
        "$currentOp" | "$listSessions" | "$listLocalSessions" | "$documents" => Ok(()),
        "$changeStream" if has_any(&["allChangesForCluster"]) => {
            request.on_all(&[Action::Find, Action::ChangeStream])
        }
        "$changeStream" => {
            on(Action::Find)?;
            on(Action::ChangeStream)
        }
        _ => match options {
            Some(options) => history(request, start, name, options),
            None => on(Action::Find),
        },
    }
}

fn is_enabled(value: Value<'_>) -> bool {
    !matches!(value, Value::Boolean(false) | Value::Null)
}

/// A stage that shows history: of the collection that is aggregated or named, or else of all.
fn history(
    request: &AuthorizationRequest<'_>,
    start: Start<'_>,
    name: &str,
    options: Document<'_>,
) -> Result<(), Error> {
    let named = || options.iter().filter(|(field, _)| *field == "collection");
    let mut collections: Vec<Option<&str>> = named().map(|(_, value)| value.as_str()).collect();
    if collections.is_empty() || start.collection.is_some() {
        collections.push(start.collection);
    }
    let on = |at: VersionScope<'_>| {
        let mut all = collections.iter();
        all.try_for_each(|collection| request.on(&[Action::Find], start.database, at, *collection))
    };
    on(VersionScope::Open)?;
    let mut names_branch = false;
    for (field, value) in options.iter() {
        let Some(text) = value.as_str() else { continue };
        match field {
            "from" | "to" | "range" => {
                super::versions::ends(text).try_for_each(|end| on(VersionScope::Revision(end)))?
            }
            "branch" => {
                names_branch = true;
                request.of_ref(start.database, text, on)?;
            }
            _ => {}
        }
    }
    // Without a branch it shows all.
    if name == "$reflog" && !names_branch { on(VersionScope::All) } else { Ok(()) }
}

/// A stage, wherever it stands; what it names without a database lies in that of `$db`.
fn stage_within(
    request: &AuthorizationRequest<'_>,
    name: &str,
    options: Value<'_>,
    is_first: bool,
) -> Result<(), Error> {
    let document = options.as_document();
    let fields = || document.iter().flat_map(|document| document.iter()).collect::<Vec<_>>();
    match name {
        "$lookup" => lookup(request, &fields()),
        "$unionWith" => match options.as_str() {
            Some(collection) => request.here(&[Action::Find], Some(collection)),
            None => union_with(request, &fields()),
        },
        "$graphLookup" => {
            for (_, from) in fields().into_iter().filter(|(field, _)| *field == "from") {
                if let Some(start) = namespace(from, request.database) {
                    request.on(
                        &[Action::Find],
                        start.database,
                        VersionScope::Open,
                        start.collection,
                    )?;
                }
            }
            Ok(())
        }
        "$facet" => {
            let start = Start { database: request.database, collection: None };
            let stages = fields().into_iter().filter_map(|(_, stages)| stages.as_array());
            stages.into_iter().try_for_each(|stages| check(request, start, stages))
        }
        "$out" => output(request, options, &[Action::Insert, Action::Remove]),
        "$merge" => {
            let actions = merge_actions(&fields());
            match document {
                None => output(request, options, &actions),
                Some(_) => {
                    let intos = fields().into_iter().filter(|(field, _)| *field == "into");
                    intos.into_iter().try_for_each(|(_, into)| output(request, into, &actions))
                }
            }
        }
        name if HARMLESS.contains(&name) || (is_first && SOURCES.contains(&name)) => Ok(()),
        // The parser refuses a source that doesn't stand first, and what it doesn't know.
        name if SOURCES.contains(&name) || !is_known(name) => Ok(()),
        _ => request.cluster(Action::Internal),
    }
}

/// Whether there is a stage of this name.
fn is_known(name: &str) -> bool {
    let families = reference::families();
    let stages = families.iter().filter(|family| family.title == reference::STAGES);
    stages.into_iter().flat_map(|family| &family.features).any(|stage| stage.name == name)
}

/// The pipelines that a stage's options hold.
fn lookup(request: &AuthorizationRequest<'_>, fields: &[(&str, Value<'_>)]) -> Result<(), Error> {
    let froms = fields.iter().filter(|(field, _)| *field == "from");
    let mut starts: Vec<Start<'_>> =
        froms.filter_map(|(_, from)| namespace(*from, request.database)).collect();
    if starts.is_empty() {
        starts.push(Start { database: request.database, collection: None });
    }
    starts.into_iter().try_for_each(|start| named_source(request, start, fields))
}

/// If a name stands twice, each of them counts.
fn union_with(
    request: &AuthorizationRequest<'_>,
    fields: &[(&str, Value<'_>)],
) -> Result<(), Error> {
    let all = |name: &'static str| fields.iter().filter(move |(field, _)| *field == name);
    let mut databases: Vec<&str> = all("db").filter_map(|(_, db)| db.as_str()).collect();
    if databases.is_empty() {
        databases.push(request.database);
    }
    let mut collections: Vec<Option<&str>> =
        all("coll").map(|(_, collection)| collection.as_str()).collect();
    if collections.is_empty() {
        collections.push(None);
    }
    for database in databases {
        for collection in &collections {
            named_source(request, Start { database, collection: *collection }, fields)?;
        }
    }
    Ok(())
}

/// A collection that a stage names, and the stage's pipelines over it. With a pipeline that has a
/// source of its own the collection isn't read, but it is named.
fn named_source(
    request: &AuthorizationRequest<'_>,
    start: Start<'_>,
    fields: &[(&str, Value<'_>)],
) -> Result<(), Error> {
    if let Some(collection) = start.collection {
        request.on(&[Action::Find], start.database, VersionScope::Open, Some(collection))?;
    }
    pipelines(fields).into_iter().try_for_each(|stages| check(request, start, stages))
}

fn pipelines<'a>(fields: &[(&str, Value<'a>)]) -> Vec<Array<'a>> {
    let named = fields.iter().filter(|(field, _)| *field == "pipeline");
    named.filter_map(|(_, stages)| stages.as_array()).collect()
}

/// A collection's name, or `{db, coll}`.
fn namespace<'a>(value: Value<'a>, database: &'a str) -> Option<Start<'a>> {
    match value {
        Value::String(collection) => Some(Start { database, collection: Some(collection) }),
        Value::Document(document) => Some(Start {
            database: document.get("db").and_then(|db| db.as_str()).unwrap_or(database),
            collection: document.get("coll").and_then(|collection| collection.as_str()),
        }),
        _ => None,
    }
}

/// Returns where a pipeline's documents go. If a name stands twice, each of them counts.
fn output(
    request: &AuthorizationRequest<'_>,
    into: Value<'_>,
    actions: &[Action],
) -> Result<(), Error> {
    match into {
        Value::String(collection) => request.here(actions, Some(collection)),
        Value::Document(document) => {
            let all = |name: &'static str| {
                let named = document.iter().filter(move |(field, _)| *field == name);
                named.filter_map(|(_, value)| value.as_str()).collect::<Vec<_>>()
            };
            let mut databases = all("db");
            if databases.is_empty() {
                databases.push(request.database);
            }
            for database in databases {
                for collection in all("coll") {
                    request.on(actions, database, VersionScope::Open, Some(collection))?;
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the actions of a `$merge` on its target.
fn merge_actions(fields: &[(&str, Value<'_>)]) -> Vec<Action> {
    let only = |name: &str, harmless: &[&str]| {
        let mut given = fields.iter().filter(|(field, _)| *field == name).peekable();
        given.peek().is_some()
            && given.all(|(_, value)| value.as_str().is_some_and(|how| harmless.contains(&how)))
    };
    let mut actions = Vec::new();
    if !only("whenMatched", &["keepExisting", "fail"]) {
        actions.push(Action::Update);
    }
    if !only("whenNotMatched", &["discard", "fail"]) {
        actions.push(Action::Insert);
    }
    if actions.is_empty() {
        actions.push(Action::Find);
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stages that are handled one by one.
    const OTHERS: &[&str] = &["$facet", "$graphLookup", "$lookup", "$merge", "$out", "$unionWith"];

    /// A new stage needs a row that says what it requires.
    #[test]
    fn every_stage_has_a_row() {
        let families = reference::families();
        let stages =
            families.iter().find(|family| family.title == reference::STAGES).expect("there");
        for stage in &stages.features {
            let is_refused = !matches!(
                stage.standing,
                reference::SupportLevel::Works | reference::SupportLevel::Differs(_)
            );
            let lists = [HARMLESS, SOURCES, OTHERS];
            let has_row = lists.iter().any(|list| list.contains(&stage.name));
            assert!(has_row || is_refused, "{}", stage.name);
        }
        for name in frond_query::pipeline::history_stages() {
            assert!(SOURCES.contains(name), "{name}");
        }
        for list in [HARMLESS, SOURCES, OTHERS] {
            assert!(list.is_sorted());
        }
    }
}
