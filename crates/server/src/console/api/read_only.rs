//! The commands that a read-only console runs (`--console-read-only`): those that are listed here,
//! and nothing else, whatever is added elsewhere.
//!
//! They change nothing that lasts, keep nothing from others, and leave nothing behind in the server
//! but a cursor that ends when it isn't used: so they belong to no session, begin no transaction,
//! and none of their cursors stays for good.

use frond_db::Error;
use frond_doc::extended_json::{self, Form};
use frond_doc::{Document, Value};
use frond_query::Code;

use crate::errors::error_document;

/// Commands that change nothing.
const READING: &[&str] = &[
    "buildInfo",
    "collStats",
    "connectionStatus",
    "count",
    "currentOp",
    "dbStats",
    "distinct",
    "find",
    "frondBlame",
    "frondConflicts",
    "frondDiff",
    "frondHelp",
    "frondHistory",
    "frondLog",
    "frondShow",
    "frondStatus",
    "getLog",
    "getMore",
    "hello",
    "hostInfo",
    "killCursors",
    "listCollections",
    "listCommands",
    "listDatabases",
    "listIndexes",
    "ping",
    "rolesInfo",
    "serverStatus",
    "top",
    "usersInfo",
];
/// Commands that only list where they have no field of their own.
const LISTING: &[&str] = &["frondBranch", "frondPolicy", "frondReflog", "frondRemote", "frondTag"];

/// Stages that write, or have the server keep its log from now on.
const LASTING: &[&str] = &["$changeStream", "$merge", "$out"];

/// Fields that no command may have: a session is remembered, a transaction keeps others waiting.
const OF_SESSIONS: &[&str] = &["autocommit", "lsid", "startTransaction", "txnNumber"];

/// Whether a command changes nothing.
pub(super) fn allows(command: Document<'_>) -> bool {
    let mut fields = command.iter();
    let Some((name, value)) = fields.next() else { return true };
    let is_refused = |(field, value): (&str, Value<'_>)| {
        OF_SESSIONS.contains(&field) || field == "noCursorTimeout" && value.is_truthy()
    };
    if command.iter().any(is_refused) {
        return false;
    }
    match name {
        "aggregate" => {
            let stages = command.get("pipeline").and_then(|stages| stages.as_array());
            stages.is_none_or(|stages| {
                !stages
                    .iter()
                    .filter_map(|stage| stage.as_document())
                    .any(|stage| stage.iter().any(|(name, _)| LASTING.contains(&name)))
            })
        }
        "explain" => value.as_document().is_none_or(allows),
        "frondMerge" => command.get("dryRun").is_some_and(|dry| dry.is_truthy()),
        _ if LISTING.contains(&name) => fields.all(|(name, _)| name == "limit" || name == "all"),
        _ => READING.contains(&name),
    }
}

/// Returns the error that is answered instead.
pub(super) fn refusal(name: &str) -> String {
    let message =
        format!("{name} may change something: this console is read only (--console-read-only)");
    let answer = error_document(&Error::invalid(Code::IllegalOperation, message));
    let mut text = String::new();
    extended_json::write(answer.view(), Form::Canonical, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use frond_doc::extended_json::parse;

    use super::*;
    use crate::commands::COMMANDS;

    #[test]
    fn commands_that_change_something_are_refused() {
        for (command, is_allowed) in [
            (r#"{"find": "c"}"#, true),
            (r#"{"aggregate": "c", "pipeline": [{"$match": {}}]}"#, true),
            (r#"{"aggregate": "c", "pipeline": [{"$match": {}}, {"$out": "d"}]}"#, false),
            (r#"{"aggregate": "c", "pipeline": [{"$merge": {"into": "d"}}]}"#, false),
            (r#"{"aggregate": 1, "pipeline": [{"$changeStream": {}}]}"#, false),
            (r#"{"explain": {"find": "c"}}"#, true),
            (r#"{"explain": {"update": "c"}}"#, false),
            (r#"{"frondBranch": 1}"#, true),
            (r#"{"frondBranch": 1, "branch": "b"}"#, false),
            (r#"{"frondReflog": 1, "limit": 5}"#, true),
            (r#"{"frondReflog": 1, "expireBefore": {"$date": "2026-01-01T00:00:00Z"}}"#, false),
            (r#"{"frondMerge": 1, "merge_in": "b", "dryRun": true}"#, true),
            (r#"{"frondMerge": 1, "merge_in": "b"}"#, false),
            (r#"{"insert": "c"}"#, false),
            (r#"{"killOp": 1, "op": 1}"#, false),
            (r#"{"doltCommit": 1}"#, false),
        ] {
            let parsed = parse(command).expect("JSON");
            assert_eq!(allows(parsed.view()), is_allowed, "{command}");
        }
    }

    #[test]
    fn the_lists_name_commands() {
        for name in READING.iter().chain(LISTING) {
            assert!(COMMANDS.iter().any(|command| command.name == *name), "{name}");
        }
    }
}
