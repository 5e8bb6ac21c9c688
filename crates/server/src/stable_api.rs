//! MongoDB's stable API, version 1: what a command may be and say when the client asks for no more
//! than that.
//!
//! 1. `apiVersion` must be "1"; `apiStrict` and `apiDeprecationErrors` go with it only.
//! 2. With `apiStrict: true`, commands, fields and stages that aren't in the version are refused
//!    (323), also in the command that an `explain` explains. Nothing of it is deprecated but a
//!    command for tests. Which commands and fields are in it, their tables say ([`crate::tables`]).
//! 3. The commands of a transaction, and those that go on with a cursor, say what the first said.
//! 4. Where `requireApiVersion` is set, a command without a version is refused.
//! 5. Version 2 has nothing but commands by which drivers are tested ([`TEST_COMMANDS`]). It is
//!    there only where `acceptApiVersion2` is set, as in MongoDB.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use frond_db::Error;
use frond_doc::{Array, Document, DocumentBuilder, Value};
use frond_query::Code;
use frond_query::pipeline::history_stages;

use crate::tables::{self, Field, Kind, inner_path};

/// Options of an index that are not in the API.
const UNSTABLE_INDEX_OPTIONS: &[&str] = &[
    "background",
    "bucketSize",
    "dropDups",
    "originalSpec",
    "prepareUnique",
    "sparse",
    "storageEngine",
];
/// Kinds of indexes that are not.
const UNSTABLE_INDEX_KINDS: &[&str] = &["geoHaystack", "text"];

/// Stages that are not, beside those of Frond's own.
const UNSTABLE_STAGES: &[&str] = &[
    "$currentOp",
    "$indexStats",
    "$listCatalog",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$listSearchIndexes",
    "$listSessions",
    "$planCacheStats",
    "$querySettings",
    "$queryStats",
    "$rankFusion",
    "$score",
    "$scoreFusion",
    "$search",
    "$searchMeta",
    "$shardedDataDistribution",
    "$vectorSearch",
];

/// A version of the API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApiVersion {
    /// The one that there is.
    One,
    /// One for tests.
    Two,
}

use ApiVersion::{One, Two};

impl ApiVersion {
    const ALL: [ApiVersion; 2] = [One, Two];

    /// Its name in commands.
    pub fn name(self) -> &'static str {
        match self {
            One => "1",
            Two => "2",
        }
    }
}

/// A command for tests of drivers, and the versions that it is in.
struct TestCommand {
    name: &'static str,
    versions: &'static [ApiVersion],
    /// The versions in which it is deprecated.
    deprecated: &'static [ApiVersion],
}

impl TestCommand {
    const fn of(name: &'static str, versions: &'static [ApiVersion]) -> TestCommand {
        TestCommand { name, versions, deprecated: &[] }
    }
}

const TEST_COMMANDS: &[TestCommand] = &[
    TestCommand { deprecated: &[One], ..TestCommand::of("testDeprecation", &[One]) },
    TestCommand { deprecated: &[Two], ..TestCommand::of("testDeprecationInVersion2", &[One, Two]) },
    TestCommand::of("testRemoval", &[One]),
    TestCommand::of("testVersion2", &[Two]),
    TestCommand::of("testVersions1And2", &[One, Two]),
];

/// A command's fields of the stable API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ApiParameters {
    /// `apiVersion`, if it is given.
    pub version: Option<ApiVersion>,
    /// `apiStrict`, if it is given.
    pub strict: Option<bool>,
    /// `apiDeprecationErrors`, if it is given.
    pub deprecation_errors: Option<bool>,
}

/// As MongoDB shows them.
impl fmt::Display for ApiParameters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.map(|version| format!("apiVersion: \"{}\"", version.name()));
        let strict = self.strict.map(|strict| format!("apiStrict: {strict}"));
        let errors =
            self.deprecation_errors.map(|errors| format!("apiDeprecationErrors: {errors}"));
        let all: Vec<String> = [version, strict, errors].into_iter().flatten().collect();
        if all.is_empty() {
            formatter.write_str("{}")
        } else {
            write!(formatter, "{{ {} }}", all.join(", "))
        }
    }
}

impl ApiParameters {
    /// Takes a field of a command, if it is one of these.
    ///
    /// # Errors
    /// `APIVersionError` for a version that there isn't; `TypeMismatch`.
    pub fn take(&mut self, name: &str, value: Value<'_>) -> Result<(), Error> {
        match (name, value) {
            ("apiVersion", Value::String(text)) => {
                let known = ApiVersion::ALL.into_iter().find(|version| version.name() == text);
                self.version = Some(known.ok_or_else(unknown_version)?);
            }
            ("apiStrict", Value::Boolean(strict)) => self.strict = Some(strict),
            ("apiDeprecationErrors", Value::Boolean(errors)) => {
                self.deprecation_errors = Some(errors);
            }
            ("apiVersion" | "apiStrict" | "apiDeprecationErrors", other) => {
                let expected = if name == "apiVersion" { "string" } else { "bool" };
                let message = format!(
                    "BSON field '{name}' is the wrong type '{}', expected type '{expected}'",
                    other.element_type().alias()
                );
                return Err(Error::invalid(Code::TypeMismatch, message));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a command that says this.
    ///
    /// # Errors
    /// `APIStrictError` if it, or something of it, isn't in the version; `APIDeprecationError`;
    /// `APIVersionError` for the version that is for tests, where it isn't there; 4886600, 498870.
    pub fn check(self, command: &str, body: Document<'_>, rules: &ApiRules) -> Result<(), Error> {
        let Some(version) = self.version else { return self.check_without_version(rules) };
        if version == Two && !rules.accepts_second() {
            return Err(unknown_version());
        }
        if self.is_strict() {
            check_strictly((command, version), body)?;
        }
        let name = version.name();
        match self.deprecation_errors == Some(true) && is_deprecated(command, version) {
            true => {
                let message = format!(
                    "Provided apiDeprecationErrors:true, but the command {command} is deprecated \
                     in API Version {name}."
                );
                Err(Error::invalid(Code::APIDeprecationError, message))
            }
            false => Ok(()),
        }
    }

    fn check_without_version(self, rules: &ApiRules) -> Result<(), Error> {
        if self.strict.is_some() || self.deprecation_errors.is_some() {
            let message =
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
            return Err(Error::invalid(Code::Location(4_886_600), message));
        }
        if rules.requires_version() {
            let message = "The apiVersion parameter is required, please configure your \
                           MongoClient's API version";
            return Err(Error::invalid(Code::Location(498_870), message));
        }
        Ok(())
    }

    /// Appends what is given.
    pub fn append(self, answer: &mut DocumentBuilder) {
        if let Some(version) = self.version {
            answer.append("apiVersion", Value::String(version.name()));
        }
        if let Some(strict) = self.strict {
            answer.append("apiStrict", Value::Boolean(strict));
        }
        if let Some(errors) = self.deprecation_errors {
            answer.append("apiDeprecationErrors", Value::Boolean(errors));
        }
    }

    /// Whether only what is in the version may be asked.
    pub fn is_strict(self) -> bool {
        self.strict == Some(true)
    }

    /// Checks that a command goes on with what another began: `what` began it, in words.
    ///
    /// # Errors
    /// `APIMismatchError`.
    pub fn check_same(self, command: &str, what: &str, first: ApiParameters) -> Result<(), Error> {
        if self == first {
            return Ok(());
        }
        let message =
            format!("API parameter mismatch: {command} used params {self}, {what} used {first}");
        Err(Error::invalid(Code::APIMismatchError, message))
    }
}

fn unknown_version() -> Error {
    Error::invalid(Code::APIVersionError, "API version must be \"1\"")
}

/// The versions that a command is in. Logins by certificates are, and are refused for themselves.
pub fn versions_of(name: &str) -> &'static [ApiVersion] {
    match TEST_COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => command.versions,
        None if tables::find(name).is_some_and(|table| table.is_stable) => &[One],
        None => &[],
    }
}

fn is_deprecated(name: &str, version: ApiVersion) -> bool {
    let command = TEST_COMMANDS.iter().find(|command| command.name == name);
    command.is_some_and(|command| command.deprecated.contains(&version))
}

fn refuse<T>(message: String) -> Result<T, Error> {
    Err(Error::invalid(Code::APIStrictError, message))
}

fn check_strictly((command, version): (&str, ApiVersion), body: Document<'_>) -> Result<(), Error> {
    if !versions_of(command).contains(&version) {
        let name = version.name();
        return refuse(format!(
            "Provided apiStrict:true, but the command {command} is not in API Version {name}. \
             Information on supported commands and migrations in API Version {name} can be found \
             at https://dochub.mongodb.org/core/manual-versioned-api"
        ));
    }
    if let Some(table) = tables::find(command) {
        check_fields(table.path, &|name| table.field(name), body)?;
    }
    for (name, value) in body.iter() {
        match (command, name, value) {
            ("aggregate" | "collMod" | "create", "pipeline", Value::Array(stages)) => {
                check_stages(stages)?;
            }
            ("createIndexes", "indexes", Value::Array(indexes)) => check_indexes(indexes)?,
            (
                "insert" | "update" | "delete" | "findAndModify",
                written,
                Value::String("system.js"),
            ) if written == command => {
                return refuse(format!(
                    "Provided apiStrict:true, but the command {command} attempts to write to system.js"
                ));
            }
            ("explain", "explain", Value::Document(explained)) => {
                let name = explained.iter().next().map_or("", |(name, _)| name);
                // If there is no such command, `explain` itself says so.
                if name != "explain" && !name.is_empty() {
                    check_strictly((name, version), explained)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses fields that may change, those of documents inside the command too.
fn check_fields(
    path: &str,
    find: &dyn Fn(&str) -> Option<&'static Field>,
    document: Document<'_>,
) -> Result<(), Error> {
    for (name, value) in document.iter() {
        let Some(field) = find(name) else { continue };
        if !field.is_stable {
            return refuse(format!(
                "BSON field '{path}.{name}' is not allowed with apiStrict:true."
            ));
        }
        let (Kind::Part(fields) | Kind::Each(fields)) = field.kind else { continue };
        let (path, find) = (inner_path(path, field), |name: &str| named(fields, name));
        let elements = value.as_array().into_iter().flat_map(|parts| parts.iter());
        for part in elements.chain([value]).filter_map(|part| part.as_document()) {
            check_fields(&path, &find, part)?;
        }
    }
    Ok(())
}

fn named(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    fields.iter().find(|field| field.name == name)
}

/// Refuses stages that may change.
///
/// # Errors
/// `APIStrictError`.
pub fn check_stages(stages: Array<'_>) -> Result<(), Error> {
    for stage in stages.iter() {
        let Some((name, options)) = stage.as_document().and_then(|stage| stage.iter().next())
        else {
            continue;
        };
        if UNSTABLE_STAGES.contains(&name) || history_stages().contains(&name) {
            return refuse(format!(
                "{name} is not allowed with 'apiStrict: true' in API Version 1"
            ));
        }
        let Some(options) = options.as_document() else { continue };
        if name == "$collStats" && options.iter().any(|(option, _)| option != "count") {
            let message = "only the 'count' option to $collStats is supported in API Version 1";
            return refuse(message.to_owned());
        }
        for (option, value) in options.iter() {
            let is_pipeline = name == "$facet"
                || (option == "pipeline" && matches!(name, "$lookup" | "$unionWith"));
            if let (true, Value::Array(stages)) = (is_pipeline, value) {
                check_stages(stages)?;
            }
        }
    }
    Ok(())
}

fn check_indexes(indexes: Array<'_>) -> Result<(), Error> {
    for index in indexes.iter().filter_map(|index| index.as_document()) {
        for (name, value) in index.iter() {
            if UNSTABLE_INDEX_OPTIONS.contains(&name) {
                return refuse(format!(
                    "BSON field 'createIndexes.indexes.{name}' is not allowed with apiStrict:true."
                ));
            }
            let kinds = value.as_document().filter(|_| name == "key");
            let kinds =
                kinds.iter().flat_map(|key| key.iter()).filter_map(|(_, kind)| kind.as_str());
            for kind in kinds {
                if UNSTABLE_INDEX_KINDS.contains(&kind) {
                    return refuse(format!(
                        "The index type '{kind}' is not allowed with apiStrict:true."
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The server's parameters of the API.
#[derive(Default)]
pub struct ApiRules {
    requires_version: AtomicBool,
    accepts_second: AtomicBool,
}

impl ApiRules {
    /// Whether clients must name the version: `requireApiVersion`.
    pub fn requires_version(&self) -> bool {
        self.requires_version.load(Ordering::Relaxed)
    }

    /// Sets it.
    pub fn require_version(&self, is_required: bool) {
        self.requires_version.store(is_required, Ordering::Relaxed);
    }

    /// Whether clients may name version 2: `acceptApiVersion2`.
    pub fn accepts_second(&self) -> bool {
        self.accepts_second.load(Ordering::Relaxed)
    }

    /// Has them do so.
    pub fn accept_second(&self) {
        self.accepts_second.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json;

    use super::*;
    use crate::commands::{COMMANDS, Command};

    fn check(command: &str) -> Option<i32> {
        let body = extended_json::parse(command).expect("JSON");
        let mut parameters = ApiParameters::default();
        let taken = body.iter().try_for_each(|(name, value)| parameters.take(name, value));
        let name = body.iter().next().expect("a name").0.to_owned();
        let rules = ApiRules::default();
        let checked = taken.and_then(|()| parameters.check(&name, body.view(), &rules));
        checked.err().map(|error| error.code.number())
    }

    /// The commands that MongoDB's `listCommands` lists in version 1, as far as they are here.
    #[test]
    fn commands_of_the_version() {
        let expected = "abortTransaction aggregate authenticate bulkWrite collMod commitTransaction \
                        count create createIndexes delete drop dropDatabase dropIndexes endSessions \
                        explain find findAndModify getMore hello insert killCursors \
                        listCollections listDatabases listIndexes ping refreshSessions \
                        saslContinue saslStart update";
        let is_in = |command: &&Command| !versions_of(command.name).is_empty();
        let names = COMMANDS.iter().filter(|command| !command.is_for_tests).filter(is_in);
        let names: Vec<&str> = names.map(|command| command.name).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn parameters_go_with_the_version() {
        for (command, expected) in [
            (r#"{"ping": 1}"#, None),
            (r#"{"ping": 1, "apiVersion": "1"}"#, None),
            (r#"{"ping": 1, "apiVersion": "2"}"#, Some(322)),
            (r#"{"ping": 1, "apiVersion": 1}"#, Some(14)),
            (r#"{"ping": 1, "apiVersion": "1", "apiStrict": 1}"#, Some(14)),
            (r#"{"ping": 1, "apiStrict": true}"#, Some(4_886_600)),
            (r#"{"ping": 1, "apiStrict": false}"#, Some(4_886_600)),
            (r#"{"ping": 1, "apiDeprecationErrors": true}"#, Some(4_886_600)),
            (r#"{"ping": 1, "apiVersion": "1", "apiDeprecationErrors": true}"#, None),
            (r#"{"dbStats": 1, "apiVersion": "1", "apiStrict": false}"#, None),
        ] {
            assert_eq!(check(command), expected, "{command}");
        }
        let nothing = ApiParameters::default();
        let body = frond_doc::document! { "ping": 1_i32 };
        let rules = ApiRules::default();
        rules.require_version(true);
        let required = nothing.check("ping", body.view(), &rules);
        let required = required.expect_err("a version is required");
        assert_eq!(required.code.number(), 498_870);
    }

    #[test]
    fn strict_mode_refuses_commands_outside_the_version() {
        let strict = |command: &str| {
            let body = command.strip_suffix('}').expect("a document");
            check(&format!(r#"{body}, "apiVersion": "1", "apiStrict": true}}"#))
        };
        let stage = |stage: &str| format!(r#"{{"aggregate": "c", "pipeline": [{stage}]}}"#);
        for (command, is_refused) in [
            (r#"{"dbStats": 1}"#.to_owned(), true),
            (r#"{"distinct": "c", "key": "a"}"#.to_owned(), true),
            (r#"{"frondCommit": 1}"#.to_owned(), true),
            (r#"{"saslStart": 1}"#.to_owned(), false),
            (r#"{"find": "c", "filter": {"tailable": 1}}"#.to_owned(), false),
            (r#"{"find": "c", "tailable": true}"#.to_owned(), true),
            (r#"{"find": "c", "min": {"a": 1}}"#.to_owned(), true),
            (r#"{"find": "c", "ntoreturn": 1}"#.to_owned(), true),
            (r#"{"find": "c", "$db": "d", "lsid": {"id": 1}}"#.to_owned(), false),
            (r#"{"count": "c", "fields": {}}"#.to_owned(), true),
            (r#"{"getMore": 1, "collection": "c", "term": 1}"#.to_owned(), true),
            (r#"{"hello": 1, "client": {}}"#.to_owned(), false),
            (r#"{"aggregate": "c", "pipeline": [], "explain": true}"#.to_owned(), true),
            (r#"{"collMod": "c", "index": {"name": "a", "hidden": true}}"#.to_owned(), false),
            (r#"{"collMod": "c", "index": {"name": "a", "unique": true}}"#.to_owned(), true),
            (r#"{"create": "c", "versioned": false}"#.to_owned(), true),
            (r#"{"insert": "c", "documents": [{}], "stmtId": 1}"#.to_owned(), false),
            (r#"{"create": "c", "capped": true, "size": 4096}"#.to_owned(), true),
            (r#"{"create": "c", "viewOn": "d", "pipeline": [{"$log": {}}]}"#.to_owned(), true),
            (r#"{"create": "c", "viewOn": "d", "pipeline": [{"$match": {}}]}"#.to_owned(), false),
            (r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a"}]}"#.to_owned(), false),
            (
                r#"{"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "sparse": true}]}"#
                    .to_owned(),
                true,
            ),
            (
                r#"{"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "a"}]}"#.to_owned(),
                true,
            ),
            (r#"{"insert": "system.js", "documents": [{}]}"#.to_owned(), true),
            (r#"{"explain": {"find": "c", "filter": {}}}"#.to_owned(), false),
            (r#"{"explain": {"find": "c", "returnKey": true}}"#.to_owned(), true),
            (r#"{"explain": {"distinct": "c", "key": "a"}}"#.to_owned(), true),
            (stage(r#"{"$match": {"$indexStats": 1}}"#), false),
            (stage(r#"{"$indexStats": {}}"#), true),
            (stage(r#"{"$diff": {}}"#), true),
            (stage(r#"{"$collStats": {"count": {}}}"#), false),
            (stage(r#"{"$collStats": {"storageStats": {}}}"#), true),
            (stage(r#"{"$facet": {"a": [{"$match": {}}]}}"#), false),
            (
                stage(r#"{"$lookup": {"from": "d", "as": "d", "pipeline": [{"$indexStats": {}}]}}"#),
                true,
            ),
            (
                stage(
                    r#"{"$facet": {"a": [{"$unionWith": {"coll": "c", "pipeline": [{"$planCacheStats": {}}]}}]}}"#,
                ),
                true,
            ),
        ] {
            assert_eq!(strict(&command), is_refused.then_some(323), "{command}");
        }
    }

    #[test]
    fn parameters_are_shown_as_mongodb_shows_them() {
        let all = ApiParameters {
            version: Some(One),
            strict: Some(false),
            deprecation_errors: Some(true),
        };
        let expected = r#"{ apiVersion: "1", apiStrict: false, apiDeprecationErrors: true }"#;
        assert_eq!(all.to_string(), expected);
        assert_eq!(ApiParameters::default().to_string(), "{}");
        let error =
            all.check_same("getMore", "the cursor-creating command", ApiParameters::default());
        let error = error.expect_err("another said nothing");
        assert_eq!(error.code.number(), 325);
        assert!(
            error.message.ends_with("the cursor-creating command used {}"),
            "{}",
            error.message
        );
    }
}
