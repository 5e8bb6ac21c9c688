//! What users of git and MongoDB type by habit, and what there is instead.
//!
//! A command or an option that isn't known is refused by the parser of arguments, which suggests
//! what is spelt like it: `switch` gives `fetch`, and `-v` that it be passed as a value. Where a
//! table here knows what was meant, that is printed and nothing else.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands, sorted.
pub const COMMANDS: &[(&str, &str)] = &[
    ("add", "nothing is staged: frond commit records the whole working state"),
    ("aggregate", QUERIES),
    ("am", "frond apply takes what frond format-patch wrote"),
    ("branches", "frond branch DATABASE lists them"),
    ("checkout", "a branch is a database of its own: shop@sale; see frond restore, too"),
    ("collections", "frond ls DATABASE lists them"),
    ("config", "settings are options: frond serve --config FILE, --author, FROND_AUTHOR"),
    ("console", "a server has it: frond serve --console 127.0.0.1:27080"),
    ("copy", COPIES),
    ("count", QUERIES),
    ("cp", COPIES),
    ("create", MADE_BY_USE),
    ("databases", "frond ls lists them"),
    ("dbs", "frond ls lists them"),
    ("delete", DROPS),
    ("drop", DROPS),
    ("dump", "frond backup copies everything, frond export a collection"),
    ("find", QUERIES),
    ("init", "frond import and frond serve make a data directory"),
    ("insert", "frond import reads documents; frond shell inserts them as mongosh does"),
    ("list", "frond ls lists the databases, frond ls DATABASE the collections of one"),
    ("ls-files", "frond ls DATABASE lists the collections"),
    ("mongodump", "mongodump itself works on a server; frond backup takes the history along"),
    ("mongoexport", "frond export -d DATABASE -c COLLECTION is it"),
    ("mongoimport", "frond import FILE -d DATABASE -c COLLECTION is it"),
    ("mongorestore", "frond import --dump DIR is it; mongorestore itself works on a server"),
    ("mongosh", "frond shell starts it"),
    ("mv", RENAMES),
    ("query", QUERIES),
    ("rename", RENAMES),
    ("rm", DROPS),
    ("rollback", TAKES_BACK),
    ("server", "frond serve is it"),
    ("start", "frond serve starts a server, frond shell a client"),
    ("stash", "commit to a branch: frond branch shop later, then write to shop@later"),
    ("stop", "Ctrl-C or SIGTERM stops a server, as does db.shutdownServer() of a client"),
    ("switch", "a branch is a database of its own: shop@sale"),
    ("tags", "frond tag DATABASE lists them"),
    ("unstage", NOTHING_STAGED),
    ("user", USERS),
    ("users", USERS),
    ("version", "frond --version tells it"),
    ("worktree", "every branch is one: shop@sale is read and written like any database"),
];

const QUERIES: &str =
    "frond shell queries as mongosh does; frond export -q FILTER prints documents";
const COPIES: &str = "a copy with all history is a clone: frond clone DIR#shop shop2 (DIR: a data \
                      directory, another one than it goes into); a copy of what is there is a \
                      branch: frond branch shop trial";
const MADE_BY_USE: &str =
    "the first insert of a client, or frond import, makes databases and collections";
const DROPS: &str = "a client drops and deletes: db.dropDatabase(), db.items.drop(), \
                     db.items.deleteMany({...}); frond branch DATABASE -d BRANCH deletes a branch, \
                     and frond erase removes documents from all history";
const RENAMES: &str = "a client renames a collection: db.items.renameCollection(...); frond branch \
                       DATABASE --move BRANCH NAME renames a branch";
const TAKES_BACK: &str = "frond undo takes back the last action, frond revert one commit, frond reset \
                          moves a branch";
const USERS: &str = "users are made by a client: db.createUser({...}) in frond shell";
const FIRST: &str = "the database stands first, without an option: frond log shop";
const SERVER: &str = "--uri HOST:PORT names a running server";
const LOGIN: &str =
    "--uri mongodb://USER@HOST:PORT/ names a user, and FROND_PASSWORD has the password";
const WHERE_TO_SERVE: &str =
    "--listen HOST:PORT and --data DIR say where; frond mongod takes mongod's options";
const FOREGROUND: &str = "a server stays in the foreground: a shell's & puts it into the background, \
                          and systemd keeps it (docs/operate.md)";
const FILE_ALONE: &str =
    "the file is named without an option: frond import items.json -d shop -c items";
const NOTHING_STAGED: &str = "nothing is staged: a commit records the whole working state";
const OF_REMOTES: &str = "a remote's branches are versions, origin/main: frond fetch lists them";
const COMMITS_AT_ONCE: &str =
    "it commits at once; frond reset DATABASE HEAD~1 then leaves the changes uncommitted";
const BY_SIDE: &str = "--on-conflict ours or --on-conflict theirs decides conflicts";
const ONE_BRANCH: &str = "one version at a time, or a range: main..sale, main...sale";
const NEWEST_FIRST: &str = "commits come newest first; with --json each is a line that tac turns";
const OWN_FORMAT: &str = "--oneline, --graph, --stat and --json are the formats";

/// Options of a command, or of any (`""`).
pub const OPTIONS: &[(&str, &[&str], &str)] = &[
    ("branch", &["-a", "--all", "-r", "--remotes"], OF_REMOTES),
    ("branch", &["-c", "--copy"], "frond branch DATABASE NEW OLD makes one where OLD is"),
    ("branch", &["-u", "--set-upstream-to"], "frond push and pull name the remote each time"),
    ("cherry-pick", &["-n", "--no-commit"], COMMITS_AT_ONCE),
    ("clone", &["-b", "--branch"], "all branches come; DATABASE@BRANCH opens one"),
    ("commit", &["-a", "--all"], NOTHING_STAGED),
    ("commit", &["-F", "--file"], "-m \"$(cat FILE)\" takes the message from a file"),
    ("commit", &["--no-edit"], "--amend keeps the message unless -m gives another"),
    ("diff", &["--cached", "--staged"], NOTHING_STAGED),
    ("diff", &["--name-only", "--name-status"], "--stat names what changed"),
    ("export", &["--db"], "-d DATABASE names it"),
    ("export", &["--json"], "it writes JSON unless --format says otherwise: a document per line"),
    ("export", &["--type"], "--format json, array, csv or parquet is it"),
    ("export", &["--jsonArray"], "--format array is it"),
    ("export", &["--jsonFormat"], "--canonical writes canonical extended JSON, relaxed otherwise"),
    ("import", &["--db"], "-d DATABASE names it"),
    ("import", &["--file"], FILE_ALONE),
    ("import", &["--type"], "--format json, csv, tsv, bson or parquet is it; the name tells, too"),
    ("import", &["--headerline"], "the first line of CSV and TSV names the fields, always"),
    ("import", &["--jsonArray"], "an array is recognised by itself"),
    ("import", &["--stopOnError"], "--stop-on-error is it"),
    ("import", &["--ignoreBlanks"], "--ignore-blanks is it"),
    ("import", &["--upsert", "--upsertFields"], "--mode upsert replaces documents by their _id"),
    ("log", &["--all", "--branches"], ONE_BRANCH),
    ("log", &["--reverse"], NEWEST_FIRST),
    ("log", &["--format", "--pretty", "--name-only"], OWN_FORMAT),
    ("log", &["--merges", "--no-merges"], "--first-parent follows one line of descent"),
    (
        "merge",
        &["--no-commit"],
        "--dry-run shows what it would do; --abort ends one with conflicts",
    ),
    ("merge", &["-X", "--strategy-option", "-s", "--strategy", "--ours", "--theirs"], BY_SIDE),
    ("pull", &["--rebase"], "frond fetch DATABASE, then frond rebase DATABASE origin/main"),
    ("push", &["-f", "--force"], "--force-with-lease replaces the branch if it is as last seen"),
    ("push", &["-u", "--set-upstream"], "frond push and pull name the remote each time"),
    ("rebase", &["-i", "--interactive", "--onto"], "frond cherry-pick takes single commits"),
    ("restore", &["-s", "--source"], "--from VERSION names where it comes from"),
    ("revert", &["-n", "--no-commit"], COMMITS_AT_ONCE),
    (
        "serve",
        &[
            "--address",
            "--bind",
            "--bind-ip",
            "--bind_ip",
            "--dbpath",
            "--dir",
            "--directory",
            "--host",
            "--path",
            "--port",
            "--replSet",
            "-p",
        ],
        WHERE_TO_SERVE,
    ),
    ("serve", &["--background", "--daemon", "--detach", "--fork", "-d"], FOREGROUND),
    (
        "shell",
        &["--quiet", "--norc", "--host", "--port", "--username", "-u", "--password", "-p", "--tls"],
        "options of mongosh stand behind --, as in frond shell shop -- --quiet",
    ),
    ("show", &["--name-only", "--name-status"], "--stat names what changed"),
    ("undo", &["-n"], "one change at a time; --change NUMBER names one of frond reflog"),
    ("", &["-d", "--database", "--db"], FIRST),
    ("", &["--host", "--port"], SERVER),
    ("", &["-p", "--password", "-u", "--user", "--username"], LOGIN),
    ("", &["-v", "--verbose"], "frond --version tells the version; no command has a verbose form"),
];

/// What a word too many was meant for, by command.
const WORDS: &[(&str, &str)] = &[
    ("commit", "-m says why: frond commit shop -m 'first items'"),
    ("export", "-d names the database, -c the collection: frond export -d shop -c items"),
    (
        "import",
        "-d names the database, -c the collection: frond import items.json -d shop -c items",
    ),
    ("ls", "frond ls lists no documents: frond export -d shop -c items prints them"),
    (
        "merge",
        "first what is merged into, a database, then what is merged in: frond merge shop sale, frond merge \
         shop@sale main",
    ),
    ("reset", "one version is enough: frond restore shop items --from VERSION resets a collection"),
];

/// What to do where no database is named.
const NO_DATABASE: &str = "the database stands first, as in  frond log shop; frond ls lists them";

/// Takes from `error` what leads astray, and returns what was meant where it is known.
pub fn correct(error: &mut clap::Error, command: Option<&str>) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            suggest_no_hidden(error);
            let instead = instead_of_command(&text(error, ContextKind::InvalidSubcommand)?)?;
            error.remove(ContextKind::SuggestedSubcommand);
            error.remove(ContextKind::Suggested);
            Some(instead)
        }
        ErrorKind::UnknownArgument => {
            let option = text(error, ContextKind::InvalidArg)?;
            let command = command.unwrap_or_default();
            let instead = match option.starts_with('-') {
                true => instead_of_option(command, &option),
                false => WORDS.iter().find(|(of, _)| *of == command).map(|(_, meant)| *meant),
            };
            // That it may be passed as a value misleads: no command takes such values.
            if instead.is_some() || error.get(ContextKind::SuggestedArg).is_none() {
                error.remove(ContextKind::SuggestedArg);
                error.remove(ContextKind::Suggested);
            }
            instead
        }
        ErrorKind::MissingRequiredArgument => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing))
                if missing.iter().any(|name| name == "<DATABASE>") =>
            {
                Some(NO_DATABASE)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Takes the command that only shells call from what is spelt like the one that was given.
fn suggest_no_hidden(error: &mut clap::Error) {
    const HIDDEN: &str = "complete";
    let suggested = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(word)) => vec![word],
        Some(ContextValue::Strings(words)) => words,
        _ => Vec::new(),
    };
    let words: Vec<String> = suggested.into_iter().filter(|word| word != HIDDEN).collect();
    if !words.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(words));
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn instead_of_command(word: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(known, _)| *known == word).map(|(_, instead)| *instead)
}

/// `option` may carry its value: `--format=%h`.
fn instead_of_option(command: &str, option: &str) -> Option<&'static str> {
    let option = option.split('=').next().unwrap_or(option);
    let of = |named: &str| {
        let found = OPTIONS.iter().find(|(of, words, _)| *of == named && words.contains(&option));
        found.map(|(_, _, instead)| *instead)
    };
    of(command).or_else(|| of(""))
}
