//! What users of git and MongoDB type by habit, and what there is instead.
//!
//! A command or an option that isn't known is refused by the parser of arguments, which suggests
//! what is spelt like it: `switch` gives `fetch`, and `-v` that it be passed as a value. Where a
//! table here knows what was meant, that is printed and nothing else.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands, sorted.
pub const COMMANDS: &[(&str, &str)] = &[
    ("add", "nothing is staged: frond commit records the whole working state"),
    ("am", "frond apply takes what frond format-patch wrote"),
    ("checkout", "a branch is a database of its own: shop@sale; see frond restore, too"),
    ("config", "settings are options: frond serve --config FILE, --author, FROND_AUTHOR"),
    ("console", "a server has it: frond serve --console 127.0.0.1:27080"),
    ("dump", "frond backup copies everything, frond export a collection"),
    ("find", QUERIES),
    ("init", "frond import and frond serve make a data directory"),
    ("ls-files", "frond ls DATABASE lists the collections"),
    ("mongosh", "frond shell starts it"),
    ("mv", "a collection is renamed by a client: db.items.renameCollection(...)"),
    ("query", QUERIES),
    ("rm", "documents are deleted by a client: db.items.deleteMany({...}); see frond erase, too"),
    ("stash", "commit to a branch: frond branch shop later, then write to shop@later"),
    ("stop", "Ctrl-C or SIGTERM stops a server, as does db.shutdownServer() of a client"),
    ("switch", "a branch is a database of its own: shop@sale"),
    ("user", "users are made by a client: db.createUser({...}) in frond shell"),
    ("version", "frond --version tells it"),
    ("worktree", "every branch is one: shop@sale is read and written like any database"),
];

const QUERIES: &str =
    "frond shell queries as mongosh does; frond export -q FILTER prints documents";
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
        "shell",
        &["--quiet", "--norc", "--host", "--port", "--username", "-u", "--password", "-p", "--tls"],
        "options of mongosh stand behind --, as in frond shell shop -- --quiet",
    ),
    ("show", &["--name-only", "--name-status"], "--stat names what changed"),
    ("undo", &["-n"], "one change at a time; --change NUMBER names one of frond reflog"),
    ("", &["-v", "--verbose"], "frond --version tells the version; no command has a verbose form"),
];

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
            let instead = instead_of_option(command.unwrap_or_default(), &option);
            // That it may be passed as a value misleads: no command takes such values.
            if instead.is_some() || error.get(ContextKind::SuggestedArg).is_none() {
                error.remove(ContextKind::SuggestedArg);
                error.remove(ContextKind::Suggested);
            }
            instead
        }
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
