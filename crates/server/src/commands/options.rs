//! The options that MongoDB documents of each command, what type each takes, and how it stands
//! here.
//!
//! A test sends each option to its command, with a wrong type and with a right one, so that the
//! table says what the parsers do. Options of every command (`maxTimeMS`, `readConcern`, ...) stand
//! under the first name.

use frond_query::reference::{Family, Feature, Standing};

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A boolean or a number.
    Boolean,
    /// A number, as an integer.
    Number,
    /// A document.
    Document,
    /// An array.
    Array,
    /// A string.
    Text,
    /// Anything, or something that the command checks in words of its own.
    Any,
}

/// One option of a command.
#[derive(Clone, Copy)]
struct CommandOption {
    #[cfg_attr(not(test), expect(dead_code, reason = "the test sends what is of another kind"))]
    kind: Kind,
    feature: Feature,
}

const fn works(name: &'static str, kind: Kind) -> CommandOption {
    CommandOption { kind, feature: Feature::works(name) }
}

const fn refused(name: &'static str, kind: Kind) -> CommandOption {
    CommandOption { kind, feature: Feature::new(name, Standing::Refused("115")) }
}

/// Taken, and of no effect.
const fn idle(name: &'static str, kind: Kind) -> CommandOption {
    CommandOption { kind, feature: Feature::new(name, Standing::Differs("no effect")) }
}

const fn own(name: &'static str, kind: Kind) -> CommandOption {
    CommandOption { kind, feature: Feature::new(name, Standing::Own) }
}

use Kind::{Any, Array, Boolean, Document, Number, Text};

/// Options of every command.
const EVERY: &[CommandOption] = &[
    works("$clusterTime", Any),
    idle("$readPreference", Any),
    works("apiStrict", Any),
    works("apiVersion", Any),
    works("autocommit", Any),
    idle("comment", Any),
    works("lsid", Any),
    works("maxTimeMS", Any),
    works("readConcern", Any),
    works("startTransaction", Any),
    works("txnNumber", Any),
    works("writeConcern", Any),
];

/// A command: its name, a command that is right, and its options. `name.field` are the fields of an
/// element or a document in that field.
struct CommandOptions {
    title: &'static str,
    options: &'static [CommandOption],
}

const fn of(title: &'static str, options: &'static [CommandOption]) -> CommandOptions {
    CommandOptions { title, options }
}

#[rustfmt::skip]
static COMMANDS: &[CommandOptions] = &[
    of("`aggregate`", &[
        works("allowDiskUse", Boolean), works("bypassDocumentValidation", Boolean),
        works("collation", Document), works("cursor", Document), works("explain", Boolean),
        works("hint", Any), works("let", Document), works("pipeline", Array),
    ]),
    of("`bulkWrite`", &[
        works("bypassDocumentValidation", Boolean), works("cursor", Document),
        works("errorsOnly", Boolean), works("let", Document), works("nsInfo", Array),
        works("ops", Array), works("ordered", Boolean),
    ]),
    of("`cloneCollectionAsCapped`", &[works("size", Number), works("toCollection", Text)]),
    of("`collMod`", &[
        works("cappedMax", Number), works("cappedSize", Number),
        refused("changeStreamPreAndPostImages", Document), works("dryRun", Boolean),
        works("expireAfterSeconds", Any), works("index", Document), works("pipeline", Array),
        works("validationAction", Text), works("validationLevel", Text),
        works("validator", Document), works("viewOn", Text), own("versioned", Boolean),
    ]),
    of("`collMod.index`", &[
        works("expireAfterSeconds", Any), works("hidden", Boolean), works("keyPattern", Document),
        works("name", Text), works("prepareUnique", Boolean), works("unique", Boolean),
        own("newName", Text),
    ]),
    of("`collStats`", &[works("scale", Number)]),
    of("`convertToCapped`", &[works("size", Number)]),
    of("`count`", &[
        works("collation", Document), works("hint", Any), works("limit", Number),
        works("query", Document), works("skip", Number),
    ]),
    of("`create`", &[
        works("autoIndexId", Boolean), works("capped", Boolean),
        refused("changeStreamPreAndPostImages", Document), works("clusteredIndex", Any),
        works("collation", Document), CommandOption { kind: Document, feature: Feature::new("encryptedFields", Standing::Elsewhere("115")) },
        works("expireAfterSeconds", Any), refused("indexOptionDefaults", Document),
        works("max", Number), works("pipeline", Array), works("size", Number),
        refused("storageEngine", Document), refused("timeseries", Document),
        works("validationAction", Text), works("validationLevel", Text),
        works("validator", Document), works("viewOn", Text), own("versioned", Boolean),
    ]),
    of("`createIndexes`", &[works("commitQuorum", Any), works("indexes", Array)]),
    of("`dataSize`", &[
        idle("estimate", Boolean), works("keyPattern", Document), works("max", Document),
        works("min", Document),
    ]),
    of("`dbStats`", &[idle("freeStorage", Any), works("scale", Number)]),
    of("`delete.deletes`", &[
        works("collation", Document), works("hint", Any), works("limit", Number),
        works("q", Document),
    ]),
    of("`delete`", &[works("deletes", Array), works("let", Document), works("ordered", Boolean)]),
    of("`distinct`", &[
        works("collation", Document), works("hint", Any), works("key", Text),
        works("query", Document),
    ]),
    of("`dropIndexes`", &[works("index", Any)]),
    of("`explain`", &[works("verbosity", Text)]),
    of("`find`", &[
        works("allowDiskUse", Boolean), idle("allowPartialResults", Boolean),
        works("awaitData", Boolean), works("batchSize", Number), works("collation", Document),
        works("filter", Document), works("hint", Any), works("let", Document),
        works("limit", Number), works("max", Document), works("min", Document),
        works("noCursorTimeout", Boolean), idle("oplogReplay", Boolean),
        works("projection", Document), refused("returnKey", Boolean),
        CommandOption { kind: Boolean, feature: Feature::new("showRecordId", Standing::Differs("the key of `_id`, as in clustered collections")) }, works("singleBatch", Boolean), works("skip", Number),
        works("sort", Document), works("tailable", Boolean),
    ]),
    of("`findAndModify`", &[
        works("arrayFilters", Array), works("bypassDocumentValidation", Boolean),
        works("collation", Document), works("fields", Document), works("hint", Any),
        works("let", Document), works("new", Boolean), works("query", Document),
        works("remove", Boolean), works("sort", Document), works("update", Any),
        works("upsert", Boolean),
    ]),
    of("`getMore`", &[works("batchSize", Number), works("collection", Any)]),
    of("`insert`", &[
        works("bypassDocumentValidation", Boolean), works("documents", Array),
        works("ordered", Boolean),
    ]),
    of("`killCursors`", &[works("cursors", Array)]),
    of("`killOp`", &[works("op", Number)]),
    of("`listCollections`", &[
        idle("authorizedCollections", Boolean), works("cursor", Document),
        works("filter", Document), works("nameOnly", Boolean),
    ]),
    of("`listDatabases`", &[
        idle("authorizedDatabases", Boolean), works("filter", Document), works("nameOnly", Boolean),
    ]),
    of("`listIndexes`", &[works("cursor", Document)]),
    of("`renameCollection`", &[works("dropTarget", Boolean), works("to", Text)]),
    of("`update.updates`", &[
        works("arrayFilters", Array), works("c", Document), works("collation", Document),
        works("hint", Any), works("multi", Boolean), works("q", Document), works("sort", Document),
        works("u", Any), works("upsert", Boolean),
    ]),
    of("`update`", &[
        works("bypassDocumentValidation", Boolean), works("let", Document),
        works("ordered", Boolean), works("updates", Array),
    ]),
    of("`validate`", &[
        idle("checkBSONConformance", Boolean), refused("fixMultikey", Boolean),
        idle("full", Boolean), idle("metadata", Boolean), refused("repair", Boolean),
    ]),
];

/// The options of each command, as families.
pub fn families() -> Vec<Family> {
    let family = |title, options: &'static [CommandOption]| {
        Family::new(title, options.iter().map(|option| option.feature))
    };
    let commands = COMMANDS.iter().map(|command| family(command.title, command.options));
    [family("`every command`", EVERY)].into_iter().chain(commands).collect()
}

#[cfg(test)]
mod tests;
