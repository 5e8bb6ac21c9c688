//! The tools: what each takes is described in `tools.json`, what it does here.
//!
//! *Invariant*: a command that writes runs on [`Bound::database`], and nothing that an agent gives
//! becomes a command's name or another field than the one it is meant for.

use std::borrow::Cow;
use std::sync::LazyLock;

use frond_doc::{Document, DocumentBuf, DocumentBuilder, Value, document, extended_json};

use crate::backend::Backend;
use crate::failure::Failure;
use crate::output::{answer_json, array_of, documents_of, json, text_of};

/// The list of tools that agents get.
static LISTED: LazyLock<DocumentBuf> = LazyLock::new(|| {
    extended_json::parse(include_str!("tools.json")).expect("the list of tools is JSON")
});

/// Tools that write.
const WRITING: &[&str] =
    &["insert", "update", "delete", "create_index", "commit", "discard", "propose"];
/// Documents that are given at most.
const DOCUMENTS_MAX: i64 = 100;
/// Text that is given at most; what is longer is cut, and says so.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Stages that write.
const WRITING_STAGES: &[&str] = &["$out", "$merge"];
/// Stages that read another collection, which may be one of another database.
const JOINING_STAGES: &[&str] = &["$lookup", "$graphLookup", "$unionWith"];

/// The branch and the limits that the tools are bound to.
pub struct Bound {
    /// The database without a branch.
    pub name: String,
    /// The branch.
    pub branch: String,
    /// The branch that others are merged into.
    pub default: String,
    /// The committer.
    pub author: String,
    /// Whether no tool writes.
    pub is_read_only: bool,
    /// The time that a call may take: others wait for it.
    pub seconds_max: u32,
}

/// A tool, as it is described to clients.
pub struct Tool<'a>(Document<'a>);

/// All tools.
pub fn all() -> impl Iterator<Item = Tool<'static>> {
    documents_of(LISTED.view(), "tools").map(Tool)
}

impl<'a> Tool<'a> {
    /// Its name.
    pub fn name(&self) -> &'a str {
        text_of(self.0, "name")
    }

    /// Checks that the arguments are those that it takes.
    ///
    /// # Errors
    /// The first that it doesn't know, or that is of another type.
    fn check(&self, arguments: Document<'_>) -> Result<(), Failure> {
        let within = |parent: Document<'a>, name: &str| {
            parent.get(name).and_then(|part| part.as_document()).unwrap_or(Document::empty())
        };
        let known = within(within(self.0, "inputSchema"), "properties");
        for (name, value) in arguments.iter() {
            let tool = self.name();
            let Some(schema) = known.get(name).and_then(|schema| schema.as_document()) else {
                return Err(Failure::failed(format!("{tool} takes no {name}")));
            };
            let expected = text_of(schema, "type");
            if !is_a(value, expected) {
                return Err(Failure::failed(format!("{name} must be of type {expected}")));
            }
        }
        Ok(())
    }

    /// It, with what clients ask people about.
    pub fn description(&self) -> DocumentBuf {
        let writes = WRITING.contains(&self.name());
        let mut answer = DocumentBuilder::new();
        for (name, value) in self.0.iter() {
            answer.append(name, value);
        }
        answer.begin_document("annotations").append("readOnlyHint", Value::Boolean(!writes));
        // A branch of its own can be thrown away.
        answer.append("destructiveHint", Value::Boolean(false)).end();
        answer.build()
    }
}

impl Bound {
    /// Whether a tool is offered.
    pub fn offers(&self, name: &str) -> bool {
        all().any(|tool| tool.name() == name) && !(self.is_read_only && WRITING.contains(&name))
    }

    /// Returns the instructions for an agent that begins.
    pub fn instructions(&self) -> String {
        let Bound { name, branch, default, .. } = self;
        match self.is_read_only {
            true => format!("You read the database {name}, all versions of it."),
            false => format!(
                "You work on the branch {branch} of the database {name}. You read all versions of it \
                 and write to this branch alone, so nothing you do touches {default}. Commit small \
                 steps, each with a message that says why. Look at diff before you end with propose: \
                 a person then merges, or doesn't. Values that JSON lacks are extended JSON: \
                 {{\"$oid\": \"...\"}}, {{\"$date\": \"...\"}}."
            ),
        }
    }

    /// Calls a tool that is offered.
    ///
    /// # Errors
    /// A refusal by the database, and arguments that are missing.
    pub fn call(
        &self,
        backend: &mut dyn Backend,
        name: &str,
        arguments: Document<'_>,
    ) -> Result<String, Failure> {
        let Some(tool) = all().find(|tool| tool.name() == name) else {
            return Err(Failure::failed(format!("there is no tool {name}")));
        };
        tool.check(arguments)?;
        let given = Given(arguments);
        let done = match name {
            "collections" => self.collections(backend, &given),
            "find" => self.find(backend, &given),
            "count" => self.count(backend, &given),
            "aggregate" => self.aggregate(backend, &given),
            "explain" => self.explain(backend, &given),
            "log" => self.log(backend, &given),
            "diff" => self.diff(backend, &given),
            "history" => self.history(backend, &given),
            "insert" => self.insert(backend, &given),
            "update" => self.update(backend, &given),
            "delete" => self.delete(backend, &given),
            "create_index" => self.create_index(backend, &given),
            "commit" => self.commit(backend, &given),
            "discard" => {
                let reset = document! { "frondReset": 1_i32, "hard": true };
                answer_text(backend.execute(&self.database(), &reset))
            }
            "propose" => self.propose(backend, &given),
            _ => Err(Failure::failed(format!("there is no tool {name}"))),
        };
        done.map(cut)
    }

    fn count(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut command = given.on("count")?;
        given.pass(&mut command, &[("filter", "query")]);
        self.run(backend, &self.version(given)?, command)
    }

    fn explain(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut find = given.on("find")?;
        given.pass(&mut find, &[("filter", "filter"), ("sort", "sort")]);
        let find = find.build();
        let mut explain = DocumentBuilder::new();
        explain.append("explain", Value::Document(find.view()));
        explain.append("verbosity", Value::String("executionStats"));
        self.run(backend, &self.database(), explain)
    }

    fn log(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondLog", Value::Int32(1));
        given.pass(&mut command, &[("collection", "collection")]);
        command.append("limit", Value::Int64(given.limit("limit", 20)));
        self.run(backend, &self.database(), command)
    }

    fn history(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut command = DocumentBuilder::new();
        command.append("frondHistory", Value::Int32(1));
        given.required("collection")?;
        given.required("id")?;
        given.pass(&mut command, &[("collection", "collection"), ("id", "document")]);
        self.run(backend, &self.database(), command)
    }

    fn insert(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut command = given.on("insert")?;
        given.required("documents")?;
        given.pass(&mut command, &[("documents", "documents")]);
        self.write(backend, command)
    }

    fn delete(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut command = given.on("delete")?;
        given.required("filter")?;
        command.begin_array("deletes").push_begin_document();
        given.pass(&mut command, &[("filter", "q")]);
        command.append("limit", Value::Int32(i32::from(!given.flag("many"))));
        command.end().end();
        self.write(backend, command)
    }

    /// Returns the name of the branch to write.
    fn database(&self) -> String {
        at(&self.name, &self.branch)
    }

    /// Returns the name of the version to read.
    fn version(&self, given: &Given<'_>) -> Result<String, Failure> {
        match given.0.get("version") {
            None => Ok(self.database()),
            Some(Value::String(version)) => Ok(at(&self.name, &self.of_branch(version))),
            Some(_) => Err(Failure::failed("version must be a string")),
        }
    }

    /// A version as a name of the database takes it, where `HEAD` is the default branch's: here it
    /// is the branch's own, with all that is counted from it.
    fn of_branch<'v>(&self, version: &'v str) -> Cow<'v, str> {
        let branch = &self.branch;
        match version.strip_prefix("HEAD") {
            // A branch alone is its working state.
            Some("") => Cow::Owned(format!("{branch}~0")),
            Some(rest) if rest.starts_with(['~', '^', '@']) => {
                Cow::Owned(format!("{branch}{rest}"))
            }
            _ if version.starts_with("@{") => Cow::Owned(format!("{branch}{version}")),
            _ => Cow::Borrowed(version),
        }
    }

    /// A command that ends in time.
    fn limited(&self, mut command: DocumentBuilder) -> DocumentBuf {
        command.append("maxTimeMS", Value::Int64(i64::from(self.seconds_max) * 1000));
        command.build()
    }

    fn run(
        &self,
        backend: &mut dyn Backend,
        database: &str,
        command: DocumentBuilder,
    ) -> Result<String, Failure> {
        answer_text(backend.execute(database, &self.limited(command)))
    }

    /// The documents of a cursor, one a line.
    fn documents(
        &self,
        backend: &mut dyn Backend,
        database: &str,
        command: DocumentBuilder,
    ) -> Result<String, Failure> {
        let mut lines = Vec::new();
        backend.for_each_document(database, &self.limited(command), &mut |document| {
            lines.push(json(Value::Document(document)));
            Ok(())
        })?;
        match lines.is_empty() {
            true => Ok("no documents".to_owned()),
            false => Ok(lines.join("\n")),
        }
    }

    fn write(
        &self,
        backend: &mut dyn Backend,
        command: DocumentBuilder,
    ) -> Result<String, Failure> {
        let answer = backend.execute(&self.database(), &self.limited(command))?;
        match documents_of(answer.view(), "writeErrors").next() {
            Some(error) => {
                let done = answer.get("n").map_or(String::new(), |n| format!(" (n: {})", json(n)));
                Err(Failure::failed(format!("{}{done}", text_of(error, "errmsg"))))
            }
            None => Ok(answer_json(&answer)),
        }
    }

    fn collections(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let database = self.version(given)?;
        let mut listed = Vec::new();
        let list = document! { "listCollections": 1_i32 };
        backend.for_each_document(&database, &list, &mut |found| {
            listed.push((text_of(found, "name").to_owned(), text_of(found, "type").to_owned()));
            Ok(())
        })?;
        listed.sort_unstable();
        let mut answer = DocumentBuilder::new();
        answer.begin_array("collections");
        for (name, kind) in &listed {
            answer.push_begin_document().append("name", Value::String(name));
            answer.append("type", Value::String(kind));
            if kind == "collection" {
                let count = backend.execute(&database, &document! { "count": name })?;
                answer.append("documents", count.get("n").unwrap_or(Value::Null));
                answer.begin_array("indexes");
                let indexes = document! { "listIndexes": name };
                backend.for_each_document(&database, &indexes, &mut |index| {
                    answer.push(Value::Document(index));
                    Ok(())
                })?;
                answer.end();
            }
            answer.begin_array("examples");
            let examples = document! { "find": name, "limit": 2_i32 };
            backend.for_each_document(&database, &examples, &mut |document| {
                answer.push(Value::Document(document));
                Ok(())
            })?;
            answer.end().end();
        }
        answer.end();
        Ok(answer_json(&answer.build()))
    }

    fn find(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut find = given.on("find")?;
        let same = ["filter", "projection", "sort", "skip"];
        given.pass(&mut find, &same.map(|name| (name, name)));
        find.append("limit", Value::Int64(given.limit("limit", DOCUMENTS_MAX)));
        self.documents(backend, &self.version(given)?, find)
    }

    fn aggregate(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut aggregate = given.on("aggregate")?;
        given.required("pipeline")?;
        let stages = array_of(given.0, "pipeline");
        let mut names = stages.iter().filter_map(|stage| stage.as_document()?.iter().next());
        if let Some((name, _)) = names.find(|(name, _)| WRITING_STAGES.contains(name)) {
            let what = format!("{name} writes: aggregate reads only");
            return Err(Failure::failed(what));
        }
        if stages.iter().any(reads_elsewhere) {
            let what = format!("db is refused: {} is all there is to read", self.name);
            return Err(Failure::failed(what));
        }
        aggregate.begin_array("pipeline");
        stages.iter().for_each(|stage| {
            aggregate.push(stage);
        });
        let limit = document! { "$limit": DOCUMENTS_MAX };
        aggregate.push(Value::Document(limit.view())).end();
        aggregate.begin_document("cursor").end();
        self.documents(backend, &self.version(given)?, aggregate)
    }

    fn diff(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut diff = DocumentBuilder::new();
        diff.append("frondDiff", Value::Int32(1));
        if given.0.get("from").is_none() && given.0.get("to").is_none() {
            // From where it parted to its last commit, and from there to what is there now.
            let base = format!("{}...{}", self.default, self.branch);
            let committed = document! { "frondDiff": 1_i32, "from": &base };
            let committed = answer_text(backend.execute(&self.database(), &committed))?;
            let waiting = answer_text(backend.execute(&self.database(), &diff.build()))?;
            return Ok(format!("committed: {committed}\nnot committed: {waiting}"));
        }
        given.pass(&mut diff, &[("from", "from"), ("to", "to")]);
        self.run(backend, &self.database(), diff)
    }

    fn update(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let mut command = given.on("update")?;
        given.required("filter")?;
        given.required("update")?;
        command.begin_array("updates").push_begin_document();
        given.pass(&mut command, &[("filter", "q"), ("update", "u")]);
        command.append("multi", Value::Boolean(given.flag("many")));
        command.append("upsert", Value::Boolean(given.flag("upsert")));
        command.end().end();
        self.write(backend, command)
    }

    fn create_index(
        &self,
        backend: &mut dyn Backend,
        given: &Given<'_>,
    ) -> Result<String, Failure> {
        let mut command = given.on("createIndexes")?;
        let key = given.required("key")?.as_document();
        let key = key.ok_or_else(|| Failure::failed("key must be an object"))?;
        // As drivers name them.
        let parts = key.iter().map(|(name, kind)| match kind {
            Value::String(kind) => format!("{name}_{kind}"),
            other => format!("{name}_{}", json(other)),
        });
        let name = parts.collect::<Vec<_>>().join("_");
        command.begin_array("indexes").push_begin_document();
        command.append("key", Value::Document(key)).append("name", Value::String(&name));
        if given.flag("unique") {
            command.append("unique", Value::Boolean(true));
        }
        command.end().end();
        self.write(backend, command)
    }

    fn commit(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let message = given.required("message")?.as_str().unwrap_or_default();
        let commit = document! { "frondCommit": 1_i32, "message": message, "author": &self.author };
        answer_text(backend.execute(&self.database(), &commit))
    }

    fn propose(&self, backend: &mut dyn Backend, given: &Given<'_>) -> Result<String, Failure> {
        let Bound { name, branch, default, .. } = self;
        let status = backend.execute(&self.database(), &document! { "frondStatus": 1_i32 })?;
        if status.get("dirty").is_some_and(|dirty| dirty.is_truthy()) {
            self.commit(backend, given)?;
        }
        let merge = document! { "frondMerge": 1_i32, "merge_in": branch, "dryRun": true };
        let tried = backend.execute(&at(name, default), &merge)?;
        let then = match text_of(tried.view(), "result") {
            "upToDate" => return Err(Failure::failed(format!("{default} has all of it already"))),
            "conflicts" => {
                "there are conflicts: merge the default branch's changes in by hand, or \
                            leave them to the person who merges"
            }
            _ => "it merges without a conflict",
        };
        Ok(format!(
            "proposed: {then}. A person looks at it with\n  frond diff {name} {default}...{branch}\n\
             and merges with\n  frond merge {name} {branch}\nor in the console.\n{}",
            answer_json(&tried)
        ))
    }
}

/// A tool's arguments.
struct Given<'a>(Document<'a>);

impl<'a> Given<'a> {
    /// A command on the collection that is given.
    fn on(&self, command: &str) -> Result<DocumentBuilder, Failure> {
        let collection = self.required("collection")?.as_str();
        let collection =
            collection.ok_or_else(|| Failure::failed("collection must be a string"))?;
        let mut builder = DocumentBuilder::new();
        builder.append(command, Value::String(collection));
        Ok(builder)
    }

    fn required(&self, name: &str) -> Result<Value<'a>, Failure> {
        self.0.get(name).ok_or_else(|| Failure::failed(format!("{name} is missing")))
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.is_truthy())
    }

    fn limit(&self, name: &str, default: i64) -> i64 {
        let given = self.0.get(name).and_then(|limit| limit.as_integer());
        given.unwrap_or(default).clamp(1, DOCUMENTS_MAX)
    }

    /// Appends arguments under the names that a command has for them.
    fn pass(&self, command: &mut DocumentBuilder, names: &[(&str, &str)]) {
        for (name, called) in names {
            if let Some(value) = self.0.get(name) {
                command.append(called, value);
            }
        }
    }
}

/// The name by which a database's version is reached.
fn at(name: &str, version: &str) -> String {
    format!("{name}@{}", version.replace('%', "%25"))
}

/// Whether a stage, or one within it at any depth, names a database.
fn reads_elsewhere(value: Value<'_>) -> bool {
    match value {
        Value::Array(array) => array.iter().any(reads_elsewhere),
        Value::Document(document) => document
            .iter()
            .any(|(name, value)| names_database(name, value) || reads_elsewhere(value)),
        _ => false,
    }
}

fn names_database(stage: &str, value: Value<'_>) -> bool {
    let Some(stage) = value.as_document().filter(|_| JOINING_STAGES.contains(&stage)) else {
        return false;
    };
    let from = stage.get("from").and_then(|from| from.as_document());
    [Some(stage), from].into_iter().flatten().any(|within| within.get("db").is_some())
}

fn answer_text(answer: Result<DocumentBuf, Failure>) -> Result<String, Failure> {
    answer.map(|answer| answer_json(&answer))
}

/// Whether a value is of a type of JSON's; of no type is any.
fn is_a(value: Value<'_>, expected: &str) -> bool {
    match expected {
        "object" => matches!(value, Value::Document(_)),
        "array" => matches!(value, Value::Array(_)),
        "string" => matches!(value, Value::String(_)),
        "boolean" => matches!(value, Value::Boolean(_)),
        "integer" => value.as_integer().is_some(),
        _ => true,
    }
}

/// A text that an agent can hold.
fn cut(mut text: String) -> String {
    if TEXT_BYTES_MAX < text.len() {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
        text.push_str("\n… cut: ask for less");
    }
    text
}
