//! `mapReduce`: translated into a pipeline, as MongoDB does.
//!
//! 1. `query`, `sort` and `limit` are stages; `map` emits an array of pairs for each document.
//! 2. The pairs are grouped by their key and reduced; `finalize` is a function of key and value.
//! 3. `out` is an `$out` or a `$merge`; with `reduce`, what matches is reduced with what is there
//!    and finalized again. `scope` is global for all functions, and so are those that `system.js`
//!    has: the first script sets them.

use frond_db::{AggregateRequest, Database, Error, FindRequest, Interrupt};
use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, ValueBuf, document};
use frond_query::Code;

use crate::commands::write;
use crate::fields::Fields;
use crate::limits::BATCH_BYTES_MAX;
use crate::operations::CurrentOperation;
use crate::request::{Answer, Request};

/// The target of the results.
pub enum Out<'a> {
    /// They are the answer.
    Inline,
    /// They go to a collection.
    To { how: How, database: Option<&'a str>, collection: &'a str },
}

/// The way in which results go to a collection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// In the place of what is there.
    Replace,
    /// In the place of what has the same key.
    Merge,
    /// Reduced with what has the same key.
    Reduce,
}

/// The functions of a `mapReduce`.
struct Functions<'a> {
    map: &'a str,
    reduce: &'a str,
    finalize: Option<&'a str>,
    /// What is global for them.
    globals: Option<DocumentBuf>,
}

/// Runs a `mapReduce`.
pub fn run(request: &Request<'_>) -> Answer {
    let collection = request.collection()?;
    let database = write::as_validated(request, request.database()?.database().clone());
    refuse_view(request, &database, collection)?;
    let (mut aggregate, out) = read(request.fields()?, &database)?;
    let current = CurrentOperation::new(&request.operation);
    aggregate.interrupt = current.interrupt();
    let results = database.aggregate(Some(collection), &aggregate)?;
    let mut answer = DocumentBuilder::new();
    match out {
        Out::Inline => append_results(&mut answer, results)?,
        Out::To { database, collection, .. } => {
            for result in results {
                result?;
            }
            if let Some(database) = database {
                let place = document! { "db": database, "collection": collection };
                answer.append("result", Value::from(&place));
            } else {
                answer.append("result", Value::String(collection));
            }
        }
    }
    Ok(answer)
}

/// Reads the fields of a `mapReduce`, the collection's name apart: the pipeline that it is short
/// for, and what is done with its results.
///
/// # Errors
/// What a field can't be, by MongoDB's codes; a field that there is none of; what the functions of
/// `system.js` can't be.
pub fn read<'a>(
    mut fields: Fields<'a>,
    database: &Database,
) -> Result<(AggregateRequest, Out<'a>), Error> {
    let out = fields.value("out").ok_or_else(|| fields.missing("out"))?;
    let out = read_out(out)?;
    let aggregate = AggregateRequest {
        pipeline: pipeline(&mut fields, &out, database)?,
        variables: fields.document("let")?.map(|variables| variables.to_buf()),
        collation: fields.collation()?,
        hint: None,
        in_memory_only: false,
        interrupt: Interrupt::default(),
    };
    for name in ["bypassDocumentValidation", "jsMode", "verbose"] {
        fields.boolean(name)?;
    }
    fields.finish()?;
    Ok((aggregate, out))
}

/// Refuses a view.
///
/// # Errors
/// `CommandNotSupportedOnView` (166).
pub fn refuse_view(request: &Request<'_>, database: &Database, name: &str) -> Result<(), Error> {
    if database.pipeline_of_view(name, &FindRequest::default())?.is_none() {
        return Ok(());
    }
    let message = format!(
        "Namespace {} is a view, not a collection: mapReduce is not supported on views",
        request.namespace(name)
    );
    Err(Error::invalid(Code::CommandNotSupportedOnView, message))
}

fn append_results(
    answer: &mut DocumentBuilder,
    results: impl Iterator<Item = Result<DocumentBuf, Error>>,
) -> Result<(), Error> {
    answer.begin_array("results");
    for result in results {
        answer.push(Value::Document(result?.view()));
        if BATCH_BYTES_MAX < answer.bytes() {
            let message = "the results of a mapReduce with inline output exceed 16 MB";
            return Err(Error::invalid(Code::BSONObjectTooLarge, message));
        }
    }
    answer.end();
    Ok(())
}

/// Reads `out`: a collection's name, or `{inline: 1}`, `{replace: name, db: name}` and the like.
fn read_out(out: Value<'_>) -> Result<Out<'_>, Error> {
    let refuse = |message: &str| Err(Error::invalid(Code::BadValue, message));
    let out = match out {
        Value::String(collection) => {
            return Ok(Out::To { how: How::Replace, database: None, collection });
        }
        Value::Document(out) => out,
        _ => return refuse("'out' must be either a string or an object"),
    };
    let (mut database, mut found) = (None, None);
    for (name, value) in out.iter() {
        let how = match (name, value) {
            ("inline", value) if value.as_integer() == Some(1) => {
                found = Some(Out::Inline);
                continue;
            }
            ("db", Value::String(name)) => {
                database = Some(name);
                continue;
            }
            ("sharded" | "nonAtomic", Value::Boolean(_)) => continue,
            ("replace", Value::String(_)) => How::Replace,
            ("merge", Value::String(_)) => How::Merge,
            ("reduce", Value::String(_)) => How::Reduce,
            _ => {
                return refuse(&format!(
                    "'out' can't have this field, or this value of it: {name}"
                ));
            }
        };
        if found.is_some() {
            return refuse("'out' has one of 'inline', 'replace', 'merge' and 'reduce'");
        }
        let collection = value.as_str().unwrap_or_default();
        found = Some(Out::To { how, database: None, collection });
    }
    match found {
        Some(Out::To { how, collection, .. }) => Ok(Out::To { how, database, collection }),
        Some(Out::Inline) if database.is_none() => Ok(Out::Inline),
        _ => refuse("'out' has one of 'inline', 'replace', 'merge' and 'reduce'"),
    }
}

/// The stages that a `mapReduce` is short for.
fn pipeline(
    fields: &mut Fields<'_>,
    out: &Out<'_>,
    database: &Database,
) -> Result<ValueBuf, Error> {
    let functions = Functions {
        map: code(fields, "map")?.ok_or_else(|| fields.missing("map"))?,
        reduce: code(fields, "reduce")?.ok_or_else(|| fields.missing("reduce"))?,
        finalize: code(fields, "finalize")?,
        globals: globals(fields.document("scope")?, database.stored_functions()?),
    };
    let mut stages = DocumentBuilder::new();
    stages.begin_array("pipeline");
    let mut stage = |name: &str, value: Value<'_>| {
        stages.push_begin_document().append(name, value).end();
    };
    for (name, field) in [("$match", "query"), ("$sort", "sort")] {
        if let Some(value) = fields.document(field)?.filter(|value| !value.is_empty()) {
            stage(name, Value::Document(value));
        }
    }
    if let Some(limit) = fields.integer("limit")?.filter(|limit| *limit != 0) {
        stage("$limit", Value::Int64(limit));
    }
    stage("$project", Value::from(&functions.emitting()));
    stage("$unwind", Value::String("$emits"));
    stage("$group", Value::from(&functions.reducing()));
    if let Some(finalizing) = functions.finalizing() {
        stage("$project", Value::from(&finalizing));
    }
    match out {
        Out::Inline => {}
        Out::To { how: How::Replace, database, collection } => {
            stage("$out", place(*database, collection).as_value());
        }
        Out::To { how, database, collection } => {
            let merge = functions.merging(*how, &place(*database, collection));
            stage("$merge", Value::from(&merge));
        }
    }
    stages.end();
    let stages = stages.build();
    Ok(stages.get("pipeline").map_or(Value::Null.to_buf(), |stages| stages.to_buf()))
}

/// What is global for the functions: `scope`, and what is stored, which counts where both have a
/// name.
fn globals(scope: Option<Document<'_>>, stored: Option<DocumentBuf>) -> Option<DocumentBuf> {
    let Some(stored) = stored else { return scope.map(|scope| scope.to_buf()) };
    let mut globals = DocumentBuilder::new();
    let scope = scope.into_iter().flat_map(|scope| scope.iter());
    for (name, value) in scope.filter(|(name, _)| stored.get(name).is_none()).chain(stored.iter()) {
        globals.append(name, value);
    }
    Some(globals.build())
}

/// The source of a function.
fn code<'a>(fields: &mut Fields<'a>, name: &str) -> Result<Option<&'a str>, Error> {
    match fields.value(name) {
        None => Ok(None),
        Some(Value::String(source) | Value::JavaScript(source)) => Ok(Some(source)),
        Some(Value::JavaScriptWithScope { code, scope }) if scope.is_empty() => Ok(Some(code)),
        Some(value) => Err(fields.wrong_type(name, value, "types '[string, javascript]'")),
    }
}

/// Returns where results go: `{db, coll}`, or a collection's name in the same database.
fn place(database: Option<&str>, collection: &str) -> ValueBuf {
    match database {
        Some(database) => ValueBuf::from(document! { "db": database, "coll": collection }),
        None => Value::String(collection).to_buf(),
    }
}

impl Functions<'_> {
    fn emitting(&self) -> DocumentBuf {
        let mut emit = DocumentBuilder::new();
        emit.append("this", Value::String("$$ROOT")).append("eval", Value::String(self.map));
        if let Some(globals) = &self.globals {
            emit.append("scope", Value::Document(globals.view()));
        }
        let emit = document! { "$_internalJsEmit": &emit.build() };
        document! { "_id": 0_i32, "emits": &emit }
    }

    fn reducing(&self) -> DocumentBuf {
        let reduce = document! { "data": "$emits", "eval": self.reduce };
        let reduce = document! { "$_internalJsReduce": &reduce };
        document! { "_id": "$emits.k", "value": &reduce }
    }

    /// Returns the call that makes the final value from a key and its value.
    fn finalizing(&self) -> Option<DocumentBuf> {
        let mut arguments = DocumentBuilder::new();
        arguments.begin_array("args");
        arguments.push(Value::String("$_id")).push(Value::String("$value")).end();
        Some(self.calling(self.finalize?, arguments))
    }

    fn merging(&self, how: How, into: &ValueBuf) -> DocumentBuf {
        let mut merge = DocumentBuilder::new();
        merge.append("into", into.as_value()).append("whenNotMatched", Value::String("insert"));
        if how == How::Merge {
            merge.append("whenMatched", Value::String("replace"));
            return merge.build();
        }
        let mut arguments = DocumentBuilder::new();
        arguments.begin_array("args").push(Value::String("$_id")).push_begin_array();
        arguments.push(Value::String("$value")).push(Value::String("$$new.value")).end().end();
        merge.begin_array("whenMatched");
        let again = self.calling(self.reduce, arguments);
        for calling in [Some(again), self.finalizing()].into_iter().flatten() {
            merge.push_begin_document().append("$project", Value::from(&calling)).end();
        }
        merge.end();
        merge.build()
    }

    /// A projection to what a function gives, to whose call the arguments belong.
    fn calling(&self, source: &str, mut call: DocumentBuilder) -> DocumentBuf {
        call.append("body", Value::String(source)).append("lang", Value::String("js"));
        let call = document! { "$function": &call.build() };
        document! { "value": &call }
    }
}
